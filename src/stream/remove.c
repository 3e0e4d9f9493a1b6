/* A deletion is one record, whatever goes with it: the stream, soft-deleted ancestors up the
 * chain, and the fork count of the first ancestor that stays. All are locked, child before source,
 * until it is staged. */
#include "stream/remove.h"

#include <assert.h>

#include "base/bytes.h"
#include "base/limits.h"
#include "stream/checkpoint.h"
#include "stream/expiry.h"
#include "stream/op.h"
#include "stream/view.h"

/* The stream, the ancestors that go with it, and the one that stays with a fork less, in this
 * order; all are locked. */
struct removal {
    struct stream *streams[FORK_DEPTH_MAX + 1];
    struct stream_change *changes[FORK_DEPTH_MAX + 1];
    unsigned count;                        /* of both */
    unsigned gone;                         /* of these go for good, from the first on */
    unsigned char ids[FORK_DEPTH_MAX * 8]; /* of the ancestors that go */
};

static struct stream_change *add(struct removal *r, struct stream *s)
{
    assert(r->count < ARRAY_COUNT(r->streams));
    struct stream_change *c = view_change(s);
    r->streams[r->count] = s;
    r->changes[r->count] = c;
    r->count++;
    return c;
}

/* Walks up while the deletion of one takes the last reference from the next. */
static int add_ancestors(struct removal *r, const struct stream *s)
{
    while (s->fork) {
        struct stream *source = s->fork->source;
        pthread_mutex_lock(&source->lock);
        struct stream_change *c = add(r, source);
        if (!c) {
            return ERR_NOMEM;
        }
        if (c->after.fork_refs == 0) {
            return ERR_CORRUPT;
        }
        c->after.fork_refs--;
        if (c->after.life != LIFE_SOFT || c->after.fork_refs > 0) {
            return 0;
        }
        c->after.life = LIFE_GONE;
        bytes_put_u64(r->ids + (r->gone - 1) * 8, source->id);
        r->gone++;
        s = source;
    }
    return 0;
}

static int plan(struct removal *r, struct stream *s)
{
    struct stream_change *c = add(r, s);
    if (!c) {
        return ERR_NOMEM;
    }
    if (s->staged.fork_refs > 0) {
        c->after.life = LIFE_SOFT;
        return 0;
    }
    c->after.life = LIFE_GONE;
    r->gone = 1;
    return add_ancestors(r, s);
}

static int stage(const struct removal *r, bool expired, log_pos *ret_end)
{
    struct stream *s = r->streams[0];
    bool soft = r->gone == 0;
    uint32_t cascade = soft ? 0 : r->gone - 1;
    struct record record = {
        .type = RECORD_DELETE,
        .id = s->id,
        .del = {.soft = soft,
                .expired = expired,
                .cascade_count = cascade,
                .cascade = {(const char *)r->ids, (size_t)cascade * 8},
                .released = !soft && r->count > r->gone ? r->streams[r->gone]->id : 0},
    };
    struct store *store = s->engine->store;
    for (unsigned i = 0; i < r->count; i++) {
        checkpoint_mark(r->streams[i]);
    }
    return store->ops->stage(store, &record, NULL, ret_end);
}

int remove_locked(struct stream *s, bool expired)
{
    assert(s->staged.life == LIFE_ALIVE);
    struct removal r = {0};
    log_pos end = 0;
    int code = plan(&r, s);
    if (code == 0) {
        code = stage(&r, expired, &end);
    }
    for (unsigned i = 0; i < r.count; i++) {
        if (code < 0) {
            view_drop(r.changes[i]);
        } else {
            view_push(r.streams[i], r.changes[i], end);
        }
        if (code == 0 && i < r.gone) {
            struct stream_state was = {.life = LIFE_SOFT, .tail = r.streams[i]->staged.tail};
            quota_give(&s->engine->quota, quota_share_of(r.streams[i], &was));
        }
        if (i > 0) {
            if (code == 0 && i < r.gone) {
                publish_later(s->engine, r.streams[i], end);
            }
            pthread_mutex_unlock(&r.streams[i]->lock);
        }
    }
    return code;
}

/* Under the stream's lock: 0 when answered, else ERR_AGAIN. */
static int delete_locked(struct stream_op *op, struct stream *s)
{
    int removal;
    int code = expiry_check(s, engine_now_ms(s->engine), &removal);
    if (code < 0) {
        return op_answer_absent(op, s, code);
    }
    code = op_refused(s->engine);
    if (code == 0) {
        code = remove_locked(s, false);
    }
    if (code == ERR_AGAIN) {
        return code;
    }
    if (code < 0) {
        return op_answer(op, code);
    }
    op->changed = true;
    return op_answer_after(op, s, 0);
}

static int delete_run(struct stream_op *op)
{
    if (op->found < 0) {
        return op_answer(op, op->found);
    }
    struct stream *s = op->stream;
    op_note(op);
    pthread_mutex_lock(&s->lock);
    int code = delete_locked(op, s);
    pthread_mutex_unlock(&s->lock);
    return code == ERR_AGAIN ? op_wait_room(op) : code;
}

int remove_begin(struct stream_op *op)
{
    return op_resolve(op, op->name, delete_run);
}
