/* Format: frames (record.h), one behind the other, each at a multiple of 8, in segment files
 * (segment.c) that together are one run of positions (chain.h). What ends the log and how it is
 * read back is told in recover.c.
 *
 * The happy path:
 *   - wal_stage computes the checksum of the payload, takes the lock, gives the record its
 *     position, and puts frame and head into the active batch; a small body is copied, a large one
 *     referenced.
 *   - The committer swaps the active batch for an empty one, writes it with as few vectored writes
 *     as segments and IOV_MAX allow, syncs each segment it touched, advances `durable`, gives
 *     notice. Whatever is staged meanwhile is the next batch: the disk's own pace sets the batch
 *     size.
 *   - The preparer keeps as much room ahead of what is staged as the last segment holds, from
 *     spares (released by checkpoints) or from new files.
 *
 * The failure modes:
 *   - No room on the disk: a record is staged only if the segments that are there already have room
 *     for it, so a full disk refuses it before anything happened (ERR_NOSPC) and a staged record
 *     never meets a full disk. Each refusal asks for one more attempt, so space that comes back is
 *     found.
 *   - Any other failure to write, sync or prepare: the log has failed for good. Nothing is tried
 *     again, since after a failed sync nobody knows what the disk has. What was staged and is not
 *     durable never becomes durable in this process, nor does anything later.
 *   - A crash: recover.c. */
#include "log/wal.h"

#include <assert.h>
#include <pthread.h>
#include <stdlib.h>

#include "base/crc32c.h"
#include "base/limits.h"
#include "log/batch.h"
#include "log/recover.h"

#define BODY_COPY_MAX      (16u * KIB) /* a larger body is referenced when it has a block */
#define HEAD_STACK_BYTES   4096u       /* a larger head takes an allocation */
#define SEGMENT_SPARES_MAX 4u          /* released segments kept for later */
#define FIRST_BYTES_MAX    MIB         /* of the first file of a new log */
#define DELETE_BYTES_MAX   (64 * KIB)  /* room that is kept for deletes, and */
#define DELETE_SHARE       16u         /* at most this part of the last segment */

struct wal {
    struct wal_config config;
    struct segment_dir dir;
    char path[SEGMENT_PATH_MAX];

    pthread_mutex_t lock;   /* guards what follows, up to the atomics */
    pthread_cond_t staged;  /* for the committer: the active batch has records, or stop */
    pthread_cond_t prepare; /* for the preparer: room is wanted, or stop */
    pthread_cond_t flushed; /* for wal_flush: a batch was committed, or the log failed */
    struct batch batches[2];
    struct batch *active; /* being filled; the other one is written or idle */
    log_pos room_end;     /* end of the chain: records are accepted up to here */
    uint64_t last_bytes;  /* of log that the last segment holds: as much is kept ahead */
    log_pos room_wanted;  /* what a refused record asked for; 0: nothing */
    int room_error;       /* of the last attempt that was asked for; 0: it succeeded */
    bool room_paused;     /* an attempt failed; wait until room is asked for or released */
    bool stop;
    struct list spares;   /* struct segment, released */
    unsigned holds;       /* wal_hold without wal_unhold so far */
    log_pos held_release; /* what wal_release was told meanwhile; 0: nothing */
    unsigned spare_count;

    struct chain chain;

    /* The committer's. */
    struct chain_writer writer;
    struct histogram commit_us; /* see struct wal_stats, likewise the next two */
    struct histogram commit_records;
    struct counter written_bytes;

    /* Atomics. */
    log_pos next;    /* position of the next record; changed under the lock */
    log_pos durable; /* changed by the committer alone */
    int error;       /* what made the log fail; 0: it works */

    bool threads_started;
    pthread_t committer;
    pthread_t preparer;
};

log_pos wal_durable(const struct wal *w)
{
    return __atomic_load_n(&w->durable, __ATOMIC_ACQUIRE);
}

int wal_error(const struct wal *w)
{
    return __atomic_load_n(&w->error, __ATOMIC_ACQUIRE);
}

bool wal_failed(const struct wal *w)
{
    return wal_error(w) != 0;
}

uint64_t wal_bytes_since(const struct wal *w, log_pos position)
{
    log_pos next = __atomic_load_n(&w->next, __ATOMIC_RELAXED);
    return next > position ? next - position : 0;
}

static void give_notice(struct wal *w)
{
    if (w->config.notice) {
        w->config.notice(w->config.notice_context);
    }
}

/* The log has failed. Blocks of batches that will never be written are let go by wal_close. */
static void fail(struct wal *w, int error)
{
    assert(error < 0);
    pthread_mutex_lock(&w->lock);
    if (w->error == 0) {
        __atomic_store_n(&w->error, error, __ATOMIC_RELEASE);
    }
    pthread_cond_signal(&w->prepare);
    pthread_cond_signal(&w->staged);
    pthread_cond_broadcast(&w->flushed);
    pthread_mutex_unlock(&w->lock);
    give_notice(w);
}

/* Staging. */

/* A record on its way into a batch. */
struct staging {
    const struct record *record;
    struct slice head;
    struct slice body;
    struct block *block; /* that holds the body; NULL when it is to be copied */
    uint64_t payload_len;
    uint64_t total; /* bytes in the log, frame and padding included */
    uint32_t payload_crc;
    bool frees; /* see record_frees */
};

static void staging_init(struct staging *g, const struct record *r, struct block *block,
                         const char *head, size_t head_len)
{
    g->record = r;
    g->head = (struct slice){head, head_len};
    g->body = record_body(r);
    g->block = g->body.len > BODY_COPY_MAX ? block : NULL;
    g->payload_len = head_len + g->body.len;
    assert(g->payload_len <= UINT32_MAX);
    uint64_t bytes = RECORD_FRAME_BYTES + g->payload_len;
    g->total = (bytes + RECORD_ALIGN - 1) / RECORD_ALIGN * RECORD_ALIGN;
    g->payload_crc = crc32c(crc32c(0, head, head_len), g->body.ptr, g->body.len);
    g->frees = record_frees(r);
}

/* Asks the preparer for room for `total` more bytes. */
static int ask_for_room(struct wal *w, uint64_t total)
{
    int rc = w->room_error ? w->room_error : ERR_AGAIN;
    if (w->room_wanted < w->next + total) {
        w->room_wanted = w->next + total;
    }
    w->room_error = 0;
    w->room_paused = false;
    pthread_cond_signal(&w->prepare);
    return rc;
}

/* Room that only deletes may use, for they are what empties a full disk. */
static uint64_t delete_room(const struct wal *w)
{
    uint64_t share = w->last_bytes / DELETE_SHARE / RECORD_ALIGN * RECORD_ALIGN;
    return share < DELETE_BYTES_MAX ? share : DELETE_BYTES_MAX;
}

/* Whether the record may be staged; with the lock held. */
static int admit(struct wal *w, const struct staging *g)
{
    if (w->error || w->stop) {
        return w->error ? ERR_FAILED : ERR_STOPPING;
    }
    uint64_t waiting = w->next - wal_durable(w);
    if (waiting > 0 && waiting + g->total > w->config.staged_bytes_max) {
        return ERR_BUSY;
    }
    uint64_t wanted = g->total + (g->frees ? 0 : delete_room(w));
    if (w->next + wanted > w->room_end) {
        return ask_for_room(w, wanted);
    }
    size_t copied = (size_t)g->total - (g->block ? g->body.len : 0);
    return batch_reserve(w->active, copied);
}

/* Puts an admitted record into the active batch; with the lock held. */
static void put_record(struct wal *w, const struct staging *g)
{
    struct batch *b = w->active;
    uint8_t frame[RECORD_FRAME_BYTES];
    record_encode_frame(&(struct record_frame){.payload_len = (uint32_t)g->payload_len,
                                               .payload_crc = g->payload_crc,
                                               .epoch = w->config.epoch,
                                               .lsn = w->next,
                                               .id = g->record->id,
                                               .type = g->record->type},
                        frame);
    bool first = b->len == 0;
    if (first) {
        b->start = w->next;
    }
    batch_put(b, frame, sizeof(frame));
    batch_put(b, g->head.ptr, g->head.len);
    if (g->block) {
        batch_put_block(b, g->body, g->block);
    } else {
        batch_put(b, g->body.ptr, g->body.len);
    }
    batch_put_zeros(b, (size_t)(g->total - RECORD_FRAME_BYTES - g->payload_len));
    __atomic_store_n(&w->next, w->next + g->total, __ATOMIC_RELAXED);
    b->end = w->next;
    b->records++;
    if (first) {
        pthread_cond_signal(&w->staged);
    }
    if (w->room_end - w->next < w->last_bytes && !w->room_paused) {
        pthread_cond_signal(&w->prepare);
    }
}

int wal_stage(struct wal *w, const struct record *r, struct block *body_block, log_pos *ret_end)
{
    char stack[HEAD_STACK_BYTES];
    size_t head_len = record_head_bytes(r);
    char *head = head_len <= sizeof(stack) ? stack : malloc(head_len);
    if (!head) {
        return ERR_NOMEM;
    }
    record_encode_head(r, head);
    struct staging g;
    staging_init(&g, r, body_block, head, head_len);
    pthread_mutex_lock(&w->lock);
    int rc = admit(w, &g);
    if (rc == 0) {
        put_record(w, &g);
        *ret_end = w->next;
    }
    pthread_mutex_unlock(&w->lock);
    if (head != stack) {
        free(head);
    }
    return rc;
}

/* Committing. */

/* Takes the active batch for writing; with the lock held. */
static struct batch *swap_batches(struct wal *w)
{
    struct batch *b = w->active;
    w->active = b == &w->batches[0] ? &w->batches[1] : &w->batches[0];
    assert(w->active->len == 0);
    return b;
}

static int write_batch(struct wal *w, const struct batch *b)
{
    assert(b->start == w->durable);
    chain_writer_init(&w->writer, &w->chain, b->start);
    batch_write(b, &w->writer);
    int rc = chain_writer_flush(&w->writer);
    assert(rc != 0 || w->writer.pos == b->end);
    if (rc == 0 && w->config.durability == DURABILITY_SYNC) {
        rc = chain_sync(&w->chain, b->start, b->end);
    }
    return rc;
}

/* Writes and clears a batch, without the lock. */
static int commit_batch(struct wal *w, struct batch *b)
{
    struct sys *sys = w->config.sys;
    uint64_t begun_us = sys->mono_us(sys->context);
    int rc = write_batch(w, b);
    uint64_t took_us = sys->mono_us(sys->context) - begun_us;
    log_pos end = b->end;
    if (rc == 0) {
        histogram_observe(&w->commit_us, took_us);
        histogram_observe(&w->commit_records, b->records);
        counter_add(&w->written_bytes, end - b->start);
    }
    batch_clear(b);
    if (rc) {
        fail(w, rc);
        return ERR_FAILED;
    }
    __atomic_store_n(&w->durable, end, __ATOMIC_RELEASE);
    give_notice(w);
    return 0;
}

static void *committer_main(void *context)
{
    struct wal *w = context;
    pthread_mutex_lock(&w->lock);
    for (;;) {
        while (w->active->len == 0 && !w->stop && !w->error) {
            pthread_cond_wait(&w->staged, &w->lock);
        }
        if (w->active->len == 0 || w->error) {
            break;
        }
        struct batch *b = swap_batches(w);
        pthread_mutex_unlock(&w->lock);
        (void)commit_batch(w, b); /* A failure is in w->error and ends the loop. */
        pthread_mutex_lock(&w->lock);
        pthread_cond_broadcast(&w->flushed);
    }
    pthread_mutex_unlock(&w->lock);
    return NULL;
}

/* Making room. */

/* Whether the preparer has something to do; with the lock held. */
static bool wants_room(const struct wal *w)
{
    if (w->error || w->room_paused) {
        return false;
    }
    return w->room_end < w->room_wanted || w->room_end - w->next < w->last_bytes;
}

static struct segment *take_spare(struct wal *w)
{
    struct list *first = list_first(&w->spares);
    if (!first) {
        return NULL;
    }
    list_remove(first);
    w->spare_count--;
    return container_of(first, struct segment, link);
}

/* Keeps a segment that is not in use for later, or removes it. */
static void keep_or_remove(struct wal *w, struct segment *s)
{
    bool usual = s->bytes + SEGMENT_HEADER_BYTES == w->dir.segment_bytes;
    bool whole = s->file_bytes >= w->dir.segment_bytes;
    pthread_mutex_lock(&w->lock);
    bool keep = usual && whole && w->spare_count < SEGMENT_SPARES_MAX;
    if (keep) {
        list_append(&w->spares, &s->link);
        w->spare_count++;
    }
    pthread_mutex_unlock(&w->lock);
    if (!keep) {
        segment_remove(&w->dir, s);
    }
}

static uint64_t spare_bytes(struct wal *w)
{
    pthread_mutex_lock(&w->lock);
    uint64_t bytes = w->spare_count * w->dir.segment_bytes;
    pthread_mutex_unlock(&w->lock);
    return bytes;
}

/* Asks whether a segment of `bytes` at `start` may be filled. */
static bool may_grow(const struct wal *w, uint64_t bytes, uint64_t file_bytes, uint64_t spare_bytes,
                     log_pos start)
{
    const struct wal_config *c = &w->config;
    return !c->may_grow || c->may_grow(c->notice_context, file_bytes, spare_bytes, start + bytes);
}

/* One more segment at `start`, from a spare, which is kept when it may not be used, or a new file.
 * New files double until they have their full size, so that a server with little to write takes
 * little room. */
static int make_segment(struct wal *w, struct segment *spare, log_pos start, uint64_t last_bytes,
                        struct segment **ret_segment)
{
    if (!spare) {
        struct segment_dir dir = w->dir;
        uint64_t doubled = 2 * (last_bytes + SEGMENT_HEADER_BYTES);
        dir.segment_bytes = doubled < dir.segment_bytes ? doubled : dir.segment_bytes;
        if (!may_grow(w, dir.segment_bytes, dir.segment_bytes, 0, start)) {
            return ERR_NOSPC;
        }
        return segment_create(&dir, start, ret_segment);
    }
    if (!may_grow(w, spare->bytes, 0, spare_bytes(w), start)) {
        keep_or_remove(w, spare);
        return ERR_NOSPC;
    }
    int rc = segment_recycle(&w->dir, spare, start);
    if (rc) {
        segment_close(&w->dir, spare);
        return ERR_IO; /* whatever it was, it must not be tried again: see segment_recycle */
    }
    *ret_segment = spare;
    return 0;
}

/* Takes note of how an attempt ended; with the lock held. True when the log must fail. */
static bool note_attempt(struct wal *w, int rc, bool asked)
{
    if (rc == 0) {
        log_pos end = chain_end(&w->chain);
        w->last_bytes = end - w->room_end;
        w->room_end = end;
        if (w->room_wanted <= w->room_end) {
            w->room_wanted = 0;
        }
        return false;
    }
    if (rc == ERR_IO || rc == ERR_PERM || rc == ERR_CORRUPT) {
        return true;
    }
    /* Space, memory or descriptors may come back, and nothing was half done. */
    w->room_paused = true;
    w->room_wanted = 0;
    w->room_error = asked ? rc : 0;
    return false;
}

/* One attempt; the lock is held on entry and exit, not meanwhile. */
static void prepare(struct wal *w)
{
    struct segment *spare = take_spare(w);
    log_pos start = w->room_end;
    uint64_t last_bytes = w->last_bytes;
    pthread_mutex_unlock(&w->lock);
    struct segment *s = NULL;
    int rc = make_segment(w, spare, start, last_bytes, &s);
    if (rc == 0) {
        chain_append(&w->chain, s);
    }
    pthread_mutex_lock(&w->lock);
    bool asked = w->room_wanted > 0;
    bool failed = note_attempt(w, rc, asked);
    bool done = asked && w->room_wanted == 0;
    pthread_mutex_unlock(&w->lock);
    if (failed) {
        fail(w, rc);
    } else if (done) {
        give_notice(w);
    }
    pthread_mutex_lock(&w->lock);
}

static void *preparer_main(void *context)
{
    struct wal *w = context;
    pthread_mutex_lock(&w->lock);
    while (!w->stop) {
        if (wants_room(w)) {
            prepare(w);
        } else {
            pthread_cond_wait(&w->prepare, &w->lock);
        }
    }
    pthread_mutex_unlock(&w->lock);
    return NULL;
}

/* What the two threads do, on the caller's; a failure is in w->error. */
static void commit_all(struct wal *w)
{
    pthread_mutex_lock(&w->lock);
    while (w->active->len > 0 && !w->error) {
        struct batch *b = swap_batches(w);
        pthread_mutex_unlock(&w->lock);
        (void)commit_batch(w, b); /* A failure is in w->error and ends the loop. */
        pthread_mutex_lock(&w->lock);
    }
    while (wants_room(w)) {
        prepare(w);
    }
    pthread_mutex_unlock(&w->lock);
}

int wal_commit_now(struct wal *w)
{
    assert(!w->threads_started);
    commit_all(w);
    return wal_failed(w) ? ERR_FAILED : 0;
}

int wal_flush(struct wal *w)
{
    if (!w->threads_started) {
        return wal_commit_now(w);
    }
    pthread_mutex_lock(&w->lock);
    log_pos end = w->next;
    while (wal_durable(w) < end && !w->error) {
        pthread_cond_wait(&w->flushed, &w->lock);
    }
    int rc = wal_durable(w) < end ? ERR_FAILED : 0;
    pthread_mutex_unlock(&w->lock);
    return rc;
}

bool wal_drop_spares(struct wal *w)
{
    for (bool any = false;; any = true) {
        pthread_mutex_lock(&w->lock);
        struct segment *s = take_spare(w);
        pthread_mutex_unlock(&w->lock);
        if (!s) {
            return any;
        }
        segment_remove(&w->dir, s);
    }
}

void wal_hold(struct wal *w)
{
    pthread_mutex_lock(&w->lock);
    w->holds++;
    pthread_mutex_unlock(&w->lock);
}

void wal_unhold(struct wal *w)
{
    pthread_mutex_lock(&w->lock);
    assert(w->holds > 0);
    log_pos position = --w->holds == 0 ? w->held_release : 0;
    w->held_release = w->holds == 0 ? 0 : w->held_release;
    pthread_mutex_unlock(&w->lock);
    if (position > 0) {
        wal_release(w, position);
    }
}

/* Whether the segments must stay; then the position is remembered. */
static bool held(struct wal *w, log_pos position)
{
    pthread_mutex_lock(&w->lock);
    bool is = w->holds > 0;
    if (is && w->held_release < position) {
        w->held_release = position;
    }
    pthread_mutex_unlock(&w->lock);
    return is;
}

void wal_release(struct wal *w, log_pos position)
{
    assert(position <= wal_durable(w));
    if (wal_failed(w)) {
        return; /* The files stay as they are for whoever looks into it. */
    }
    for (bool keep = held(w, position); !keep;) {
        struct segment *s = chain_take_before(&w->chain, position);
        if (!s) {
            break;
        }
        keep_or_remove(w, s);
    }
    pthread_mutex_lock(&w->lock);
    w->room_paused = false;
    pthread_cond_signal(&w->prepare);
    pthread_mutex_unlock(&w->lock);
}

void wal_get_stats(struct wal *w, struct wal_stats *ret_stats)
{
    log_pos durable = wal_durable(w); /* before `next`, which it never passes */
    *ret_stats = (struct wal_stats){.written_bytes = counter_get(&w->written_bytes),
                                    .staged_bytes = wal_bytes_since(w, durable),
                                    .file_bytes = chain_file_bytes(&w->chain) + spare_bytes(w)};
    histogram_add_to(&w->commit_us, &ret_stats->commit_us);
    histogram_add_to(&w->commit_records, &ret_stats->commit_records);
}

/* Opening and closing. */

static int check_config(const struct wal_config *config, struct errmsg *msg)
{
    assert(config->durability != DURABILITY_MEMORY);
    if (strlen(config->dir) >= SEGMENT_PATH_MAX - 100) {
        return err_set(msg, ERR_INVALID, "the path of the log is longer than %u bytes",
                       SEGMENT_PATH_MAX - 100);
    }
    return 0;
}

static void wal_init(struct wal *w, const struct wal_config *config)
{
    w->config = *config;
    memcpy(w->path, config->dir, strlen(config->dir) + 1);
    w->dir = (struct segment_dir){
        .sys = config->sys,
        .path = w->path,
        .segment_bytes = (config->segment_bytes + SEGMENT_HEADER_BYTES - 1) / SEGMENT_HEADER_BYTES *
                         SEGMENT_HEADER_BYTES,
        .zero_fill = config->durability == DURABILITY_SYNC};
    if (w->dir.segment_bytes < 2 * SEGMENT_HEADER_BYTES) {
        w->dir.segment_bytes = 2 * SEGMENT_HEADER_BYTES;
    }
    memcpy(w->dir.uuid, config->uuid, sizeof(w->dir.uuid));
    w->config.dir = w->path;
    pthread_mutex_init(&w->lock, NULL);
    pthread_cond_init(&w->staged, NULL);
    pthread_cond_init(&w->prepare, NULL);
    pthread_cond_init(&w->flushed, NULL);
    batch_init(&w->batches[0]);
    batch_init(&w->batches[1]);
    w->active = &w->batches[0];
    list_init(&w->spares);
    chain_init(&w->chain, &w->dir);
}

static void wal_free(struct wal *w)
{
    batch_finish(&w->batches[0]);
    batch_finish(&w->batches[1]);
    chain_finish(&w->chain);
    for (struct segment *s = take_spare(w); s; s = take_spare(w)) {
        segment_close(&w->dir, s);
    }
    pthread_cond_destroy(&w->flushed);
    pthread_cond_destroy(&w->prepare);
    pthread_cond_destroy(&w->staged);
    pthread_mutex_destroy(&w->lock);
    free(w);
}

/* Makes the first segment of a new log, so that a directory is complete before anything is
 * answered: a small one, since the server waits for it. A log with a past may start without room:
 * reading must work on a full disk. */
static int make_first(struct wal *w, struct errmsg *msg)
{
    if (!list_empty(&w->chain.segments)) {
        return 0;
    }
    struct segment_dir small = w->dir;
    if (small.segment_bytes > FIRST_BYTES_MAX) {
        small.segment_bytes = FIRST_BYTES_MAX;
    }
    struct segment *s = NULL;
    int rc = segment_create(&small, w->config.start, &s);
    if (rc) {
        return err_set(msg, rc, "cannot make a log file of %llu bytes in %s: %s",
                       (unsigned long long)small.segment_bytes, w->path, err_file_text(rc));
    }
    chain_append(&w->chain, s);
    return 0;
}

/* Finds the segments, replays, cuts. */
static int recover(struct wal *w, wal_replay_fn replay, void *context,
                   struct wal_report *ret_report, struct errmsg *msg)
{
    struct list spares;
    list_init(&spares);
    struct recovery r = {
        .config = &w->config, .dir = &w->dir, .chain = &w->chain, .spares = &spares};
    int rc = recovery_scan(&r, msg);
    rc = rc ? rc : make_first(w, msg);
    rc = rc ? rc : recovery_replay(&r, replay, context, msg);
    LIST_FOR_EACH(node, &spares)
    {
        list_remove(node);
        struct segment *s = container_of(node, struct segment, link);
        if (rc) {
            segment_close(&w->dir, s);
        } else {
            keep_or_remove(w, s);
        }
    }
    if (rc == 0) {
        w->next = r.end;
        w->durable = r.end;
        w->room_end = chain_end(&w->chain);
        w->last_bytes = container_of(w->chain.segments.prev, struct segment, link)->bytes;
        *ret_report = r.report;
    }
    return rc;
}

static int start_threads(struct wal *w, struct errmsg *msg)
{
    if (!w->config.threads) {
        return 0;
    }
    if (pthread_create(&w->committer, NULL, committer_main, w) != 0) {
        return err_set(msg, ERR_AGAIN, "cannot start the log's threads");
    }
    if (pthread_create(&w->preparer, NULL, preparer_main, w) != 0) {
        pthread_mutex_lock(&w->lock);
        w->stop = true;
        pthread_cond_signal(&w->staged);
        pthread_mutex_unlock(&w->lock);
        pthread_join(w->committer, NULL);
        return err_set(msg, ERR_AGAIN, "cannot start the log's threads");
    }
    w->threads_started = true;
    return 0;
}

int wal_open(const struct wal_config *config, wal_replay_fn replay, void *replay_context,
             struct wal_report *ret_report, struct wal **ret_wal, struct errmsg *msg)
{
    int rc = check_config(config, msg);
    if (rc) {
        return rc;
    }
    struct wal *w = calloc(1, sizeof(*w));
    if (!w) {
        return err_set(msg, ERR_NOMEM, "%s", err_text(ERR_NOMEM));
    }
    wal_init(w, config);
    struct wal_report report;
    rc = recover(w, replay, replay_context, &report, msg);
    rc = rc ? rc : start_threads(w, msg);
    if (rc) {
        wal_free(w);
        return rc;
    }
    *ret_report = report;
    *ret_wal = w;
    return 0;
}

void wal_close(struct wal *w)
{
    if (!w) {
        return;
    }
    if (w->threads_started) {
        pthread_mutex_lock(&w->lock);
        w->stop = true;
        pthread_cond_signal(&w->staged);
        pthread_cond_signal(&w->prepare);
        pthread_mutex_unlock(&w->lock);
        pthread_join(w->committer, NULL);
        pthread_join(w->preparer, NULL);
    } else {
        commit_all(w);
    }
    wal_free(w);
}
