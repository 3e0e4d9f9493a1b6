/* Houses: anybody signed in makes one and owns it; owners rename and delete it. */
#include "app/handlers.h"

#include "app/app.h"
#include "app/may.h"
#include "app/paging.h"
#include "app/record_json.h"
#include "app/signals.h"

static const struct input_text name_rules = {.bytes_max = RECORD_NAME_BYTES_MAX, .required = true};

static int answer_house(struct api_call *c, const struct house_record *house, int status)
{
    json_put_house(&c->answer, house);
    return api_answer(c, status);
}

int house_list(struct api_call *c)
{
    struct params p;
    struct house_list list;
    struct errmsg msg = {{0}};

    params_begin(&p, c->query, &c->memory, &c->error);
    struct store_page page = paging_read(&p);

    if (params_end(&p) != 0) {
        return API_FAILED;
    }
    int code = store_house_list(c->app->store, api_agent(c), &page, &c->memory, &list, &msg);

    if (code != 0) {
        return api_fail(c, code, &msg, "page");
    }
    paging_begin(c, "houses");
    for (size_t i = 0; i < list.count; i++) {
        paging_item(c, i);
        json_put_house(&c->answer, &list.items[i]);
        if (paging_is_full(c) && i + 1 < list.count) {
            return paging_end(c, list.items[i].id);
        }
    }
    return paging_end(c, list.next);
}

int house_create(struct api_call *c)
{
    struct input in;
    struct signals signals = {.count = 0};
    struct errmsg msg = {{0}};

    input_begin(&in, c->body, false, &c->memory, &c->error);
    struct slice name = input_text(&in, "name", &name_rules);

    if (input_end(&in) != 0) {
        return API_FAILED;
    }
    const struct house_create house = {.id = api_new_id(c),
                                       .name = name,
                                       .primary_thread_id = api_new_id(c),
                                       .thread_name = name,
                                       .owner_id = api_agent(c),
                                       .now_ms = c->now_ms};

    if (house.id.ptr == NULL || house.primary_thread_id.ptr == NULL) {
        return API_FAILED;
    }
    signals_add_stream(&signals, OUTBOX_CREATE, house.primary_thread_id);
    signals_add(&signals, c, house.primary_thread_id, api_agent(c), "signal.house.created", NULL);
    signals_add(&signals, c, house.primary_thread_id, api_agent(c), "signal.thread.created", NULL);
    if (signals_check(&signals, c) != 0) {
        return API_FAILED;
    }
    int code = store_house_create(c->app->store, &house, signals.items, signals.count, &msg);

    if (code != 0) {
        return api_fail(c, code, &msg, "agent");
    }
    (void)outbox_run(c->app->outbox, house.primary_thread_id); /* else it is tried again */
    return answer_house(c,
                        &(struct house_record){.id = house.id,
                                               .name = name,
                                               .primary_thread_id = house.primary_thread_id,
                                               .role = ROLE_OWNER,
                                               .created_ms = c->now_ms},
                        201);
}

int house_get(struct api_call *c)
{
    struct house_record house;

    if (may_house(c, c->params[0], ROLE_MEMBER, &house) != API_DONE) {
        return API_FAILED;
    }
    return answer_house(c, &house, 200);
}

int house_change(struct api_call *c)
{
    struct input in;
    struct house_record house;
    struct signals signals = {.count = 0};
    struct errmsg msg = {{0}};

    if (may_house(c, c->params[0], ROLE_OWNER, &house) != API_DONE) {
        return API_FAILED;
    }
    input_begin(&in, c->body, false, &c->memory, &c->error);
    struct slice name = input_text(&in, "name", &name_rules);

    if (input_end(&in) != 0) {
        return API_FAILED;
    }
    if (slice_equal(name, house.name)) {
        return answer_house(c, &house, 200);
    }
    signals_add(&signals, c, house.primary_thread_id, api_agent(c), "signal.house.renamed",
                (struct signal_member[]){{"name", name}, {NULL, {NULL, 0}}});
    if (signals_check(&signals, c) != 0) {
        return API_FAILED;
    }
    int code = store_house_rename(c->app->store, house.id, name, signals.items, signals.count,
                                  &msg);

    if (code != 0) {
        return api_fail(c, code, &msg, "house");
    }
    (void)outbox_run(c->app->outbox, house.primary_thread_id); /* else it is tried again */
    house.name = name;
    return answer_house(c, &house, 200);
}

int house_delete(struct api_call *c)
{
    struct house_record house;
    struct signals signals = {.count = 0};
    struct errmsg msg = {{0}};

    if (may_house(c, c->params[0], ROLE_OWNER, &house) != API_DONE) {
        return API_FAILED;
    }
    signals_add(&signals, c, house.primary_thread_id, api_agent(c), "signal.house.deleted", NULL);
    if (signals_check(&signals, c) != 0) {
        return API_FAILED;
    }
    int code = store_house_delete(c->app->store, house.id, c->now_ms, signals.items, signals.count,
                                  &msg);

    if (code != 0) {
        return api_fail(c, code, &msg, "house");
    }
    app_revoke(c->app, &(struct revocation){.house_id = house.id});
    outbox_wake(c->app->outbox); /* its threads may be many */
    return api_answer(c, 204);
}
