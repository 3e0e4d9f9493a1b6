/* The proxy: GET and HEAD of a thread's stream. Membership first, each time anew; then the stream's
 * own handlers answer, or the server that has the stream (upstream.h), as if it had been asked
 * directly. */
#include "app/handlers.h"

#include "app/app.h"
#include "app/grants.h"
#include "app/may.h"
#include "app/upstream.h"
#include "serve/handlers.h"
#include "serve/problem.h"
#include "thread/recency.h"

/* By the streams' own handlers. */
static void read_own(struct api_call *c, const char *name)
{
    struct exchange *x = c->x;
    struct errmsg msg = {{0}};

    x->work->name_len = strlen(name);
    memcpy(x->work->name, name, x->work->name_len);
    x->as_stream = true;
    int code = x->method == HTTP_GET ? query_parse(c->query, &x->query, &msg) : 0;

    if (code == 0) {
        code = x->method == HTTP_GET ? catchup_prepare(x, &msg) : head_prepare(x, &msg);
    }
    if (code == 0) {
        x->ready(x);
    } else {
        problem_answer_code(x, code, &msg);
    }
}

/* On the worker, with the exchange in hand. What is taken away from here on ends the read, by
 * app_revoke; what was taken away since the request came would be missed. */
static void read_here(struct api_call *c)
{
    char name[THREAD_STREAM_BYTES];

    if (grants_epoch(c->app->grants) != c->epoch) {
        api_look_again(c);
        return;
    }
    thread_stream_name(c->params[0], name);
    if (c->app->upstream != NULL) {
        upstream_read(c->app->upstream, c->x, slice_of(name), c->query);
    } else {
        read_own(c, name);
    }
}

static int hand_over(struct api_call *c)
{
    c->handover = read_here;
    return API_HANDOVER;
}

/* On a thread of the application. */
static int look_and_hand_over(struct api_call *c)
{
    return may_thread(c, c->params[0], ROLE_MEMBER) == API_DONE ? hand_over(c) : API_FAILED;
}

int thread_stream(struct api_call *c)
{
    int result = may_thread_by_heart(c, c->params[0]);

    if (result == API_PENDING && c->on_pool) {
        return look_and_hand_over(c);
    }
    if (result == API_PENDING) {
        api_run_on_pool(c, look_and_hand_over);
        return API_PENDING;
    }
    return result == API_DONE ? hand_over(c) : API_FAILED;
}
