/* Threads: members make, read and change them; owners delete them. */
#include "app/handlers.h"

#include "app/app.h"
#include "app/may.h"
#include "app/paging.h"
#include "app/record_json.h"
#include "app/signals.h"
#include "app/thread_page.h"
#include "thread/config.h"
#include "thread/recency.h"
#include "thread/status.h"

#define TAG_BYTES_MAX         64u
#define ENVIRONMENT_BYTES_MAX 200u

static const struct input_text name_rules = {.bytes_max = RECORD_NAME_BYTES_MAX, .null_ok = true};
static const struct input_text id_rules = {.bytes_max = RECORD_ID_BYTES_MAX};
static const struct input_text environment_rules = {.bytes_max = ENVIRONMENT_BYTES_MAX,
                                                    .null_ok = true};
static const struct input_text status_rules = {.bytes_max = 16};

static int answer_thread(struct api_call *c, const struct thread_record *thread, int status)
{
    json_put_thread(&c->answer, thread, recency_get(c->app->recency, thread->id));
    return api_answer(c, status);
}

/* A status in a body or query; false, and refused, when it is none. */
static bool read_status(struct input *in, const char *name, enum thread_status *ret_status)
{
    struct slice text = input_text(in, name, &status_rules);

    if (text.ptr != NULL && !status_parse(text, ret_status)) {
        input_refuse(in, name, "must be " THREAD_STATUS_TEXTS);
    }
    return text.ptr != NULL && !in->failed;
}

int thread_list(struct api_call *c)
{
    struct params p;
    struct house_record house;
    enum thread_status status = THREAD_OPEN;

    params_begin(&p, c->query, &c->memory, &c->error);
    struct store_page page = paging_read(&p);
    struct thread_query query = {
        .house_id = params_text(&p, "house_id", RECORD_ID_BYTES_MAX),
        .parent_id = params_text(&p, "parent_id", RECORD_ID_BYTES_MAX),
        .tag = params_text(&p, "tag", TAG_BYTES_MAX),
        .pinned = params_flag(&p, "pinned"),
    };
    struct slice text = params_text(&p, "status", 16);

    if (params_end(&p) != 0) {
        return API_FAILED;
    }
    if (query.house_id.ptr == NULL) {
        (void)api_refuse(c, API_INVALID_INPUT, "house_id is missing: threads are listed by house");
        return api_error_set_field(&c->error, "house_id");
    }
    if (text.ptr != NULL && !status_parse(text, &status)) {
        (void)api_refuse(c, API_INVALID_INPUT, "status must be " THREAD_STATUS_TEXTS);
        return api_error_set_field(&c->error, "status");
    }
    query.with_status = text.ptr != NULL;
    query.status = status;
    if (may_house(c, query.house_id, ROLE_MEMBER, &house) != API_DONE) {
        return API_FAILED;
    }
    return thread_page_answer(c, &query, &page);
}

/* What is to be made, as asked for. */
struct wanted_thread {
    struct slice parent_id;
    struct slice house_id; /* absent: to be found out */
    struct slice config;   /* absent: none */
    struct slice primary_thread_id;
    struct slice tags[STORE_TAGS_MAX];
    struct thread_record record;
};

/* A refusal of the config in a body tells the place in the body. */
static int refuse_config(struct api_call *c)
{
    if (c->error.code == API_INTERNAL) {
        return API_FAILED;
    }
    return c->error.field[0] == '\0' ? api_error_set_field(&c->error, "config")
                                     : api_error_prefix(&c->error, "config.");
}

static int read_wanted(struct api_call *c, struct wanted_thread *w)
{
    struct input in;
    enum thread_status status = THREAD_OPEN;

    input_begin(&in, c->body, false, &c->memory, &c->error);
    w->parent_id = input_text(
        &in, "parentId", &(struct input_text){.bytes_max = RECORD_ID_BYTES_MAX, .required = true});
    w->house_id = input_text(&in, "houseId", &id_rules);
    w->record.name = input_text(&in, "name", &name_rules);
    w->record.environment_id = input_text(&in, "environmentId", &environment_rules);
    w->record.tags = w->tags;
    w->record.tag_count = input_texts(&in, "tags", STORE_TAGS_MAX, TAG_BYTES_MAX, w->tags);
    if (read_status(&in, "status", &status) && status != THREAD_OPEN && status != THREAD_IDLE) {
        input_refuse(&in, "status", "of a new thread must be open or idle");
    }
    w->config = input_value(&in, "config");
    if (input_end(&in) != 0) {
        return API_FAILED;
    }
    w->record.status = status;
    if (w->config.ptr != NULL && config_check_patch(w->config, &c->error) != 0) {
        return refuse_config(c);
    }
    return API_DONE;
}

/* A direct message is in the house that both sides share; where there are several, one is named. */
static int find_house_of_agent(struct api_call *c, struct wanted_thread *w)
{
    const struct store_page page = {.limit = STORE_PAGE_MAX};
    struct house_list shared;
    struct errmsg msg = {{0}};
    int code = store_house_shared(c->app->store, api_agent(c), w->parent_id, &page, &c->memory,
                                  &shared, &msg);

    if (code != 0) {
        return api_fail(c, code, &msg, "agent");
    }
    if (shared.count == 0) {
        return api_refuse(c, API_FORBIDDEN, "you share no house with this agent");
    }
    if (w->house_id.ptr == NULL && shared.count > 1) {
        (void)api_refuse(c, API_INVALID_INPUT,
                         "you share %zu houses with this agent: say which in houseId",
                         shared.count);
        return api_error_set_field(&c->error, "houseId");
    }
    for (size_t i = 0; i < shared.count; i++) {
        if (w->house_id.ptr == NULL || slice_equal(w->house_id, shared.items[i].id)) {
            w->record.house_id = shared.items[i].id;
            w->primary_thread_id = shared.items[i].primary_thread_id;
            return API_DONE;
        }
    }
    return api_refuse(c, API_FORBIDDEN, "you do not share that house with this agent");
}

/* A parent that is an agent: a direct message, which the agent answers always. */
static int adopt_agent(struct api_call *c, struct wanted_thread *w)
{
    char *memory = arena_try_alloc(&c->memory, 2 * KIB);
    char *merged = arena_try_alloc(&c->memory, CONFIG_BYTES_MAX + 1);
    struct buf seed;
    struct buf all;

    if (find_house_of_agent(c, w) != API_DONE) {
        return API_FAILED;
    }
    if (memory == NULL || merged == NULL) {
        return api_refuse(c, API_BUSY, "the server has no memory for this just now");
    }
    buf_init_fixed(&seed, memory, 2 * KIB);
    buf_init_fixed(&all, merged, CONFIG_BYTES_MAX + 1);
    config_seed_dm(w->parent_id, &seed);
    if (config_merge_patch(buf_slice(&seed), w->config.ptr == NULL ? SLICE("") : w->config, &all,
                           &c->error) != 0) {
        return refuse_config(c);
    }
    w->config = buf_slice(&all);
    w->record.parent_kind = PARENT_AGENT;
    return API_DONE;
}

static int adopt_house(struct api_call *c, struct wanted_thread *w, struct house_record *house)
{
    if (may_house(c, house->id, ROLE_MEMBER, house) != API_DONE) {
        return API_FAILED;
    }
    w->record.parent_kind = PARENT_HOUSE;
    w->record.house_id = house->id;
    w->primary_thread_id = house->primary_thread_id;
    return API_DONE;
}

static int adopt_thread(struct api_call *c, struct wanted_thread *w)
{
    if (may_thread(c, w->parent_id, ROLE_MEMBER) != API_DONE) {
        return API_FAILED;
    }
    w->record.parent_kind = PARENT_THREAD;
    w->record.house_id = slice_of(c->access.house_id);
    w->primary_thread_id = slice_of(c->access.primary_thread_id);
    return API_DONE;
}

/* Finds out what the parent is, and whether the caller may. Ids are of one kind, so the first kind
 * that has it is meant. */
static int find_parent(struct api_call *c, struct wanted_thread *w)
{
    struct house_record house;
    struct agent_record agent;
    struct errmsg msg = {{0}};
    int code = store_house_get(c->app->store, w->parent_id, api_agent(c), &c->memory, &house, &msg);

    w->record.parent_id = w->parent_id;
    if (code == 0) {
        return adopt_house(c, w, &house);
    }
    if (code == ERR_NOTFOUND) {
        code = store_agent_get(c->app->store, w->parent_id, &c->memory, &agent, &msg);
        if (code == 0 && agent.deleted_ms == 0) {
            return adopt_agent(c, w);
        }
        code = code == 0 ? ERR_NOTFOUND : code;
    }
    if (code != ERR_NOTFOUND) {
        return api_fail(c, code, &msg, "parent");
    }
    int result = adopt_thread(c, w);

    if (result != API_DONE && c->error.code == API_NOT_FOUND) {
        (void)api_refuse(c, API_NOT_FOUND, "there is no house, agent or thread of that parentId");
    }
    return result;
}

int thread_create(struct api_call *c)
{
    struct wanted_thread w = {.record = {.created_ms = c->now_ms}};
    struct signals signals = {.count = 0};
    struct errmsg msg = {{0}};

    if (read_wanted(c, &w) != API_DONE || find_parent(c, &w) != API_DONE) {
        return API_FAILED;
    }
    if (w.house_id.ptr != NULL && !slice_equal(w.house_id, w.record.house_id)) {
        (void)api_refuse(c, API_INVALID_INPUT, "houseId is not the house of parentId");
        return api_error_set_field(&c->error, "houseId");
    }
    w.record.id = api_new_id(c);
    w.record.created_by = api_agent(c);
    if (w.record.id.ptr == NULL) {
        return API_FAILED;
    }
    signals_add_stream(&signals, OUTBOX_CREATE, w.record.id);
    signals_add(&signals, c, w.record.id, api_agent(c), "signal.thread.created", NULL);
    if (signals_check(&signals, c) != 0) {
        return API_FAILED;
    }
    int code = store_thread_create(c->app->store, &w.record, w.config, signals.items, signals.count,
                                   &msg);

    if (code != 0) {
        return api_fail(c, code, &msg, "parent");
    }
    (void)outbox_run(c->app->outbox, w.record.id); /* else it is tried again */
    buf_append_char(&c->answer, '{');
    json_put_text(&c->answer, "threadId", w.record.id);
    buf_append(&c->answer, SLICE(",\"thread\":"));
    json_put_thread(&c->answer, &w.record, recency_get(c->app->recency, w.record.id));
    buf_append_char(&c->answer, '}');
    return api_answer(c, 201);
}

static int get(struct api_call *c, struct thread_record *ret_thread)
{
    struct errmsg msg = {{0}};
    int code = store_thread_get(c->app->store, c->params[0], &c->memory, ret_thread, &msg);

    return code == 0 ? API_DONE : api_fail(c, code, &msg, "thread");
}

int thread_get(struct api_call *c)
{
    struct thread_record thread;

    if (may_thread(c, c->params[0], ROLE_MEMBER) != API_DONE || get(c, &thread) != API_DONE) {
        return API_FAILED;
    }
    return answer_thread(c, &thread, 200);
}

/* Reads what is to change; `tags` is memory for them. */
static int read_change(struct api_call *c, const struct thread_record *now,
                       struct slice tags[STORE_TAGS_MAX], struct thread_change *ret)
{
    struct input in;
    enum thread_status status = now->status;

    input_begin(&in, c->body, false, &c->memory, &c->error);
    ret->set_name = input_has(&in, "name");
    ret->set_pinned = input_has(&in, "pinned");
    ret->set_tags = input_has(&in, "tags");
    ret->set_environment = input_has(&in, "environmentId");
    ret->name = input_text(&in, "name", &name_rules);
    ret->pinned_ms = input_flag(&in, "pinned", false) ? c->now_ms : 0;
    ret->tag_count = input_texts(&in, "tags", STORE_TAGS_MAX, TAG_BYTES_MAX, tags);
    ret->tags = tags;
    ret->environment_id = input_text(&in, "environmentId", &environment_rules);
    ret->set_status = read_status(&in, "status", &status) && status != now->status;
    ret->status_from = now->status;
    ret->status = status;
    if (input_end(&in) != 0) {
        return API_FAILED;
    }
    if (ret->set_status && !status_may_move(now->status, status)) {
        return api_refuse(c, API_ILLEGAL_STATUS, "a thread cannot go from %s to %s",
                          status_text(now->status), status_text(status));
    }
    return API_DONE;
}

static int compose_changes(struct api_call *c, const struct thread_record *now,
                           const struct thread_change *change, struct signals *signals)
{
    if (change->set_name && !slice_equal(change->name, now->name)) {
        signals_add(
            signals, c, now->id, api_agent(c), "signal.thread.renamed",
            (struct signal_member[]){{"name", change->name.ptr == NULL ? SLICE("") : change->name},
                                     {NULL, {NULL, 0}}});
    }
    if (change->set_status) {
        struct slice status = slice_of(status_text(change->status));

        signals_add(signals, c, now->id, api_agent(c), "signal.thread.status_changed",
                    (struct signal_member[]){{"status", status}, {NULL, {NULL, 0}}});
    }
    return signals_check(signals, c);
}

int thread_change(struct api_call *c)
{
    struct thread_record thread;
    struct thread_change change = {.set_name = false};
    struct slice tags[STORE_TAGS_MAX];
    struct signals signals = {.count = 0};
    struct errmsg msg = {{0}};

    if (may_thread(c, c->params[0], ROLE_MEMBER) != API_DONE || get(c, &thread) != API_DONE ||
        read_change(c, &thread, tags, &change) != API_DONE ||
        compose_changes(c, &thread, &change, &signals) != API_DONE) {
        return API_FAILED;
    }
    int code = store_thread_update(c->app->store, thread.id, &change, signals.items, signals.count,
                                   &c->memory, &thread, &msg);

    if (code == ERR_CONFLICT) {
        return api_refuse(c, API_CONFLICT, "the thread's status has just been changed by another");
    }
    if (code != 0) {
        return api_fail(c, code, &msg, "thread");
    }
    (void)outbox_run(c->app->outbox, thread.id); /* else it is tried again */
    return answer_thread(c, &thread, 200);
}

int thread_delete(struct api_call *c)
{
    struct signals signals = {.count = 0};
    struct slice id = c->params[0];
    struct errmsg msg = {{0}};

    if (may_thread(c, id, ROLE_OWNER) != API_DONE) {
        return API_FAILED;
    }
    signals_add(&signals, c, id, api_agent(c), "signal.thread.deleted", NULL);
    signals_add_stream(&signals, OUTBOX_DROP, id);
    if (signals_check(&signals, c) != 0) {
        return API_FAILED;
    }
    int code = store_thread_delete(c->app->store, id, c->now_ms, signals.items, signals.count,
                                   &msg);

    if (code == ERR_CONFLICT) {
        return api_refuse(c, API_THREAD_PRIMARY,
                          "this is the house's primary thread, which lives as long as the house");
    }
    if (code != 0) {
        return api_fail(c, code, &msg, "thread");
    }
    app_revoke(c->app, &(struct revocation){.thread_id = id});
    (void)outbox_run(c->app->outbox, id); /* else it is tried again */
    return api_answer(c, 204);
}

int thread_agents(struct api_call *c)
{
    struct params p;
    struct member_list list;
    struct errmsg msg = {{0}};

    params_begin(&p, c->query, &c->memory, &c->error);
    struct store_page page = paging_read(&p);

    if (params_end(&p) != 0 || may_thread(c, c->params[0], ROLE_MEMBER) != API_DONE) {
        return API_FAILED;
    }
    int code = store_member_list(c->app->store, slice_of(c->access.house_id), &page, &c->memory,
                                 &list, &msg);

    if (code != 0) {
        return api_fail(c, code, &msg, "house");
    }
    paging_begin(c, "agents");
    for (size_t i = 0; i < list.count; i++) {
        paging_item(c, i);
        json_put_member(&c->answer, &list.items[i]);
        if (paging_is_full(c) && i + 1 < list.count) {
            return paging_end(c, list.items[i].agent_id);
        }
    }
    return paging_end(c, list.next);
}
