/* Agents: people and bots. They belong to no house; they are changed by themselves and by who made
 * them, and leave a tombstone with their name. */
#include "app/handlers.h"

#include "app/app.h"
#include "app/may.h"
#include "app/new_key.h"
#include "app/paging.h"
#include "app/record_json.h"
#include "app/signals.h"
#include "thread/mention.h"

static const struct input_text name_rules = {.bytes_max = RECORD_NAME_BYTES_MAX, .required = true};
static const struct input_text description_rules = {
    .bytes_max = AGENT_TEXT_BYTES_MAX, .null_ok = true, .lines = true};
static const struct input_text model_rules = {.bytes_max = RECORD_NAME_BYTES_MAX, .null_ok = true};
static const struct input_text prompt_rules = {
    .bytes_max = AGENT_PROMPT_BYTES_MAX, .null_ok = true, .lines = true};

static int answer_agent(struct api_call *c, const struct agent_record *agent)
{
    json_put_agent(&c->answer, agent);
    return api_answer(c, 200);
}

int agent_list(struct api_call *c)
{
    struct params p;
    struct agent_list list;
    struct house_record house;
    struct errmsg msg = {{0}};

    params_begin(&p, c->query, &c->memory, &c->error);
    struct store_page page = paging_read(&p);
    const struct agent_query query = {
        .viewer_id = api_agent(c),
        .house_id = params_text(&p, "house_id", RECORD_ID_BYTES_MAX),
        .prefix = params_text(&p, "q", RECORD_NAME_BYTES_MAX),
    };

    if (params_end(&p) != 0 || (query.house_id.ptr != NULL &&
                                may_house(c, query.house_id, ROLE_MEMBER, &house) != API_DONE)) {
        return API_FAILED;
    }
    int code = store_agent_list(c->app->store, &query, &page, &c->memory, &list, &msg);

    if (code != 0) {
        return api_fail(c, code, &msg, "page");
    }
    paging_begin(c, "agents");
    for (size_t i = 0; i < list.count; i++) {
        paging_item(c, i);
        json_put_agent(&c->answer, &list.items[i]);
        if (paging_is_full(c) && i + 1 < list.count) {
            return paging_end(c, list.items[i].id);
        }
    }
    return paging_end(c, list.next);
}

static bool read_kind(struct input *in, enum agent_kind *ret_kind)
{
    struct slice kind = input_text(in, "kind", &(struct input_text){.bytes_max = 16});

    *ret_kind = slice_equal(kind, SLICE("human")) ? AGENT_HUMAN : AGENT_BOT;
    if (kind.ptr != NULL && *ret_kind == AGENT_BOT && !slice_equal(kind, SLICE("bot"))) {
        input_refuse(in, "kind", "must be bot or human");
    }
    return !in->failed;
}

int agent_create(struct api_call *c)
{
    struct input in;
    struct agent_record agent = {.created_by = api_agent(c), .created_ms = c->now_ms};
    struct key_record record;
    char handle[MENTION_HANDLE_BYTES];
    char key[API_KEY_BYTES];
    struct errmsg msg = {{0}};

    input_begin(&in, c->body, false, &c->memory, &c->error);
    (void)read_kind(&in, &agent.kind); /* input_end tells */
    agent.name = input_text(&in, "name", &name_rules);
    agent.description = input_text(&in, "description", &description_rules);
    agent.model = input_text(&in, "model", &model_rules);
    agent.system_prompt = input_text(&in, "systemPrompt", &prompt_rules);
    if (input_end(&in) != 0) {
        return API_FAILED;
    }
    agent.handle = (struct slice){handle, mention_handle(agent.name, handle)};
    agent.id = api_new_id(c);
    if (agent.id.ptr == NULL ||
        new_key_make(c, agent.id, SLICE("first"), key, &record) != API_DONE) {
        return API_FAILED;
    }
    int code = store_agent_create(c->app->store, &agent, &record, &msg);

    if (code == 0) {
        buf_append(&c->answer, SLICE("{\"agent\":"));
        json_put_agent(&c->answer, &agent);
        json_put_text(&c->answer, "apiKey", slice_of(key));
        buf_append_char(&c->answer, '}');
    }
    explicit_bzero(key, sizeof(key));
    return code == 0 ? api_answer(c, 201) : api_fail(c, code, &msg, "agent");
}

int agent_get(struct api_call *c)
{
    struct agent_record agent;
    struct errmsg msg = {{0}};
    bool seen = false;
    int code = store_agent_get(c->app->store, c->params[0], &c->memory, &agent, &msg);

    if (code == 0) {
        code = store_agent_seen(c->app->store, agent.id, api_agent(c), &seen, &msg);
    }
    if (code != 0) {
        return api_fail(c, code, &msg, "agent");
    }
    return seen
               ? answer_agent(c, &agent)
               : api_refuse(c, API_FORBIDDEN, "only who shares a house with this agent may see it");
}

int agent_change(struct api_call *c)
{
    struct input in;
    struct agent_record agent;
    char handle[MENTION_HANDLE_BYTES];
    struct agent_change change = {.set_name = false};
    struct errmsg msg = {{0}};

    if (may_agent(c, c->params[0], &agent) != API_DONE) {
        return API_FAILED;
    }
    input_begin(&in, c->body, false, &c->memory, &c->error);
    change.set_name = input_has(&in, "name");
    change.set_description = input_has(&in, "description");
    change.set_model = input_has(&in, "model");
    change.set_system_prompt = input_has(&in, "systemPrompt");
    change.name = input_text(&in, "name", &(struct input_text){.bytes_max = RECORD_NAME_BYTES_MAX});
    change.description = input_text(&in, "description", &description_rules);
    change.model = input_text(&in, "model", &model_rules);
    change.system_prompt = input_text(&in, "systemPrompt", &prompt_rules);
    if (input_end(&in) != 0) {
        return API_FAILED;
    }
    if (change.set_name) {
        change.handle = (struct slice){handle, mention_handle(change.name, handle)};
    }
    int code = store_agent_update(c->app->store, agent.id, &change, &c->memory, &agent, &msg);

    return code == 0 ? answer_agent(c, &agent) : api_fail(c, code, &msg, "agent");
}

/* The signals of an agent's leaving, one for each of its houses. */
struct leaving {
    struct outbox_item *items; /* in the call's memory */
    size_t count;
    size_t room;
};

static int add_leaving(struct api_call *c, struct leaving *l, const struct house_record *house,
                       struct slice agent_id)
{
    struct signals one = {.count = 0};

    if (l->count == l->room) {
        size_t room = l->room * 2 + STORE_PAGE_MAX;
        struct outbox_item *items = arena_try_alloc(&c->memory, room * sizeof(*items));

        if (items == NULL) {
            return api_refuse(c, API_BUSY,
                              "the agent is in too many houses to be deleted at once; "
                              "take it out of some first");
        }
        if (l->count > 0) {
            memcpy(items, l->items, l->count * sizeof(*items));
        }
        l->items = items;
        l->room = room;
    }
    signals_add(&one, c, house->primary_thread_id, api_agent(c), "signal.house.member_removed",
                (struct signal_member[]){{"agentId", agent_id}, {NULL, {NULL, 0}}});
    if (signals_check(&one, c) != 0) {
        return API_FAILED;
    }
    l->items[l->count++] = one.items[0];
    return API_DONE;
}

static int compose_leaving(struct api_call *c, struct slice agent_id, struct leaving *ret)
{
    struct store_page page = {.limit = STORE_PAGE_MAX};
    struct house_list list;
    struct errmsg msg = {{0}};

    do {
        int code = store_house_list(c->app->store, agent_id, &page, &c->memory, &list, &msg);

        if (code != 0) {
            return api_fail(c, code, &msg, "agent");
        }
        for (size_t i = 0; i < list.count; i++) {
            if (add_leaving(c, ret, &list.items[i], agent_id) != API_DONE) {
                return API_FAILED;
            }
        }
        page.after = list.next;
    } while (list.next.ptr != NULL);
    return API_DONE;
}

int agent_delete(struct api_call *c)
{
    struct agent_record agent;
    struct leaving leaving = {.count = 0};
    struct errmsg msg = {{0}};

    if (may_agent(c, c->params[0], &agent) != API_DONE ||
        compose_leaving(c, agent.id, &leaving) != API_DONE) {
        return API_FAILED;
    }
    int code = store_agent_delete(c->app->store, agent.id, c->now_ms, leaving.items, leaving.count,
                                  &msg);

    if (code == ERR_CONFLICT) {
        return api_refuse(c, API_LAST_OWNER, "%s", msg.text);
    }
    if (code != 0) {
        return api_fail(c, code, &msg, "agent");
    }
    app_revoke(c->app, &(struct revocation){.agent_id = agent.id});
    outbox_wake(c->app->outbox); /* its houses may be many */
    return api_answer(c, 204);
}
