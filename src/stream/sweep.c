/* Two walks a round. One goes over SHARDS_PER_ROUND shards of the streams in memory, so that all
 * are seen every few rounds; the other asks the catalog for the EXPIRED_PER_ROUND streams that are
 * due first. The catalog's index may lag behind renewals: each is loaded and compared like at an
 * access.
 *
 * A wall clock that jumps, as after a suspended machine wakes or a wrong clock is set right, must
 * not delete everything at once behind everybody's back: the sweeper waits out JUMP_PAUSE_MS,
 * which gives an operator time, while accesses go by the clock as always. */
#include "stream/sweep.h"

#include <assert.h>
#include <malloc.h>
#include <stdlib.h>
#include <time.h>

#include "stream/checkpoint.h"
#include "stream/expiry.h"
#include "stream/op.h"
#include "stream/view.h"
#include "stream/watch.h"

#define SHARDS_PER_ROUND  16u
#define EXPIRED_PER_ROUND 1024u
#define TRIM_EVICTED      1024u /* evictions that leave memory worth giving back */
#define JUMP_MS           (300 * 1000)
#define JUMP_PAUSE_MS     (600 * 1000)

/* Streams that a walk found due, by id: they are dealt with after it, without its locks. */
struct due {
    stream_id ids[EXPIRED_PER_ROUND];
    size_t count;
};

struct round {
    struct engine *e;
    int64_t now_ms;
    uint64_t mono_ms;
    bool expire;      /* the clock is trusted */
    unsigned evicted; /* streams found idle */
    struct due due;
};

static void add_due(struct due *due, stream_id id)
{
    if (due->count < EXPIRED_PER_ROUND) {
        due->ids[due->count++] = id;
    }
}

/* Under the stream's lock. A TTL that could not be logged in full would be lost. */
static bool idle(const struct round *r, const struct stream *s)
{
    int64_t lag_ms = s->accessed_ms - s->visible.accessed_ms;
    bool logged = s->ttl_seconds == UINT64_MAX || lag_ms <= expiry_slack_ms(s->ttl_seconds);
    return !s->dirty && !s->changes && logged && r->mono_ms - s->used_ms >= r->e->config.idle_ms;
}

/* Called under the locks of the shards: one that is in use is left for the next time. */
static bool visit(void *context, struct stream *s)
{
    struct round *r = context;
    if (pthread_mutex_trylock(&s->lock) != 0) {
        return false;
    }
    bool evict = idle(r, s);
    r->evicted += evict;
    if (s->staged.life == LIFE_ALIVE && watch_any(s)) {
        expiry_touch(s, r->now_ms);
    }
    if (r->expire && s->staged.life == LIFE_ALIVE && r->now_ms >= expiry_deadline(s)) {
        add_due(&r->due, s->id);
    }
    pthread_mutex_unlock(&s->lock);
    return evict;
}

static int note_expired(void *context, const struct stream_meta *meta)
{
    struct round *r = context;
    add_due(&r->due, meta->id);
    return 0;
}

/* In the loader. An error leaves the stream for another round, or for whoever asks for it. */
static void expire(struct engine *e, stream_id id, int64_t now_ms)
{
    struct stream *s;
    int removal;
    if (load_id(e, id, &s) < 0) {
        return;
    }
    pthread_mutex_lock(&s->lock);
    if (s->staged.life == LIFE_ALIVE) {
        (void)expiry_check(s, now_ms, &removal);
    }
    pthread_mutex_unlock(&s->lock);
    stream_unref(s);
}

static void expire_all(struct round *r)
{
    for (size_t i = 0; i < r->due.count; i++) {
        expire(r->e, r->due.ids[i], r->now_ms);
    }
    r->due.count = 0;
}

/* The index goes on naming what was just deleted until a checkpoint: a full round asks for one, so
 * that the next finds others. */
static void expire_catalog(struct round *r)
{
    struct store *store = r->e->store;
    /* An error of the catalog shows at the next access; there is nobody to tell here. */
    (void)store->ops->expired(store, r->now_ms, EXPIRED_PER_ROUND, note_expired, r);
    bool full = r->due.count == EXPIRED_PER_ROUND;
    expire_all(r);
    if (full) {
        checkpoint_ask(r->e);
    }
}

/* Whether wall clock and monotonic clock went on alike since the last round, or the pause is
 * over. */
static bool clock_trusted(struct engine *e, int64_t now_ms, uint64_t mono_ms)
{
    pthread_mutex_lock(&e->keeper_lock);
    if (e->mono_ms != 0) {
        int64_t apart = (now_ms - e->wall_ms) - (int64_t)(mono_ms - e->mono_ms);
        if (apart > JUMP_MS || apart < -JUMP_MS) {
            e->pause_until_ms = mono_ms + JUMP_PAUSE_MS;
        }
    }
    e->wall_ms = now_ms;
    e->mono_ms = mono_ms;
    bool trusted = mono_ms >= e->pause_until_ms;
    pthread_mutex_unlock(&e->keeper_lock);
    return trusted;
}

static unsigned next_shards(struct engine *e)
{
    pthread_mutex_lock(&e->keeper_lock);
    unsigned first = e->shard_next;
    e->shard_next = (first + SHARDS_PER_ROUND) % TABLE_SHARDS;
    pthread_mutex_unlock(&e->keeper_lock);
    return first;
}

/* What many evicted streams leave is scattered: malloc keeps such pages until it is told. Once
 * a round finds no more of them, so that a wave of evictions is followed by one trim. */
static void trim_memory(struct engine *e, unsigned evicted)
{
    e->evicted += evicted;
    if (evicted == 0 && e->evicted >= TRIM_EVICTED) {
        (void)malloc_trim(0); /* says whether there was anything */
        e->evicted = 0;
    }
}

static void end_round(struct engine *e)
{
    pthread_mutex_lock(&e->keeper_lock);
    e->sweeping = false;
    pthread_mutex_unlock(&e->keeper_lock);
}

/* In the loader, since what is due in the catalog has to be loaded. */
static void sweep(struct task *task)
{
    struct engine *e = container_of(task, struct engine, sweep_task);
    struct round *r = calloc(1, sizeof(*r));
    if (!r) {
        end_round(e);
        return;
    }
    r->e = e;
    r->now_ms = engine_now_ms(e);
    r->mono_ms = engine_mono_ms(e);
    r->expire = clock_trusted(e, r->now_ms, r->mono_ms);
    unsigned first = next_shards(e);
    for (unsigned i = 0; i < SHARDS_PER_ROUND; i++) {
        counter_add(&e->evictions, table_each(e, first + i, visit, r));
        expire_all(r);
    }
    if (r->expire) {
        expire_catalog(r);
    }
    trim_memory(e, r->evicted);
    free(r);
    end_round(e);
}

void engine_housekeep(struct engine *e)
{
    pthread_mutex_lock(&e->keeper_lock);
    bool busy = e->sweeping;
    e->sweeping = true;
    pthread_mutex_unlock(&e->keeper_lock);
    if (busy) {
        return;
    }
    e->sweep_task.run = sweep;
    loader_run(e, &e->sweep_task);
    publish_due(e);
    checkpoint_trim_cache(e);
}

/* Under the lock. By the monotonic clock, like the condition. */
static void wait_interval(struct engine *e)
{
    uint64_t until_ms = engine_mono_ms(e) + e->config.sweep_interval_ms;
    struct timespec until = {
        .tv_sec = (time_t)(until_ms / 1000),
        .tv_nsec = (long)(until_ms % 1000 * 1000000),
    };
    int code = 0;
    while (!e->keeper_stop && code == 0) {
        code = pthread_cond_timedwait(&e->keeper_wake, &e->keeper_lock, &until);
    }
}

static void *keeper_main(void *context)
{
    struct engine *e = context;
    pthread_mutex_lock(&e->keeper_lock);
    while (!e->keeper_stop) {
        pthread_mutex_unlock(&e->keeper_lock);
        engine_housekeep(e);
        pthread_mutex_lock(&e->keeper_lock);
        if (!e->keeper_stop) {
            wait_interval(e);
        }
    }
    pthread_mutex_unlock(&e->keeper_lock);
    return NULL;
}

int sweep_start(struct engine *e)
{
    assert(!e->keeper_started);
    if (e->config.sweep_interval_ms == 0) {
        return 0;
    }
    if (pthread_create(&e->keeper, NULL, keeper_main, e) != 0) {
        return ERR_AGAIN;
    }
    e->keeper_started = true;
    return 0;
}

void sweep_stop(struct engine *e)
{
    if (!e->keeper_started) {
        return;
    }
    pthread_mutex_lock(&e->keeper_lock);
    e->keeper_stop = true;
    pthread_cond_signal(&e->keeper_wake);
    pthread_mutex_unlock(&e->keeper_lock);
    pthread_join(e->keeper, NULL);
    e->keeper_started = false;
}
