/* API keys of an agent: by the agent itself, or by who made it. */
#include "app/handlers.h"

#include "app/app.h"
#include "app/may.h"
#include "app/new_key.h"
#include "app/paging.h"
#include "app/record_json.h"

int key_list(struct api_call *c)
{
    struct params p;
    struct agent_record agent;
    struct key_list list;
    struct errmsg msg = {{0}};

    params_begin(&p, c->query, &c->memory, &c->error);
    struct store_page page = paging_read(&p);
    struct slice agent_id = params_text(&p, "agent_id", RECORD_ID_BYTES_MAX);

    if (params_end(&p) != 0 ||
        may_agent(c, agent_id.ptr == NULL ? api_agent(c) : agent_id, &agent) != API_DONE) {
        return API_FAILED;
    }
    int code = store_key_list(c->app->store, agent.id, &page, &c->memory, &list, &msg);

    if (code != 0) {
        return api_fail(c, code, &msg, "agent");
    }
    paging_begin(c, "keys");
    for (size_t i = 0; i < list.count; i++) {
        paging_item(c, i);
        json_put_key(&c->answer, &list.items[i]);
        if (paging_is_full(c) && i + 1 < list.count) {
            return paging_end(c, list.items[i].id);
        }
    }
    return paging_end(c, list.next);
}

int key_create(struct api_call *c)
{
    struct input in;
    struct agent_record agent;
    struct key_record record;
    char key[API_KEY_BYTES];
    struct errmsg msg = {{0}};

    input_begin(&in, c->body, true, &c->memory, &c->error);
    struct slice agent_id = input_text(&in, "agentId",
                                       &(struct input_text){.bytes_max = RECORD_ID_BYTES_MAX});
    struct slice name = input_text(
        &in, "name", &(struct input_text){.bytes_max = RECORD_NAME_BYTES_MAX, .null_ok = true});

    if (input_end(&in) != 0 ||
        may_agent(c, agent_id.ptr == NULL ? api_agent(c) : agent_id, &agent) != API_DONE ||
        new_key_make(c, agent.id, name, key, &record) != API_DONE) {
        return API_FAILED;
    }
    int code = store_key_create(c->app->store, &record, &msg);

    if (code == 0) {
        json_put_key(&c->answer, &record);
        c->answer.len -= c->answer.len > 0 ? 1 : 0; /* before its closing brace */
        json_put_text(&c->answer, "key", slice_of(key));
        buf_append_char(&c->answer, '}');
    }
    explicit_bzero(key, sizeof(key));
    return code == 0 ? api_answer(c, 201) : api_fail(c, code, &msg, "agent");
}

int key_revoke(struct api_call *c)
{
    struct agent_record agent;
    struct key_record record;
    struct errmsg msg = {{0}};
    int code = store_key_get(c->app->store, c->params[0], &c->memory, &record, &msg);

    if (code != 0) {
        return api_fail(c, code, &msg, "key");
    }
    if (may_agent(c, record.agent_id, &agent) != API_DONE) {
        return API_FAILED;
    }
    code = store_key_revoke(c->app->store, record.id, c->now_ms, &msg);
    if (code != 0) {
        return api_fail(c, code, &msg, "key");
    }
    app_revoke(c->app, &(struct revocation){.key_id = record.id});
    return api_answer(c, 204);
}
