/* Entries of a thread: posted by people and bots as themselves, read as they are, and deleted by a
 * tombstone.
 *
 * Posting is the hot path: for a caller and a thread that are known by heart it never leaves the
 * worker until the append is started, and no thread waits for the append. */
#include "app/handlers.h"

#include "app/app.h"
#include "app/drafts.h"
#include "app/may.h"
#include "app/waking.h"
#include "base/json_value.h"
#include "thread/outbox.h"
#include "thread/recency.h"

#include <stdio.h>

/* A post under way. */
struct posting {
    struct post post;
    struct post_entry entry;
    struct draft draft;
    bool tried; /* the outbox was run, since there was no stream yet */
};

static int answer_entry(struct api_call *c, struct slice json, int status)
{
    (void)buf_reserve(&c->answer, json.len + 1); /* with the end of the line; failure sticks */
    buf_append(&c->answer, json);
    return api_answer(c, status);
}

static void start(struct api_call *c);

/* The thread exists and its stream does not yet: the outbox still owes it. */
static int make_stream_and_start(struct api_call *c)
{
    struct posting *p = c->work;

    p->tried = true;
    (void)outbox_run(c->app->outbox, c->params[0]); /* the post finds out how it went */
    start(c);
    return API_PENDING;
}

static void posted(struct post *post, int result)
{
    struct api_call *c = post->context;
    struct posting *p = c->work;

    if (result != 0 && post->error.code == API_NOT_FOUND && !p->tried) {
        api_run_on_streams(c, make_stream_and_start);
        return;
    }
    if (result != 0) {
        c->error = post->error;
        c->retry_after = post->retry_after_s;
        api_finish(c, API_FAILED);
        return;
    }
    if (p->entry.duplicate) {
        api_finish(c, answer_entry(c, p->entry.first, 200));
        return;
    }
    waking_start(c->app, c->params[0], p->draft.id);
    api_finish(c, answer_entry(c, p->entry.json, 201));
}

static void start(struct api_call *c)
{
    struct posting *p = c->work;

    p->post = (struct post){.thread_id = c->params[0],
                            .entries = &p->entry,
                            .count = 1,
                            .arena = &c->memory,
                            .done = posted,
                            .context = c};
    poster_start(c->app->poster, &p->post);
}

/* On the worker: an entry whose id nobody else can have goes straight into the log of this process,
 * and neither queue nor other thread stands in between. */
static void appended(struct exchange *x);
static void left(struct exchange *x);

static void append_here(struct api_call *c)
{
    const struct posting *p = c->work;
    struct exchange *x = c->x;
    char name[THREAD_STREAM_BYTES];

    thread_stream_name(c->params[0], name);
    x->work->name_len = strlen(name);
    memcpy(x->work->name, name, x->work->name_len);
    x->work->op = (struct stream_op){
        .verb = STREAM_APPEND,
        .append = {.content_type = SLICE("application/json"), .body = p->entry.json},
    };
    x->finish = appended;
    x->ended = left;
    exchange_run(x);
}

/* What follows from an append: recency rides along, as with every client that writes threads
 * (recency.h). */
static void follow_up(struct api_call *c)
{
    const struct posting *p = c->work;
    char offset[OFFSET_TOKEN_BYTES + 1] = "";

    atomic_fetch_add_explicit(&c->app->appended, 1, memory_order_relaxed);
    offset_format(offset, c->x->work->op.result.next);
    recency_note(c->app->recency, c->params[0], c->now_ms, offset);
    waking_start(c->app, c->params[0], p->draft.id);
}

/* The client went while the append was under way: what was stored is as good as any other. */
static void left(struct exchange *x)
{
    if (x->work->op.result.code == 0) {
        follow_up(x->guest);
    }
}

static void appended(struct exchange *x)
{
    const struct stream_result *result = &x->work->op.result;
    struct api_call *c = x->guest;
    const struct posting *p = c->work;

    x->finish = api_answer_now;
    x->ended = NULL;
    if (result->code == ERR_NOTFOUND) {
        exchange_park(x);
        api_run_on_streams(c, make_stream_and_start);
        return;
    }
    if (result->code != 0) {
        c->result = api_fail_append(c, result->code, &result->msg);
        api_answer_now(x);
        return;
    }
    follow_up(c);
    c->result = answer_entry(c, p->entry.json, 201);
    api_answer_now(x);
}

/* The caller is a member: judges what it posts, and starts the append. */
static int judge_and_start(struct api_call *c)
{
    struct posting *p = arena_try_alloc(&c->memory, sizeof(*p));
    struct authorship_question who = {.caller = CALLER_AGENT, .agent_id = api_agent(c)};
    struct slice value;
    struct errmsg msg = {{0}};

    if (p == NULL) {
        return api_refuse(c, API_BUSY, "the server has no memory for this just now");
    }
    *p = (struct posting){.tried = false};
    if (json_text_read(c->body, &value, &msg) != 0) {
        return api_refuse(c, API_MALFORMED_JSON, "the body must be a JSON object: %s", msg.text);
    }
    if (draft_make(c, value, &who, &p->draft, &p->entry) != API_DONE) {
        return API_FAILED;
    }
    c->work = p;
    if (p->entry.fresh && !c->on_pool && c->app->config.streams_url == NULL) {
        c->handover = append_here;
        return API_HANDOVER;
    }
    start(c);
    return API_PENDING;
}

static int look_and_start(struct api_call *c)
{
    return may_thread(c, c->params[0], ROLE_MEMBER) == API_DONE ? judge_and_start(c) : API_FAILED;
}

int entry_post(struct api_call *c)
{
    int result = may_thread_by_heart(c, c->params[0]);

    if (result == API_FAILED) {
        return result;
    }
    if (!c->on_pool && (result == API_PENDING || c->body.len > API_INLINE_BYTES_MAX)) {
        api_run_on_pool(c, look_and_start);
        return API_PENDING;
    }
    return result == API_PENDING ? look_and_start(c) : judge_and_start(c);
}

/* Who may delete what: the author, or an owner, and chat only. */
static int may_delete(struct api_call *c, const struct entry *entry)
{
    enum payload_type type = PAYLOAD_UNKNOWN;

    if (payload_type_of(entry->payload, &type) != 0 || type != PAYLOAD_CHAT) {
        return api_refuse(c, API_NOT_DELETABLE, "only chat can be deleted, not %s",
                          type == PAYLOAD_UNKNOWN ? "this entry" : payload_type_text(type));
    }
    if (c->access.role != ROLE_OWNER && !slice_equal(entry->author_id, api_agent(c))) {
        return api_refuse(c, API_FORBIDDEN,
                          "only its author or an owner of the house may delete "
                          "this entry");
    }
    return API_DONE;
}

/* The entry that says so. */
static int make_tombstone(struct api_call *c, struct slice entry_id, struct post_entry *ret)
{
    char *id = arena_try_alloc(&c->memory, ENTRY_ID_BYTES);
    char *payload = arena_try_alloc(&c->memory, 256);

    if (id == NULL || payload == NULL) {
        return api_refuse(c, API_BUSY, "the server has no memory for this just now");
    }
    /* The id is one that was stored, so it needs no escapes. */
    (void)snprintf(payload, 256, "{\"type\":\"signal.entry.deleted\",\"entryId\":\"%.*s\"}",
                   (int)entry_id.len, entry_id.ptr);
    const struct draft draft = {.id = {id, entry_tombstone_id(entry_id, id)},
                                .author_id = api_agent(c),
                                .payload = slice_of(payload),
                                .type = PAYLOAD_ENTRY_DELETED};

    return draft_compose(c, &draft, false, ret);
}

int entry_delete(struct api_call *c)
{
    struct slice json;
    struct entry entry;
    struct post_entry tombstone;

    if (may_thread(c, c->params[0], ROLE_MEMBER) != API_DONE) {
        return API_FAILED;
    }
    if (poster_find(c->app->poster, c->params[0], c->params[1], &c->memory, &json, &c->error) !=
        0) {
        return c->error.code == API_NOT_FOUND
                   ? api_refuse(c, API_NOT_FOUND, "there is no such entry in this thread")
                   : API_FAILED;
    }
    if (entry_parse(json, &entry, &c->error) != 0 || may_delete(c, &entry) != API_DONE ||
        make_tombstone(c, entry.id, &tombstone) != API_DONE) {
        return API_FAILED;
    }
    struct post post = {
        .thread_id = c->params[0], .entries = &tombstone, .count = 1, .arena = &c->memory};

    if (poster_post(c->app->poster, &post) != 0) {
        c->error = post.error;
        c->retry_after = post.retry_after_s;
        return API_FAILED;
    }
    return tombstone.duplicate ? answer_entry(c, tombstone.first, 200)
                               : answer_entry(c, tombstone.json, 201);
}
