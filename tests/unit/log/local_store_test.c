/* The whole store under a stand-in for the streams, on a disk that fails and crashes. */
#include "log/local_store.c"

#include <unistd.h>

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

static char pattern(stream_id id, uint64_t at)
{
    return (char)(id * 37 + at * 11 + at / 251);
}

static void fill(stream_id id, uint64_t from, char *out, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        out[i] = pattern(id, from + i);
    }
}

static unsigned slot_of_name(struct slice name)
{
    assert_int_equal(name.len, 2);
    return (unsigned)(name.ptr[1] - '0');
}

static const char *slot_name(unsigned k)
{
    static const char *const names[SLOTS] = {"s0", "s1", "s2", "s3"};
    return names[k];
}

static struct slot *find_slot(struct fixture *f, stream_id id)
{
    for (unsigned k = 0; k < SLOTS; k++) {
        if (f->slots[k].id == id) {
            return &f->slots[k];
        }
    }
    return NULL;
}

/* Takes a stream from the catalog; false when it is not there. */
static bool load_slot(struct fixture *f, stream_id id)
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

static void on_opening(void *context, struct store *store, const struct catalog_totals *totals)
{
    ((struct fixture *)context)->store = totals ? store : NULL; /* they always come */
}

static void replay_append(struct slot *slot, const struct record *r, log_pos end)
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

static int on_record(void *context, const struct record *r, log_pos end)
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

static void on_any_notice(void *context)
{
    struct fixture *f = context;
    pthread_mutex_lock(&f->lock);
    pthread_cond_broadcast(&f->changed);
    pthread_mutex_unlock(&f->lock);
}

static int add_slot(struct slot *slot, unsigned k, struct checkpoint *c)
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
static int collect_slots(struct fixture *f, struct checkpoint *c)
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

static int on_collect(void *context, struct checkpoint *c)
{
    struct fixture *f = context;
    pthread_mutex_lock(&f->lock);
    int rc = collect_slots(f, c);
    pthread_mutex_unlock(&f->lock);
    return rc;
}

static void on_checkpointed(void *context, int code)
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

static void on_extent_added(void *context, stream_id id, const struct extent *e)
{
    struct fixture *f = context;
    pthread_mutex_lock(&f->lock);
    struct slot *s = find_slot(f, id);
    assert_non_null(s);
    assert_int_equal(e->start, s->flushed);
    s->flushed += e->len;
    pthread_mutex_unlock(&f->lock);
}

static void on_extent_replaced(void *context, stream_id id, const struct extent *e)
{
    struct fixture *f = context;
    (void)id; /* there may be no slot for it any more */
    (void)e;  /* read through the catalog */
    f->replaced++;
}

static void fixture_init(struct fixture *f, uint64_t seed)
{
    *f = (struct fixture){.durability = DURABILITY_SYNC, .disk = fakedisk_create(seed)};
    fakedisk_add_dir(f->disk, "/");
    pthread_mutex_init(&f->lock, NULL);
    pthread_cond_init(&f->changed, NULL);
    (void)snprintf(f->dir, sizeof(f->dir), DIR_PATH);
    /* Shared memory where there is some: these catalogs need not outlive the test. */
    const char *base = access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp";
    (void)snprintf(f->catalog, sizeof(f->catalog), "%s/arbe-store-XXXXXX", base);
    assert_non_null(mkdtemp(f->catalog));
}

static void on_told(void *context, enum trouble trouble, const char *sentence)
{
    struct fixture *f = context;
    pthread_mutex_lock(&f->lock);
    f->told[trouble]++;
    (void)snprintf(f->sentence, sizeof(f->sentence), "%s", sentence);
    pthread_mutex_unlock(&f->lock);
}

static int open_store(struct fixture *f)
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
static void kill_store(struct fixture *f)
{
    if (f->store) {
        struct local_store *s = local_of(f->store);
        if (!fakedisk_crashed(f->disk)) {
            fakedisk_fail(f->disk, CALL_CHANGES, 0, ERR_IO, true);
        }
        store_free(s);
        f->store = NULL;
    }
    fakedisk_restart(f->disk);
}

static void remove_catalog(struct fixture *f)
{
    char path[128];
    (void)snprintf(path, sizeof(path), "%s/data.mdb", f->catalog);
    (void)unlink(path); /* Missing when it was never opened. */
    (void)snprintf(path, sizeof(path), "%s/lock.mdb", f->catalog);
    (void)unlink(path); /* Missing when it was never opened. */
    assert_int_equal(rmdir(f->catalog), 0);
}

static void fixture_finish(struct fixture *f)
{
    kill_store(f);
    fakedisk_destroy(f->disk);
    remove_catalog(f);
}

/* Stages, making room when that is all it takes. */
static int stage(struct fixture *f, const struct record *r, log_pos *ret_end)
{
    int rc = f->store->ops->stage(f->store, r, NULL, ret_end);
    for (int i = 0; i < 3 && rc == ERR_AGAIN; i++) {
        (void)!f->store->ops->commit(f->store);
        rc = f->store->ops->stage(f->store, r, NULL, ret_end);
    }
    return rc;
}

static int create(struct fixture *f, unsigned k)
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

static int append(struct fixture *f, unsigned k, size_t len)
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

static int erase(struct fixture *f, unsigned k)
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

static int commit(struct fixture *f)
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
static void run_scenario(struct fixture *f)
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
static uint64_t verify_extents(struct fixture *f, stream_id id)
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
static void verify(struct fixture *f)
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

/* Power is lost in any call that changes something, also in checkpoints and compactions: what was
 * acknowledged is there, twice in a row, and the store goes on. */
static void test_power_loss_anywhere(void **state)
{
    (void)state;
    bool crashed = true;
    for (uint64_t i = 0; crashed; i += 1 + i % 3) {
        struct fixture f;
        fixture_init(&f, i);
        fakedisk_crash_at(f.disk, i);
        run_scenario(&f);
        crashed = fakedisk_crashed(f.disk);
        if (!crashed) {
            fakedisk_crash(f.disk, i);
        }
        kill_store(&f);
        verify(&f);
        fakedisk_crash(f.disk, i + 1);
        kill_store(&f);
        verify(&f);
        assert_int_equal(f.slots[1].id ? append(&f, 1, 100) : create(&f, 1), 0);
        assert_int_equal(commit(&f), 0);
        assert_int_equal(f.store->ops->checkpoint(f.store), 0);
        fakedisk_crash(f.disk, i + 2);
        kill_store(&f);
        verify(&f);
        fixture_finish(&f);
    }
}

/* Any call fails, once or for ever, with an error or a full disk: nothing acknowledged is lost, a
 * failed checkpoint is told and may succeed later. */
static void test_fault_in_any_call(void **state)
{
    (void)state;
    for (unsigned c = 0; c < 4; c++) {
        bool hit = true;
        for (uint64_t i = c; hit; i += 3) {
            struct fixture f;
            fixture_init(&f, i);
            fakedisk_fail(f.disk, CALL_ANY, i, c % 2 ? ERR_NOSPC : ERR_IO, c >= 2);
            run_scenario(&f);
            hit = fakedisk_fault_hit(f.disk);
            fakedisk_crash(f.disk, i);
            kill_store(&f);
            verify(&f);
            fixture_finish(&f);
        }
    }
}

/* A store is closed with a last checkpoint: the next opening replays nothing. */
static void test_clean_close(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f, 1);
    run_scenario(&f);
    assert_int_equal(commit(&f), 0);
    assert_int_equal(f.store->ops->close(f.store, true), 0);
    f.store = NULL;
    verify(&f);
    assert_int_equal(f.report.wal.records, 0);
    assert_int_equal(f.report.streams, SLOTS);
    assert_non_null(strstr(f.report.text, "4 streams"));
    fixture_finish(&f);
}

/* A second opening of the same directory is refused. */
static void test_lock(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f, 1);
    assert_int_equal(open_store(&f), 0);
    struct fixture other = f;
    assert_int_equal(open_store(&other), ERR_LOCKED);
    assert_non_null(strstr(other.msg.text, DIR_PATH "/lock"));
    fixture_finish(&f);
}

/* Ids are never given out twice, over restarts and crashes. */
static void test_ids_grow(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f, 1);
    stream_id last = 0;
    for (int i = 0; i < 5; i++) {
        assert_int_equal(open_store(&f), 0);
        if (f.slots[0].id) {
            assert_int_equal(erase(&f, 0), 0);
        }
        assert_int_equal(create(&f, 0), 0);
        assert_int_equal(commit(&f), 0);
        assert_true(f.slots[0].id > last);
        last = f.slots[0].id;
        if (i % 2) {
            assert_int_equal(f.store->ops->checkpoint(f.store), 0);
        }
        fakedisk_crash(f.disk, (uint64_t)i);
        kill_store(&f);
    }
    fixture_finish(&f);
}

/* A failed checkpoint is told by health until one succeeds. */
static void test_health(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f, 1);
    assert_int_equal(open_store(&f), 0);
    assert_int_equal(create(&f, 0), 0);
    assert_int_equal(append(&f, 0, 500), 0);
    assert_int_equal(commit(&f), 0);
    struct store_health h;
    f.store->ops->health(f.store, &h);
    assert_int_equal(h.checkpoint_error, 0);
    assert_true(h.log_bytes > 500);
    assert_string_equal(h.text, "");
    fakedisk_fail(f.disk, CALL_CREATE, 0, ERR_NOSPC, false);
    assert_int_equal(f.store->ops->checkpoint(f.store), ERR_NOSPC);
    f.store->ops->health(f.store, &h);
    assert_int_equal(h.checkpoint_error, ERR_NOSPC);
    assert_int_equal(h.checkpoint_failures, 1);
    assert_non_null(strstr(h.text, "no space"));
    assert_int_equal(f.failures, 1);
    assert_int_equal(f.store->ops->checkpoint(f.store), 0);
    f.store->ops->health(f.store, &h);
    assert_int_equal(h.checkpoint_error, 0);
    assert_int_equal(h.log_bytes, 0);
    assert_int_equal(h.checkpoints, 1);
    assert_string_equal(h.text, "");
    fakedisk_fail(f.disk, CALL_FDATASYNC, 0, ERR_IO, true);
    assert_int_equal(append(&f, 0, 5), 0);
    assert_int_equal(f.store->ops->commit(f.store), ERR_FAILED);
    assert_true(f.store->ops->failed(f.store));
    f.store->ops->health(f.store, &h);
    assert_int_equal(h.log_error, ERR_IO);
    assert_non_null(strstr(h.text, "restart"));
    assert_int_equal(f.store->ops->checkpoint(f.store), ERR_FAILED);
    fixture_finish(&f);
}

/* A directory of one kind of durability is refused by the other, with a sentence. */
static void test_kinds(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f, 1);
    assert_int_equal(open_store(&f), 0);
    assert_int_equal(f.store->ops->close(f.store, false), 0);
    f.store = NULL;
    f.durability = DURABILITY_MEMORY;
    assert_int_equal(open_store(&f), ERR_MISMATCH);
    assert_non_null(strstr(f.msg.text, "--durability sync or os"));
    f.durability = DURABILITY_OS;
    assert_int_equal(open_store(&f), 0);
    fixture_finish(&f);
    fixture_init(&f, 1);
    f.durability = DURABILITY_MEMORY;
    assert_int_equal(open_store(&f), 0);
    assert_int_equal(f.store->ops->close(f.store, false), 0);
    f.store = NULL;
    f.durability = DURABILITY_SYNC;
    assert_int_equal(open_store(&f), ERR_MISMATCH);
    assert_non_null(strstr(f.msg.text, "--durability memory"));
    fixture_finish(&f);
}

/* In memory mode all is durable at once, checkpoints move bytes to packs, and the next start begins
 * with nothing. */
static void test_memory_mode(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f, 1);
    f.durability = DURABILITY_MEMORY;
    run_scenario(&f);
    assert_int_equal(fakedisk_calls(f.disk, CALL_FDATASYNC), 0);
    assert_true(f.checkpoints > 3);
    for (unsigned k = 0; k < SLOTS; k++) {
        assert_int_equal(verify_extents(&f, f.slots[k].id), f.slots[k].flushed);
    }
    kill_store(&f);
    assert_int_equal(open_store(&f), 0);
    assert_int_equal(f.report.streams, 0);
    stream_id id = 0;
    assert_int_equal(f.store->ops->find(f.store, SLICE("s0"), &id), ERR_NOTFOUND);
    fixture_finish(&f);
}

/* When the log's files are gone although the catalog knows of a log, the store is refused. */
static void test_lost_log(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f, 1);
    assert_int_equal(open_store(&f), 0);
    kill_store(&f);
    struct fakedisk *empty = fakedisk_create(1);
    fakedisk_destroy(f.disk);
    f.disk = empty;
    assert_int_equal(open_store(&f), ERR_MISMATCH);
    assert_non_null(strstr(f.msg.text, "missing"));
    fixture_finish(&f);
}

/* A pack whose file is gone is told at the start. */
static void test_lost_pack(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f, 1);
    assert_int_equal(open_store(&f), 0);
    assert_int_equal(create(&f, 0), 0);
    assert_int_equal(append(&f, 0, 500), 0);
    assert_int_equal(commit(&f), 0);
    assert_int_equal(f.store->ops->checkpoint(f.store), 0);
    kill_store(&f);
    assert_true(fakedisk_remove(f.disk, DIR_PATH "/packs/pack-0000000000000001"));
    assert_int_equal(open_store(&f), 0);
    assert_non_null(strstr(f.report.text, "1 packs are missing"));
    fixture_finish(&f);
}

/* A stream that grows by a little at each checkpoint keeps few extents, its bytes are rewritten a
 * few times only, and packs do not pile up. */
static void test_compaction(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f, 1);
    assert_int_equal(open_store(&f), 0);
    assert_int_equal(create(&f, 0), 0);
    size_t extents = 0;
    for (int i = 0; i < 600; i++) {
        assert_int_equal(append(&f, 0, 200), 0);
        assert_int_equal(commit(&f), 0);
        assert_int_equal(f.store->ops->checkpoint(f.store), 0);
        struct catalog_stream s;
        assert_int_equal(f.store->ops->load(f.store, f.slots[0].id, &s), 0);
        extents = s.extent_count > extents ? s.extent_count : extents;
        catalog_stream_finish(&s);
    }
    assert_true(extents <= STREAM_EXTENTS_SMALL_MAX + 1);
    assert_int_equal(verify_extents(&f, f.slots[0].id), 600 * 200);
    struct known_packs known = {0};
    assert_int_equal(catalog_each_pack(local_of(f.store)->catalog, add_known, &known), 0);
    assert_true(known.count < 60);
    free(known.ids);
    /* A round per checkpoint; each of 600 small extents moved about once per tier. */
    assert_true(f.replaced < 200);
    fixture_finish(&f);
}

/* What deletions leave of a pack is moved, and the pack goes with its last live byte. */
static void test_dead_packs_go(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f, 1);
    assert_int_equal(open_store(&f), 0);
    for (unsigned k = 0; k < SLOTS; k++) {
        assert_int_equal(create(&f, k), 0);
        assert_int_equal(append(&f, k, 3000), 0);
    }
    assert_int_equal(commit(&f), 0);
    assert_int_equal(f.store->ops->checkpoint(f.store), 0);
    uint64_t size = 0;
    assert_true(fakedisk_file_size(f.disk, DIR_PATH "/packs/pack-0000000000000001", &size));
    for (unsigned k = 0; k < 3; k++) {
        assert_int_equal(erase(&f, k), 0);
    }
    assert_int_equal(commit(&f), 0);
    assert_int_equal(f.store->ops->checkpoint(f.store), 0);
    assert_int_equal(f.replaced, 1);
    assert_true(fakedisk_file_size(f.disk, DIR_PATH "/packs/pack-0000000000000001", &size));
    assert_int_equal(f.store->ops->checkpoint(f.store), 0);
    assert_false(fakedisk_file_size(f.disk, DIR_PATH "/packs/pack-0000000000000001", &size));
    assert_int_equal(verify_extents(&f, f.slots[3].id), 3000);
    fixture_finish(&f);
}

/* Removes a directory with the files in it. */
static int remove_file(void *context, const char *name)
{
    char path[256];
    (void)snprintf(path, sizeof(path), "%s/%s", (const char *)context, name);
    return unlink(path);
}

static void remove_dir(struct fixture *f, const char *sub)
{
    char path[128];
    (void)snprintf(path, sizeof(path), "%s%s", f->dir, sub);
    assert_int_equal(f->real.list_dir(NULL, path, remove_file, path), 0);
    assert_int_equal(rmdir(path), 0);
}

/* Appends and waits until it is durable. */
static void append_and_wait(struct fixture *f, size_t len)
{
    static char body[1000];
    struct slot *s = &f->slots[0];
    char mark[VARINT_BYTES_MAX];
    log_pos end = 0;
    fill(s->id, s->staged, body, len);
    struct record r = {.type = RECORD_APPEND,
                       .id = s->id,
                       .append = {.offset = s->staged,
                                  .marks = {mark, marks_put(mark, len, true)},
                                  .body = {body, len}}};
    pthread_mutex_lock(&f->lock);
    while (f->store->ops->stage(f->store, &r, NULL, &end) == ERR_AGAIN) {
        pthread_cond_wait(&f->changed, &f->lock);
    }
    while (f->store->ops->durable(f->store) < end) {
        pthread_cond_wait(&f->changed, &f->lock);
    }
    s->staged += len;
    s->durable = s->staged;
    s->applied = end;
    s->dirty = true;
    pthread_mutex_unlock(&f->lock);
}

/* On the real disk with all threads: checkpoints come by themselves, and when asked; what was
 * written is there after a close and a new opening. */
static void test_threads(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f, 1);
    sys_posix_init(&f.real);
    f.use_real = true;
    f.threads = true;
    (void)snprintf(f.dir, sizeof(f.dir), "/tmp/arbe-store-XXXXXX");
    assert_non_null(mkdtemp(f.dir));
    assert_int_equal(open_store(&f), 0);
    pthread_mutex_lock(&f.lock);
    assert_int_equal(f.slots[0].id, 0);
    pthread_mutex_unlock(&f.lock);
    assert_int_equal(create(&f, 0), 0);
    for (int i = 0; i < 150; i++) {
        append_and_wait(&f, 700);
    }
    pthread_mutex_lock(&f.lock);
    while (f.checkpoints == 0) {
        pthread_cond_wait(&f.changed, &f.lock);
    }
    unsigned count = f.checkpoints;
    pthread_mutex_unlock(&f.lock);
    append_and_wait(&f, 1);
    assert_int_equal(f.store->ops->checkpoint(f.store), 0);
    pthread_mutex_lock(&f.lock);
    while (f.checkpoints == count) {
        pthread_cond_wait(&f.changed, &f.lock);
    }
    pthread_mutex_unlock(&f.lock);
    assert_int_equal(f.store->ops->close(f.store, true), 0);
    assert_int_equal(open_store(&f), 0);
    assert_int_equal(f.report.wal.records, 0);
    stream_id id = 0;
    assert_int_equal(f.store->ops->find(f.store, SLICE("s0"), &id), 0);
    assert_int_equal(verify_extents(&f, id), 150 * 700 + 1);
    assert_int_equal(f.store->ops->close(f.store, false), 0);
    f.store = NULL;
    remove_dir(&f, "/wal");
    remove_dir(&f, "/packs");
    remove_dir(&f, "/catalog");
    remove_dir(&f, "");
    fixture_finish(&f);
}

/* A path that is too long is refused with a sentence. */
static void test_long_path(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f, 1);
    char dir[2000];
    memset(dir, 'd', sizeof(dir) - 1);
    dir[sizeof(dir) - 1] = '\0';
    struct store_config config = {.dir = dir, .sys = fakedisk_sys(f.disk)};
    struct store_events events = {0};
    assert_int_equal(local_store_open(&config, &events, &f.store, &f.report, &f.msg), ERR_INVALID);
    fixture_finish(&f);
}

/* The operator hears once that checkpoints fail, once for another reason, and once that they work
 * again; and once that the log failed. */
static void test_trouble_is_told(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f, 1);
    assert_int_equal(open_store(&f), 0);
    assert_int_equal(create(&f, 0), 0);
    assert_int_equal(commit(&f), 0);
    assert_int_equal(f.told[TROUBLE_BROKEN], 0);
    fakedisk_fail(f.disk, CALL_COMMIT, 0, ERR_IO, true);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(f.store->ops->checkpoint(f.store), ERR_IO);
        assert_int_equal(f.told[TROUBLE_BROKEN], 1);
    }
    assert_non_null(strstr(f.sentence, f.dir));
    fakedisk_fail(f.disk, CALL_COMMIT, 0, ERR_NOSPC, false);
    assert_int_equal(f.store->ops->checkpoint(f.store), ERR_NOSPC);
    assert_int_equal(f.told[TROUBLE_BROKEN], 2);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(f.store->ops->checkpoint(f.store), 0);
        assert_int_equal(f.told[TROUBLE_OVER], 1);
    }
    assert_non_null(strstr(f.sentence, "again"));
    fakedisk_fail(f.disk, CALL_FDATASYNC, 0, ERR_IO, true);
    assert_int_equal(append(&f, 0, 5), 0);
    assert_int_equal(f.store->ops->commit(f.store), ERR_FAILED);
    assert_int_equal(f.store->ops->commit(f.store), ERR_FAILED);
    assert_int_equal(f.told[TROUBLE_BROKEN], 3);
    assert_non_null(strstr(f.sentence, "restart"));
    fixture_finish(&f);
}

/* Also small records count for the bytes that may wait for a checkpoint; deletes are taken. */
static void test_log_is_bounded(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f, 1);
    f.log_bytes_max = 4000;
    assert_int_equal(open_store(&f), 0);
    assert_int_equal(create(&f, 0), 0);
    int rc = 0;
    for (int i = 0; i < 200 && rc == 0; i++) {
        rc = append(&f, 0, 1);
        assert_int_equal(commit(&f), 0);
    }
    assert_int_equal(rc, ERR_BUSY);
    assert_int_equal(create(&f, 1), ERR_BUSY);
    assert_int_equal(erase(&f, 0), 0);
    assert_int_equal(commit(&f), 0);
    assert_int_equal(f.store->ops->checkpoint(f.store), 0);
    assert_int_equal(create(&f, 1), 0);
    fixture_finish(&f);
}

/* The last checkpoint is not needed for what was acknowledged: that it fails is only said. */
static void test_close_without_checkpoint(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f, 1);
    assert_int_equal(open_store(&f), 0);
    assert_int_equal(create(&f, 0), 0);
    assert_int_equal(append(&f, 0, 3000), 0);
    assert_int_equal(commit(&f), 0);
    fakedisk_set_capacity(f.disk, fakedisk_used(f.disk));
    assert_int_equal(f.store->ops->close(f.store, true), 0);
    f.store = NULL;
    assert_non_null(strstr(f.sentence, "replay"));
    assert_int_equal(open_store(&f), 0);
    assert_int_equal(f.slots[0].durable, 3000);
    fixture_finish(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_power_loss_anywhere),
        cmocka_unit_test(test_fault_in_any_call),
        cmocka_unit_test(test_clean_close),
        cmocka_unit_test(test_lock),
        cmocka_unit_test(test_ids_grow),
        cmocka_unit_test(test_health),
        cmocka_unit_test(test_kinds),
        cmocka_unit_test(test_memory_mode),
        cmocka_unit_test(test_lost_log),
        cmocka_unit_test(test_lost_pack),
        cmocka_unit_test(test_compaction),
        cmocka_unit_test(test_dead_packs_go),
        cmocka_unit_test(test_threads),
        cmocka_unit_test(test_long_path),
        cmocka_unit_test(test_trouble_is_told),
        cmocka_unit_test(test_log_is_bounded),
        cmocka_unit_test(test_close_without_checkpoint),
    };
    return UNIT_RUN(tests);
}
