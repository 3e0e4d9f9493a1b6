/* An operation is a chain of steps, each a function on its worker's thread. A step ends in one of
 * three ways:
 *   - with the next step, at once;
 *   - elsewhere: on the queue of a stream that is loading, on the pool, or waiting for room in the
 *     log; whoever has it posts it back, and its step goes on;
 *   - with an answer, and with `end`: the answer tells of records up to there, so it is not given
 *     before the log is durable up to there. Until then the operation is parked. If the log fails
 *     first, nobody knows what became of the records: ERR_UNKNOWN.
 *
 * Lost wake-ups: the notice of the store and the parking of an operation race. Both use a
 * read-modify-write of `waits`: if the notice reads it before the worker adds to it, the worker's
 * later look at the durable position sees what the notice was about. */
#include "stream/op.h"

#include <assert.h>
#include <stdlib.h>

#include "base/limits.h"
#include "stream/expiry.h"
#include "stream/watch.h"

#define STEPS_BACK_MAX 64u /* to the place of one in a list that is ordered by ends */

static bool durable_up_to(const struct engine *e, log_pos end)
{
    return e->store->ops->durable(e->store) >= end;
}

int op_refused(const struct engine *e)
{
    return e->store->ops->failed(e->store) ? ERR_FAILED : 0;
}

int op_answer(struct stream_op *op, int code)
{
    op->result.code = code;
    if (code < 0 && op->result.msg.text[0] == '\0') {
        (void)err_set(&op->result.msg, code, "%s", err_text(code));
    }
    return 0;
}

int op_answer_after(struct stream_op *op, struct stream *s, int code)
{
    op->end = s->staged_end > op->end ? s->staged_end : op->end;
    return op_answer(op, code);
}

int op_answer_absent(struct stream_op *op, struct stream *s, int code)
{
    if (code == ERR_AGAIN) {
        return code;
    }
    return expiry_absent(code) ? op_answer_after(op, s, code) : op_answer(op, code);
}

void op_set_type(struct stream_op *op, const struct stream *s)
{
    struct slice type = media_text(s->media);
    struct stream_result *r = &op->result;
    assert(type.len <= sizeof(r->content_type_bytes));
    memcpy(r->content_type_bytes, type.ptr, type.len);
    r->content_type = (struct slice){r->content_type_bytes, type.len};
}

void op_release(struct stream_op *op)
{
    stream_unref(op->stream);
    stream_unref(op->source);
    op->stream = NULL;
    op->source = NULL;
}

static void post_worker(struct engine_worker *w)
{
    if (!atomic_exchange(&w->posted, true)) {
        w->post(w->post_context, &w->task);
    }
}

/* Operations are parked in the order of their ends, but for those that rest on what was staged
 * before: these step back past a few. Past how many there may be is for clients to say, so there is
 * a bound; one that stays behind others is answered with them, a commit later. */
static void park(struct engine_worker *w, struct stream_op *op)
{
    struct list *after = w->parked.prev;
    for (unsigned n = 0; n < STEPS_BACK_MAX && after != &w->parked; n++) {
        if (container_of(after, struct stream_op, link)->end <= op->end) {
            break;
        }
        after = after->prev;
    }
    list_append(after->next, &op->link);
    atomic_fetch_add(&w->waits, 1);
    if (durable_up_to(w->engine, op->end) || w->engine->store->ops->failed(w->engine->store)) {
        post_worker(w);
    }
}

/* The answer is durable: readers first, then whoever asked. */
static void conclude(struct stream_op *op)
{
    struct engine_worker *w = op->worker;
    if (op->changed && op->stream) {
        watch_publish(op->stream);
    }
    op_release(op);
    assert(w->pending > 0);
    w->pending--;
}

/* Steps until the operation is answered (0) or elsewhere (STREAM_PENDING). */
static int run_steps(struct stream_op *op)
{
    int code;
    do {
        code = op->step(op);
    } while (code == OP_NEXT);
    if (code == STREAM_PENDING) {
        return code;
    }
    assert(code == 0);
    if (op->end > 0 && !durable_up_to(op->worker->engine, op->end)) {
        park(op->worker, op);
        return STREAM_PENDING;
    }
    conclude(op);
    return 0;
}

static void resume(struct task *task)
{
    struct stream_op *op = container_of(task, struct stream_op, task);
    if (run_steps(op) == 0) {
        op->done(op);
    }
}

void op_post(struct stream_op *op)
{
    op->task.run = resume;
    op->worker->post(op->worker->post_context, &op->task);
}

int op_to_pool(struct stream_op *op, void (*run)(struct task *task),
               int (*then)(struct stream_op *))
{
    op->step = then;
    op->task.run = run;
    pool_submit(op->worker->engine->config.pool, &op->task);
    return STREAM_PENDING;
}

int op_resolve(struct stream_op *op, struct slice name, int (*then)(struct stream_op *))
{
    assert(!op->stream);
    op->step = then;
    if (name.len == 0 || name.len > STREAM_NAME_BYTES_MAX) {
        op->found = ERR_NOTFOUND;
        return OP_NEXT;
    }
    int code = table_resolve(op->worker->engine, name, op);
    if (code == STREAM_PENDING) {
        return code;
    }
    op->found = code;
    return OP_NEXT;
}

void op_note(struct stream_op *op)
{
    op->notices = atomic_load(&op->worker->engine->notices);
}

int op_wait_room(struct stream_op *op)
{
    struct engine_worker *w = op->worker;
    list_append(&w->room, &op->link);
    atomic_fetch_add(&w->waits, 1);
    if (atomic_load(&w->engine->notices) != op->notices) {
        post_worker(w);
    }
    return STREAM_PENDING;
}

int op_wait_visible(struct stream_op *op)
{
    return op_refused(op->worker->engine) < 0 ? op_answer(op, ERR_UNKNOWN) : op_wait_room(op);
}

static void answer_parked(struct engine_worker *w)
{
    struct list *first;
    while ((first = list_first(&w->parked)) != NULL) {
        struct stream_op *op = container_of(first, struct stream_op, link);
        /* In this order: what became durable just before the log failed is good. */
        bool failed = w->engine->store->ops->failed(w->engine->store);
        if (!durable_up_to(w->engine, op->end)) {
            if (!failed) {
                return;
            }
            op->result = (struct stream_result){0};
            op->changed = false;
            (void)op_answer(op, ERR_UNKNOWN);
        }
        list_remove(first);
        atomic_fetch_sub(&w->waits, 1);
        conclude(op);
        op->done(op);
    }
}

static void retry_room(struct engine_worker *w)
{
    struct list again;
    list_init(&again);
    list_append_all(&again, &w->room);
    struct list *first;
    while ((first = list_first(&again)) != NULL) {
        struct stream_op *op = container_of(first, struct stream_op, link);
        list_remove(first);
        atomic_fetch_sub(&w->waits, 1);
        if (run_steps(op) == 0) {
            op->done(op);
        }
    }
}

void op_commit(struct task *task)
{
    struct engine_worker *w = container_of(task, struct engine_worker, task);
    /* Cleared first: a notice from here on posts the task again. */
    atomic_store(&w->posted, false);
    publish_due(w->engine);
    answer_parked(w);
    retry_room(w);
}

void workers_notice(struct engine *e)
{
    atomic_fetch_add(&e->notices, 1);
    bool publish = atomic_fetch_add(&e->publish_count, 0) > 0;
    pthread_mutex_lock(&e->workers_lock);
    LIST_FOR_EACH(node, &e->workers)
    {
        struct engine_worker *w = container_of(node, struct engine_worker, link);
        if (atomic_fetch_add(&w->waits, 0) > 0 || publish) {
            post_worker(w);
            publish = false;
        }
    }
    pthread_mutex_unlock(&e->workers_lock);
}

/* Where a note goes in: notes are in the order of their ends, as good as operations that are
 * parked. Under the lock; what is appended there stands before it. */
static struct list *notes_before(struct engine *e, log_pos end)
{
    struct list *after = e->publish.prev;
    for (unsigned n = 0; n < STEPS_BACK_MAX && after != &e->publish; n++) {
        if (container_of(after, struct publish_note, link)->end <= end) {
            break;
        }
        after = after->prev;
    }
    return after->next;
}

void publish_later(struct engine *e, struct stream *s, log_pos end)
{
    struct publish_note *note = malloc(sizeof(*note));
    if (!note) {
        return;
    }
    *note = (struct publish_note){.stream = stream_ref(s), .end = end};
    pthread_mutex_lock(&e->publish_lock);
    list_append(notes_before(e, end), &note->link);
    atomic_fetch_add(&e->publish_count, 1);
    pthread_mutex_unlock(&e->publish_lock);
    if (durable_up_to(e, end)) {
        workers_notice(e);
    }
}

/* Moves the notes whose time has come. After a failure of the log that is all of them: what they
 * tell of will never be seen. */
static void take_due(struct engine *e, struct list *due)
{
    bool failed = e->store->ops->failed(e->store);
    pthread_mutex_lock(&e->publish_lock);
    struct list *first;
    while ((first = list_first(&e->publish)) != NULL) {
        struct publish_note *note = container_of(first, struct publish_note, link);
        if (!failed && !durable_up_to(e, note->end)) {
            break;
        }
        list_remove(first);
        list_append(due, first);
        atomic_fetch_sub(&e->publish_count, 1);
    }
    pthread_mutex_unlock(&e->publish_lock);
}

void publish_due(struct engine *e)
{
    if (atomic_load(&e->publish_count) == 0) {
        return;
    }
    struct list due;
    list_init(&due);
    take_due(e, &due);
    struct list *first;
    while ((first = list_first(&due)) != NULL) {
        struct publish_note *note = container_of(first, struct publish_note, link);
        list_remove(first);
        watch_publish(note->stream);
        stream_unref(note->stream);
        free(note);
    }
}

int stream_start(struct engine_worker *w, struct stream_op *op)
{
    static int (*const begin[])(struct stream_op *) = {
        [STREAM_CREATE] = create_begin, [STREAM_APPEND] = append_begin,
        [STREAM_DELETE] = remove_begin, [STREAM_HEAD] = head_begin,
        [STREAM_READ] = read_begin,     [STREAM_NOTE] = note_begin,
    };
    assert((size_t)op->verb < ARRAY_COUNT(begin));
    op->result = (struct stream_result){0};
    op->worker = w;
    op->stream = NULL;
    op->source = NULL;
    op->step = begin[op->verb];
    op->end = 0;
    op->found = 0;
    op->claims = false;
    op->changed = false;
    op->scratch = NULL;
    list_init(&op->link);
    w->pending++;
    return run_steps(op);
}
