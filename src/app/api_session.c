/* Sessions: an API key in, a cookie out, for pages in a browser. */
#include "app/handlers.h"

#include "app/app.h"
#include "app/paging.h"
#include "app/record_json.h"
#include "thread/store_house.h"

#define SESSION_SECONDS (30u * 24 * 3600)
#define HOUSES_MAX      200u

/* The key in the body, checked: 0 and whose it is. */
static int find_key(struct api_call *c, struct slice key, struct caller_record *ret)
{
    char hash[API_KEY_HASH_BYTES];
    struct errmsg msg = {{0}};
    int code = ERR_NOTFOUND;

    if (api_key_shape_good(key)) {
        if (!api_key_hash(key, hash)) {
            return api_refuse(c, API_BUSY, "the server has no memory for this just now");
        }
        code = store_key_find(c->app->store, slice_of(hash), &c->memory, ret, &msg);
    }
    if (code == ERR_NOTFOUND) {
        return api_refuse_attempt(c, API_UNAUTHENTICATED, "the API key is unknown, or was revoked");
    }
    return code == 0 ? API_DONE : api_fail(c, code, &msg, "key");
}

static int open_session(struct api_call *c, const struct caller_record *caller)
{
    unsigned char random[API_KEY_RANDOM_BYTES];
    char token[API_TOKEN_BYTES];
    char hash[API_KEY_HASH_BYTES];
    struct errmsg msg = {{0}};

    if (!api_random(c, random)) {
        return API_FAILED;
    }
    api_token_make(random, token);
    explicit_bzero(random, sizeof(random));
    if (!api_key_hash(slice_of(token), hash)) {
        return api_refuse(c, API_BUSY, "the server has no memory for this just now");
    }
    const struct session_record session = {.hash = slice_of(hash),
                                           .agent_id = caller->agent.id,
                                           .key_id = caller->key_id,
                                           .created_ms = c->now_ms,
                                           .expires_ms = c->now_ms + SESSION_SECONDS * 1000ll};
    int code = store_session_create(c->app->store, &session, &msg);

    if (code != 0) {
        return api_fail(c, code, &msg, "key");
    }
    cookie_format(&c->cookie, slice_of(token), SESSION_SECONDS, c->app->secure);
    explicit_bzero(token, sizeof(token));
    return API_DONE;
}

int session_open(struct api_call *c)
{
    struct input in;
    struct caller_record caller;

    input_begin(&in, c->body, false, &c->memory, &c->error);
    struct slice key = input_text(&in, "key",
                                  &(struct input_text){.bytes_max = 512, .required = true});

    if (input_end(&in) != 0 || find_key(c, key, &caller) != API_DONE ||
        open_session(c, &caller) != API_DONE) {
        return API_FAILED;
    }
    buf_append(&c->answer, SLICE("{\"agent\":"));
    json_put_agent(&c->answer, &caller.agent);
    buf_append_char(&c->answer, '}');
    return api_answer(c, 200);
}

int session_close(struct api_call *c)
{
    struct errmsg msg = {{0}};

    if (c->caller.proof == CALLER_SESSION) {
        int code = store_session_delete(c->app->store, slice_of(c->caller.hash), &msg);

        if (code != 0) {
            return api_fail(c, code, &msg, "session");
        }
        app_revoke(c->app, &(struct revocation){.session_hash = slice_of(c->caller.hash)});
    }
    cookie_format(&c->cookie, SLICE(""), 0, c->app->secure);
    return api_answer(c, 204);
}

int me_get(struct api_call *c)
{
    const struct store_page page = {.limit = HOUSES_MAX};
    struct agent_record agent;
    struct house_list list;
    struct errmsg msg = {{0}};
    int code = store_agent_get(c->app->store, api_agent(c), &c->memory, &agent, &msg);

    if (code == 0) {
        code = store_house_list(c->app->store, api_agent(c), &page, &c->memory, &list, &msg);
    }
    if (code != 0) {
        return api_fail(c, code, &msg, "agent");
    }
    buf_append(&c->answer, SLICE("{\"agent\":"));
    json_put_agent(&c->answer, &agent);
    buf_append(&c->answer, SLICE(",\"houses\":["));
    for (size_t i = 0; i < list.count; i++) {
        paging_item(c, i);
        json_put_house(&c->answer, &list.items[i]);
    }
    buf_append(&c->answer, SLICE("]}"));
    return api_answer(c, 200);
}
