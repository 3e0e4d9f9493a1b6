/* Config of houses and threads: a patch each; what is in force is resolved from the defaults, the
 * house's, the thread's, and what they say of one agent. By members. */
#include "app/handlers.h"

#include "app/app.h"
#include "app/may.h"
#include "app/record_json.h"
#include "base/json.h"
#include "thread/config.h"

#define RESOLVED_BYTES_MAX (256 * KIB)
#define TRIES_MAX          8u

/* What a call is about. */
struct scope {
    enum config_scope kind;
    struct slice id;
    struct slice house_id;
};

static int open_scope(struct api_call *c, enum config_scope kind, struct scope *ret)
{
    struct house_record house;
    struct slice id = c->params[0];

    if (kind == CONFIG_THREAD) {
        if (may_thread(c, id, ROLE_MEMBER) != API_DONE) {
            return API_FAILED;
        }
        *ret = (struct scope){kind, id, slice_of(c->access.house_id)};
        return API_DONE;
    }
    if (may_house(c, id, ROLE_MEMBER, &house) != API_DONE) {
        return API_FAILED;
    }
    *ret = (struct scope){kind, id, house.id};
    return API_DONE;
}

static int fetch(struct api_call *c, enum config_scope kind, struct slice id,
                 struct slice *ret_patch)
{
    struct errmsg msg = {{0}};
    int code = store_config_get(c->app->store, kind, id, &c->memory, ret_patch, &msg);

    return code == 0 ? API_DONE
                     : api_fail(c, code, &msg, kind == CONFIG_HOUSE ? "house" : "thread");
}

static struct slice or_empty(struct slice patch)
{
    return patch.ptr == NULL ? SLICE("{}") : patch;
}

static void put_link(struct buf *out, const char *scope, struct slice id, struct slice patch)
{
    buf_append_char(out, '{');
    json_put_text(out, "scope", slice_of(scope));
    json_put_text(out, "id", id);
    buf_append(out, SLICE(",\"patch\":"));
    buf_append(out, or_empty(patch));
    buf_append_char(out, '}');
}

static int answer_patch(struct api_call *c, struct slice patch)
{
    buf_append(&c->answer, SLICE("{\"patch\":"));
    buf_append(&c->answer, or_empty(patch));
    buf_append_char(&c->answer, '}');
    return api_answer(c, 200);
}

/* What both say of one agent, which comes last. */
static int put_agent_link(struct api_call *c, struct slice of_house, struct slice of_thread,
                          struct slice agent_id)
{
    char *memory = arena_try_alloc(&c->memory, 2 * CONFIG_BYTES_MAX);
    struct buf patch;

    if (memory == NULL) {
        return api_refuse(c, API_BUSY, "the server has no memory for this just now");
    }
    buf_init_fixed(&patch, memory, 2 * CONFIG_BYTES_MAX);
    if (config_agent_patch(or_empty(of_house), or_empty(of_thread), agent_id, &patch, &c->error) !=
        0) {
        return API_FAILED;
    }
    buf_append_char(&c->answer, ',');
    put_link(&c->answer, "agent", agent_id, buf_slice(&patch));
    return API_DONE;
}

static int answer_resolved(struct api_call *c, const struct scope *scope, struct slice agent_id)
{
    struct slice none = {NULL, 0};
    struct slice of_house = none;
    struct slice of_thread = none;

    if (fetch(c, CONFIG_HOUSE, scope->house_id, &of_house) != API_DONE ||
        (scope->kind == CONFIG_THREAD &&
         fetch(c, CONFIG_THREAD, scope->id, &of_thread) != API_DONE)) {
        return API_FAILED;
    }
    buf_append(&c->answer, SLICE("{\"resolved\":"));
    if (config_resolve(or_empty(of_house), or_empty(of_thread),
                       agent_id.ptr == NULL ? SLICE("") : agent_id, &c->answer, &c->error) != 0) {
        return API_FAILED;
    }
    buf_append(&c->answer, SLICE(",\"chain\":["));
    put_link(&c->answer, "default", none, SLICE(CONFIG_DEFAULT));
    buf_append_char(&c->answer, ',');
    put_link(&c->answer, "house", scope->house_id, of_house);
    if (scope->kind == CONFIG_THREAD) {
        buf_append_char(&c->answer, ',');
        put_link(&c->answer, "thread", scope->id, of_thread);
    }
    if (agent_id.ptr != NULL && put_agent_link(c, of_house, of_thread, agent_id) != API_DONE) {
        return API_FAILED;
    }
    buf_append(&c->answer, SLICE("]}"));
    return api_answer(c, 200);
}

static int config_get(struct api_call *c, enum config_scope kind)
{
    struct params p;
    struct scope scope;
    struct slice patch;

    params_begin(&p, c->query, &c->memory, &c->error);
    bool raw = params_flag(&p, "raw");
    struct slice agent_id = params_text(&p, "agent_id", RECORD_ID_BYTES_MAX);

    if (params_end(&p) != 0 || open_scope(c, kind, &scope) != API_DONE) {
        return API_FAILED;
    }
    if (!raw) {
        return answer_resolved(c, &scope, agent_id);
    }
    return fetch(c, kind, scope.id, &patch) == API_DONE ? answer_patch(c, patch) : API_FAILED;
}

/* Merges and puts once; ERR_AGAIN: somebody else was faster. */
static int merge(struct api_call *c, const struct scope *scope, struct slice *ret_patch)
{
    char *memory = arena_try_alloc(&c->memory, CONFIG_BYTES_MAX + 1);
    struct slice before;
    struct buf merged;
    struct errmsg msg = {{0}};

    if (memory == NULL) {
        return api_refuse(c, API_BUSY, "the server has no memory for this just now");
    }
    buf_init_fixed(&merged, memory, CONFIG_BYTES_MAX + 1);
    if (fetch(c, scope->kind, scope->id, &before) != API_DONE ||
        config_merge_patch(before.ptr == NULL ? SLICE("") : before, c->body, &merged, &c->error) !=
            0) {
        return API_FAILED;
    }
    *ret_patch = buf_slice(&merged);
    int code = store_config_put(c->app->store, scope->kind, scope->id, before, *ret_patch,
                                c->now_ms, &msg);

    return code == 0 || code == ERR_AGAIN ? code : api_fail(c, code, &msg, "house or thread");
}

static int config_change(struct api_call *c, enum config_scope kind)
{
    struct scope scope;
    struct slice patch;
    int result = ERR_AGAIN;

    if (open_scope(c, kind, &scope) != API_DONE) {
        return API_FAILED;
    }
    if (c->body.len == 0) {
        return api_refuse(c, API_MALFORMED_JSON, "the body must be a JSON object: it is empty");
    }
    if (config_check_patch(c->body, &c->error) != 0) {
        return API_FAILED;
    }
    for (unsigned i = 0; i < TRIES_MAX && result == ERR_AGAIN; i++) {
        result = merge(c, &scope, &patch);
    }
    if (result == ERR_AGAIN) {
        return api_refuse(c, API_BUSY, "this config is being changed by many; try again");
    }
    return result == API_DONE ? answer_patch(c, patch) : API_FAILED;
}

static int config_delete(struct api_call *c, enum config_scope kind)
{
    struct scope scope;
    struct errmsg msg = {{0}};

    if (open_scope(c, kind, &scope) != API_DONE) {
        return API_FAILED;
    }
    int code = store_config_delete(c->app->store, kind, scope.id, &msg);

    return code == 0 ? api_answer(c, 204) : api_fail(c, code, &msg, "house or thread");
}

int house_config_get(struct api_call *c)
{
    return config_get(c, CONFIG_HOUSE);
}

int house_config_change(struct api_call *c)
{
    return config_change(c, CONFIG_HOUSE);
}

int house_config_delete(struct api_call *c)
{
    return config_delete(c, CONFIG_HOUSE);
}

int thread_config_get(struct api_call *c)
{
    return config_get(c, CONFIG_THREAD);
}

int thread_config_change(struct api_call *c)
{
    return config_change(c, CONFIG_THREAD);
}

int thread_config_delete(struct api_call *c)
{
    return config_delete(c, CONFIG_THREAD);
}
