/* The store at work: checkpoints, compaction, faults and power loss anywhere. */
#include "log/local_store.c"

#include "unit/log/local_store_fixture.h"

/* Counts the packs that the catalog names. */
static int count_pack(void *context, pack_id id, uint64_t live_bytes, uint64_t total_bytes)
{
    (void)id;
    (void)live_bytes;
    (void)total_bytes;
    ++*(size_t *)context;
    return 0;
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
    size_t packs = 0;
    assert_int_equal(catalog_each_pack(local_of(f.store)->catalog, count_pack, &packs), 0);
    assert_true(packs < 60);
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

/* A pack that died is unlinked also while checkpoints find no space: that is where space is. */
static void test_dead_packs_go_on_full_disk(void **state)
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
    for (unsigned k = 0; k < 3; k++) {
        assert_int_equal(erase(&f, k), 0);
    }
    assert_int_equal(commit(&f), 0);
    assert_int_equal(f.store->ops->checkpoint(f.store), 0); /* moves what was alive in the pack */
    uint64_t size = 0;
    assert_true(fakedisk_file_size(f.disk, DIR_PATH "/packs/pack-0000000000000001", &size));
    assert_int_equal(append(&f, 3, 3000), 0);
    assert_int_equal(commit(&f), 0);
    fakedisk_fail(f.disk, CALL_CREATE, 0, ERR_NOSPC, true);
    assert_int_equal(f.store->ops->checkpoint(f.store), ERR_NOSPC);
    assert_false(fakedisk_file_size(f.disk, DIR_PATH "/packs/pack-0000000000000001", &size));
    fakedisk_fail(f.disk, CALL_ANY, 0, 0, false);
    assert_int_equal(f.store->ops->checkpoint(f.store), 0);
    assert_int_equal(verify_extents(&f, f.slots[3].id), 6000);
    fixture_finish(&f);
}

/* What is alive in a mostly dead pack moves in one round and the pack goes in the next one, unless
 * the store is to stop. */
static void test_stop_ends_reclaim(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f, 1);
    assert_int_equal(open_store(&f), 0);
    struct local_store *s = local_of(f.store);
    for (unsigned k = 0; k < SLOTS; k++) {
        assert_int_equal(create(&f, k), 0);
        assert_int_equal(append(&f, k, 3000), 0);
    }
    assert_int_equal(commit(&f), 0);
    assert_int_equal(make_checkpoint(s), 0);
    for (unsigned k = 0; k < 3; k++) {
        assert_int_equal(erase(&f, k), 0);
    }
    assert_int_equal(commit(&f), 0);
    assert_int_equal(make_checkpoint(s), 0);
    uint64_t size = 0;
    s->stop = true;
    assert_false(reclaim(s));
    assert_int_equal(f.replaced, 1);
    assert_true(fakedisk_file_size(f.disk, DIR_PATH "/packs/pack-0000000000000001", &size));
    s->stop = false;
    assert_true(reclaim(s));
    assert_false(fakedisk_file_size(f.disk, DIR_PATH "/packs/pack-0000000000000001", &size));
    fixture_finish(&f);
}

/* A stream with more small extents than may stand in a row, in few packs. */
static void make_small_extents(struct fixture *f)
{
    assert_int_equal(create(f, 0), 0);
    for (unsigned i = 0; i <= STREAM_EXTENTS_SMALL_MAX; i += 2) { /* two extents each */
        assert_int_equal(append(f, 0, RANGE_MAX + 1), 0);
        assert_int_equal(commit(f), 0);
        assert_int_equal(make_checkpoint(local_of(f->store)), 0);
    }
}

/* A log that was refused a file does not keep small extents from being joined: it may be refused
 * for long, and each second makes some. */
static void test_refused_log_lets_join(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f, 1);
    assert_int_equal(open_store(&f), 0);
    make_small_extents(&f);
    fakedisk_set_capacity(f.disk, fakedisk_used(f.disk) + 64 * MIB);
    local_of(f.store)->space_short = true;
    assert_int_equal(run_compaction(local_of(f.store)), 0);
    assert_int_equal(f.replaced, 1);
    fixture_finish(&f);
}

/* A checkpoint that finds no space spends none on joining small extents, nor on a reserve. */
static void test_crowded_spends_nothing(void **state)
{
    (void)state;
    struct fixture f;
    uint64_t size = 0;
    fixture_init(&f, 1);
    assert_int_equal(open_store(&f), 0);
    struct local_store *s = local_of(f.store);
    make_small_extents(&f);
    (void)wal_drop_spares(s->wal);
    (void)space_give_reserve(&s->space); /* whether or not there is one */
    assert_int_equal(append(&f, 0, 100), 0);
    assert_int_equal(commit(&f), 0);
    fakedisk_set_capacity(f.disk, fakedisk_used(f.disk) + 64 * MIB);
    fakedisk_fail(f.disk, CALL_CREATE, 0, ERR_NOSPC, false);
    assert_int_equal(run_checkpoint(s), ERR_NOSPC);
    assert_true(fakedisk_fault_hit(f.disk));
    assert_int_equal(f.replaced, 0);
    assert_false(fakedisk_file_size(f.disk, DIR_PATH "/reserve", &size));
    assert_int_equal(f.store->ops->checkpoint(f.store), 0);
    assert_int_equal(f.replaced, 1);
    assert_int_equal(f.store->ops->checkpoint(f.store), 0); /* unlinks, and is done */
    assert_true(fakedisk_file_size(f.disk, DIR_PATH "/reserve", &size));
    fixture_finish(&f);
}

/* A round that ran out of space after it had unlinked packs is done again with the reserve's: the
 * packs were a gain all the same. */
static void test_rounds_are_summed(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f, 1);
    assert_int_equal(open_store(&f), 0);
    struct local_store *s = local_of(f.store);
    for (unsigned k = 0; k < SLOTS; k++) {
        assert_int_equal(create(&f, k), 0);
        assert_int_equal(append(&f, k, 3000), 0);
        assert_int_equal(commit(&f), 0);
        if (k == 0) {
            assert_int_equal(make_checkpoint(s), 0); /* a pack of its own */
        }
    }
    assert_int_equal(make_checkpoint(s), 0);
    for (unsigned k = 0; k < 3; k++) {
        assert_int_equal(erase(&f, k), 0);
    }
    assert_int_equal(commit(&f), 0);
    assert_int_equal(make_checkpoint(s), 0);
    space_make_reserve(&s->space);
    fakedisk_fail(f.disk, CALL_CREATE, 0, ERR_NOSPC, false);
    assert_int_equal(run_compaction(s), 0);
    assert_true(fakedisk_fault_hit(f.disk));
    assert_int_equal(s->packs_gone, 1);
    assert_int_equal(s->replaced, 1);
    assert_int_equal(run_compaction(s), 0);
    assert_int_equal(s->packs_gone, 1); /* what the extent was in */
    assert_int_equal(s->replaced, 0);
    assert_int_equal(run_compaction(s), 0);
    assert_int_equal(s->packs_gone, 0);
    fixture_finish(&f);
}

static int64_t room;   /* bytes free */
static unsigned looks; /* how often somebody asked */

static int64_t counted_room(void *context, const char *path)
{
    (void)context;
    (void)path;
    looks++;
    return room;
}

/* The log may grow while what then waits for a checkpoint fits beside it, counting what spares
 * could give back; halves are compared, so that no sum is too large. */
static void test_may_grow(void **state)
{
    static const struct {
        int64_t room;
        uint64_t file_bytes;
        uint64_t spare_bytes;
        uint64_t end; /* behind the checkpoint */
        bool lacking;
        bool may;
    } cases[] = {
        {10000, 4000, 0, 6000, false, true},
        {9998, 4000, 0, 6000, false, false},
        {10000, 4002, 0, 6000, false, false},
        {10000, 4000, 0, 6002, false, false},
        {6000, 4000, 4000, 6000, false, true},
        {5998, 4000, 4000, 6000, false, false},
        {2000, 0, 4000, 6000, false, true},
        {0, 0, 0, 0, false, true},
        {0, 0, 0, 2, false, false},
        {10000, 4000, 0, 6000, true, false},
        {INT64_MAX, UINT64_MAX / 4, UINT64_MAX / 4, UINT64_MAX / 4, false, true},
        {ERR_IO, UINT64_MAX / 2, 0, UINT64_MAX / 2, false, true}, /* a disk that does not tell */
    };
    (void)state;
    struct fixture f;
    fixture_init(&f, 1);
    assert_int_equal(open_store(&f), 0);
    struct local_store *s = local_of(f.store);
    struct sys sys = *s->space.sys;
    sys.free_bytes = counted_room;
    s->space.sys = &sys;
    s->checkpoint = 1000;
    for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
        room = cases[i].room;
        s->space_lacking = cases[i].lacking;
        s->space_short = false;
        s->asked = false;
        bool may = local_store_may_grow(s, cases[i].file_bytes, cases[i].spare_bytes,
                                        s->checkpoint + cases[i].end);
        if (may != cases[i].may || s->space_short == may || s->asked == may) {
            fail_msg("case %zu: %d, short %d, asked %d", i, may, s->space_short, s->asked);
        }
    }
    s->asked = false;
    s->space_short = true;
    room = 0;
    assert_false(local_store_may_grow(s, 1000, 0, 2000));
    assert_false(s->asked); /* once is enough */
    room = MIB;
    assert_true(local_store_may_grow(s, 1000, 0, 2000));
    assert_false(s->space_short);
    fixture_finish(&f);
}

/* The turns that the checkpoint thread and the log's thread take, one after the other, until the
 * former would sleep. */
static unsigned take_turns(struct fixture *f)
{
    struct local_store *s = local_of(f->store);
    unsigned turns = 0;
    while (wait_for_work(s, 1) == WAKE_ASKED && turns < 100) {
        (void)run_round(s, WAKE_ASKED, false);
        assert_int_equal(commit(f), 0);
        turns++;
    }
    return turns;
}

/* The log wants another file and the disk has no room for it: the threads do not keep each other
 * busy, look once by time, and find the room that comes back. */
static void test_little_room_is_quiet(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f, 1);
    assert_int_equal(open_store(&f), 0);
    struct local_store *s = local_of(f.store);
    struct sys sys = *s->space.sys;
    sys.free_bytes = counted_room;
    s->space.sys = &sys;
    s->config.threads = true; /* let_log_try is for them */
    looks = 0;
    room = 4096;
    assert_int_equal(create(&f, 0), 0);
    assert_int_equal(append(&f, 0, 100), 0);
    assert_int_equal(commit(&f), 0);
    assert_true(crowded(s));
    assert_int_equal(take_turns(&f), 1);
    assert_true(looks <= 6);
    for (unsigned i = 0; i < 3; i++) {
        looks = 0;
        assert_int_equal(run_round(s, WAKE_TIME, false), 0);
        assert_int_equal(commit(&f), 0);
        assert_int_equal(looks, 2); /* for the compaction and for the log */
        assert_int_equal(take_turns(&f), 0);
        assert_true(crowded(s));
    }
    room = MIB;
    assert_int_equal(run_round(s, WAKE_TIME, false), 0);
    assert_int_equal(commit(&f), 0);
    assert_false(crowded(s));
    s->config.threads = false;
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
    log_pos end;
    struct record r = {.type = RECORD_NOTE, .note = {.changes = SLICE("\1\1\0k\0\0\0\0")}};
    assert_int_equal(f.store->ops->stage(f.store, &r, NULL, &end), ERR_BUSY);
    r.note.changes = SLICE("\2\1\0k");
    assert_int_equal(f.store->ops->stage(f.store, &r, NULL, &end), 0);
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
        cmocka_unit_test(test_health),
        cmocka_unit_test(test_compaction),
        cmocka_unit_test(test_dead_packs_go),
        cmocka_unit_test(test_dead_packs_go_on_full_disk),
        cmocka_unit_test(test_stop_ends_reclaim),
        cmocka_unit_test(test_refused_log_lets_join),
        cmocka_unit_test(test_crowded_spends_nothing),
        cmocka_unit_test(test_rounds_are_summed),
        cmocka_unit_test(test_may_grow),
        cmocka_unit_test(test_little_room_is_quiet),
        cmocka_unit_test(test_threads),
        cmocka_unit_test(test_trouble_is_told),
        cmocka_unit_test(test_log_is_bounded),
        cmocka_unit_test(test_close_without_checkpoint),
    };
    return UNIT_RUN(tests);
}
