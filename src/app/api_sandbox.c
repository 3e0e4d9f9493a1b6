/* Sandboxes: who may write as an agent for a while is given a token; what it writes is stored all
 * or none, moves the thread's status, and is counted as spend.
 *
 * A batch that moves the status is kept in the outbox in the same transaction as the move, and then
 * appended: status and log cannot come to differ. Any other batch is appended at once. What is in
 * the log already moves nothing: a batch that is repeated, perhaps late, has had its effect. */
#include "app/handlers.h"

#include "app/app.h"
#include "app/drafts.h"
#include "app/may.h"
#include "app/record_json.h"
#include "app/spend.h"
#include "base/json.h"
#include "thread/outbox.h"
#include "thread/recency.h"
#include "thread/status.h"

/* Whether the caller, who has that role in the house, may let somebody write as an agent. */
static int may_stand_for(struct api_call *c, struct slice agent_id, enum member_role role)
{
    struct agent_record agent;
    struct errmsg msg = {{0}};
    int code = store_agent_get(c->app->store, agent_id, &c->memory, &agent, &msg);

    code = code == 0 && agent.deleted_ms != 0 ? ERR_NOTFOUND : code;
    if (code != 0) {
        return api_fail(c, code, &msg, "agent");
    }
    bool own = slice_equal(agent_id, api_agent(c)) || slice_equal(agent.created_by, api_agent(c));

    return own || role == ROLE_OWNER
               ? API_DONE
               : api_refuse(c, API_FORBIDDEN,
                            "tokens are minted, and ended, by the agent itself, by who made it, or "
                            "by an owner of the house");
}

/* The epoch that tokens of the agent are of in the thread at hand. */
static int find_epoch(struct api_call *c, struct slice agent_id, int64_t *ret_epoch)
{
    struct thread_access access;
    struct errmsg msg = {{0}};
    int code = store_thread_access(c->app->store, c->params[0], agent_id, &access, &msg);

    if (code != 0) {
        return api_fail(c, code, &msg, "thread");
    }
    *ret_epoch = access.sandbox_epoch;
    return access.role != ROLE_NONE
               ? API_DONE
               : api_refuse(c, API_FORBIDDEN, "this agent is no member of the thread's house");
}

int sandbox_mint(struct api_call *c)
{
    struct input in;
    struct sandbox_token token = {.types = sandbox_types_default()};
    char name[THREAD_STREAM_BYTES];
    struct buf text;

    if (may_thread(c, c->params[0], ROLE_MEMBER) != API_DONE) {
        return API_FAILED;
    }
    input_begin(&in, c->body, false, &c->memory, &c->error);
    token.agent_id = input_text(
        &in, "agentId", &(struct input_text){.bytes_max = RECORD_ID_BYTES_MAX, .required = true});
    struct slice types = input_value(&in, "types");
    uint64_t seconds = input_number(&in, "expiresIn", 1, SANDBOX_SECONDS_MAX,
                                    SANDBOX_SECONDS_DEFAULT);

    if (input_end(&in) != 0 ||
        (types.ptr != NULL && sandbox_types_read(types, &token.types, &c->error) != 0) ||
        may_stand_for(c, token.agent_id, c->access.role) != API_DONE ||
        find_epoch(c, token.agent_id, &token.epoch) != API_DONE) {
        return API_FAILED;
    }
    thread_stream_name(c->params[0], name);
    token.stream = slice_of(name);
    token.issued_s = c->now_ms / 1000;
    token.expires_s = token.issued_s + (int64_t)seconds;
    buf_init(&text, 8 * KIB);
    bool minted = sandbox_token_mint(c->app->sandbox_key, &token, &text);

    buf_append_char(&c->answer, '{');
    json_put_text(&c->answer, "token", buf_slice(&text));
    json_put_time(&c->answer, "expiresAt", token.expires_s * 1000);
    json_put_text(&c->answer, "stream", token.stream);
    buf_append_char(&c->answer, '}');
    buf_finish(&text);
    return minted ? api_answer(c, 201)
                  : api_refuse(c, API_BUSY, "the server has no memory for this just now");
}

int sandbox_end(struct api_call *c)
{
    struct house_record house;
    struct errmsg msg = {{0}};

    if (may_house(c, c->params[0], ROLE_MEMBER, &house) != API_DONE ||
        may_stand_for(c, c->params[1], house.role) != API_DONE) {
        return API_FAILED;
    }
    int code = store_member_end_tokens(c->app->store, house.id, c->params[1], c->now_ms, &msg);

    return code == 0 ? api_answer(c, 204) : api_fail(c, code, &msg, "agent among its members");
}

/* What a sandbox writes. */
struct writing {
    struct slice thread_id;
    struct draft *drafts;
    struct post_entry *entries;
    size_t *places; /* of each entry in the body */
    size_t count;
    size_t repeated; /* within the batch itself: left out */
    bool batch;      /* the body is an array */
    bool signals;    /* there are entries that may move the status */
    bool moves;      /* there are entries that do */
    enum thread_status status;
};

/* The thread of the stream that is written to, and the agent's right to it. */
static int open_thread(struct api_call *c, struct writing *w)
{
    struct slice agent_id = c->sandbox.agent_id;
    struct errmsg msg = {{0}};

    if (sandbox_token_check_stream(&c->sandbox, c->params[0], &c->error) != 0) {
        return API_FAILED;
    }
    if (!thread_stream_parse(c->params[0], &w->thread_id)) {
        return api_refuse(c, API_NOT_FOUND, "there is no such thread");
    }
    int code = store_thread_access(c->app->store, w->thread_id, agent_id, &c->access, &msg);

    if (code != 0) {
        return api_fail(c, code, &msg, "thread");
    }
    w->status = c->access.status;
    if (c->access.role == ROLE_NONE) {
        return api_refuse(c, API_FORBIDDEN, "the token's agent is no member of the house any more");
    }
    if (c->access.sandbox_epoch != c->sandbox.epoch) {
        (void)api_refuse(c, API_UNAUTHENTICATED, "the sandbox token was ended");
        return api_error_suggest(&c->error,
                                 "ask for a new one: POST /api/threads/:id/sandbox-tokens");
    }
    return API_DONE;
}

/* Whether the batch has an entry of that id already. */
static bool is_repeated(const struct writing *w, struct slice id)
{
    for (size_t i = 0; i < w->count; i++) {
        if (!w->entries[i].fresh && slice_equal(w->entries[i].id, id)) {
            return true;
        }
    }
    return false;
}

/* What is wrong is told with its place in the body. */
static int fail_at(struct api_call *c, const struct writing *w, size_t index)
{
    return w->batch ? api_error_prefix(&c->error, "[%zu].", index) : API_FAILED;
}

static bool moves_status(const struct draft *draft, enum thread_status *ret_next)
{
    return payload_status(draft->payload, draft->type, ret_next);
}

static int take_entry(struct api_call *c, struct writing *w, struct slice value, size_t index)
{
    enum thread_status next;
    struct authorship_question who = {
        .caller = CALLER_SANDBOX, .agent_id = c->sandbox.agent_id, .token_types = c->sandbox.types};
    struct draft *draft = &w->drafts[w->count];
    struct post_entry *entry = &w->entries[w->count];

    if (draft_make(c, value, &who, draft, entry) != API_DONE) {
        return API_FAILED;
    }
    if (is_repeated(w, draft->id)) {
        w->repeated++;
        return API_DONE;
    }
    w->places[w->count++] = index;
    w->signals = moves_status(draft, &next) || w->signals;
    return API_DONE;
}

static int count_entries(struct api_call *c, struct slice body, size_t *ret_count)
{
    struct json_walk walk;
    struct slice value;
    size_t count = 0;

    json_walk_begin(&walk, body);
    while (json_walk_element(&walk, &value)) {
        count++;
    }
    if (count == 0 || count > SANDBOX_BATCH_MAX) {
        return api_refuse(c, API_INVALID_INPUT, "a batch has 1 to %u entries, not %zu",
                          SANDBOX_BATCH_MAX, count);
    }
    *ret_count = count;
    return API_DONE;
}

/* Judges all of it before anything is done. */
static int read_entries(struct api_call *c, struct writing *w)
{
    struct slice body;
    struct slice value;
    struct json_walk walk;
    size_t count = 1;
    size_t index = 0;
    struct errmsg msg = {{0}};

    if (json_text_read(c->body, &body, &msg) != 0) {
        return api_refuse(c, API_MALFORMED_JSON, "the body must be JSON: %s", msg.text);
    }
    w->batch = json_kind(body) == JSON_ARRAY;
    if (w->batch && count_entries(c, body, &count) != API_DONE) {
        return API_FAILED;
    }
    w->drafts = arena_try_alloc(&c->memory, count * sizeof(*w->drafts));
    w->entries = arena_try_alloc(&c->memory, count * sizeof(*w->entries));
    w->places = arena_try_alloc(&c->memory, count * sizeof(*w->places));
    if (w->drafts == NULL || w->entries == NULL || w->places == NULL) {
        return api_refuse(c, API_BUSY, "the server has no memory for this just now");
    }
    if (!w->batch) {
        return take_entry(c, w, body, 0);
    }
    json_walk_begin(&walk, body);
    while (json_walk_element(&walk, &value)) {
        if (take_entry(c, w, value, index) != API_DONE) {
            return fail_at(c, w, index);
        }
        index++;
    }
    return API_DONE;
}

/* Whether the entry is in the log, which is told in its `duplicate`. */
static int look_up(struct api_call *c, const struct writing *w, struct post_entry *entry)
{
    struct slice json;
    struct arena memory;

    if (entry->fresh) {
        return API_DONE;
    }
    arena_init(&memory, 2 * API_BATCH_BYTES_MAX);
    int code = poster_find(c->app->poster, w->thread_id, entry->id, &memory, &json, &c->error);

    arena_finish(&memory);
    entry->duplicate = code == 0;
    return code == 0 || c->error.code == API_NOT_FOUND ? API_DONE : API_FAILED;
}

/* Follows the status through the entries that are new. What is owed to the log is written first:
 * else it would seem new again. */
static int follow_status(struct api_call *c, struct writing *w)
{
    (void)outbox_run(c->app->outbox, w->thread_id); /* what fails is told by the look */
    for (size_t i = 0; i < w->count; i++) {
        enum thread_status next = w->status;

        if (look_up(c, w, &w->entries[i]) != API_DONE) {
            return API_FAILED;
        }
        if (w->entries[i].duplicate || !moves_status(&w->drafts[i], &next)) {
            continue;
        }
        if (!status_may_move(w->status, next)) {
            (void)api_refuse(c, API_ILLEGAL_STATUS, "a thread cannot go from %s to %s",
                             status_text(w->status), status_text(next));
            (void)api_error_set_field(&c->error, "payload.status");
            return fail_at(c, w, w->places[i]);
        }
        w->moves = true;
        w->status = next;
    }
    return API_DONE;
}

static int answer_written(struct api_call *c, const struct writing *w, size_t stored,
                          const char *next_offset)
{
    buf_append(&c->answer, SLICE("{\"ids\":["));
    for (size_t i = 0; i < w->count; i++) {
        if (i > 0) {
            buf_append_char(&c->answer, ',');
        }
        json_append_string(&c->answer, w->entries[i].id);
    }
    buf_append_char(&c->answer, ']');
    json_put_number(&c->answer, "stored", (int64_t)stored);
    json_put_number(&c->answer, "duplicates", (int64_t)(w->count - stored + w->repeated));
    json_put_text(&c->answer, "nextOffset",
                  next_offset[0] == '\0' ? (struct slice){NULL, 0} : slice_of(next_offset));
    buf_append_char(&c->answer, '}');
    return api_answer(c, 201);
}

/* Appends at once. */
static int append(struct api_call *c, struct writing *w)
{
    struct post post = {
        .thread_id = w->thread_id, .entries = w->entries, .count = w->count, .arena = &c->memory};
    int result = poster_post(c->app->poster, &post);

    if (result != 0 && post.error.code == API_NOT_FOUND) {
        (void)outbox_run(c->app->outbox, w->thread_id); /* the stream may still be owed */
        result = poster_post(c->app->poster, &post);
    }
    if (result != 0) {
        c->error = post.error;
        c->retry_after = post.retry_after_s;
        return API_FAILED;
    }
    return answer_written(c, w, post.stored, post.next_offset);
}

/* All new entries as one JSON array, which the outbox appends as one. */
static int join(struct api_call *c, const struct writing *w, struct slice *ret_array)
{
    size_t size = 3;
    bool first = true;

    for (size_t i = 0; i < w->count; i++) {
        size += w->entries[i].json.len + 1;
    }
    char *memory = arena_try_alloc(&c->memory, size);
    struct buf out;

    if (memory == NULL) {
        return api_refuse(c, API_TOO_LARGE, "the entries are too large to be taken at once");
    }
    buf_init_fixed(&out, memory, size);
    for (size_t i = 0; i < w->count; i++) {
        if (!w->entries[i].duplicate) {
            buf_append_char(&out, first ? '[' : ',');
            buf_append(&out, w->entries[i].json);
            first = false;
        }
    }
    buf_append_char(&out, ']');
    *ret_array = buf_slice(&out);
    return API_DONE;
}

/* Moves the status, and owes the batch to the stream, in one. */
static int move_and_append(struct api_call *c, struct writing *w)
{
    struct outbox_item item = {.kind = OUTBOX_APPEND, .thread_id = w->thread_id};
    size_t stored = 0;
    struct errmsg msg = {{0}};

    if (join(c, w, &item.entry) != API_DONE) {
        return API_FAILED;
    }
    for (size_t i = 0; i < w->count; i++) {
        if (!w->entries[i].duplicate && stored++ == 0) {
            item.entry_id = w->entries[i].id;
        }
    }
    int code = store_thread_status_move(c->app->store, w->thread_id, c->access.status, w->status,
                                        &item, 1, &msg);

    if (code == ERR_CONFLICT) {
        return api_refuse(c, API_CONFLICT, "the thread's status has just been changed by another");
    }
    if (code != 0) {
        return api_fail(c, code, &msg, "thread");
    }
    (void)outbox_run(c->app->outbox, w->thread_id); /* else it is tried again: it is kept */
    return answer_written(c, w, stored, "");
}

int sandbox_write(struct api_call *c)
{
    struct writing w = {.count = 0};

    if (open_thread(c, &w) != API_DONE || read_entries(c, &w) != API_DONE ||
        (w.signals && follow_status(c, &w) != API_DONE)) {
        return API_FAILED;
    }
    /* What these tell of was spent, whatever becomes of them; and a crash behind the append would
     * leave nobody to record it. Each entry counts once. */
    spend_record(c->app, slice_of(c->access.house_id), w.thread_id, w.entries, w.count);
    return w.moves ? move_and_append(c, &w) : append(c, &w);
}
