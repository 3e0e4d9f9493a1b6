/* Creating streams and forks (PROTOCOL.md 5.1 and 4.2). A fork's source is looked up first and its
 * offset found; then the name is looked up, and claimed if it is free: until the record is staged,
 * or refused, nobody else sees or creates a stream of that name. So there is no wait with a claim
 * in hand but the one for room in the log. */
#include <assert.h>
#include <stdlib.h>

#include "base/limits.h"
#include "base/media_type.h"
#include "stream/checkpoint.h"
#include "stream/expiry.h"
#include "stream/list.h"
#include "stream/locate.h"
#include "stream/message.h"
#include "stream/op.h"
#include "stream/view.h"

#define DEFAULT_TYPE SLICE("application/octet-stream")

/* What a creation needs from step to step. */
struct create {
    struct message_batch batch;
    struct media *media;  /* content type it will have; referenced */
    uint64_t anchor;      /* fork offset as a position, before the sub-offset */
    uint64_t fork_offset; /* bytes that it inherits */
    bool located;         /* the two above are set */
    int code;             /* of what ran on the pool */
};

/* The states of stream and source after the record, made ready before it is staged. */
struct create_plan {
    struct stream_change *own;
    struct stream_change *source;
    struct tail_room room;
    struct stream_fork *fork;
};

static int answer(struct stream_op *op, int code)
{
    struct create *c = op->scratch;
    if (c) {
        message_finish(&c->batch);
        media_put(&op->worker->engine->media, c->media);
        free(c);
        op->scratch = NULL;
    }
    return op_answer(op, code);
}

static bool is_fork(const struct stream_create_request *r)
{
    return r->forked_from.len > 0;
}

static int check_request(const struct stream_create_request *r, struct errmsg *msg)
{
    if (r->content_type.len > 0 && !media_type_valid(r->content_type)) {
        return err_set(msg, ERR_INVALID, "Content-Type is malformed: send type/subtype");
    }
    if (r->expiry.has_ttl && r->expiry.has_expires_at) {
        return err_set(msg, ERR_INVALID, "send Stream-TTL or Stream-Expires-At, not both");
    }
    if (r->expiry.has_ttl && r->expiry.ttl_seconds > STREAM_TTL_SECONDS_MAX) {
        return err_set(msg, ERR_INVALID, "Stream-TTL is more than %llu seconds",
                       STREAM_TTL_SECONDS_MAX);
    }
    if (!is_fork(r) && (r->has_fork_offset || r->has_sub_offset)) {
        return err_set(msg, ERR_INVALID, "%s needs Stream-Forked-From",
                       r->has_fork_offset ? "Stream-Fork-Offset" : "Stream-Fork-Sub-Offset");
    }
    if (r->has_sub_offset && r->sub_offset > 0 && !r->has_fork_offset) {
        return err_set(msg, ERR_INVALID, "Stream-Fork-Sub-Offset needs Stream-Fork-Offset");
    }
    return 0;
}

/* ----------------------------------------------------------------- an existing stream of that
 * name */

/* Expiry that the request stands for: a fork's is its source's unless it says otherwise (the table
 * of PROTOCOL.md 4.2). */
static void resolve_expiry(const struct stream_create_request *r, const struct stream *source,
                           uint64_t *ret_ttl_seconds, int64_t *ret_expires_at_ms)
{
    *ret_ttl_seconds = r->expiry.has_ttl ? r->expiry.ttl_seconds : UINT64_MAX;
    *ret_expires_at_ms = r->expiry.has_expires_at ? r->expiry.expires_at_ms : INT64_MAX;
    if (source && !r->expiry.has_ttl && !r->expiry.has_expires_at) {
        *ret_ttl_seconds = source->ttl_seconds;
        *ret_expires_at_ms = source->expires_at_ms;
    }
}

/* Under the lock of `s`; the anchor of a request without one is the source's tail, as it would be
 * now, or was when the fork was made. */
static bool same_fork(const struct stream_op *op, const struct stream *s)
{
    const struct stream_create_request *r = &op->create;
    const struct create *c = op->scratch;
    if (!is_fork(r) || !s->fork) {
        return !is_fork(r) && !s->fork;
    }
    uint64_t sub_offset = r->has_sub_offset ? r->sub_offset : 0;
    bool both_default = !r->has_fork_offset && !s->fork->explicit_offset;
    return op->source == s->fork->source && sub_offset == s->fork->sub_offset &&
           (both_default || (c->located && c->anchor == s->fork->anchor));
}

static const char *difference(const struct stream_op *op, const struct stream *s)
{
    const struct stream_create_request *r = &op->create;
    const struct create *c = op->scratch;
    uint64_t ttl_seconds;
    int64_t expires_at_ms;
    resolve_expiry(r, s->fork ? s->fork->source : NULL, &ttl_seconds, &expires_at_ms);
    if (!media_type_equal(media_text(c->media), media_text(s->media))) {
        return "Content-Type";
    }
    if (ttl_seconds != s->ttl_seconds || expires_at_ms != s->expires_at_ms) {
        return "Stream-TTL or Stream-Expires-At";
    }
    if (r->closed != s->staged.closed) {
        return "Stream-Closed";
    }
    return same_fork(op, s) ? NULL : "Stream-Forked-From or its offsets";
}

static void set_result(struct stream_op *op, const struct stream *s)
{
    op->result.closed = s->staged.closed;
    op->result.has_next = true;
    op->result.next = s->staged.tail;
    op_set_type(op, s);
}

/* Under the lock; the stream is alive. */
static int answer_existing(struct stream_op *op, struct stream *s)
{
    const char *what = difference(op, s);
    set_result(op, s);
    if (!what) {
        return op_answer_after(op, s, 0);
    }
    (void)err_set(&op->result.msg, ERR_EXISTS, "the stream exists with another %s", what);
    return op_answer_after(op, s, ERR_EXISTS);
}

/* ----------------------------------------------------------------------------------- a new
 * stream */

/* Under the locks of stream and source: 0, or an error that rests on the source's state. `code`
 * says whether it is there. */
static int check_source(struct stream_op *op, struct stream *source, int code)
{
    struct create *c = op->scratch;
    if (code == ERR_GONE) {
        return err_set(&op->result.msg, ERR_CONFLICT,
                       "the source was deleted: fork another stream");
    }
    if (code < 0) {
        return err_set(&op->result.msg, ERR_NOTFOUND, "there is no stream to fork of that name");
    }
    if (!media_type_equal(media_text(c->media), media_text(source->media))) {
        return err_set(&op->result.msg, ERR_CONFLICT,
                       "Content-Type differs from the source's %.*s: leave it out to inherit it",
                       (int)source->media->len, source->media->text);
    }
    if (source->fork && source->fork->depth >= FORK_DEPTH_MAX) {
        return err_set(&op->result.msg, ERR_INVALID, "the chain of forks is longer than %u",
                       FORK_DEPTH_MAX);
    }
    assert(c->located);
    assert(c->fork_offset <= view_now(source)->tail);
    return 0;
}

static struct stream_fork *make_fork(const struct stream_op *op)
{
    const struct create *c = op->scratch;
    struct stream_fork *fork = malloc(sizeof(*fork));
    if (fork) {
        *fork = (struct stream_fork){
            .source = stream_ref(op->source),
            .offset = c->fork_offset,
            .anchor = c->anchor,
            .sub_offset = op->create.has_sub_offset ? op->create.sub_offset : 0,
            .explicit_offset = op->create.has_fork_offset,
            .depth = op->source->fork ? op->source->fork->depth + 1 : 1,
        };
    }
    return fork;
}

static int make_plan(struct create_plan *plan, const struct stream_op *op, struct stream *s,
                     int64_t now_ms)
{
    const struct create *c = op->scratch;
    const struct message_batch *b = &c->batch;
    plan->own = view_change(s);
    if (!plan->own) {
        return ERR_NOMEM;
    }
    plan->own->after.life = LIFE_ALIVE;
    plan->own->after.tail = (op->source ? c->fork_offset : 0) + b->body.len;
    plan->own->after.accessed_ms = now_ms;
    plan->own->after.closed = op->create.closed;
    if (op->source) {
        plan->fork = make_fork(op);
        plan->source = view_change(op->source);
        if (!plan->fork || !plan->source) {
            return ERR_NOMEM;
        }
        plan->source->after.fork_refs++;
    }
    struct tail_body body = message_body(b);
    return b->body.len > 0 ? tail_prepare(&s->tail, &body, &plan->room) : 0;
}

static void drop_plan(struct create_plan *plan)
{
    view_drop(plan->own);
    view_drop(plan->source);
    tail_forgo(&plan->room);
    if (plan->fork) {
        stream_unref(plan->fork->source);
        free(plan->fork);
    }
}

static int stage(const struct stream_op *op, struct stream *s, const struct create_plan *plan,
                 int64_t now_ms, log_pos *ret_end)
{
    const struct create *c = op->scratch;
    struct record r = {
        .type = RECORD_CREATE,
        .id = s->id,
        .create = {.name = stream_name(s),
                   .content_type = media_text(c->media),
                   .created_ms = now_ms,
                   .closed = op->create.closed,
                   .marks = c->batch.marks,
                   .body = c->batch.body},
    };
    resolve_expiry(&op->create, op->source, &r.create.ttl_seconds, &r.create.expires_at_ms);
    if (plan->fork) {
        r.create.source_id = op->source->id;
        r.create.fork_offset = plan->fork->offset;
        r.create.fork_anchor = plan->fork->anchor;
        r.create.fork_sub_offset = plan->fork->sub_offset;
        r.create.fork_explicit = plan->fork->explicit_offset;
        checkpoint_mark(op->source);
    }
    checkpoint_mark(s);
    struct store *store = s->engine->store;
    return store->ops->stage(store, &r, c->batch.block, ret_end);
}

static void commit(struct create_plan *plan, struct stream_op *op, struct stream *s, int64_t now_ms,
                   log_pos end)
{
    struct create *c = op->scratch;
    const struct message_batch *b = &c->batch;
    s->media = c->media;
    c->media = NULL;
    s->created_ms = now_ms;
    s->accessed_ms = now_ms;
    resolve_expiry(&op->create, op->source, &s->ttl_seconds, &s->expires_at_ms);
    s->fork = plan->fork;
    s->saved = stream_own_start(s);
    if (b->body.len > 0) {
        struct tail_body body = message_body(b);
        tail_add(&s->tail, &plan->room, s->saved, &body);
        atomic_fetch_add(&s->engine->hot_bytes, b->body.len);
    }
    view_push(s, plan->own, end);
    list_fresh(s);
    if (plan->source) {
        view_push(op->source, plan->source, end);
    }
}

/* Under the locks of stream and source. */
static int create_locked(struct stream_op *op, struct stream *s)
{
    int64_t now_ms = engine_now_ms(s->engine);
    const struct create *c = op->scratch;
    int removal;
    int code = op->source ? expiry_check(op->source, now_ms, &removal) : 0;
    if (code < 0 && !expiry_absent(code)) {
        return code;
    }
    code = op->source ? check_source(op, op->source, code) : 0;
    if (code < 0) {
        (void)op_answer_after(op, op->source, code);
        return code;
    }
    if (c->batch.body.len > 0 &&
        atomic_load(&s->engine->hot_bytes) + c->batch.body.len > s->engine->config.hot_bytes_max) {
        return ERR_BUSY;
    }
    struct create_plan plan = {0};
    log_pos end = 0;
    code = make_plan(&plan, op, s, now_ms);
    const struct quota_share share = {.streams = 1, .bytes = c->batch.body.len};
    if (code == 0) {
        code = quota_take(&s->engine->quota, share, &op->result.msg);
    }
    if (code == 0) {
        code = stage(op, s, &plan, now_ms, &end);
        if (code < 0) {
            quota_give(&s->engine->quota, share);
        }
    }
    if (code < 0) {
        drop_plan(&plan);
        return code;
    }
    commit(&plan, op, s, now_ms, end);
    op->changed = true;
    op->result.created = true;
    set_result(op, s);
    return op_answer_after(op, s, 0);
}

/* With both locks, child before source. */
static int create_lock(struct stream_op *op, struct stream *s)
{
    pthread_mutex_lock(&s->lock);
    if (op->source) {
        pthread_mutex_lock(&op->source->lock);
    }
    int code = create_locked(op, s);
    if (op->source) {
        pthread_mutex_unlock(&op->source->lock);
    }
    pthread_mutex_unlock(&s->lock);
    return code;
}

/* The name is free and ours. */
static int create_claimed(struct stream_op *op)
{
    struct engine *e = op->worker->engine;
    struct stream *s = op->stream;
    op->step = create_claimed;
    op_note(op);
    int code = op_refused(e);
    if (code == 0 && is_fork(&op->create) && !op->source) {
        code = err_set(&op->result.msg, ERR_NOTFOUND, "there is no stream to fork of that name");
    }
    if (code == 0) {
        /* An attempt that had to wait for room left the stream on the dirty list, which is sorted
         * by id: the next attempt keeps the id, which no record has seen. */
        code = table_list(e, s, s->id ? s->id : e->store->ops->next_id(e->store));
    }
    if (code == 0) {
        code = create_lock(op, s);
    }
    if (atomic_load_explicit(&e->hot_bytes, memory_order_relaxed) > e->config.hot_bytes_max / 2) {
        checkpoint_ask(e);
    }
    if (code == 0) {
        table_live(e, s);
        return answer(op, 0);
    }
    table_unlist(e, s);
    if (code == ERR_AGAIN) {
        return op_wait_room(op);
    }
    table_absent(e, s, ERR_NOTFOUND);
    return answer(op, code);
}

static int create_target(struct stream_op *op);

/* Looks again once more is durable; ERR_UNKNOWN when nothing more ever will be. */
static int wait_gone(struct stream_op *op)
{
    return op_refused(op->worker->engine) < 0 ? answer(op, ERR_UNKNOWN) : op_wait_room(op);
}

/* A stream of that name is there, or was until now. */
static int create_existing(struct stream_op *op)
{
    struct stream *s = op->stream;
    int removal;
    op_note(op);
    pthread_mutex_lock(&s->lock);
    int code = expiry_check(s, engine_now_ms(s->engine), &removal);
    /* Until its deletion is durable the old stream keeps the name: should this creation be refused
     * after all, readers would be told that there is none, which a crash could take back. */
    bool going = code == ERR_NOTFOUND && removal == 0 && view_now(s)->life != LIFE_GONE;
    if (code == 0) {
        (void)answer_existing(op, s);
    } else if (code == ERR_GONE) {
        (void)err_set(&op->result.msg, ERR_CONFLICT,
                      "a deleted stream of that name is kept for its forks: use another name");
        (void)op_answer_after(op, s, ERR_CONFLICT);
    }
    pthread_mutex_unlock(&s->lock);
    if (code == 0 || code == ERR_GONE) {
        return answer(op, op->result.code);
    }
    if (removal == ERR_AGAIN) {
        return op_wait_room(op);
    }
    if (removal < 0) {
        return answer(op, removal);
    }
    if (going) {
        return wait_gone(op);
    }
    code = table_replace(s->engine, s, op);
    if (code == ERR_AGAIN) {
        stream_unref(s);
        op->stream = NULL;
        return create_target(op);
    }
    return code < 0 ? answer(op, code) : create_claimed(op);
}

static int create_found(struct stream_op *op)
{
    if (op->found < 0) {
        return answer(op, op->found);
    }
    /* Only its claimer changes the phase of a claimed name, and a live one stays live. */
    return op->stream->phase == PHASE_CLAIMED ? create_claimed(op) : create_existing(op);
}

static int create_target(struct stream_op *op)
{
    op->claims = true;
    return op_resolve(op, op->name, create_found);
}

/* ------------------------------------------------------------------------------------- the
 * source */

static int after_locate(struct stream_op *op)
{
    struct create *c = op->scratch;
    if (c->code == ERR_GONE) {
        /* The source went meanwhile: what that means is told once the name was looked up. */
        c->fork_offset = c->anchor;
        c->code = 0;
    }
    return c->code < 0 ? answer(op, c->code) : create_target(op);
}

static void locate_on_pool(struct task *task)
{
    struct stream_op *op = container_of(task, struct stream_op, task);
    struct create *c = op->scratch;
    uint64_t sub_offset = op->create.has_sub_offset ? op->create.sub_offset : 0;
    c->code = locate_fork(op->source, c->anchor, sub_offset, c->fork_offset, &c->fork_offset,
                          &op->result.msg);
    op_post(op);
}

/* The fork offset that was asked for, as a position; without one the durable tail. */
static int resolve_anchor(const struct stream_create_request *r, uint64_t tail,
                          uint64_t *ret_anchor, struct errmsg *msg)
{
    uint64_t anchor = tail;
    if (r->has_fork_offset && r->fork_offset.kind != OFFSET_NOW) {
        anchor = r->fork_offset.kind == OFFSET_START ? 0 : r->fork_offset.position;
    }
    if (anchor > tail) {
        return err_set(msg, ERR_INVALID, "Stream-Fork-Offset is beyond the end of the source");
    }
    *ret_anchor = anchor;
    return 0;
}

/* Finds where the fork begins. Only a sub-offset, or a position between messages that must be
 * proved, takes a look at the marks, which may be on disk. */
static int create_locate(struct stream_op *op)
{
    const struct stream_create_request *r = &op->create;
    struct create *c = op->scratch;
    if (!op->source) {
        return create_target(op);
    }
    op->step = create_locate;
    op_note(op);
    pthread_mutex_lock(&op->source->lock);
    int removal;
    int code = expiry_check(op->source, engine_now_ms(op->worker->engine), &removal);
    uint64_t tail = view_now(op->source)->tail;
    log_pos end = op->source->staged_end;
    pthread_mutex_unlock(&op->source->lock);
    if (code < 0 && !expiry_absent(code)) {
        return code == ERR_AGAIN ? op_wait_room(op) : answer(op, code);
    }
    if (code == ERR_NOTFOUND) {
        /* No word about offsets in a stream that is not there. */
        op->end = end;
        stream_unref(op->source);
        op->source = NULL;
        return create_target(op);
    }
    code = resolve_anchor(r, tail, &c->anchor, &op->result.msg);
    if (code < 0) {
        op->end = end;
        return answer(op, code);
    }
    c->located = true;
    c->fork_offset = c->anchor;
    bool sub = r->has_sub_offset && r->sub_offset > 0;
    bool inside = op->source->media->json && c->anchor > 0 && c->anchor < tail;
    if (!sub && !inside) {
        return create_target(op);
    }
    c->fork_offset = tail;
    return op_to_pool(op, locate_on_pool, after_locate);
}

static void prepare_body(struct stream_op *op)
{
    const struct stream_create_request *r = &op->create;
    struct create *c = op->scratch;
    c->code = message_prepare(&c->batch, c->media->json, r->body, r->body_block, true,
                              &op->result.msg);
}

static void prepare_on_pool(struct task *task)
{
    struct stream_op *op = container_of(task, struct stream_op, task);
    prepare_body(op);
    op_post(op);
}

static int after_prepare(struct stream_op *op)
{
    const struct create *c = op->scratch;
    return c->code < 0 ? answer(op, c->code) : create_locate(op);
}

/* Everything about the request that no state of the name decides. */
static int create_prepare(struct stream_op *op)
{
    struct stream_create_request *r = &op->create;
    struct engine *e = op->worker->engine;
    struct slice type = r->content_type;
    if (type.len == 0) {
        type = op->source ? media_text(op->source->media) : DEFAULT_TYPE;
    }
    struct create *c = calloc(1, sizeof(*c));
    if (!c) {
        return op_answer(op, ERR_NOMEM);
    }
    op->scratch = c;
    c->media = media_get(&e->media, type);
    if (!c->media) {
        return answer(op, ERR_NOMEM);
    }
    if (message_heavy(c->media->json, r->body.len)) {
        return op_to_pool(op, prepare_on_pool, after_prepare);
    }
    prepare_body(op);
    return after_prepare(op);
}

static int create_source(struct stream_op *op)
{
    if (op->found < 0 && op->found != ERR_NOTFOUND) {
        return op_answer(op, op->found);
    }
    op->source = op->stream;
    op->stream = NULL;
    return create_prepare(op);
}

int create_begin(struct stream_op *op)
{
    int code = check_request(&op->create, &op->result.msg);
    if (code < 0) {
        return op_answer(op, code);
    }
    if (op->name.len == 0 || op->name.len > STREAM_NAME_BYTES_MAX) {
        (void)err_set(&op->result.msg, ERR_INVALID, "a stream's name has 1 to %u bytes",
                      STREAM_NAME_BYTES_MAX);
        return op_answer(op, ERR_INVALID);
    }
    return is_fork(&op->create) ? op_resolve(op, op->create.forked_from, create_source)
                                : create_prepare(op);
}
