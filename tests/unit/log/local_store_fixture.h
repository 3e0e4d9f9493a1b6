/* The whole store under a stand-in for the streams, on a disk that fails and crashes: shared by the
 * tests of its two files, and included behind either of them. */
#ifndef ARBE_TESTS_UNIT_LOG_LOCAL_STORE_FIXTURE_H
#define ARBE_TESTS_UNIT_LOG_LOCAL_STORE_FIXTURE_H

#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/limits.h"
#include "log/local_store.h"
#include "log/marks.h"
#include "sim/fakedisk.h"
#include "unit/base/unit.h"

#define SLOTS     4u
#define BYTES_MAX 200000u
#define DIR_PATH  "/arbe"
#define RANGE_MAX 16384u /* small ranges, so that a stream has several extents */

/* The least that can stand in the place of the streams: named runs of bytes whose value follows
 * from their place, deleted and made anew under new ids. */
struct slot {
    stream_id id;           /* 0: there is none */
    uint64_t staged;        /* bytes given to the log */
    uint64_t durable;       /* bytes that it confirmed */
    uint64_t flushed;       /* bytes in extents */
    uint64_t pending_flush; /* bytes in extents once the checkpoint succeeds */
    log_pos applied;
    stream_id dropped; /* an earlier stream that the next checkpoint is to drop; 0: none */
    stream_id pending_drop;
    bool dirty;
};

/* What clients were told, by slot. */
struct promise {
    stream_id id;   /* acknowledged; 0: acknowledged as deleted, or never there */
    uint64_t len;   /* acknowledged */
    bool in_flight; /* a delete or create was staged and not acknowledged */
};

struct fixture {
    struct fakedisk *disk;
    struct sys real; /* instead of the disk's, when set */
    bool use_real;
    char catalog[64];
    char dir[64];
    enum durability durability;
    bool threads;
    struct store *store;
    struct store_report report;
    struct errmsg msg;
    struct slot slots[SLOTS];
    struct promise promises[SLOTS];
    pthread_mutex_t lock;   /* guards slots where there are threads */
    pthread_cond_t changed; /* a notice or the end of a checkpoint */
    unsigned checkpoints;   /* that succeeded */
    unsigned failures;      /* that did not */
    unsigned replaced;      /* extents, by compaction */
    uint64_t log_bytes_max; /* 0: any number */
    unsigned told[3];       /* sentences for the operator, by enum trouble */
    char sentence[512];     /* the last one */
};

static inline char pattern(stream_id id, uint64_t at)
{
    return (char)(id * 37 + at * 11 + at / 251);
}

static inline void fill(stream_id id, uint64_t from, char *out, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        out[i] = pattern(id, from + i);
    }
}

static inline unsigned slot_of_name(struct slice name)
{
    assert_int_equal(name.len, 2);
    return (unsigned)(name.ptr[1] - '0');
}

static const char *slot_name(unsigned k)
{
    static const char *const names[SLOTS] = {"s0", "s1", "s2", "s3"};
    return names[k];
}

static inline struct slot *find_slot(struct fixture *f, stream_id id)
{
    for (unsigned k = 0; k < SLOTS; k++) {
        if (f->slots[k].id == id) {
            return &f->slots[k];
        }
    }
    return NULL;
}

/* Takes a stream from the catalog; false when it is not there. */
static inline bool load_slot(struct fixture *f, stream_id id)
{
    struct catalog_stream s;
    int rc = f->store->ops->load(f->store, id, &s);
    if (rc == ERR_NOTFOUND) {
        return false;
    }
    assert_int_equal(rc, 0);
    struct slot *slot = &f->slots[slot_of_name(s.meta.name)];
    *slot = (struct slot){.id = id,
                          .staged = s.meta.tail,
                          .durable = s.meta.tail,
                          .flushed = s.meta.tail,
                          .applied = s.meta.applied,
                          .dropped = slot->id && slot->id != id ? slot->id : slot->dropped};
    catalog_stream_finish(&s);
    return true;
}

static inline void on_opening(void *context, struct store *store,
                              const struct catalog_totals *totals)
{
    ((struct fixture *)context)->store = totals ? store : NULL; /* they always come */
}

static inline void replay_append(struct slot *slot, const struct record *r, log_pos end)
{
    if (end <= slot->applied) {
        return;
    }
    assert_int_equal(r->append.offset, slot->durable);
    for (size_t i = 0; i < r->append.body.len; i++) {
        assert_int_equal(r->append.body.ptr[i], pattern(r->id, slot->durable + i));
    }
    slot->durable += r->append.body.len;
    slot->staged = slot->durable;
    slot->applied = end;
    slot->dirty = true;
}

static inline int on_record(void *context, const struct record *r, log_pos end)
{
    struct fixture *f = context;
    struct slot *slot = find_slot(f, r->id);
    if (!slot && load_slot(f, r->id)) {
        slot = find_slot(f, r->id);
    }
    if (r->type == RECORD_CREATE && !slot) {
        struct slot *fresh = &f->slots[slot_of_name(r->create.name)];
        *fresh = (struct slot){
            .id = r->id, .applied = end, .dirty = true, .dropped = fresh->dropped};
    } else if (r->type == RECORD_APPEND && slot) {
        replay_append(slot, r, end);
    } else if (r->type == RECORD_DELETE && slot) {
        *slot = (struct slot){.dropped = r->id, .dirty = true};
    }
    return 0; /* What is left speaks of a stream that a checkpoint has dropped already. */
}

static inline void on_any_notice(void *context)
{
    struct fixture *f = context;
    pthread_mutex_lock(&f->lock);
    pthread_cond_broadcast(&f->changed);
    pthread_mutex_unlock(&f->lock);
}

static inline int add_slot(struct slot *slot, unsigned k, struct checkpoint *c)
{
    struct checkpoint_range ranges[BYTES_MAX / RANGE_MAX + 1];
    struct slice pieces[BYTES_MAX / RANGE_MAX + 1];
    char marks[BYTES_MAX / RANGE_MAX + 1][VARINT_BYTES_MAX];
    static char bytes[BYTES_MAX];
    size_t count = 0;
    fill(slot->id, 0, bytes, slot->durable);
    for (uint64_t at = slot->flushed; at < slot->durable; count++) {
        uint64_t len = slot->durable - at < RANGE_MAX ? slot->durable - at : RANGE_MAX;
        pieces[count] = (struct slice){bytes + at, len};
        size_t mark_len = marks_put(marks[count], len, true);
        ranges[count] = (struct checkpoint_range){.start = at,
                                                  .pieces = &pieces[count],
                                                  .piece_count = 1,
                                                  .marks = {marks[count], mark_len}};
        at += len;
    }
    slot->pending_flush = slot->durable;
    const struct checkpoint_item item = {.id = slot->id,
                                         .meta = {.id = slot->id,
                                                  .applied = slot->applied,
                                                  .name = slice_of(slot_name(k)),
                                                  .content_type = SLICE("text/plain"),
                                                  .ttl_seconds = UINT64_MAX,
                                                  .expires_at_ms = INT64_MAX,
                                                  .tail = slot->durable},
                                         .ranges = ranges,
                                         .range_count = count};
    return checkpoint_add(c, &item);
}

/* Dirty streams in ascending id. */
static inline int collect_slots(struct fixture *f, struct checkpoint *c)
{
    stream_id last = 0;
    for (;;) {
        struct slot *next = NULL;
        stream_id next_id = UINT64_MAX;
        for (unsigned k = 0; k < SLOTS; k++) {
            struct slot *s = &f->slots[k];
            if (s->dropped > last && s->dropped < next_id) {
                next = s;
                next_id = s->dropped;
            }
            if (s->dirty && s->id > last && s->id < next_id) {
                next = s;
                next_id = s->id;
            }
        }
        if (!next) {
            return 0;
        }
        int rc = 0;
        if (next->dropped == next_id) {
            next->pending_drop = next_id;
            rc = checkpoint_add(c, &(struct checkpoint_item){.id = next_id, .dropped = true});
        } else {
            rc = add_slot(next, (unsigned)(next - f->slots), c);
        }
        if (rc) {
            return rc;
        }
        last = next_id;
    }
}

static inline int on_collect(void *context, struct checkpoint *c)
{
    struct fixture *f = context;
    pthread_mutex_lock(&f->lock);
    int rc = collect_slots(f, c);
    pthread_mutex_unlock(&f->lock);
    return rc;
}

static inline void on_checkpointed(void *context, int code)
{
    struct fixture *f = context;
    pthread_mutex_lock(&f->lock);
    f->checkpoints += code == 0;
    f->failures += code != 0;
    for (unsigned k = 0; k < SLOTS && code == 0; k++) {
        struct slot *s = &f->slots[k];
        if (s->pending_drop && s->pending_drop == s->dropped) {
            s->dropped = 0;
        }
        if (s->dirty) {
            assert_int_equal(s->flushed, s->id ? s->pending_flush : 0);
            s->dirty = s->durable > s->flushed;
        }
    }
    pthread_cond_broadcast(&f->changed);
    pthread_mutex_unlock(&f->lock);
}

static inline void on_extent_added(void *context, stream_id id, const struct extent *e)
{
    struct fixture *f = context;
    pthread_mutex_lock(&f->lock);
    struct slot *s = find_slot(f, id);
    assert_non_null(s);
    assert_int_equal(e->start, s->flushed);
    s->flushed += e->len;
    pthread_mutex_unlock(&f->lock);
}

static inline void on_extent_replaced(void *context, stream_id id, const struct extent *e)
{
    struct fixture *f = context;
    (void)id; /* there may be no slot for it any more */
    (void)e;  /* read through the catalog */
    f->replaced++;
}

/* Where the catalogs of this program are. */
static char base_dir[32];

static inline int remove_path(const char *path, const struct stat *st, int kind, struct FTW *ftw)
{
    (void)st;
    (void)kind;
    (void)ftw;
    return remove(path);
}

/* Also when a test ended in the middle, and left its catalog. */
static inline void remove_base_dir(void)
{
    (void)nftw(base_dir, remove_path, 8, FTW_DEPTH | FTW_PHYS);
}

static inline void make_base_dir(void)
{
    /* Shared memory where there is some: these catalogs need not outlive the test. */
    const char *parent = access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp";
    (void)snprintf(base_dir, sizeof(base_dir), "%s/arbe-store-XXXXXX", parent);
    assert_non_null(mkdtemp(base_dir));
    assert_int_equal(atexit(remove_base_dir), 0);
}

static inline void fixture_init(struct fixture *f, uint64_t seed)
{
    *f = (struct fixture){.durability = DURABILITY_SYNC, .disk = fakedisk_create(seed)};
    fakedisk_add_dir(f->disk, "/");
    pthread_mutex_init(&f->lock, NULL);
    pthread_cond_init(&f->changed, NULL);
    (void)snprintf(f->dir, sizeof(f->dir), DIR_PATH);
    if (base_dir[0] == '\0') {
        make_base_dir();
    }
    (void)snprintf(f->catalog, sizeof(f->catalog), "%s/XXXXXX", base_dir);
    assert_non_null(mkdtemp(f->catalog));
}

static inline void on_told(void *context, enum trouble trouble, const char *sentence)
{
    struct fixture *f = context;
    pthread_mutex_lock(&f->lock);
    f->told[trouble]++;
    (void)snprintf(f->sentence, sizeof(f->sentence), "%s", sentence);
    pthread_mutex_unlock(&f->lock);
}

static inline int open_store(struct fixture *f)
{
    struct store_config config = {.dir = f->dir,
                                  .durability = f->durability,
                                  .segment_bytes = 16384,
                                  .checkpoint_bytes = f->threads ? 20000 : UINT64_MAX,
                                  .log_bytes_max = f->log_bytes_max,
                                  .staged_bytes_max = MIB,
                                  .sys = f->use_real ? &f->real : fakedisk_sys(f->disk),
                                  .threads = f->threads,
                                  .catalog_dir = f->use_real ? NULL : f->catalog};
    struct store_events events = {.context = f,
                                  .opening = on_opening,
                                  .replay = on_record,
                                  .notice = on_any_notice,
                                  .collect = on_collect,
                                  .checkpointed = on_checkpointed,
                                  .extent_added = on_extent_added,
                                  .extent_replaced = on_extent_replaced,
                                  .trouble = on_told};
    memset(f->slots, 0, sizeof(f->slots));
    f->store = NULL;
    struct store *store = NULL;
    int rc = local_store_open(&config, &events, &store, &f->report, &f->msg);
    f->store = store;
    return rc;
}

/* Ends like a killed process: nothing more is written. */
static inline void kill_store(struct fixture *f)
{
    if (f->store) {
        struct local_store *s = local_of(f->store);
        if (!fakedisk_crashed(f->disk)) {
            fakedisk_fail(f->disk, CALL_CHANGES, 0, ERR_IO, true);
        }
        local_store_free(s);
        f->store = NULL;
    }
    fakedisk_restart(f->disk);
}

static inline void remove_catalog(struct fixture *f)
{
    char path[128];
    (void)snprintf(path, sizeof(path), "%s/data.mdb", f->catalog);
    (void)unlink(path); /* Missing when it was never opened. */
    (void)snprintf(path, sizeof(path), "%s/lock.mdb", f->catalog);
    (void)unlink(path); /* Missing when it was never opened. */
    assert_int_equal(rmdir(f->catalog), 0);
}

static inline void fixture_finish(struct fixture *f)
{
    kill_store(f);
    fakedisk_destroy(f->disk);
    remove_catalog(f);
}

/* Stages, making room when that is all it takes. */
static inline int stage(struct fixture *f, const struct record *r, log_pos *ret_end)
{
    int rc = f->store->ops->stage(f->store, r, NULL, ret_end);
    for (int i = 0; i < 3 && rc == ERR_AGAIN; i++) {
        (void)!f->store->ops->commit(f->store);
        rc = f->store->ops->stage(f->store, r, NULL, ret_end);
    }
    return rc;
}

static inline int create(struct fixture *f, unsigned k)
{
    struct slot *s = &f->slots[k];
    assert_int_equal(s->id, 0);
    struct record r = {.type = RECORD_CREATE,
                       .id = f->store->ops->next_id(f->store),
                       .create = {.name = slice_of(slot_name(k)),
                                  .ttl_seconds = UINT64_MAX,
                                  .expires_at_ms = INT64_MAX}};
    log_pos end = 0;
    int rc = stage(f, &r, &end);
    if (rc == 0) {
        f->promises[k].in_flight = true;
        *s = (struct slot){.id = r.id, .applied = end, .dirty = true, .dropped = s->dropped};
    }
    return rc;
}

static inline int append(struct fixture *f, unsigned k, size_t len)
{
    static char body[BYTES_MAX];
    struct slot *s = &f->slots[k];
    char mark[VARINT_BYTES_MAX];
    fill(s->id, s->staged, body, len);
    struct record r = {.type = RECORD_APPEND,
                       .id = s->id,
                       .append = {.offset = s->staged,
                                  .marks = {mark, marks_put(mark, len, true)},
                                  .body = {body, len}}};
    log_pos end = 0;
    int rc = stage(f, &r, &end);
    if (rc == 0) {
        s->staged += len;
        s->applied = end;
        s->dirty = true;
    }
    return rc;
}

static inline int erase(struct fixture *f, unsigned k)
{
    struct slot *s = &f->slots[k];
    struct record r = {.type = RECORD_DELETE, .id = s->id};
    log_pos end = 0;
    int rc = stage(f, &r, &end);
    if (rc == 0) {
        f->promises[k].in_flight = true;
        *s = (struct slot){.dropped = r.id, .dirty = true};
    }
    return rc;
}

static inline int commit(struct fixture *f)
{
    int rc = f->store->ops->commit(f->store);
    for (unsigned k = 0; k < SLOTS && rc == 0; k++) {
        struct slot *s = &f->slots[k];
        s->durable = s->staged;
        f->promises[k] = (struct promise){.id = s->id, .len = s->durable};
    }
    return rc;
}

/* Everything that a store does, in some order; ends at the first error other than of a
 * checkpoint. */
static inline void run_scenario(struct fixture *f)
{
    if (open_store(f)) {
        return;
    }
    for (unsigned i = 0; i < 72; i++) {
        unsigned k = i % SLOTS;
        int rc = 0;
        if (f->slots[k].id == 0) {
            rc = create(f, k);
        } else if (i == 21 || i == 50) {
            rc = erase(f, k);
        } else {
            rc = append(f, k, 1 + i * 97 % 900);
        }
        if (rc || (i % 3 == 2 && commit(f))) {
            return;
        }
        if (i % 12 == 11) {
            (void)f->store->ops->checkpoint(f->store); /* may fail; the log has it all */
        }
    }
}

/* Reads a stream through the catalog and compares it. Returns its length. */
static inline uint64_t verify_extents(struct fixture *f, stream_id id)
{
    struct catalog_stream s;
    assert_int_equal(f->store->ops->load(f->store, id, &s), 0);
    static char data[BYTES_MAX];
    static char marks[BYTES_MAX];
    for (size_t i = 0; i < s.extent_count; i++) {
        const struct extent *e = &s.extents[i];
        assert_int_equal(f->store->ops->read_extent(f->store, e, data, marks), 0);
        for (size_t b = 0; b < e->len; b++) {
            assert_int_equal(data[b], pattern(id, e->start + b));
        }
        assert_true(marks_valid((struct slice){marks, e->marks_len}, e->len));
        assert_int_equal(f->store->ops->read_marks(f->store, e, marks), 0);
        assert_true(marks_valid((struct slice){marks, e->marks_len}, e->len));
    }
    uint64_t tail = s.meta.tail;
    catalog_stream_finish(&s);
    return tail;
}

/* Opens and compares with what was promised. */
static inline void verify(struct fixture *f)
{
    int rc = open_store(f);
    if (rc) {
        fail_msg("%s: %s", err_name(rc), f->msg.text);
    }
    for (unsigned k = 0; k < SLOTS; k++) {
        struct slot *s = &f->slots[k];
        struct promise *p = &f->promises[k];
        stream_id id = 0;
        bool named = f->store->ops->find(f->store, slice_of(slot_name(k)), &id) == 0;
        if (s->id == 0 && named && id != s->dropped) {
            assert_true(load_slot(f, id));
        }
        if (s->id) {
            s->flushed = 0;
            rc = f->store->ops->find(f->store, slice_of(slot_name(k)), &id);
            if (rc == 0 && id == s->id) {
                s->flushed = verify_extents(f, id);
            }
            assert_true(s->flushed <= s->durable);
        }
        if (!p->in_flight) {
            assert_int_equal(s->id, p->id);
        }
        if (s->id && s->id == p->id) {
            assert_true(s->durable >= p->len);
        }
        *p = (struct promise){.id = s->id, .len = s->durable};
    }
}

#endif
