/* A stream is loaded into the placeholder of its name, is listed by id, and is live: in this
 * order, so that compactions, which speak of ids, find it as soon as it holds extents. One that
 * was told between the look into the catalog and the listing would be missed: `extent_generation`
 * counts what was told, and when it moved meanwhile, the load is done again. */
#include "stream/load.h"

#include <assert.h>
#include <stdlib.h>

#include "base/limits.h"
#include "stream/checkpoint.h"
#include "stream/core.h"
#include "stream/expiry.h"
#include "stream/view.h"

#define STEPS_PER_TASK 16 /* then others on the pool have their turn */

void loader_init(struct loader *l)
{
    pthread_mutex_init(&l->lock, NULL);
    pthread_cond_init(&l->idle, NULL);
    list_init(&l->streams);
    list_init(&l->tasks);
    l->running = false;
}

void loader_wait(struct loader *l)
{
    pthread_mutex_lock(&l->lock);
    while (l->running) {
        pthread_cond_wait(&l->idle, &l->lock);
    }
    pthread_mutex_unlock(&l->lock);
}

void loader_finish(struct loader *l)
{
    assert(!l->running);
    assert(list_empty(&l->streams));
    assert(list_empty(&l->tasks));
    pthread_cond_destroy(&l->idle);
    pthread_mutex_destroy(&l->lock);
}

static int fill_fork(struct stream *s, const struct stream_meta *m, struct stream *source)
{
    struct stream_fork *fork = malloc(sizeof(*fork));
    if (!fork) {
        return ERR_NOMEM;
    }
    *fork = (struct stream_fork){
        .source = stream_ref(source),
        .offset = m->fork_offset,
        .anchor = m->fork_anchor,
        .sub_offset = m->fork_sub_offset,
        .explicit_offset = m->fork_explicit,
        .depth = source->fork ? source->fork->depth + 1 : 1,
    };
    s->fork = fork;
    return fork->depth <= FORK_DEPTH_MAX ? 0 : ERR_CORRUPT;
}

/* Every byte from where the stream's own begin up to its tail is in exactly one extent. */
static int fill_extents(struct stream *s, const struct catalog_stream *cs)
{
    uint64_t at = stream_own_start(s);
    for (size_t i = 0; i < cs->extent_count; i++) {
        if (cs->extents[i].start != at || cs->extents[i].len == 0) {
            return ERR_CORRUPT;
        }
        at += cs->extents[i].len;
    }
    if (at != cs->meta.tail) {
        return ERR_CORRUPT;
    }
    if (cs->extent_count > 0) {
        s->extents = malloc(cs->extent_count * sizeof(s->extents[0]));
        if (!s->extents) {
            return ERR_NOMEM;
        }
        memcpy(s->extents, cs->extents, cs->extent_count * sizeof(s->extents[0]));
    }
    s->extent_count = cs->extent_count;
    s->extent_cap = cs->extent_count;
    return 0;
}

static int fill_producers(struct stream *s, const struct catalog_stream *cs)
{
    if (cs->producer_count > 0 && !(s->producers = producers_create())) {
        return ERR_NOMEM;
    }
    for (size_t i = 0; i < cs->producer_count; i++) {
        const struct producer_meta *m = &cs->producers[i];
        struct producer *p;
        int code = m->id.len > 0 && m->id.len <= PRODUCER_ID_BYTES_MAX
                       ? producers_add(s->producers, m->id, &p)
                       : ERR_CORRUPT;
        if (code < 0) {
            return code;
        }
        p->durable = (struct producer_state){m->epoch, m->seq, m->used_ms};
        p->staged = p->durable;
        p->known = true;
    }
    return 0;
}

static int fill_state(struct stream *s, const struct stream_meta *m)
{
    struct stream_state state = {
        .tail = m->tail,
        .accessed_ms = m->accessed_ms,
        .fork_refs = (uint32_t)m->fork_refs,
        .life = m->soft_deleted ? LIFE_SOFT : LIFE_ALIVE,
        .closed = m->closed,
    };
    if (m->has_seq && view_set_seq(&state, m->seq) < 0) {
        return ERR_NOMEM;
    }
    view_reset(s, state, m->applied);
    s->saved = m->tail;
    if (m->closer.id.len > 0 && !(s->closer = stream_closer_create(&m->closer))) {
        return ERR_NOMEM;
    }
    return 0;
}

static int fill(struct stream *s, const struct catalog_stream *cs, struct stream *source)
{
    const struct stream_meta *m = &cs->meta;
    if (m->content_type.len > STREAM_CONTENT_TYPE_BYTES_MAX) {
        return ERR_CORRUPT;
    }
    s->media = media_get(&s->engine->media, m->content_type);
    if (!s->media) {
        return ERR_NOMEM;
    }
    s->created_ms = m->created_ms;
    s->ttl_seconds = m->ttl_seconds;
    s->expires_at_ms = m->expires_at_ms;
    s->accessed_ms = m->accessed_ms + expiry_slack_ms(m->ttl_seconds);
    s->used_ms = engine_mono_ms(s->engine);
    int code = source ? fill_fork(s, m, source) : 0;
    if (code == 0) {
        code = fill_state(s, m);
    }
    if (code == 0) {
        code = fill_extents(s, cs);
    }
    return code < 0 ? code : fill_producers(s, cs);
}

/* The placeholder is made live with what the catalog said; on an error it is as before. */
static int settle(struct engine *e, struct stream *s, const struct catalog_stream *cs,
                  struct stream *source, uint64_t generation)
{
    pthread_mutex_lock(&s->lock);
    int code = fill(s, cs, source);
    if (code < 0) {
        stream_clear(s);
    }
    pthread_mutex_unlock(&s->lock);
    if (code < 0) {
        return code;
    }
    code = table_list(e, s, cs->meta.id);
    if (code == 0 && atomic_load(&e->extent_generation) != generation) {
        code = ERR_AGAIN;
    }
    if (code == 0) {
        table_live(e, s);
        return 0;
    }
    table_unlist(e, s);
    pthread_mutex_lock(&s->lock);
    stream_clear(s);
    pthread_mutex_unlock(&s->lock);
    return code;
}

/* The placeholder for a stream of the catalog: the one given, or that of its name. */
static int take_placeholder(struct engine *e, struct slice name, struct stream *given,
                            struct stream **ret_placeholder)
{
    if (given) {
        *ret_placeholder = stream_ref(given);
        return 0;
    }
    if (name.len == 0 || name.len > STREAM_NAME_BYTES_MAX) {
        return ERR_CORRUPT;
    }
    return table_adopt(e, name, ret_placeholder);
}

/* Sources have lower ids than their forks, so the descent ends even in a damaged catalog;
 * FORK_DEPTH_MAX bounds it in a sound one. ERR_NOTFOUND when there is one no more. */
static int load_source(struct engine *e, const struct stream_meta *m, struct stream **ret_source)
{
    struct stream *source = NULL;
    int code = 0;
    if (m->source_id != 0) {
        code = m->source_id < m->id ? load_id(e, m->source_id, &source) : ERR_CORRUPT;
    }
    if (code == 0 && source && e->replay && source->visible.life == LIFE_GONE) {
        stream_unref(source);
        code = ERR_NOTFOUND;
    }
    if (code == 0) {
        *ret_source = source;
    }
    return code;
}

/* A fork without its source is damage, except in recovery: a checkpoint took the source when it
 * was gone already, and not the fork, with which it went. Then the fork's deletion is still to be
 * replayed; nothing of the fork is needed until then but that the next checkpoint drops it. */
static bool orphaned(const struct engine *e, struct catalog_stream *cs)
{
    if (!e->replay) {
        return false;
    }
    cs->meta.source_id = 0;
    cs->meta.tail = 0;
    cs->extent_count = 0;
    cs->producer_count = 0;
    return true;
}

/* It is there for its name and its id, until the next checkpoint. `bytes` are those that the
 * catalog counts as its own. */
static void entomb(struct stream *s, uint64_t bytes)
{
    quota_give(&s->engine->quota, (struct quota_share){.streams = 1, .bytes = bytes});
    pthread_mutex_lock(&s->lock);
    s->staged.life = LIFE_GONE;
    s->visible.life = LIFE_GONE;
    checkpoint_mark(s);
    pthread_mutex_unlock(&s->lock);
}

/* One attempt; ERR_AGAIN when a compaction came between. */
static int load_once(struct engine *e, stream_id id, struct stream *given,
                     struct stream **ret_stream)
{
    uint64_t generation = atomic_load(&e->extent_generation);
    struct catalog_stream cs;
    struct stream *source = NULL;
    struct stream *s;
    bool orphan = false;
    int code = e->store->ops->load(e->store, id, &cs);
    if (code < 0) {
        return code;
    }
    uint64_t own_bytes = cs.meta.tail - cs.meta.fork_offset;
    code = load_source(e, &cs.meta, &source);
    if (code == ERR_NOTFOUND) {
        orphan = orphaned(e, &cs);
        code = orphan ? 0 : ERR_CORRUPT;
    }
    if (code < 0) {
        goto finish_loaded;
    }
    code = take_placeholder(e, cs.meta.name, given, &s);
    if (code < 0) {
        goto unref_source;
    }
    code = settle(e, s, &cs, source, generation);
    if (code == 0 && orphan) {
        entomb(s, own_bytes);
    }
    if (code == 0) {
        *ret_stream = s;
        goto unref_source;
    }
    if (!given && code != ERR_AGAIN) {
        table_absent(e, s, code);
    }
    stream_unref(s);

unref_source:
    stream_unref(source);
finish_loaded:
    catalog_stream_finish(&cs);
    return code;
}

static int load_stream(struct engine *e, stream_id id, struct stream *given,
                       struct stream **ret_stream)
{
    int code;
    do {
        code = load_once(e, id, given, ret_stream);
    } while (code == ERR_AGAIN);
    return code;
}

/* What a compaction tells goes on top of what the catalog said before it, never the other way
 * round: when one told something meanwhile, its word is all there is to know. */
int load_extents(struct stream *s)
{
    struct engine *e = s->engine;
    uint64_t generation = atomic_load(&e->extent_generation);
    struct catalog_stream cs;
    int code = e->store->ops->load(e->store, s->id, &cs);
    if (code < 0) {
        return code == ERR_NOTFOUND ? 0 : code; /* it went meanwhile */
    }
    pthread_mutex_lock(&s->lock);
    bool newest = atomic_load(&e->extent_generation) == generation;
    for (size_t i = 0; newest && i < cs.extent_count; i++) {
        checkpoint_replace_extent(s, &cs.extents[i]);
    }
    pthread_mutex_unlock(&s->lock);
    catalog_stream_finish(&cs);
    return 0;
}

int load_id(struct engine *e, stream_id id, struct stream **ret_stream)
{
    struct stream *s = table_id(e, id);
    if (s) {
        *ret_stream = s;
        return 0;
    }
    return load_stream(e, id, NULL, ret_stream);
}

/* A stream that is listed though its name is being looked up is gone: only the catalog does not
 * know it yet. The look comes before the load, so a tombstone that a checkpoint removes between
 * the two has left the catalog as well. */
static int load_name(struct engine *e, struct stream *s)
{
    stream_id id;
    int code = e->store->ops->find(e->store, stream_name(s), &id);
    if (code < 0) {
        return code;
    }
    struct stream *other = table_id(e, id);
    if (other) {
        stream_unref(other);
        return ERR_NOTFOUND;
    }
    struct stream *loaded;
    code = load_stream(e, id, s, &loaded);
    if (code == 0) {
        stream_unref(loaded);
    }
    return code;
}

/* One that was filled meanwhile as the source of a fork needs nothing more. It may be in use by
 * now, and dirty: that is why its place in the queue has a link of its own. */
static void load_placeholder(struct engine *e, struct stream *s)
{
    if (table_loading(e, s)) {
        int code = load_name(e, s);
        if (code < 0) {
            table_absent(e, s, code);
        }
    }
    stream_unref(s);
}

/* Takes the next piece of work; false when there is none, and then the loader no longer runs. */
static bool next_step(struct engine *e, struct stream **ret_stream, struct task **ret_task)
{
    struct loader *l = &e->loader;
    *ret_stream = NULL;
    *ret_task = NULL;
    pthread_mutex_lock(&l->lock);
    struct list *first = list_first(&l->streams);
    if (first) {
        *ret_stream = container_of(first, struct stream, load_link);
    } else if ((first = list_first(&l->tasks)) != NULL) {
        *ret_task = container_of(first, struct task, link);
    }
    if (first) {
        list_remove(first);
    } else {
        l->running = false;
        pthread_cond_broadcast(&l->idle);
    }
    pthread_mutex_unlock(&l->lock);
    return first != NULL;
}

static void loader_main(struct task *task)
{
    struct engine *e = container_of(task, struct engine, loader.task);
    for (int i = 0; i < STEPS_PER_TASK; i++) {
        struct stream *s;
        struct task *other;
        if (!next_step(e, &s, &other)) {
            return;
        }
        if (s) {
            load_placeholder(e, s);
        } else {
            other->run(other);
        }
    }
    pool_submit(e->config.pool, &e->loader.task);
}

static void add(struct engine *e, struct list *queue, struct list *link)
{
    struct loader *l = &e->loader;
    pthread_mutex_lock(&l->lock);
    list_append(queue, link);
    bool start = !l->running;
    l->running = true;
    pthread_mutex_unlock(&l->lock);
    if (start) {
        l->task.run = loader_main;
        pool_submit(e->config.pool, &l->task);
    }
}

void loader_add(struct engine *e, struct stream *s)
{
    add(e, &e->loader.streams, &s->load_link);
}

void loader_run(struct engine *e, struct task *task)
{
    add(e, &e->loader.tasks, &task->link);
}
