/* A checkpoint takes what is durable of every stream that changed. Its argument, in which P is the
 * log position that the store reads before it calls checkpoint_collect, and from which recovery
 * will begin:
 *
 *   1. A stream is marked dirty before a record about it is staged, under the stream's lock. So
 *      for every record that ends at or before P its streams were marked before collect began, and
 *      each is taken by this checkpoint or was taken by one since.
 *   2. A stream is taken under its lock, as `visible` says after view_now: the exact state after
 *      all of its durable records, and so after all that end at or before P, and after no other.
 *      `applied`, the end of the last one, goes with it. Producers have a durable state of their
 *      own for the same reason.
 *   3. Recovery replays every record after P and skips for each stream those up to its `applied`.
 *      By 2 none is applied twice and none is left out, though streams are taken at different
 *      moments.
 *   4. A stream with records that are staged and not durable is marked again when it is taken.
 *
 * A record that speaks of several streams is applied to each by itself (replay.c), so it does not
 * matter that they are taken at different moments either.
 *
 * Failure: nothing was lost, since memory and log still have everything: all streams of the
 * checkpoint are marked again. */
#include "stream/checkpoint.h"

#include <assert.h>
#include <stdlib.h>

#include "stream/list.h"
#include "stream/snapshot.h"
#include "stream/view.h"

void checkpoint_mark(struct stream *s)
{
    struct engine *e = s->engine;
    if (s->dirty) {
        return;
    }
    s->dirty = true;
    pthread_mutex_lock(&e->dirty_lock);
    list_append(&e->dirty, &stream_ref(s)->dirty_link);
    e->dirty_count++;
    pthread_mutex_unlock(&e->dirty_lock);
}

void checkpoint_ask(struct engine *e)
{
    if (e->config.store.threads && !atomic_exchange(&e->checkpoint_asked, true)) {
        /* It only wakes the store's thread; a failure there is told by checkpoint_done. */
        (void)e->store->ops->checkpoint(e->store);
    }
}

static int by_id(const void *a, const void *b)
{
    stream_id x = ((const struct saving *)a)->stream->id;
    stream_id y = ((const struct saving *)b)->stream->id;
    return x < y ? -1 : x > y;
}

/* Moves the streams that are dirty now from the list to e->saving, with their references. Those
 * marked later stay: the list is in the order of marking. */
static int take_dirty(struct engine *e)
{
    assert(e->saving_count == 0);
    pthread_mutex_lock(&e->dirty_lock);
    size_t count = e->dirty_count;
    pthread_mutex_unlock(&e->dirty_lock);
    e->saving = calloc(count + 1, sizeof(e->saving[0]));
    if (!e->saving) {
        return ERR_NOMEM;
    }
    pthread_mutex_lock(&e->dirty_lock);
    for (size_t i = 0; i < count; i++) {
        struct list *first = list_first(&e->dirty);
        list_remove(first);
        e->saving[i].stream = container_of(first, struct stream, dirty_link);
    }
    e->dirty_count -= count;
    e->saving_count = count;
    pthread_mutex_unlock(&e->dirty_lock);
    qsort(e->saving, count, sizeof(e->saving[0]), by_id);
    return 0;
}

/* Under the lock: room for extents that the checkpoint will add. Once the catalog has them it is
 * too late to be out of memory: the bytes would be saved again, into a pack that nobody names. */
static int reserve_extents(struct stream *s, size_t more)
{
    size_t wanted = s->extent_count + more;
    if (wanted <= s->extent_cap) {
        return 0;
    }
    size_t cap = wanted > 2 * s->extent_cap ? wanted : 2 * s->extent_cap;
    struct extent *extents = realloc(s->extents, cap * sizeof(extents[0]));
    if (!extents) {
        return ERR_NOMEM;
    }
    s->extents = extents;
    s->extent_cap = cap;
    return 0;
}

static int save(struct saving *saving, struct checkpoint *c)
{
    struct stream *s = saving->stream;
    struct snapshot snap = {0};
    pthread_mutex_lock(&s->lock);
    s->dirty = false;
    saving->taken = true;
    int code = snapshot_take(s, &snap);
    if (code == 0) {
        code = reserve_extents(s, snap.range_count);
    }
    if (s->changes) {
        checkpoint_mark(s);
    }
    pthread_mutex_unlock(&s->lock);
    if (code == 0) {
        code = snapshot_join(&snap);
    }
    if (code == 0 && !snap.empty) {
        code = checkpoint_add(c, &snap.item);
        saving->stored = true;
        saving->dropped = snap.item.dropped;
        saving->gone_count = snap.gone_count;
    }
    snapshot_finish(&snap);
    return code;
}

int checkpoint_collect(void *context, struct checkpoint *c)
{
    struct engine *e = context;
    atomic_store(&e->checkpoint_asked, false);
    int code = take_dirty(e);
    for (size_t i = 0; code == 0 && i < e->saving_count; i++) {
        code = save(&e->saving[i], c);
    }
    if (code == 0) {
        code = notes_collect(e, c);
    }
    if (code < 0) {
        checkpoint_done(e, code);
    }
    return code;
}

static void unsave(struct saving *saving)
{
    struct stream *s = saving->stream;
    pthread_mutex_lock(&s->lock);
    if (!saving->taken) {
        s->dirty = false; /* it still says so, but is on no list */
    }
    s->producers_unsaved = true;
    checkpoint_mark(s);
    pthread_mutex_unlock(&s->lock);
}

/* Whether the stream's removal is durable and a checkpoint need only drop it. */
static bool gone(struct stream *s)
{
    pthread_mutex_lock(&s->lock);
    bool is = view_now(s)->life == LIFE_GONE;
    pthread_mutex_unlock(&s->lock);
    return is;
}

/* Keeps in e->saving what is gone, at most `max`; the others are dirty as before. */
static void keep_gone(struct engine *e, size_t max)
{
    size_t kept = 0;
    for (size_t i = 0; i < e->saving_count; i++) {
        struct saving *saving = &e->saving[i];
        if (kept < max && gone(saving->stream)) {
            e->saving[kept++] = *saving;
        } else {
            unsave(saving);
            stream_unref(saving->stream);
        }
    }
    e->saving_count = kept;
}

/* The catalog may learn of a removal before the position moves past it, as by 2 at the head of this
 * file: replay meets the stream's records and finds no stream for them. */
int checkpoint_collect_dropped(void *context, struct checkpoint *c, size_t max, size_t *ret_count)
{
    struct engine *e = context;
    int code = take_dirty(e);
    keep_gone(e, max);
    for (size_t i = 0; code == 0 && i < e->saving_count; i++) {
        code = save(&e->saving[i], c);
    }
    if (code < 0) {
        checkpoint_done(e, code);
        return code;
    }
    *ret_count = e->saving_count;
    return 0;
}

/* What was dropped has left the catalog: only now its name may be asked for there again. */
static void saved(struct engine *e, struct saving *saving)
{
    struct stream *s = saving->stream;
    if (saving->stored) {
        list_stored(s);
    }
    if (saving->dropped) {
        table_remove(e, s);
    } else if (saving->gone_count > 0) {
        pthread_mutex_lock(&s->lock);
        producers_clear_gone(s->producers, saving->gone_count);
        pthread_mutex_unlock(&s->lock);
    }
}

void checkpoint_done(void *context, int code)
{
    struct engine *e = context;
    notes_done(e, code);
    if (code == 0) {
        atomic_fetch_add(&e->checkpoints, 1); /* before anything of it may leave memory */
    }
    for (size_t i = 0; i < e->saving_count; i++) {
        if (code < 0) {
            unsave(&e->saving[i]);
        } else {
            saved(e, &e->saving[i]);
        }
        stream_unref(e->saving[i].stream);
    }
    free(e->saving);
    e->saving = NULL;
    e->saving_count = 0;
    checkpoint_trim_cache(e);
}

static void join_cache(struct stream *s)
{
    struct engine *e = s->engine;
    pthread_mutex_lock(&e->cache_lock);
    if (!s->cached) {
        s->cached = true;
        list_append(&e->cached, &s->cache_link);
    }
    pthread_mutex_unlock(&e->cache_lock);
}

/* Chunks come to hold bytes that are not saved, and cease to, without the count following at
 * once. */
static void count_cache(struct stream *s)
{
    uint64_t bytes = tail_bytes_before(&s->tail, s->saved);
    atomic_fetch_add(&s->engine->cache_bytes, bytes - s->cache_bytes);
    s->cache_bytes = bytes;
}

/* Under the lock: bytes up to the extent's end are in a pack now and no longer wait. */
static void added(struct stream *s, const struct extent *x)
{
    struct engine *e = s->engine;
    assert(x->start == s->saved);
    assert(s->extent_count < s->extent_cap); /* reserve_extents saw to it */
    s->extents[s->extent_count++] = *x;
    s->saved += x->len;
    atomic_fetch_sub(&e->hot_bytes, x->len);
    count_cache(s);
    if (s->cache_bytes > 0) {
        join_cache(s);
    }
}

/* Opens the pack while it is fresh, on the thread that may block, so that readers find it open. */
static void open_ahead(struct engine *e, const struct extent *x)
{
    const struct store_ops *ops = e->store->ops;
    struct pack *pack = NULL;
    if (ops->pack_get(e->store, x->pack, &pack) == 0) {
        pack_unref(pack);
    }
}

void checkpoint_extent_added(void *context, stream_id id, const struct extent *x)
{
    struct engine *e = context;
    struct stream *s = table_id(e, id);
    open_ahead(e, x);
    if (!s) {
        return;
    }
    pthread_mutex_lock(&s->lock);
    if (view_now(s)->life != LIFE_GONE) {
        added(s, x);
    }
    pthread_mutex_unlock(&s->lock);
    stream_unref(s);
}

/* The first extent that begins at `start` or behind it. */
static size_t find_extent(const struct stream *s, uint64_t start)
{
    size_t low = 0;
    size_t high = s->extent_count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (s->extents[middle].start < start) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

void checkpoint_replace_extent(struct stream *s, const struct extent *x)
{
    size_t first = find_extent(s, x->start);
    size_t last = first;
    uint64_t at = x->start;
    while (last < s->extent_count && at < x->start + x->len && s->extents[last].start == at) {
        at += s->extents[last].len;
        last++;
    }
    if (last == first || at != x->start + x->len) {
        return;
    }
    s->extents[first] = *x;
    if (last == first + 1) {
        return;
    }
    memmove(s->extents + first + 1, s->extents + last,
            (s->extent_count - last) * sizeof(s->extents[0]));
    s->extent_count -= last - first - 1;
}

void checkpoint_extent_replaced(void *context, stream_id id, const struct extent *x)
{
    struct engine *e = context;
    /* Before the look-up: see load.c. */
    atomic_fetch_add(&e->extent_generation, 1);
    struct stream *s = table_id(e, id);
    if (!s) {
        return;
    }
    pthread_mutex_lock(&s->lock);
    checkpoint_replace_extent(s, x);
    pthread_mutex_unlock(&s->lock);
    stream_unref(s);
}

/* The stream at the clock's hand, referenced, or NULL. */
static struct stream *next_cached(struct engine *e)
{
    struct stream *s = NULL;
    struct list *first;
    pthread_mutex_lock(&e->cache_lock);
    while (!s && (first = list_first(&e->cached)) != NULL) {
        struct stream *candidate = container_of(first, struct stream, cache_link);
        list_remove(first);
        candidate->cached = false;
        s = stream_try_ref(candidate) ? candidate : NULL;
    }
    pthread_mutex_unlock(&e->cache_lock);
    return s;
}

/* One whose cache was read since the hand last came by has a second chance. */
void checkpoint_trim_cache(struct engine *e)
{
    struct stream *s;
    while (atomic_load(&e->cache_bytes) > e->config.cache_bytes_max && (s = next_cached(e))) {
        pthread_mutex_lock(&s->lock);
        bool again = s->cache_used;
        s->cache_used = false;
        if (!again) {
            (void)tail_drop(&s->tail, s->saved); /* how much shows in the count */
            count_cache(s);
        }
        pthread_mutex_unlock(&s->lock);
        if (again) {
            join_cache(s);
        }
        stream_unref(s);
    }
}
