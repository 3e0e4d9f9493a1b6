/* What was spent, for members. */
#include "app/handlers.h"

#include "app/app.h"
#include "app/may.h"
#include "app/record_json.h"
#include "thread/store_usage.h"

static int answer_sum(struct api_call *c, int code, const struct errmsg *msg,
                      const struct usage_sum *sum)
{
    if (code != 0) {
        return api_fail(c, code, msg, "record of spend");
    }
    json_put_usage(&c->answer, sum);
    return api_answer(c, 200);
}

int thread_usage(struct api_call *c)
{
    struct usage_sum sum;
    struct errmsg msg = {{0}};

    if (may_thread(c, c->params[0], ROLE_MEMBER) != API_DONE) {
        return API_FAILED;
    }
    int code = store_usage_thread(c->app->store, c->params[0], &c->memory, &sum, &msg);

    return answer_sum(c, code, &msg, &sum);
}

int house_usage(struct api_call *c)
{
    struct house_record house;
    struct usage_sum sum;
    struct errmsg msg = {{0}};

    if (may_house(c, c->params[0], ROLE_MEMBER, &house) != API_DONE) {
        return API_FAILED;
    }
    int code = store_usage_house(c->app->store, house.id, &c->memory, &sum, &msg);

    return answer_sum(c, code, &msg, &sum);
}
