/* One sentence for each kind of no. */
#include "app/may.h"

#include "app/app.h"
#include "app/grants.h"

static int refuse_stranger(struct api_call *c, const char *what)
{
    return api_refuse(c, API_FORBIDDEN, "only members of its house may see this %s", what);
}

static int judge(struct api_call *c, enum member_role role, enum member_role at_least,
                 const char *what)
{
    if (role == ROLE_NONE) {
        return refuse_stranger(c, what);
    }
    return role >= at_least
               ? API_DONE
               : api_refuse(c, API_FORBIDDEN, "only an owner of the house may do this");
}

int may_house(struct api_call *c, struct slice house_id, enum member_role at_least,
              struct house_record *ret_house)
{
    struct errmsg msg = {{0}};
    int code = store_house_get(c->app->store, house_id, api_agent(c), &c->memory, ret_house, &msg);

    return code != 0 ? api_fail(c, code, &msg, "house")
                     : judge(c, ret_house->role, at_least, "house");
}

int may_thread_by_heart(struct api_call *c, struct slice thread_id)
{
    if (!grants_find_access(c->app->grants, thread_id, c->caller.agent_id, &c->access)) {
        return API_PENDING;
    }
    return judge(c, c->access.role, ROLE_MEMBER, "thread");
}

int may_thread(struct api_call *c, struct slice thread_id, enum member_role at_least)
{
    struct errmsg msg = {{0}};
    uint64_t epoch = grants_epoch(c->app->grants);
    int code = store_thread_access(c->app->store, thread_id, api_agent(c), &c->access, &msg);

    if (code != 0) {
        return api_fail(c, code, &msg, "thread");
    }
    grants_keep_house(c->app->grants, thread_id, slice_of(c->access.house_id));
    if (c->access.role != ROLE_NONE) {
        grants_keep_access(c->app->grants, epoch, thread_id, c->caller.agent_id, &c->access);
    }
    return judge(c, c->access.role, at_least, "thread");
}

int may_agent(struct api_call *c, struct slice agent_id, struct agent_record *ret_agent)
{
    struct errmsg msg = {{0}};
    bool seen = false;
    int code = store_agent_get(c->app->store, agent_id, &c->memory, ret_agent, &msg);

    code = code == 0 && ret_agent->deleted_ms != 0 ? ERR_NOTFOUND : code;
    if (code != 0) {
        return api_fail(c, code, &msg, "agent");
    }
    if (slice_equal(ret_agent->id, api_agent(c)) ||
        slice_equal(ret_agent->created_by, api_agent(c))) {
        return API_DONE;
    }
    code = store_agent_seen(c->app->store, agent_id, api_agent(c), &seen, &msg);
    if (code != 0) {
        return api_fail(c, code, &msg, "agent");
    }
    return api_refuse(c, API_FORBIDDEN,
                      seen ? "only the agent itself, or who made it, may do this"
                           : "only who shares a house with this agent may see it");
}
