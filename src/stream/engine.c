/* Opening, closing, and who is attached: what the pieces of the engine have in common. */
#include "stream/engine.h"

#include <assert.h>
#include <stdlib.h>

#include "stream/checkpoint.h"
#include "stream/core.h"
#include "stream/list.h"
#include "stream/observe.h"
#include "stream/op.h"
#include "stream/replay.h"
#include "stream/sweep.h"
#include "stream/view.h"
#include "stream/watch.h"

/* Replay counts what it changes on top of what the catalog has. */
static void on_opening(void *context, struct store *store, const struct catalog_totals *totals)
{
    struct engine *e = context;
    e->store = store;
    quota_count(&e->quota, (struct quota_share){totals->streams, totals->bytes});
}

static int on_replay(void *context, const struct record *r, log_pos end)
{
    return replay_record(context, r, end);
}

static void on_notice(void *context)
{
    workers_notice(context);
}

static void on_trouble(void *context, enum trouble trouble, const char *sentence)
{
    const struct engine *e = context;
    if (e->config.trouble) {
        e->config.trouble(e->config.trouble_context, trouble, sentence);
    }
}

static void init_keeper(struct engine *e)
{
    pthread_condattr_t attr;
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_mutex_init(&e->keeper_lock, NULL);
    pthread_cond_init(&e->keeper_wake, &attr);
    pthread_condattr_destroy(&attr);
}

static struct engine *create(const struct engine_config *config)
{
    struct engine *e = calloc(1, sizeof(*e));
    if (!e) {
        return NULL;
    }
    e->config = *config;
    e->replay = replay_create();
    if (!e->replay) {
        free(e);
        return NULL;
    }
    struct sys *sys = config->store.sys;
    uint64_t seed;
    sys->random(sys->context, &seed, sizeof(seed));
    table_init(&e->table, seed);
    notes_init(&e->notes, seed);
    media_set_init(&e->media);
    loader_init(&e->loader);
    quota_init(&e->quota);
    quota_limit(&e->quota, config->streams_max, config->bytes_max);
    pthread_mutex_init(&e->dirty_lock, NULL);
    pthread_mutex_init(&e->publish_lock, NULL);
    pthread_mutex_init(&e->cache_lock, NULL);
    pthread_mutex_init(&e->workers_lock, NULL);
    init_keeper(e);
    observe_init(e);
    list_init(&e->dirty);
    list_init_fresh(e);
    list_init(&e->publish);
    list_init(&e->cached);
    list_init(&e->workers);
    list_init(&e->detached);
    return e;
}

static void free_workers(struct engine *e)
{
    struct list *first;
    while ((first = list_first(&e->detached)) != NULL) {
        struct engine_worker *w = container_of(first, struct engine_worker, link);
        watch_finish_worker(w);
        list_remove(first);
        free(w);
    }
}

static void drop_notes(struct engine *e)
{
    struct list *first;
    while ((first = list_first(&e->publish)) != NULL) {
        struct publish_note *note = container_of(first, struct publish_note, link);
        list_remove(first);
        stream_unref(note->stream);
        free(note);
    }
}

static void drop_dirty(struct engine *e)
{
    struct list *first;
    while ((first = list_first(&e->dirty)) != NULL) {
        list_remove(first);
        stream_unref(container_of(first, struct stream, dirty_link));
    }
}

/* Nothing runs any more, and the store is closed. */
static void destroy(struct engine *e)
{
    assert(list_empty(&e->workers));
    loader_finish(&e->loader);
    free_workers(e);
    drop_notes(e);
    drop_dirty(e);
    table_finish(&e->table);
    notes_finish(&e->notes);
    media_set_finish(&e->media);
    replay_destroy(e->replay);
    observe_finish(e);
    quota_finish(&e->quota);
    pthread_cond_destroy(&e->keeper_wake);
    pthread_mutex_destroy(&e->keeper_lock);
    pthread_mutex_destroy(&e->workers_lock);
    pthread_mutex_destroy(&e->cache_lock);
    pthread_mutex_destroy(&e->publish_lock);
    pthread_mutex_destroy(&e->fresh_lock);
    pthread_mutex_destroy(&e->dirty_lock);
    free(e);
}

static int check_config(const struct engine_config *c, struct errmsg *msg)
{
    if (c->read_page_bytes == 0) {
        return err_set(msg, ERR_INVALID, "the read page must be at least 1 byte");
    }
    if (c->hot_bytes_max == 0) {
        return err_set(msg, ERR_INVALID, "the budget of bytes before a checkpoint is 0");
    }
    return 0;
}

int engine_open(const struct engine_config *config, struct engine **ret_engine,
                struct store_report *ret_report, struct errmsg *msg)
{
    int code = check_config(config, msg);
    if (code < 0) {
        return code;
    }
    struct engine *e = create(config);
    if (!e) {
        return err_set(msg, ERR_NOMEM, "%s", err_text(ERR_NOMEM));
    }
    const struct store_events events = {
        .context = e,
        .opening = on_opening,
        .replay = on_replay,
        .notice = on_notice,
        .collect = checkpoint_collect,
        .collect_dropped = checkpoint_collect_dropped,
        .checkpointed = checkpoint_done,
        .extent_added = checkpoint_extent_added,
        .extent_replaced = checkpoint_extent_replaced,
        .trouble = on_trouble,
    };
    struct store *store = NULL; /* e->store is set by on_opening, before the store's threads run */
    code = local_store_open(&config->store, &events, &store, ret_report, msg);
    if (code < 0) {
        goto destroy;
    }
    assert(e->store == store);
    replay_destroy(e->replay);
    e->replay = NULL;
    code = sweep_start(e);
    if (code < 0) {
        goto close_store;
    }
    *ret_engine = e;
    return 0;

close_store:
    (void)e->store->ops->close(e->store, false); /* the first error is the one to tell */
    (void)err_set(msg, code, "the housekeeping thread could not be started");
destroy:
    destroy(e);
    return code;
}

struct holds *engine_holds(struct engine *e)
{
    struct store *store = e->store;
    return store->ops->holds ? store->ops->holds(store) : NULL;
}

int engine_close(struct engine *e, bool checkpoint)
{
    sweep_stop(e);
    pthread_mutex_lock(&e->workers_lock);
    bool detached = list_empty(&e->workers);
    pthread_mutex_unlock(&e->workers_lock);
    assert(detached);
    loader_wait(&e->loader);
    int code = e->store->ops->close(e->store, checkpoint);
    destroy(e);
    return code;
}

bool engine_failed(const struct engine *e)
{
    return e->store->ops->failed(e->store);
}

void engine_get_health(const struct engine *e, struct store_health *ret_health)
{
    e->store->ops->health(e->store, ret_health);
}

void engine_set_quota(struct engine *e, uint64_t streams_max, uint64_t bytes_max)
{
    quota_limit(&e->quota, streams_max, bytes_max);
}

/* Takes from the counts what of a stream was staged and will never be durable. */
static bool count_durable(void *context, struct stream *s)
{
    struct engine_stats *stats = context;
    pthread_mutex_lock(&s->lock);
    struct quota_share visible = quota_share_of(s, view_now(s));
    struct quota_share staged = quota_share_of(s, &s->staged);
    stats->streams += visible.streams - staged.streams;
    stats->bytes += visible.bytes - staged.bytes;
    pthread_mutex_unlock(&s->lock);
    return false;
}

void engine_get_stats(struct engine *e, struct engine_stats *ret_stats)
{
    *ret_stats = (struct engine_stats){
        .streams = atomic_load(&e->quota.streams),
        .bytes = atomic_load(&e->quota.bytes),
        .streams_loaded = atomic_load(&e->table.count),
        .hot_bytes = atomic_load(&e->hot_bytes),
        .cache_bytes = atomic_load(&e->cache_bytes),
        .waiters = atomic_load(&e->waiters),
        .evicted = counter_get(&e->evictions),
        .note_bytes = atomic_load(&e->notes.bytes),
        .streams_max = atomic_load(&e->quota.streams_max),
        .bytes_max = atomic_load(&e->quota.bytes_max),
        .hot_bytes_max = e->config.hot_bytes_max,
        .cache_bytes_max = e->config.cache_bytes_max,
        .staged_bytes_max = e->config.store.staged_bytes_max,
        .log_bytes_max = e->config.store.log_bytes_max,
    };
    e->store->ops->stats(e->store, &ret_stats->store);
    for (unsigned i = 0; engine_failed(e) && i < TABLE_SHARDS; i++) {
        table_each(e, i, count_durable, ret_stats);
    }
}

int engine_attach(struct engine *e, task_post_fn post, void *post_context,
                  struct engine_worker **ret_worker)
{
    struct engine_worker *w = calloc(1, sizeof(*w));
    if (!w) {
        return ERR_NOMEM;
    }
    w->engine = e;
    w->post = post;
    w->post_context = post_context;
    w->task.run = op_commit;
    list_init(&w->parked);
    list_init(&w->room);
    list_init(&w->watches);
    pthread_mutex_lock(&e->workers_lock);
    list_append(&e->workers, &w->link);
    pthread_mutex_unlock(&e->workers_lock);
    *ret_worker = w;
    return 0;
}

/* Its task, or that of a watch, may still be on its way: the memory stays as long as the engine. */
void engine_detach(struct engine_worker *w)
{
    if (!w) {
        return;
    }
    struct engine *e = w->engine;
    assert(w->pending == 0);
    pthread_mutex_lock(&e->workers_lock);
    list_remove(&w->link);
    list_append(&e->detached, &w->link);
    pthread_mutex_unlock(&e->workers_lock);
}

size_t engine_worker_pending(const struct engine_worker *w)
{
    return w->pending;
}

bool engine_worker_still(const struct engine_worker *w)
{
    return w->pending == 0 && list_empty(&w->watches);
}
