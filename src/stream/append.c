/* Appending and closing (PROTOCOL.md 5.2, 5.2.1, 5.3). Everything that can be refused is refused,
 * and everything that can fail has been prepared, before the one record is staged; only when that
 * went well does any state change. The order of the checks is that of PROTOCOL.md 5.2, error
 * precedence. */
#include <assert.h>
#include <stdlib.h>

#include "base/limits.h"
#include "base/media_type.h"
#include "stream/checkpoint.h"
#include "stream/expiry.h"
#include "stream/message.h"
#include "stream/op.h"
#include "stream/view.h"

/* What an append needs from step to step. */
struct append {
    struct message_batch batch;
    int invalid;       /* the request is malformed: 0, or the error, its sentence in the result */
    int bad_body;      /* the body is no message of this stream: likewise, sentence in `why` */
    struct errmsg why; /* told unless there is a worse reason */
};

/* What has been made ready for one record. */
struct append_plan {
    struct stream_change *change;
    struct tail_room room;
    struct stream_closer *closer;
    struct producer *fresh; /* new, and taken out again when the record is refused */
};

static int check_request(const struct stream_append_request *r, struct errmsg *msg)
{
    if (r->body.len == 0) {
        return r->close ? 0
                        : err_set(msg, ERR_INVALID,
                                  "the body is empty: send bytes, or Stream-Closed: true to close");
    }
    if (r->content_type.len == 0) {
        return err_set(msg, ERR_INVALID, "Content-Type is missing: send that of the stream");
    }
    if (!media_type_valid(r->content_type)) {
        return err_set(msg, ERR_INVALID, "Content-Type is malformed: send type/subtype");
    }
    if (r->producer.id.len > PRODUCER_ID_BYTES_MAX) {
        return err_set(msg, ERR_INVALID, "Producer-Id is longer than %u bytes",
                       PRODUCER_ID_BYTES_MAX);
    }
    if (r->seq.len > STREAM_SEQ_BYTES_MAX) {
        return err_set(msg, ERR_INVALID, "Stream-Seq is longer than %u bytes",
                       STREAM_SEQ_BYTES_MAX);
    }
    return 0;
}

static void answer_state(struct stream_op *op, const struct stream *s)
{
    op->result.id = s->id;
    op->result.closed = s->staged.closed;
    op->result.has_next = true;
    op->result.next = s->staged.tail;
}

static bool closed_by(const struct stream *s, const struct record_producer *p)
{
    const struct stream_closer *c = s->closer;
    return c && p->id.len > 0 && slice_equal((struct slice){c->id, c->id_len}, p->id) &&
           c->epoch == p->epoch && c->seq == p->seq;
}

/* PROTOCOL.md 5.2.1, closure with producers, and 5.3: closing again is well, appending is not. */
static int answer_closed(struct stream_op *op, struct stream *s)
{
    const struct stream_append_request *r = &op->append;
    answer_state(op, s);
    if (closed_by(s, &r->producer)) {
        op->result.duplicate = true;
        op->result.producer_epoch = s->closer->epoch;
        op->result.producer_seq = s->closer->seq;
        return op_answer_after(op, s, 0);
    }
    if (r->close && r->body.len == 0 && r->producer.id.len == 0) {
        return op_answer_after(op, s, 0);
    }
    return op_answer_after(op, s, ERR_CLOSED);
}

static int refuse_gap(struct stream_op *op, struct stream *s, const struct producer *known)
{
    struct stream_result *res = &op->result;
    res->seq_gap = true;
    res->producer_seq_received = op->append.producer.seq;
    res->producer_seq_expected = known ? known->staged.seq + 1 : 0;
    (void)err_set(&res->msg, ERR_CONFLICT,
                  "Producer-Seq leaves a gap: expected %llu, received %llu",
                  (unsigned long long)res->producer_seq_expected,
                  (unsigned long long)res->producer_seq_received);
    return op_answer_after(op, s, ERR_CONFLICT);
}

static int answer_duplicate(struct stream_op *op, struct stream *s, const struct producer *known)
{
    answer_state(op, s);
    op->result.duplicate = true;
    op->result.producer_epoch = known->staged.epoch;
    op->result.producer_seq = known->staged.seq;
    return op_answer_after(op, s, 0);
}

/* STREAM_PENDING: accepted so far; else answered. */
static int judge_producer(struct stream_op *op, struct stream *s, const struct producer *known)
{
    const struct record_producer *p = &op->append.producer;
    struct stream_result *res = &op->result;
    switch (producer_judge(known ? &known->staged : NULL, p->epoch, p->seq)) {
    case PRODUCER_ACCEPT:
        res->producer_epoch = p->epoch;
        res->producer_seq = p->seq;
        return STREAM_PENDING;
    case PRODUCER_DUPLICATE:
        expiry_touch(s, engine_now_ms(s->engine));
        return answer_duplicate(op, s, known);
    case PRODUCER_STALE_EPOCH:
        res->stale_epoch = true;
        res->producer_epoch = known->staged.epoch;
        (void)err_set(&res->msg, ERR_PERM, "Producer-Epoch is stale: the current epoch is %llu",
                      (unsigned long long)known->staged.epoch);
        return op_answer_after(op, s, ERR_PERM);
    case PRODUCER_EPOCH_SEQ:
        (void)err_set(&res->msg, ERR_INVALID, "a new Producer-Epoch must begin at Producer-Seq 0");
        return op_answer_after(op, s, ERR_INVALID);
    case PRODUCER_GAP:
        break;
    }
    return refuse_gap(op, s, known);
}

static bool seq_rises(const struct stream *s, struct slice seq)
{
    const struct block *last = s->staged.seq;
    return !last || slice_compare(seq, (struct slice){last->data, last->len}) > 0;
}

static bool over_budget(const struct stream *s, size_t len)
{
    const struct engine *e = s->engine;
    return len > 0 && atomic_load(&e->hot_bytes) + len > e->config.hot_bytes_max;
}

/* STREAM_PENDING: nothing speaks against the append; ERR_AGAIN; else answered. */
static int check(struct stream_op *op, struct stream *s, const struct append *a,
                 const struct producer *known, int64_t now_ms)
{
    const struct stream_append_request *r = &op->append;
    int removal;
    int code = expiry_check(s, now_ms, &removal);
    if (code < 0) {
        op->result.msg.text[0] = '\0';
        return op_answer_absent(op, s, code);
    }
    if (a->invalid < 0) {
        return op_answer(op, a->invalid);
    }
    if (s->staged.closed) {
        expiry_touch(s, now_ms);
        return answer_closed(op, s);
    }
    if (r->body.len > 0 && !media_type_equal(r->content_type, media_text(s->media))) {
        (void)err_set(&op->result.msg, ERR_CONFLICT, "Content-Type differs from the stream's %.*s",
                      (int)s->media->len, s->media->text);
        return op_answer_after(op, s, ERR_CONFLICT);
    }
    if (a->bad_body < 0) {
        op->result.msg = a->why;
        return op_answer(op, a->bad_body);
    }
    if (r->producer.id.len > 0 && (code = judge_producer(op, s, known)) != STREAM_PENDING) {
        return code;
    }
    if (r->has_seq && !seq_rises(s, r->seq)) {
        op->result.seq_conflict = true;
        (void)err_set(&op->result.msg, ERR_CONFLICT,
                      "Sequence conflict: Stream-Seq must be greater than the last one, %.*s",
                      (int)s->staged.seq->len, s->staged.seq->data);
        return op_answer_after(op, s, ERR_CONFLICT);
    }
    if (a->batch.body.len > STREAM_OFFSET_MAX - s->staged.tail) {
        (void)err_set(&op->result.msg, ERR_NOSPC, "the stream has reached its greatest length");
        return op_answer(op, ERR_NOSPC);
    }
    return over_budget(s, a->batch.body.len) ? op_answer(op, ERR_BUSY) : STREAM_PENDING;
}

static int plan_producer(struct append_plan *plan, struct stream *s, struct producer *known,
                         const struct record_producer *p, int64_t now_ms)
{
    struct producer *producer = known;
    if (!s->producers && !(s->producers = producers_create())) {
        return ERR_NOMEM;
    }
    if (!producer) {
        int code = producers_make_room(s->producers, now_ms);
        code = code == 0 ? producers_add(s->producers, p->id, &producer) : code;
        if (code < 0) {
            return code;
        }
        plan->fresh = producer;
    }
    plan->change->producer = producer;
    plan->change->producer_after = (struct producer_state){p->epoch, p->seq, now_ms};
    return 0;
}

static int make_plan(struct append_plan *plan, struct stream_op *op, struct stream *s,
                     const struct append *a, struct producer *known, int64_t now_ms)
{
    const struct stream_append_request *r = &op->append;
    const struct message_batch *b = &a->batch;
    plan->change = view_change(s);
    if (!plan->change) {
        return ERR_NOMEM;
    }
    struct stream_state *after = &plan->change->after;
    after->tail += b->body.len;
    after->accessed_ms = now_ms > after->accessed_ms ? now_ms : after->accessed_ms;
    after->closed = r->close;
    plan->change->quiet = r->quiet;
    if (r->has_seq && view_set_seq(after, r->seq) < 0) {
        return ERR_NOMEM;
    }
    if (r->close && r->producer.id.len > 0 &&
        !(plan->closer = stream_closer_create(&r->producer))) {
        return ERR_NOMEM;
    }
    struct tail_body body = message_body(b);
    if (b->body.len > 0 && tail_prepare(&s->tail, &body, &plan->room) < 0) {
        return ERR_NOMEM;
    }
    return r->producer.id.len > 0 ? plan_producer(plan, s, known, &r->producer, now_ms) : 0;
}

static void drop_plan(struct append_plan *plan, struct stream *s)
{
    view_drop(plan->change);
    tail_forgo(&plan->room);
    free(plan->closer);
    if (plan->fresh) {
        producers_remove(s->producers, plan->fresh);
    }
}

/* Nothing is left of the share that was taken when the record is refused. */
static int stage(struct stream_op *op, struct stream *s, const struct append *a, int64_t now_ms,
                 log_pos *ret_end)
{
    struct engine *e = s->engine;
    const struct quota_share share = {.bytes = a->batch.body.len};

    const struct stream_append_request *r = &op->append;
    struct record record = {
        .type = RECORD_APPEND,
        .id = s->id,
        .append = {.offset = s->staged.tail,
                   .now_ms = now_ms,
                   .close = r->close,
                   .producer = r->producer,
                   .has_seq = r->has_seq,
                   .seq = r->seq,
                   .marks = a->batch.marks,
                   .body = a->batch.body},
    };
    int code = quota_take(&e->quota, share, &op->result.msg);
    if (code < 0) {
        return code;
    }
    checkpoint_mark(s);
    code = e->store->ops->stage(e->store, &record, a->batch.block, ret_end);
    if (code < 0) {
        quota_give(&e->quota, share);
    }
    return code;
}

static void commit(struct append_plan *plan, struct stream *s, const struct message_batch *b,
                   log_pos end)
{
    if (b->body.len > 0) {
        struct tail_body body = message_body(b);
        tail_add(&s->tail, &plan->room, s->staged.tail, &body);
        atomic_fetch_add(&s->engine->hot_bytes, b->body.len);
    }
    if (plan->closer) {
        assert(!s->closer);
        s->closer = plan->closer;
    }
    s->accessed_ms = plan->change->after.accessed_ms > s->accessed_ms
                         ? plan->change->after.accessed_ms
                         : s->accessed_ms;
    view_push(s, plan->change, end);
}

/* Under the stream's lock. 0 when answered, else ERR_AGAIN. */
static int append_locked(struct stream_op *op, struct stream *s, const struct append *a)
{
    int64_t now_ms = engine_now_ms(s->engine);
    struct producer *known = producers_find(s->producers, op->append.producer.id);
    int code = check(op, s, a, known, now_ms);
    if (code != STREAM_PENDING) {
        return code;
    }
    struct append_plan plan = {0};
    log_pos end = 0;
    code = make_plan(&plan, op, s, a, known, now_ms);
    if (code == 0) {
        code = stage(op, s, a, now_ms, &end);
    }
    if (code < 0) {
        drop_plan(&plan, s);
        if (code == ERR_AGAIN) {
            return code;
        }
        if (code == ERR_LIMIT) {
            (void)err_set(&op->result.msg, code,
                          "the stream has too many producers: use one of those it knows");
        }
        return op_answer(op, code);
    }
    commit(&plan, s, &a->batch, end);
    op->changed = true;
    answer_state(op, s);
    return op_answer_after(op, s, 0);
}

static void finish(struct stream_op *op)
{
    struct append *a = op->scratch;
    message_finish(&a->batch);
    free(a);
    op->scratch = NULL;
}

static int append_run(struct stream_op *op)
{
    struct stream *s = op->stream;
    struct engine *e = s->engine;
    op_note(op);
    pthread_mutex_lock(&s->lock);
    int code = append_locked(op, s, op->scratch);
    pthread_mutex_unlock(&s->lock);
    if (code == ERR_AGAIN) {
        return op_wait_room(op);
    }
    if (atomic_load_explicit(&e->hot_bytes, memory_order_relaxed) > e->config.hot_bytes_max / 2) {
        checkpoint_ask(e);
    }
    finish(op);
    return code;
}

static void prepare_body(struct stream_op *op)
{
    const struct stream_append_request *r = &op->append;
    struct append *a = op->scratch;
    a->bad_body = message_prepare(&a->batch, op->stream->media->json, r->body, r->body_block, false,
                                  &a->why);
}

static void prepare_on_pool(struct task *task)
{
    struct stream_op *op = container_of(task, struct stream_op, task);
    prepare_body(op);
    op_post(op);
}

/* Everything about the request that no state decides, before any lock is taken. */
static int append_prepare(struct stream_op *op)
{
    if (op->found < 0) {
        return op_answer(op, op->found);
    }
    struct stream_append_request *r = &op->append;
    struct append *a = calloc(1, sizeof(*a));
    if (!a) {
        return op_answer(op, ERR_NOMEM);
    }
    op->scratch = a;
    op->step = append_run;
    a->invalid = check_request(r, &op->result.msg);
    if (a->invalid < 0 || r->body.len == 0) {
        return OP_NEXT;
    }
    if (message_heavy(op->stream->media->json, r->body.len)) {
        return op_to_pool(op, prepare_on_pool, append_run);
    }
    prepare_body(op);
    return OP_NEXT;
}

int append_begin(struct stream_op *op)
{
    return op_resolve(op, op->name, append_prepare);
}
