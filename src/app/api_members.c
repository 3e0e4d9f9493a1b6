/* Members: the only access that there is. Owners add, change and remove; anybody may leave. */
#include "app/handlers.h"

#include "app/app.h"
#include "app/grants.h"
#include "app/may.h"
#include "app/paging.h"
#include "app/record_json.h"
#include "app/signals.h"

static const struct input_text role_rules = {.bytes_max = 16, .required = true};

int member_list(struct api_call *c)
{
    struct params p;
    struct house_record house;
    struct member_list list;
    struct errmsg msg = {{0}};

    params_begin(&p, c->query, &c->memory, &c->error);
    struct store_page page = paging_read(&p);

    if (params_end(&p) != 0 || may_house(c, c->params[0], ROLE_MEMBER, &house) != API_DONE) {
        return API_FAILED;
    }
    int code = store_member_list(c->app->store, house.id, &page, &c->memory, &list, &msg);

    if (code != 0) {
        return api_fail(c, code, &msg, "house");
    }
    paging_begin(c, "members");
    for (size_t i = 0; i < list.count; i++) {
        paging_item(c, i);
        json_put_member(&c->answer, &list.items[i]);
        if (paging_is_full(c) && i + 1 < list.count) {
            return paging_end(c, list.items[i].agent_id);
        }
    }
    return paging_end(c, list.next);
}

/* What a refusal of the store means here. */
static int fail(struct api_call *c, int code, const struct errmsg *msg)
{
    return code == ERR_CONFLICT ? api_refuse(c, API_LAST_OWNER,
                                             "a house must keep an owner: make another member "
                                             "one first")
                                : api_fail(c, code, msg, "agent among its members");
}

static int read_role(struct api_call *c, enum member_role *ret_role)
{
    struct input in;

    input_begin(&in, c->body, false, &c->memory, &c->error);
    struct slice text = input_text(&in, "role", &role_rules);

    if (!in.failed && !role_parse(text, ret_role)) {
        input_refuse(&in, "role", "must be owner or member");
    }
    return input_end(&in) == 0 ? API_DONE : API_FAILED;
}

/* Since when the agent is a member; one that is none yet, from now on. */
static int find_added(struct api_call *c, struct slice house_id, struct slice agent_id,
                      int64_t *ret_ms)
{
    struct member_record member = {.added_ms = c->now_ms};
    struct errmsg msg = {{0}};
    int code = store_member_get(c->app->store, house_id, agent_id, &c->memory, &member, &msg);

    if (code != 0 && code != ERR_NOTFOUND) {
        return api_fail(c, code, &msg, "house");
    }
    *ret_ms = member.added_ms;
    return API_DONE;
}

int member_put(struct api_call *c)
{
    struct house_record house;
    struct agent_record agent;
    struct signals signals = {.count = 0};
    enum member_role role = ROLE_NONE;
    enum member_role before = ROLE_NONE;
    int64_t added_ms = 0;
    struct errmsg msg = {{0}};

    if (may_house(c, c->params[0], ROLE_OWNER, &house) != API_DONE ||
        read_role(c, &role) != API_DONE ||
        find_added(c, house.id, c->params[1], &added_ms) != API_DONE) {
        return API_FAILED;
    }
    int code = store_agent_get(c->app->store, c->params[1], &c->memory, &agent, &msg);

    if (code != 0 || agent.deleted_ms != 0) {
        return api_fail(c, code == 0 ? ERR_NOTFOUND : code, &msg, "agent");
    }
    struct member_record member = {.agent_id = agent.id,
                                   .role = role,
                                   .kind = agent.kind,
                                   .name = agent.name,
                                   .handle = agent.handle,
                                   .added_ms = c->now_ms};

    signals_add(&signals, c, house.primary_thread_id, api_agent(c), "signal.house.member_added",
                (struct signal_member[]){
                    {"agentId", agent.id}, {"role", role_text(role)}, {NULL, {NULL, 0}}});
    if (signals_check(&signals, c) != 0) {
        return API_FAILED;
    }
    code = store_member_put(c->app->store, house.id, &member, signals.items, signals.count, &before,
                            &msg);
    if (code != 0) {
        return fail(c, code, &msg);
    }
    if (before == ROLE_OWNER) {
        grants_forget(c->app->grants); /* what it reads, members may read too */
    }
    (void)outbox_run(c->app->outbox, house.primary_thread_id); /* else it is tried again */
    member.added_ms = before == ROLE_NONE ? c->now_ms : added_ms;
    json_put_member(&c->answer, &member);
    return api_answer(c, before == ROLE_NONE ? 201 : 200);
}

int member_remove(struct api_call *c)
{
    struct house_record house;
    struct signals signals = {.count = 0};
    struct slice agent_id = c->params[1];
    bool leaves = slice_equal(agent_id, api_agent(c));
    struct errmsg msg = {{0}};

    if (may_house(c, c->params[0], leaves ? ROLE_MEMBER : ROLE_OWNER, &house) != API_DONE) {
        return API_FAILED;
    }
    signals_add(&signals, c, house.primary_thread_id, api_agent(c), "signal.house.member_removed",
                (struct signal_member[]){{"agentId", agent_id}, {NULL, {NULL, 0}}});
    if (signals_check(&signals, c) != 0) {
        return API_FAILED;
    }
    int code = store_member_remove(c->app->store, house.id, agent_id, signals.items, signals.count,
                                   &msg);

    if (code != 0) {
        return fail(c, code, &msg);
    }
    app_revoke(c->app, &(struct revocation){.agent_id = agent_id, .house_id = house.id});
    (void)outbox_run(c->app->outbox, house.primary_thread_id); /* else it is tried again */
    return api_answer(c, 204);
}
