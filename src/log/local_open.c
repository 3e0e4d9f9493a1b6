/* Opening: lock; catalog; a new epoch, committed before the log opens, so that no two openings
 * write frames of the same epoch; packs; recovery with replay; sweep of packs that no one names;
 * threads. The catalog says whether the directory keeps streams for good or in memory mode only,
 * and whether a log was ever begun: a log that is then missing is refused, not replaced by an
 * empty one. */
#include "log/local_store.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define KIND_DURABLE 1u

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

static int open_catalog(struct local_store *s, struct errmsg *msg)
{
    struct sys *sys = s->config.sys;
    bool sync = s->config.durability == DURABILITY_SYNC;
    const struct catalog_watch watch = {
        .context = s, .damaged = on_damaged, .pause = local_store_pause_commit};
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
        .notice = local_store_on_notice,
        .notice_context = s,
        .may_grow = local_store_may_grow,
    };
    memcpy(config.uuid, s->state.uuid, sizeof(config.uuid));
    struct wal *wal = NULL;
    int rc = wal_open(&config, on_replay, s, ret_report, &wal, msg);
    if (rc) {
        return rc;
    }
    __atomic_store_n(&s->wal, wal, __ATOMIC_RELEASE);
    struct catalog_state state = local_store_state(s, s->state.checkpoint);
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
        s->holds.store = &s->base;
        s->holds.catalog = s->catalog;
        s->holds.packs = s->packs;
        s->holds.wal = s->wal;
        describe(s, &sweep, report);
        vitals_count(&s->vitals, s->catalog);
        space_make_reserve(&s->space);
    }
    return rc;
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
    holds_init(&s->holds);
    struct store_report report = {0};
    int rc = format_paths(s, config, msg);
    s->config.dir = s->dir;
    rc = rc ? rc : open_parts(s, &report, msg);
    rc = rc ? rc : local_store_start_thread(s, msg);
    if (rc) {
        local_store_free(s);
        return rc;
    }
    *ret_report = report;
    *ret_store = &s->base;
    return 0;
}
