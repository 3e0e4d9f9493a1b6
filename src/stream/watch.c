/* A waiter never misses a change, and a change costs one task per worker, however many wait there:
 *   - stream_wait looks at the visible state and joins the watch under one hold of the stream's
 *     lock.
 *   - Whoever makes a change visible calls watch_publish: a watch whose latch is open is latched
 *     and its task posted; one that is latched already will look later anyway.
 *   - The task opens the latch first, then looks, then wakes: a change that comes after the look
 *     finds the latch open and posts the task again. A task wakes WAKES_PER_RUN waiters and posts
 *     itself again for the rest, so that a crowd on one stream does not hold up the other
 *     connections of its worker.
 *
 * The lists of waiters belong to the worker; the list of watches and the counts to the stream's
 * lock. */
#include "stream/watch.h"

#include <assert.h>
#include <stdlib.h>

#include "base/limits.h"
#include "stream/observe.h"
#include "stream/op.h"
#include "stream/view.h"

#define WAKES_PER_RUN 256u

/* What a waiter is compared with. */
struct sight {
    uint64_t tail;
    bool closed;
    bool gone;
};

struct stream_watch {
    struct list link;        /* on the stream's watches; under its lock */
    struct list worker_link; /* on the worker's watches */
    struct engine_worker *worker;
    struct stream *stream; /* referenced */
    struct list idle;      /* struct stream_waiter, compared with `seen` */
    struct list due;       /* struct stream_waiter, to be compared */
    size_t count;          /* waiters on both lists */
    struct sight seen;     /* by the last run of the task */
    _Atomic bool latched;  /* `task` is on its way */
    struct task task;
};

static struct sight look(struct stream *s)
{
    const struct stream_state *v = view_now(s);
    return (struct sight){v->tail, v->closed, v->life != LIFE_ALIVE};
}

static bool behind(const struct stream_waiter *waiter, const struct sight *sight)
{
    return sight->tail > waiter->from || sight->closed || sight->gone;
}

static void post_watch(struct stream_watch *watch)
{
    if (!atomic_exchange(&watch->latched, true)) {
        watch->worker->post(watch->worker->post_context, &watch->task);
    }
}

void watch_publish(struct stream *s)
{
    pthread_mutex_lock(&s->lock);
    (void)view_now(s); /* for its effect: data of a stream that is gone is freed */
    observe_told(s);
    if (s->live) {
        LIST_FOR_EACH(node, &s->live->watches)
        {
            post_watch(container_of(node, struct stream_watch, link));
        }
    }
    pthread_mutex_unlock(&s->lock);
}

/* Under the lock: the stream has no watch left. */
static void drop_live(struct stream *s)
{
    block_unref(s->live->frame);
    free(s->live);
    s->live = NULL;
}

/* Frees a watch without waiters. While it is latched its task is on its way, and that will free it;
 * publishers latch under the stream's lock, so looking and leaving are one step. */
static void try_destroy(struct stream_watch *watch, bool force)
{
    struct stream *s = watch->stream;
    assert(watch->count == 0);
    pthread_mutex_lock(&s->lock);
    bool stays = atomic_load(&watch->latched) && !force;
    if (!stays) {
        list_remove(&watch->link);
        if (list_empty(&s->live->watches)) {
            drop_live(s);
        }
    }
    pthread_mutex_unlock(&s->lock);
    if (!stays) {
        list_remove(&watch->worker_link);
        free(watch);
        stream_unref(s);
    }
}

/* Under the lock. The last live reader was there until now, which counts as access for a sliding
 * TTL (PROTOCOL.md 5.1, Stream-TTL). */
static void count_down(struct stream *s)
{
    assert(s->live->waiters > 0);
    if (--s->live->waiters == 0) {
        int64_t now_ms = engine_now_ms(s->engine);
        s->accessed_ms = now_ms > s->accessed_ms ? now_ms : s->accessed_ms;
    }
}

static void leave(struct stream_waiter *waiter)
{
    struct stream_watch *watch = waiter->watch;
    struct stream *s = watch->stream;
    list_remove(&waiter->link);
    waiter->watch = NULL;
    assert(watch->count > 0);
    watch->count--;
    pthread_mutex_lock(&s->lock);
    count_down(s);
    pthread_mutex_unlock(&s->lock);
    atomic_fetch_sub(&s->engine->waiters, 1);
}

static bool sight_equal(const struct sight *a, const struct sight *b)
{
    return a->tail == b->tail && a->closed == b->closed && a->gone == b->gone;
}

/* Waking may add and take off waiters of this very watch. */
static void wake_due(struct stream_watch *watch, const struct sight *sight)
{
    struct list *first;
    for (unsigned n = 0; n < WAKES_PER_RUN && (first = list_first(&watch->due)); n++) {
        struct stream_waiter *waiter = container_of(first, struct stream_waiter, link);
        if (behind(waiter, sight)) {
            leave(waiter);
            waiter->wake(waiter);
        } else {
            list_remove(first);
            list_append(&watch->idle, first);
        }
    }
}

static void watch_run(struct task *task)
{
    struct stream_watch *watch = container_of(task, struct stream_watch, task);
    atomic_store(&watch->latched, false);
    pthread_mutex_lock(&watch->stream->lock);
    struct sight sight = look(watch->stream);
    pthread_mutex_unlock(&watch->stream->lock);
    if (!sight_equal(&sight, &watch->seen)) {
        watch->seen = sight;
        list_append_all(&watch->due, &watch->idle);
    }
    watch->count++; /* keeps the watch while its waiters are called */
    wake_due(watch, &sight);
    watch->count--;
    if (!list_empty(&watch->due)) {
        post_watch(watch);
    } else if (watch->count == 0) {
        try_destroy(watch, false);
    }
}

/* Under the stream's lock. NULL when memory is out. */
static struct stream_watch *get_watch(struct engine_worker *w, struct stream *s)
{
    if (!s->live) {
        s->live = calloc(1, sizeof(*s->live));
        if (!s->live) {
            return NULL;
        }
        list_init(&s->live->watches);
    }
    LIST_FOR_EACH(node, &s->live->watches)
    {
        struct stream_watch *watch = container_of(node, struct stream_watch, link);
        if (watch->worker == w) {
            return watch;
        }
    }
    struct stream_watch *watch = calloc(1, sizeof(*watch));
    if (!watch) {
        if (list_empty(&s->live->watches)) {
            drop_live(s);
        }
        return NULL;
    }
    watch->worker = w;
    watch->stream = stream_ref(s);
    watch->task.run = watch_run;
    watch->seen = look(s);
    list_init(&watch->idle);
    list_init(&watch->due);
    list_append(&s->live->watches, &watch->link);
    list_append(&w->watches, &watch->worker_link);
    return watch;
}

/* Under the stream's lock. A waiter that is not behind what is visible now is behind only once that
 * changes, and then the watch's `seen` differs from it too, so all on `idle` are compared again. */
static int join(struct engine_worker *w, struct stream *s, struct stream_waiter *waiter)
{
    struct stream_watch *watch = get_watch(w, s);
    if (!watch) {
        return ERR_NOMEM;
    }
    waiter->watch = watch;
    list_init(&waiter->link);
    list_append(&watch->idle, &waiter->link);
    watch->count++;
    s->live->waiters++;
    atomic_fetch_add(&s->engine->waiters, 1);
    return 0;
}

int stream_wait(struct engine_worker *w, struct stream *stream, struct stream_waiter *waiter)
{
    int code = 0;
    pthread_mutex_lock(&stream->lock);
    struct sight sight = look(stream);
    if (behind(waiter, &sight)) {
        code = STREAM_PENDING;
    } else if (stream->live && stream->live->waiters >= WAITERS_PER_STREAM_MAX) {
        code = ERR_LIMIT;
    } else {
        code = join(w, stream, waiter);
    }
    pthread_mutex_unlock(&stream->lock);
    if (code != 0) {
        waiter->watch = NULL;
    }
    return code;
}

void stream_unwait(struct stream_waiter *waiter)
{
    struct stream_watch *watch = waiter->watch;
    if (!watch) {
        return;
    }
    leave(waiter);
    if (watch->count == 0) {
        try_destroy(watch, false);
    }
}

void watch_finish_worker(struct engine_worker *w)
{
    struct list *first;
    while ((first = list_first(&w->watches)) != NULL) {
        try_destroy(container_of(first, struct stream_watch, worker_link), true);
    }
}

struct block *stream_frame_get(struct stream *s, uint64_t from, uint64_t *ret_to, bool *ret_closed)
{
    struct block *frame = NULL;
    pthread_mutex_lock(&s->lock);
    if (s->live && s->live->frame && s->live->frame_from == from) {
        frame = block_ref(s->live->frame);
        *ret_to = s->live->frame_to;
        *ret_closed = s->live->frame_closed;
    }
    pthread_mutex_unlock(&s->lock);
    return frame;
}

/* Only the newest is kept, and only while somebody follows the stream. */
void stream_frame_put(struct stream *s, uint64_t from, uint64_t to, bool closed,
                      struct block *frame)
{
    assert(from <= to);
    pthread_mutex_lock(&s->lock);
    if (s->live && (!s->live->frame || to >= s->live->frame_to)) {
        block_unref(s->live->frame);
        s->live->frame = block_ref(frame);
        s->live->frame_from = from;
        s->live->frame_to = to;
        s->live->frame_closed = closed;
    }
    pthread_mutex_unlock(&s->lock);
}
