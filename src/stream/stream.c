/* The object itself: born empty, filled by creation, loading or recovery, freed by the last
 * reference. */
#include "stream/stream.h"

#include <assert.h>
#include <stdlib.h>

#include "base/limits.h"
#include "stream/core.h"

struct stream *stream_create(struct engine *e, struct slice name, enum stream_phase phase)
{
    assert(name.len > 0);
    assert(name.len <= STREAM_NAME_BYTES_MAX);
    struct stream *s = calloc(1, sizeof(*s) + name.len);
    if (!s) {
        return NULL;
    }
    s->engine = e;
    s->refs = 1;
    s->phase = (uint8_t)phase;
    s->name_len = (uint16_t)name.len;
    memcpy(s->name, name.ptr, name.len);
    pthread_mutex_init(&s->lock, NULL);
    list_init(&s->cache_link);
    list_init(&s->dirty_link);
    list_init(&s->load_link);
    list_init(&s->queue);
    s->changes_end = &s->changes;
    s->ttl_seconds = UINT64_MAX;
    s->expires_at_ms = INT64_MAX;
    return s;
}

/* Records that never became durable, because the log failed or the engine is closing. */
static void drop_changes(struct stream *s)
{
    while (s->changes) {
        struct stream_change *c = s->changes;
        s->changes = c->next;
        block_unref(c->after.seq);
        free(c);
    }
    s->changes_end = &s->changes;
}

static void drop_bytes(struct stream *s)
{
    atomic_fetch_sub(&s->engine->cache_bytes, s->cache_bytes);
    s->cache_bytes = 0;
    if (s->visible.life != LIFE_GONE) {
        atomic_fetch_sub(&s->engine->hot_bytes, s->staged.tail - s->saved);
    }
    tail_clear(&s->tail);
    free(s->extents);
    s->extents = NULL;
    s->extent_count = 0;
    s->extent_cap = 0;
    s->saved = 0;
}

void stream_clear(struct stream *s)
{
    drop_changes(s);
    drop_bytes(s);
    block_unref(s->staged.seq);
    block_unref(s->visible.seq);
    s->staged = (struct stream_state){0};
    s->visible = (struct stream_state){0};
    producers_destroy(s->producers);
    s->producers = NULL;
    free(s->closer);
    s->closer = NULL;
    media_put(&s->engine->media, s->media);
    s->media = NULL;
    if (s->fork) {
        stream_unref(s->fork->source);
        free(s->fork);
        s->fork = NULL;
    }
}

struct stream_closer *stream_closer_create(const struct record_producer *p)
{
    struct stream_closer *c = malloc(sizeof(*c) + p->id.len);
    if (c) {
        c->epoch = p->epoch;
        c->seq = p->seq;
        c->id_len = (uint16_t)p->id.len;
        memcpy(c->id, p->id.ptr, p->id.len);
    }
    return c;
}

struct slice stream_name(const struct stream *s)
{
    return (struct slice){s->name, s->name_len};
}

struct stream *stream_ref(struct stream *s)
{
    uint32_t before = atomic_fetch_add_explicit(&s->refs, 1, memory_order_relaxed);
    assert(before > 0);
    return s;
}

bool stream_try_ref(struct stream *s)
{
    uint32_t refs = atomic_load(&s->refs);
    while (refs > 0) {
        if (atomic_compare_exchange_weak(&s->refs, &refs, refs + 1)) {
            return true;
        }
    }
    return false;
}

static void leave_cache(struct stream *s)
{
    pthread_mutex_lock(&s->engine->cache_lock);
    list_remove(&s->cache_link);
    pthread_mutex_unlock(&s->engine->cache_lock);
}

/* The references to sources make a chain of at most FORK_DEPTH_MAX, which is walked, not descended:
 * each source is kept aside while its fork is freed. */
void stream_unref(struct stream *s)
{
    while (s && atomic_fetch_sub_explicit(&s->refs, 1, memory_order_acq_rel) == 1) {
        assert(!s->live);
        assert(list_empty(&s->queue));
        struct stream *source = s->fork ? stream_ref(s->fork->source) : NULL;
        leave_cache(s);
        stream_clear(s);
        pthread_mutex_destroy(&s->lock);
        free(s);
        s = source;
    }
}
