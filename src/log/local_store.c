/* The data directory:
 *
 *   DIR/lock      locked by the process that has the directory open
 *   DIR/wal/      the log's segments (segment.c); not in memory mode
 *   DIR/packs/    packs (pack.c)
 *   DIR/catalog/  the LMDB environment (catalog.c)
 *   DIR/reserve   room for a full disk (space.c)
 *
 * Opening is told in local_open.c.
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
 *   - The log goes on in another file, new or spare, only if what then waits for a checkpoint still
 *     fits beside it (may_grow); else appends are refused and a checkpoint is asked for.
 *   - The catalog's file has pages ahead (catalog_env.c), and the log has room for deletes.
 *   - A checkpoint that finds no space lets go of spare log files and commits what was dropped
 *     alone, without moving the position. That makes packs dead, which need only be unlinked, and
 *     others mostly dead, which compaction moves with the reserve's space.
 *   - What is held for tools (hold.h) is let go.
 *   - The disk is looked at again every RETRY_MS_MIN, and at once when something was deleted. The
 *     log tries again when a look gave something back, or by time; were every look a reason to try,
 *     and every refusal one to look, the two threads would keep each other busy. */
#include "log/local_store.h"

#include <assert.h>
#include <stdlib.h>
#include <time.h>

#include "base/limits.h"

#define RETRY_MS_MIN        1000u
#define RETRY_MS_MAX        60000u
#define COMPACT_ROUND_BYTES (64ull * MIB)
#define COMPACT_BYTES_MIN   (256ull * KIB) /* of a round where space is short */
#define COMPACT_SHARE       4u             /* of the free space is what a round may take */
#define DROPS_MAX           64u /* in a transaction on a full disk; the catalog has room */

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

/* Whether checkpoints find no space. */
static bool lacking(struct local_store *s)
{
    return __atomic_load_n(&s->space_lacking, __ATOMIC_ACQUIRE);
}

/* Whether the disk is full as far as the log is concerned. */
static bool crowded(struct local_store *s)
{
    return __atomic_load_n(&s->space_short, __ATOMIC_ACQUIRE) || lacking(s);
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

void local_store_on_notice(void *context)
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

/* On the log's thread. When the log has reached `end`, a checkpoint of all that waits must find
 * room. In halves, as a disk that cannot be asked has all there may be. The first refusal asks for
 * a look at the disk; others follow by time. */
bool local_store_may_grow(void *context, uint64_t file_bytes, uint64_t spare_bytes, log_pos end)
{
    struct local_store *s = context;
    uint64_t waiting = end - __atomic_load_n(&s->checkpoint, __ATOMIC_ACQUIRE);
    if (!lacking(s) &&
        space_free(&s->space) / 2 + spare_bytes / 2 >= file_bytes / 2 + waiting / 2) {
        __atomic_store_n(&s->space_short, false, __ATOMIC_RELEASE);
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

struct catalog_state local_store_state(struct local_store *s, log_pos checkpoint)
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
    s->state = local_store_state(s, position);
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
        struct catalog_state state = local_store_state(s, position);
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
        struct catalog_state state = local_store_state(s, s->state.checkpoint);
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

static bool stopping(struct local_store *s)
{
    pthread_mutex_lock(&s->lock);
    bool stop = s->stop;
    pthread_mutex_unlock(&s->lock);
    return stop;
}

/* Compacts until a round neither moves nor unlinks anything: a round takes only a share of the free
 * space, and a pack is unlinked in the round after it died. Whether anything was gained. */
static bool reclaim(struct local_store *s)
{
    bool gained = false;
    do {
        (void)run_compaction(s); /* a failure was told */
        gained = gained || s->packs_gone > 0;
    } while ((s->replaced > 0 || s->packs_gone > 0) && !stopping(s));
    return gained;
}

/* Without space: drops alone, then what is dead, be it from now or left by rounds that were cut
 * short. Without any gain there is no second try. Until note_checkpoint everybody is to know: small
 * extents are not joined and the reserve is not made anew, from what the second try needs. */
static int checkpoint_crowded(struct local_store *s)
{
    __atomic_store_n(&s->space_lacking, true, __ATOMIC_RELEASE);
    bool gained = s->wal && wal_drop_spares(s->wal);
    if (drop_gone(s)) {
        gained = true;
        (void)space_give_reserve(&s->space);
    }
    gained = reclaim(s) || gained;
    return gained ? make_checkpoint(s) : ERR_NOSPC;
}

static int run_checkpoint(struct local_store *s)
{
    if (op_failed(&s->base)) {
        return ERR_FAILED;
    }
    if (crowded(s)) {
        holds_break(&s->holds);
    }
    int rc = bytes_waiting(s) > 0 ? make_checkpoint(s) : 0;
    if (rc == ERR_NOSPC) {
        holds_break(&s->holds);
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
    struct catalog_state state = local_store_state(s, s->state.checkpoint);
    uint64_t begun_us = mono_us(s);
    struct compaction_work work = {0};
    struct compaction k = {.target = &s->target,
                           .work = &work,
                           .state = &state,
                           .bytes_max = share > COMPACT_BYTES_MIN ? share : COMPACT_BYTES_MIN,
                           .replaced = on_replaced,
                           .context = s};
    struct compaction_ids none = {0};
    bool short_of_space = share < COMPACT_ROUND_BYTES && lacking(s);
    /* Joining small extents takes space before it gives some. Where only the log's next file finds
     * none it goes on: a disk may stay so for long, with a checkpoint every second. */
    int rc = compact_round(&k, short_of_space ? &none : &s->small, &s->compact_more);
    s->packs_gone += work.packs_gone;
    vitals_compacted(&s->vitals, work.moved_bytes, work.packs_gone, mono_us(s) - begun_us);
    if (rc == 0 && short_of_space) {
        s->compact_more = s->compact_more || s->replaced > 0; /* to unlink what they were in */
    }
    return rc;
}

/* One round, or up to three where space must be made for it; what all of them did counts. */
static int run_compaction(struct local_store *s)
{
    s->replaced = 0;
    s->packs_gone = 0;
    int rc = compact(s);
    if (rc == ERR_NOSPC && space_give_reserve(&s->space)) {
        rc = compact(s);
    }
    if (rc == ERR_NOSPC && s->wal && wal_drop_spares(s->wal)) {
        rc = compact(s);
    }
    vitals_compaction(&s->vitals, s->packs_path, rc);
    vitals_count(&s->vitals, s->catalog);
    if (rc) {
        s->compact_more = false;
    } else if (!s->compact_more && !lacking(s)) {
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

/* Whether a round that began with the checkpoint at `before` gave something back. */
static bool gave_space(const struct local_store *s, log_pos before)
{
    return s->state.checkpoint > before || s->packs_gone > 0;
}

/* What the thread does when it wakes; `rest`: for what a compaction left to do, which is no reason
 * for an early checkpoint. */
static int run_round(struct local_store *s, enum wake_reason reason, bool rest)
{
    log_pos before = s->state.checkpoint;
    int rc = rest ? 0 : run_checkpoint(s);
    rc = rc ? rc : run_compaction(s);
    bool by_time = reason == WAKE_TIME && !rest;
    if (rc == 0 && (by_time || gave_space(s, before))) {
        let_log_try(s);
    }
    return rc;
}

static void *thread_main(void *context)
{
    struct local_store *s = context;
    uint64_t retry_ms = 0;
    for (;;) {
        bool more = s->compact_more && retry_ms == 0;
        uint64_t usual_ms = retry_ms ? retry_ms : s->config.checkpoint_interval_ms;
        usual_ms = crowded(s) ? RETRY_MS_MIN : usual_ms;
        enum wake_reason reason = wait_for_work(s, more ? 1 : usual_ms);
        if (reason == WAKE_STOP) {
            return NULL;
        }
        int rc = run_round(s, reason, more && reason == WAKE_TIME);
        retry_ms = rc ? next_retry_ms(retry_ms, rc) : 0;
    }
}

int local_store_start_thread(struct local_store *s, struct errmsg *msg)
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

bool local_store_pause_commit(void *context, unsigned attempt)
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

void local_store_free(struct local_store *s)
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
    holds_finish(&s->holds);
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

static struct holds *op_holds(struct store *base)
{
    return &local_of(base)->holds;
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
    local_store_free(s);
    return rc;
}

const struct store_ops local_store_ops = {
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
    .holds = op_holds,
    .close = op_close,
};
