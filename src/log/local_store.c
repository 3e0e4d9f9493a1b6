/* The data directory:
 *
 *   DIR/lock      locked by the process that has the directory open
 *   DIR/wal/      the log's segments (segment.c); not in memory mode
 *   DIR/packs/    packs (pack.c)
 *   DIR/catalog/  the LMDB environment (catalog.c)
 *   DIR/reserve   room for a full disk (space.c)
 *
 * Opening: lock; catalog; a new epoch, committed before the log opens, so that no two openings
 * write frames of the same epoch; packs; recovery with replay; sweep of packs that no one names;
 * threads. The catalog says whether the directory keeps streams for good or in memory mode only,
 * and whether a log was ever begun: a log that is then missing is refused, not replaced by an
 * empty one.
 *
 * In memory mode there is no log. What is staged counts as durable at once; positions are counted
 * as if there were one, so that checkpoints, which then only move bytes out of memory, come as
 * usual.
 *
 * One thread makes checkpoints and compactions. It wakes when the log has grown by
 * checkpoint_bytes, when checkpoint_interval_ms have passed with anything to write, or when asked.
 * A failed checkpoint is tried again after a pause that doubles up to a minute; meanwhile
 * health tells what is wrong, and the log grows up to log_bytes_max.
 *
 * A full disk. What gives space back needs some first: a checkpoint writes packs before the log is
 * released, and dead bytes of packs go when the live ones have moved. So:
 *   - The log takes a new file only if what then waits for a checkpoint still fits beside it
 *     (may_grow); else appends are refused and a checkpoint is asked for.
 *   - The catalog's file has pages ahead (catalog_env.c), and the log has room for deletes.
 *   - A checkpoint that finds no space lets go of spare log files and commits what was dropped
 *     alone, without moving the position. That makes packs dead, which need only be unlinked, and
 *     others mostly dead, which compaction moves with the reserve's space.
 *   - The disk is looked at again every RETRY_MS_MIN, and at once when something was deleted. */
#include "log/store.h"

#include <assert.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "base/limits.h"
#include "log/checkpoint.h"
#include "log/compact.h"
#include "log/data_dir.h"
#include "log/space.h"
#include "log/vitals.h"

#define PATH_BYTES_MAX      DATA_DIR_PATH_BYTES_MAX
#define RETRY_MS_MIN        1000u
#define RETRY_MS_MAX        60000u
#define COMPACT_ROUND_BYTES (64ull * MIB)
#define COMPACT_BYTES_MIN   (256ull * KIB) /* of a round where space is short */
#define COMPACT_SHARE       4u             /* of the free space is what a round may take */
#define DROPS_MAX           64u /* in a transaction on a full disk; the catalog has room */
#define KIND_DURABLE        1u

struct local_store {
    struct store base; /* first: what the streams hold */
    struct store_config config;
    struct store_events events;
    char dir[PATH_BYTES_MAX];
    char catalog_path[PATH_BYTES_MAX];
    char wal_path[PATH_BYTES_MAX];
    char packs_path[PATH_BYTES_MAX];
    char reserve_path[PATH_BYTES_MAX];
    int lock_fd;
    struct catalog *catalog;
    struct pack_set *packs;
    struct wal *wal; /* NULL in memory mode, and while recovery runs */

    /* The checkpoint thread's, or the caller's without threads. */
    struct catalog_state state;  /* as committed last, but for next_pack */
    struct output_target target; /* what checkpoints and compactions write to */
    struct compaction_ids small; /* streams with new extents */
    bool compact_more;           /* the last round did not finish */
    unsigned replaced;           /* extents, by the last round */
    struct space space;

    /* Atomics. */
    stream_id next_stream;
    log_pos checkpoint;  /* that of `state`, for other threads */
    log_pos replayed;    /* durable position during recovery */
    log_pos memory_next; /* position in memory mode */
    bool overflow_told;  /* the thread was woken for checkpoint_bytes */
    bool space_short;    /* the log was refused a file since the thread last looked */
    bool space_lacking;  /* the last checkpoint found no space */
    bool deleted;        /* a delete was staged since the thread was last woken for one */

    struct vitals vitals;

    pthread_mutex_t lock; /* guards what follows */
    pthread_cond_t wake;  /* for the checkpoint thread */
    bool asked;
    bool stop;
    bool thread_started;
    pthread_t thread;
};

static struct local_store *local_of(struct store *s)
{
    return container_of(s, struct local_store, base);
}

static bool in_memory(const struct local_store *s)
{
    return s->config.durability == DURABILITY_MEMORY;
}

/* Positions. */

static log_pos op_durable(struct store *base)
{
    struct local_store *s = local_of(base);
    if (s->wal) {
        return wal_durable(s->wal);
    }
    return __atomic_load_n(in_memory(s) ? &s->memory_next : &s->replayed, __ATOMIC_ACQUIRE);
}

static bool op_failed(struct store *base)
{
    struct local_store *s = local_of(base);
    return s->wal && wal_failed(s->wal);
}

static stream_id op_next_id(struct store *base)
{
    return __atomic_fetch_add(&local_of(base)->next_stream, 1, __ATOMIC_RELAXED);
}

/* Log bytes that no checkpoint covers yet. */
static uint64_t bytes_waiting(struct local_store *s)
{
    log_pos checkpoint = __atomic_load_n(&s->checkpoint, __ATOMIC_ACQUIRE);
    if (s->wal) {
        return wal_bytes_since(s->wal, checkpoint);
    }
    return __atomic_load_n(&s->memory_next, __ATOMIC_ACQUIRE) - checkpoint;
}

/* Whether the disk is full as far as the log is concerned. */
static bool crowded(struct local_store *s)
{
    return __atomic_load_n(&s->space_short, __ATOMIC_ACQUIRE) ||
           __atomic_load_n(&s->space_lacking, __ATOMIC_ACQUIRE);
}

static void wake(struct local_store *s)
{
    pthread_mutex_lock(&s->lock);
    s->asked = true;
    pthread_cond_signal(&s->wake);
    pthread_mutex_unlock(&s->lock);
}

/* Wakes the checkpoint thread once when the log has grown enough. */
static void wake_on_overflow(struct local_store *s)
{
    if (bytes_waiting(s) >= s->config.checkpoint_bytes &&
        !__atomic_exchange_n(&s->overflow_told, true, __ATOMIC_ACQ_REL)) {
        wake(s);
    }
}

static void on_notice(void *context)
{
    struct local_store *s = context;
    s->events.notice(s->events.context);
    struct wal *wal = __atomic_load_n(&s->wal, __ATOMIC_ACQUIRE);
    if (!wal) { /* wal_open is not yet back */
        return;
    }
    vitals_log(&s->vitals, s->wal_path, wal_error(wal));
    wake_on_overflow(s);
    /* Waits for the notice, since a delete counts for a checkpoint only when it is durable. */
    if (crowded(s) && __atomic_exchange_n(&s->deleted, false, __ATOMIC_ACQ_REL)) {
        wake(s);
    }
}

/* On the log's thread. A checkpoint of all that waits must find room when the file is full. */
static bool may_grow(void *context, uint64_t file_bytes, log_pos next)
{
    struct local_store *s = context;
    uint64_t waiting = next - __atomic_load_n(&s->checkpoint, __ATOMIC_ACQUIRE);
    bool lacking = __atomic_load_n(&s->space_lacking, __ATOMIC_ACQUIRE);
    if (!lacking && space_free(&s->space) / 2 >= file_bytes + waiting / 2) {
        return true;
    }
    if (!__atomic_exchange_n(&s->space_short, true, __ATOMIC_ACQ_REL)) {
        wake(s);
    }
    return false;
}

/* What frees space is always taken: there is no more of it than streams and notes. */
static int admit(struct local_store *s, const struct record *r)
{
    if (record_frees(r)) {
        __atomic_store_n(&s->deleted, true, __ATOMIC_RELEASE);
        return 0;
    }
    uint64_t max = s->config.log_bytes_max;
    return max > 0 && bytes_waiting(s) > max ? ERR_BUSY : 0;
}

static int op_stage(struct store *base, const struct record *r, struct block *body_block,
                    log_pos *ret_end)
{
    struct local_store *s = local_of(base);
    int rc = admit(s, r);
    if (rc || s->wal) {
        return rc ? rc : wal_stage(s->wal, r, body_block, ret_end);
    }
    assert(in_memory(s));
    uint64_t bytes = RECORD_FRAME_BYTES + record_head_bytes(r) + record_body(r).len;
    bytes = (bytes + RECORD_ALIGN - 1) / RECORD_ALIGN * RECORD_ALIGN;
    *ret_end = __atomic_add_fetch(&s->memory_next, bytes, __ATOMIC_ACQ_REL);
    wake_on_overflow(s);
    return 0;
}

static int op_commit(struct store *base)
{
    struct local_store *s = local_of(base);
    return s->wal ? wal_commit_now(s->wal) : 0;
}

/* Reading. */

static int op_find(struct store *base, struct slice name, stream_id *ret_id)
{
    return catalog_find(local_of(base)->catalog, name, ret_id);
}

static int op_load(struct store *base, stream_id id, struct catalog_stream *ret_stream)
{
    return catalog_load(local_of(base)->catalog, id, ret_stream);
}

static int op_list(struct store *base, struct slice prefix, struct slice after, size_t limit,
                   catalog_each_fn each, void *context)
{
    return catalog_list(local_of(base)->catalog, prefix, after, limit, each, context);
}

static int op_expired(struct store *base, int64_t now_ms, size_t limit, catalog_each_fn each,
                      void *context)
{
    return catalog_expired(local_of(base)->catalog, now_ms, limit, each, context);
}

static int op_each_note(struct store *base, struct slice prefix, catalog_note_fn each,
                        void *context, struct errmsg *msg)
{
    return catalog_each_note(local_of(base)->catalog, prefix, each, context, msg);
}

static int op_read_marks(struct store *base, const struct extent *e, void *out)
{
    return pack_read_marks(local_of(base)->packs, e, out);
}

static int op_read_extent(struct store *base, const struct extent *e, void *data, void *marks)
{
    return pack_read_extent(local_of(base)->packs, e, data, marks);
}

static int op_pack_get(struct store *base, pack_id id, struct pack **ret_pack)
{
    return pack_get(local_of(base)->packs, id, ret_pack);
}

static struct pack *op_pack_try_get(struct store *base, pack_id id)
{
    return pack_try_get(local_of(base)->packs, id);
}

static void op_health(struct store *base, struct store_health *ret_health)
{
    struct local_store *s = local_of(base);
    vitals_get_health(&s->vitals, s->wal ? wal_error(s->wal) : 0, ret_health);
    ret_health->log_bytes = bytes_waiting(s);
}

static void op_stats(struct store *base, struct store_stats *ret_stats)
{
    struct local_store *s = local_of(base);
    *ret_stats = (struct store_stats){0};
    vitals_get_stats(&s->vitals, ret_stats);
    if (s->wal) {
        wal_get_stats(s->wal, &ret_stats->log);
    }
}

/* Checkpoints. */

/* Takes note of how a checkpoint ended. */
static void note_checkpoint(struct local_store *s, int rc)
{
    vitals_checkpoint(&s->vitals, s->dir, rc);
    __atomic_store_n(&s->space_lacking, rc == ERR_NOSPC, __ATOMIC_RELEASE);
}

/* The state that a transaction committed now should carry. */
static struct catalog_state state_now(struct local_store *s, log_pos checkpoint)
{
    struct catalog_state state = s->state;
    state.checkpoint = checkpoint;
    state.next_stream = __atomic_load_n(&s->next_stream, __ATOMIC_ACQUIRE);
    return state;
}

static void on_added(void *context, stream_id id, const struct extent *e)
{
    struct local_store *s = context;
    compaction_note(&s->small, id);
    s->events.extent_added(s->events.context, id, e);
}

/* Tells the streams and lets go of the log. */
static void announce(struct local_store *s, struct checkpoint *c, log_pos position)
{
    s->state = state_now(s, position);
    __atomic_store_n(&s->checkpoint, position, __ATOMIC_RELEASE);
    __atomic_store_n(&s->overflow_told, false, __ATOMIC_RELEASE);
    checkpoint_each_added(c, on_added, s);
    s->events.checkpointed(s->events.context, 0);
    if (s->wal) {
        wal_release(s->wal, position);
    }
}

static uint64_t mono_us(const struct local_store *s)
{
    return s->config.sys->mono_us(s->config.sys->context);
}

static int make_checkpoint(struct local_store *s)
{
    uint64_t begun_us = mono_us(s);
    log_pos position = op_durable(&s->base); /* before collect: see checkpoint.c */
    struct checkpoint *c = NULL;
    int rc = checkpoint_create(&s->target, &c);
    if (rc) {
        return rc;
    }
    rc = s->events.collect(s->events.context, c);
    if (rc == 0) {
        struct catalog_state state = state_now(s, position);
        rc = checkpoint_commit(c, &state);
    }
    if (rc) {
        /* Packs go first: the streams may come back at once. */
        checkpoint_destroy(c);
        s->events.checkpointed(s->events.context, rc);
        return rc;
    }
    announce(s, c, position);
    checkpoint_destroy(c);
    vitals_checkpointed(&s->vitals, mono_us(s) - begun_us);
    return 0;
}

/* Commits the removal of streams and nothing else; *ret_count: how many. */
static int make_drops(struct local_store *s, size_t *ret_count)
{
    struct checkpoint *c = NULL;
    int rc = checkpoint_create(&s->target, &c);
    if (rc) {
        return rc;
    }
    rc = s->events.collect_dropped(s->events.context, c, DROPS_MAX, ret_count);
    if (rc == 0 && *ret_count > 0) {
        struct catalog_state state = state_now(s, s->state.checkpoint);
        rc = checkpoint_commit(c, &state);
    }
    checkpoint_destroy(c);
    s->events.checkpointed(s->events.context, rc);
    return rc;
}

/* Commits the removal of all streams that are gone. False: there was none, or no space for it. */
static bool drop_gone(struct local_store *s)
{
    size_t count = DROPS_MAX;
    bool dropped = false;
    while (s->events.collect_dropped && count == DROPS_MAX && make_drops(s, &count) == 0) {
        dropped = dropped || count > 0;
    }
    return dropped;
}

static int run_compaction(struct local_store *s);

/* Without space: drops alone, then what that made dead, twice since a pack is unlinked in the round
 * after it died. The reserve goes only when there is something to gain, and without any gain there
 * is no second try. */
static int checkpoint_crowded(struct local_store *s)
{
    bool gained = s->wal && wal_drop_spares(s->wal);
    if (drop_gone(s)) {
        gained = true;
        (void)space_give_reserve(&s->space);
        (void)run_compaction(s); /* a failure was told */
        (void)run_compaction(s);
    }
    return gained ? make_checkpoint(s) : ERR_NOSPC;
}

static int run_checkpoint(struct local_store *s)
{
    if (op_failed(&s->base)) {
        return ERR_FAILED;
    }
    __atomic_store_n(&s->space_short, false, __ATOMIC_RELEASE);
    int rc = bytes_waiting(s) > 0 ? make_checkpoint(s) : 0;
    if (rc == ERR_NOSPC) {
        rc = checkpoint_crowded(s);
    }
    note_checkpoint(s, rc);
    return rc;
}

static void on_replaced(void *context, stream_id id, const struct extent *e)
{
    struct local_store *s = context;
    s->replaced++;
    s->events.extent_replaced(s->events.context, id, e);
}

/* One round that takes no more than its share of the free space. */
static int compact(struct local_store *s)
{
    uint64_t share = space_free(&s->space) / COMPACT_SHARE;
    share = share < COMPACT_ROUND_BYTES ? share : COMPACT_ROUND_BYTES;
    struct catalog_state state = state_now(s, s->state.checkpoint);
    uint64_t begun_us = mono_us(s);
    struct compaction_work work = {0};
    struct compaction k = {.target = &s->target,
                           .work = &work,
                           .state = &state,
                           .bytes_max = share > COMPACT_BYTES_MIN ? share : COMPACT_BYTES_MIN,
                           .replaced = on_replaced,
                           .context = s};
    struct compaction_ids none = {0};
    bool short_of_space = share < COMPACT_ROUND_BYTES && crowded(s);
    s->replaced = 0;
    /* Joining small extents takes space before it gives some. */
    int rc = compact_round(&k, short_of_space ? &none : &s->small, &s->compact_more);
    vitals_compacted(&s->vitals, work.moved_bytes, work.packs_gone, mono_us(s) - begun_us);
    if (rc == 0 && short_of_space) {
        s->compact_more = s->compact_more || s->replaced > 0; /* to unlink what they were in */
    }
    return rc;
}

static int run_compaction(struct local_store *s)
{
    int rc = compact(s);
    if (rc == ERR_NOSPC && space_give_reserve(&s->space)) {
        rc = compact(s);
    }
    vitals_compaction(&s->vitals, s->packs_path, rc);
    vitals_count(&s->vitals, s->catalog);
    if (rc) {
        s->compact_more = false;
    } else if (!s->compact_more && !crowded(s)) {
        space_make_reserve(&s->space);
    }
    return rc;
}

/* After a round: appends that were refused may try again, if only to be refused by the log. */
static void let_log_try(struct local_store *s)
{
    if (s->wal && s->config.threads) {
        wal_release(s->wal, s->state.checkpoint);
    }
}

enum wake_reason {
    WAKE_STOP,
    WAKE_ASKED,
    WAKE_TIME
};

/* Waits until there is a reason to work or `ms` have passed; 0: without end. */
static enum wake_reason wait_for_work(struct local_store *s, uint64_t ms)
{
    struct sys *sys = s->config.sys;
    uint64_t until = sys->mono_ms(sys->context) + ms;
    struct timespec ts = {.tv_sec = (time_t)(until / 1000),
                          .tv_nsec = (long)(until % 1000) * 1000000};
    pthread_mutex_lock(&s->lock);
    int rc = 0;
    while (!s->stop && !s->asked && rc == 0) {
        rc = ms == 0 ? pthread_cond_wait(&s->wake, &s->lock)
                     : pthread_cond_timedwait(&s->wake, &s->lock, &ts);
    }
    enum wake_reason reason = s->stop ? WAKE_STOP : s->asked ? WAKE_ASKED : WAKE_TIME;
    s->asked = false;
    pthread_mutex_unlock(&s->lock);
    return reason;
}

/* The pause before the next try. Space may come back at any moment. */
static uint64_t next_retry_ms(uint64_t retry_ms, int error)
{
    if (retry_ms == 0 || error == ERR_NOSPC) {
        return RETRY_MS_MIN;
    }
    return retry_ms * 2 < RETRY_MS_MAX ? retry_ms * 2 : RETRY_MS_MAX;
}

static void *thread_main(void *context)
{
    struct local_store *s = context;
    uint64_t retry_ms = 0;
    for (;;) {
        bool rest_of_compaction = s->compact_more && retry_ms == 0;
        uint64_t usual_ms = retry_ms ? retry_ms : s->config.checkpoint_interval_ms;
        usual_ms = crowded(s) ? RETRY_MS_MIN : usual_ms;
        enum wake_reason reason = wait_for_work(s, rest_of_compaction ? 1 : usual_ms);
        if (reason == WAKE_STOP) {
            return NULL;
        }
        /* No early checkpoint only because a compaction goes on. */
        int rc = rest_of_compaction && reason == WAKE_TIME ? 0 : run_checkpoint(s);
        rc = rc ? rc : run_compaction(s);
        retry_ms = rc ? next_retry_ms(retry_ms, rc) : 0;
        if (rc == 0) {
            let_log_try(s);
        }
    }
}

static int op_checkpoint(struct store *base)
{
    struct local_store *s = local_of(base);
    if (s->config.threads) {
        wake(s);
        return 0;
    }
    int rc = run_checkpoint(s);
    return rc ? rc : run_compaction(s);
}

/* Closing. */

/* Closes whatever is open; also halfway through opening. */
static void store_free(struct local_store *s)
{
    struct sys *sys = s->config.sys;
    wal_close(s->wal);
    pack_set_close(s->packs);
    catalog_close(s->catalog);
    if (s->lock_fd >= 0) {
        sys->close(sys->context, s->lock_fd);
    }
    compaction_ids_finish(&s->small);
    pthread_cond_destroy(&s->wake);
    pthread_mutex_destroy(&s->lock);
    vitals_finish(&s->vitals);
    free(s);
}

static void stop_thread(struct local_store *s)
{
    if (s->thread_started) {
        pthread_mutex_lock(&s->lock);
        s->stop = true;
        pthread_cond_signal(&s->wake);
        pthread_mutex_unlock(&s->lock);
        pthread_join(s->thread, NULL);
        s->thread_started = false;
    }
}

/* The last checkpoint only spares the next start some replay. */
static void close_checkpoint(struct local_store *s)
{
    int rc = run_checkpoint(s);
    if (rc && s->wal) {
        vitals_say(&s->vitals, TROUBLE_ODD,
                   "the last checkpoint of %s failed: %s; all that was acknowledged is in the log, "
                   "which the next start replays",
                   s->dir, err_text(rc));
    }
}

static int op_close(struct store *base, bool checkpoint)
{
    struct local_store *s = local_of(base);
    stop_thread(s);
    int rc = s->wal ? wal_flush(s->wal) : 0;
    if (rc == 0 && checkpoint && op_failed(base)) {
        rc = ERR_FAILED;
    } else if (rc == 0 && checkpoint) {
        close_checkpoint(s);
    }
    store_free(s);
    return rc;
}

static const struct store_ops local_store_ops = {
    .stage = op_stage,
    .durable = op_durable,
    .failed = op_failed,
    .next_id = op_next_id,
    .find = op_find,
    .load = op_load,
    .list = op_list,
    .expired = op_expired,
    .each_note = op_each_note,
    .read_marks = op_read_marks,
    .read_extent = op_read_extent,
    .pack_get = op_pack_get,
    .pack_try_get = op_pack_try_get,
    .checkpoint = op_checkpoint,
    .commit = op_commit,
    .health = op_health,
    .stats = op_stats,
    .close = op_close,
};

/* Opening. */

static int format_paths(struct local_store *s, const struct store_config *config,
                        struct errmsg *msg)
{
    if (strlen(config->dir) > PATH_BYTES_MAX - 100) {
        return err_set(msg, ERR_INVALID, "the path of the data directory is longer than %u bytes",
                       PATH_BYTES_MAX - 100);
    }
    (void)snprintf(s->dir, sizeof(s->dir), "%s", config->dir);
    (void)snprintf(s->wal_path, sizeof(s->wal_path), "%s/wal", config->dir);
    (void)snprintf(s->packs_path, sizeof(s->packs_path), "%s/packs", config->dir);
    (void)snprintf(s->reserve_path, sizeof(s->reserve_path), "%s/reserve", config->dir);
    s->space = (struct space){.sys = config->sys, .dir = s->dir, .path = s->reserve_path};
    if (config->catalog_dir) {
        (void)snprintf(s->catalog_path, sizeof(s->catalog_path), "%s", config->catalog_dir);
    } else {
        (void)snprintf(s->catalog_path, sizeof(s->catalog_path), "%s/catalog", config->dir);
    }
    return 0;
}

/* Makes and locks the directory. */
static int take_dir(struct local_store *s, struct errmsg *msg)
{
    struct sys *sys = s->config.sys;
    int rc = data_dir_take(sys, s->dir, &s->lock_fd, msg);
    if (rc) {
        return rc;
    }
    rc = sys->mkdir(sys->context, s->packs_path);
    rc = rc ? rc : sys->mkdir(sys->context, s->wal_path);
    if (rc == 0 && !s->config.catalog_dir) {
        rc = sys->mkdir(sys->context, s->catalog_path);
    }
    rc = rc ? rc : sys->sync_dir(sys->context, s->dir);
    rc = rc ? rc : data_dir_sync_entry(sys, s->dir);
    return rc ? err_set(msg, rc, "cannot make directories in %s: %s", s->dir, err_file_text(rc))
              : 0;
}

/* Refuses a directory that was made for the other kind of durability. */
static int check_kind(const struct local_store *s, struct errmsg *msg)
{
    bool is_new = s->state.epoch == 0;
    bool durable = s->state.durable == KIND_DURABLE;
    if (is_new || durable == !in_memory(s)) {
        return 0;
    }
    return durable ? err_set(msg, ERR_MISMATCH,
                             "%s keeps streams for good; use --durability sync or os, or another "
                             "directory",
                             s->dir)
                   : err_set(msg, ERR_MISMATCH,
                             "%s was used in memory mode; use --durability memory, or another "
                             "directory",
                             s->dir);
}

/* Commits the state of this opening. */
static int commit_state(struct local_store *s, const struct catalog_state *state)
{
    struct catalog_txn *t = NULL;
    int rc = catalog_begin(s->catalog, &t);
    if (rc) {
        return rc;
    }
    catalog_put_state(t, state);
    rc = catalog_commit(t);
    if (rc == 0) {
        s->state = *state;
    }
    return rc;
}

static void on_damaged(void *context, const char *sentence)
{
    struct local_store *s = context;
    vitals_say(&s->vitals, TROUBLE_BROKEN, "%s", sentence);
}

/* Between two attempts to learn how a commit ended: until then no checkpoint can end. */
static bool pause_commit(void *context, unsigned attempt)
{
    struct local_store *s = context;
    struct sys *sys = s->config.sys;
    if (!s->thread_started) {
        return false;
    }
    note_checkpoint(s, ERR_UNKNOWN);
    unsigned doublings = attempt < 6 ? attempt : 6;
    uint64_t until = sys->mono_ms(sys->context) + (RETRY_MS_MIN << doublings);
    struct timespec ts = {.tv_sec = (time_t)(until / 1000),
                          .tv_nsec = (long)(until % 1000) * 1000000};
    int rc = 0;
    pthread_mutex_lock(&s->lock);
    while (!s->stop && rc == 0) {
        rc = pthread_cond_timedwait(&s->wake, &s->lock, &ts);
    }
    bool again = !s->stop;
    pthread_mutex_unlock(&s->lock);
    return again;
}

static int open_catalog(struct local_store *s, struct errmsg *msg)
{
    struct sys *sys = s->config.sys;
    bool sync = s->config.durability == DURABILITY_SYNC;
    const struct catalog_watch watch = {.context = s, .damaged = on_damaged, .pause = pause_commit};
    int rc = catalog_open(sys, s->catalog_path, sync, &watch, &s->catalog, &s->state, msg);
    rc = rc ? rc : check_kind(s, msg);
    if (rc) {
        return rc;
    }
    struct catalog_state state = s->state;
    state.epoch++;
    state.format = CATALOG_FORMAT; /* from here on no older version may open it */
    state.durable = (uint8_t)(in_memory(s) ? 0 : KIND_DURABLE);
    if (in_memory(s)) {
        state.checkpoint = 0;
        rc = catalog_clear(s->catalog, &state);
        s->state = state;
    } else {
        rc = commit_state(s, &state);
    }
    if (rc == 0 && !s->config.catalog_dir) {
        rc = sys->sync_dir(sys->context, s->catalog_path); /* LMDB syncs its file, not the entry */
    }
    s->next_stream = s->state.next_stream;
    s->checkpoint = s->state.checkpoint;
    s->replayed = s->state.checkpoint;
    return rc ? err_set(msg, rc, "cannot write the catalog %s: %s", s->catalog_path, err_text(rc))
              : 0;
}

static int on_replay(void *context, const struct record *r, log_pos end)
{
    struct local_store *s = context;
    if (r->id >= s->next_stream) {
        __atomic_store_n(&s->next_stream, r->id + 1, __ATOMIC_RELEASE);
    }
    __atomic_store_n(&s->replayed, end, __ATOMIC_RELEASE);
    return s->events.replay(s->events.context, r, end);
}

static int open_wal(struct local_store *s, struct wal_report *ret_report, struct errmsg *msg)
{
    struct wal_config config = {
        .sys = s->config.sys,
        .dir = s->wal_path,
        .segment_bytes = s->config.segment_bytes,
        .staged_bytes_max = s->config.staged_bytes_max,
        .durability = s->config.durability,
        .start = s->state.checkpoint,
        .epoch = s->state.epoch,
        .fresh = !s->state.log_made,
        .threads = s->config.threads,
        .notice = on_notice,
        .notice_context = s,
        .may_grow = may_grow,
    };
    memcpy(config.uuid, s->state.uuid, sizeof(config.uuid));
    struct wal *wal = NULL;
    int rc = wal_open(&config, on_replay, s, ret_report, &wal, msg);
    if (rc) {
        return rc;
    }
    __atomic_store_n(&s->wal, wal, __ATOMIC_RELEASE);
    struct catalog_state state = state_now(s, s->state.checkpoint);
    state.log_made = 1;
    rc = s->state.log_made ? 0 : commit_state(s, &state);
    return rc ? err_set(msg, rc, "cannot write the catalog %s: %s", s->catalog_path, err_text(rc))
              : 0;
}

/* Ids of the packs that the catalog names. */
struct known_packs {
    pack_id *ids; /* owned */
    size_t count;
    size_t cap;
};

static int add_known(void *context, pack_id id, uint64_t live_bytes, uint64_t total_bytes)
{
    struct known_packs *k = context;
    (void)live_bytes;  /* compaction's */
    (void)total_bytes; /* compaction's */
    if (k->count == k->cap) {
        size_t cap = k->cap ? k->cap * 2 : 64;
        pack_id *ids = realloc(k->ids, cap * sizeof(ids[0]));
        if (!ids) {
            return ERR_NOMEM;
        }
        k->ids = ids;
        k->cap = cap;
    }
    k->ids[k->count++] = id;
    return 0;
}

static int sweep_packs(struct local_store *s, struct pack_sweep *ret_sweep, struct errmsg *msg)
{
    struct known_packs known = {0};
    int rc = catalog_each_pack(s->catalog, add_known, &known);
    rc = rc ? rc : pack_set_sweep(s->packs, known.ids, known.count, ret_sweep);
    free(known.ids);
    return rc ? err_set(msg, rc, "cannot sweep %s: %s", s->packs_path, err_text(rc)) : 0;
}

static void describe(struct local_store *s, const struct pack_sweep *sweep,
                     struct store_report *report)
{
    report->streams = catalog_count(s->catalog);
    int len = snprintf(report->text, sizeof(report->text), "%llu streams in the catalog; %s",
                       (unsigned long long)report->streams,
                       report->wal.text[0] ? report->wal.text : "no log in memory mode");
    size_t at = (size_t)len;
    if (at < sizeof(report->text) && sweep->missing > 0) {
        len = snprintf(report->text + at, sizeof(report->text) - at,
                       "; %zu packs are missing from %s: reads of their streams will fail",
                       sweep->missing, s->packs_path);
        at += (size_t)len;
    }
    if (at < sizeof(report->text) && sweep->set_aside > 0) {
        (void)snprintf(report->text + at, sizeof(report->text) - at,
                       "; %u unknown pack files set aside as *.damaged", sweep->set_aside);
    }
}

static int open_parts(struct local_store *s, struct store_report *report, struct errmsg *msg)
{
    int rc = take_dir(s, msg);
    rc = rc ? rc : open_catalog(s, msg);
    rc = rc ? rc : pack_set_open(s->config.sys, s->packs_path, s->state.uuid, &s->packs, msg);
    if (rc) {
        return rc;
    }
    s->target = (struct output_target){.catalog = s->catalog,
                                       .packs = s->packs,
                                       .next_pack = &s->state.next_pack,
                                       .sync = s->config.durability == DURABILITY_SYNC};
    if (s->events.opening) {
        const struct catalog_totals totals = catalog_get_totals(s->catalog);
        s->events.opening(s->events.context, &s->base, &totals);
    }
    rc = in_memory(s) ? 0 : open_wal(s, &report->wal, msg);
    struct pack_sweep sweep = {0};
    rc = rc ? rc : sweep_packs(s, &sweep, msg);
    if (rc == 0) {
        describe(s, &sweep, report);
        vitals_count(&s->vitals, s->catalog);
        space_make_reserve(&s->space);
    }
    return rc;
}

static int start_thread(struct local_store *s, struct errmsg *msg)
{
    if (!s->config.threads) {
        return 0;
    }
    if (bytes_waiting(s) >= s->config.checkpoint_bytes) {
        wake(s); /* a long log after a bad time */
    }
    if (pthread_create(&s->thread, NULL, thread_main, s) != 0) {
        return err_set(msg, ERR_AGAIN, "cannot start the checkpoint thread");
    }
    s->thread_started = true;
    return 0;
}

static void init_locks(struct local_store *s)
{
    pthread_condattr_t attr;
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(&s->wake, &attr);
    pthread_condattr_destroy(&attr);
    pthread_mutex_init(&s->lock, NULL);
}

int local_store_open(const struct store_config *config, const struct store_events *events,
                     struct store **ret_store, struct store_report *ret_report, struct errmsg *msg)
{
    struct local_store *s = calloc(1, sizeof(*s));
    if (!s) {
        return err_set(msg, ERR_NOMEM, "%s", err_text(ERR_NOMEM));
    }
    s->base.ops = &local_store_ops;
    s->config = *config;
    s->events = *events;
    s->lock_fd = -1;
    init_locks(s);
    vitals_init(&s->vitals, &s->events);
    struct store_report report = {0};
    int rc = format_paths(s, config, msg);
    s->config.dir = s->dir;
    rc = rc ? rc : open_parts(s, &report, msg);
    rc = rc ? rc : start_thread(s, msg);
    if (rc) {
        store_free(s);
        return rc;
    }
    *ret_report = report;
    *ret_store = &s->base;
    return 0;
}
