/* The log on a disk that fails and crashes, at every call. */
#include "unit/log/wal_fixture.h"

/* A log gives back what was committed, in order, over segments and with records larger than one. */
static void test_reads_back(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f, 1);
    reopen(&f, 0);
    assert_int_equal(f.seen_count, 0);
    write_records(&f, 200, 9);
    assert_int_equal(wal_durable(f.wal), f.wal->next);
    kill_log(&f);
    reopen(&f, 0);
    assert_int_equal(f.seen_count, 200);
    assert_int_equal(f.report.torn_bytes, 0);
    write_records(&f, 20, 1);
    wal_close(f.wal);
    reopen(&f, 0);
    assert_int_equal(f.seen_count, 220);
    fixture_finish(&f);
}

/* What was staged and not committed is in no file; closing commits it. */
static void test_staged_is_not_written(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f, 1);
    reopen(&f, 0);
    write_records(&f, 3, 3);
    log_pos durable = wal_durable(f.wal);
    assert_int_equal(stage_next(&f), 0);
    assert_int_equal(wal_durable(f.wal), durable);
    assert_true(wal_bytes_since(f.wal, durable) > 0);
    kill_log(&f);
    reopen(&f, 0);
    assert_int_equal(f.seen_count, 3);
    assert_int_equal(stage_next(&f), 0);
    wal_close(f.wal);
    reopen(&f, 0);
    assert_int_equal(f.seen_count, 4);
    fixture_finish(&f);
}

/* Batches and their records are counted once they are durable; what waits is told apart. */
static void test_stats(void **state)
{
    (void)state;
    struct fixture f;
    struct wal_stats stats;
    fixture_init(&f, 1);
    reopen(&f, 0);
    write_records(&f, 6, 3);
    assert_int_equal(stage_next(&f), 0);
    wal_get_stats(f.wal, &stats);
    assert_int_equal(histogram_count_to(&stats.commit_records, 2), 2);
    assert_int_equal(stats.commit_records.sum, 6);
    assert_int_equal(histogram_count_to(&stats.commit_us, HISTOGRAM_BOUNDS), 2);
    assert_int_equal(stats.written_bytes, wal_durable(f.wal));
    assert_int_equal(stats.staged_bytes, f.wal->next - wal_durable(f.wal));
    assert_int_equal(stats.file_bytes, fakedisk_used(f.disk));
    fakedisk_fail(f.disk, CALL_FDATASYNC, 0, ERR_IO, true);
    assert_int_equal(commit(&f), ERR_FAILED);
    wal_get_stats(f.wal, &stats);
    assert_int_equal(stats.commit_records.sum, 6);
    assert_int_equal(histogram_count_to(&stats.commit_us, HISTOGRAM_BOUNDS), 2);
    fixture_finish(&f);
}

/* One notice per batch, after the durable position moved. */
static void test_one_notice_per_batch(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f, 1);
    reopen(&f, 0);
    for (int i = 0; i < 10; i++) {
        assert_int_equal(stage_next(&f), 0);
    }
    f.notices = 0;
    assert_int_equal(commit(&f), 0);
    assert_int_equal(f.notices, 1);
    assert_int_equal(commit(&f), 0);
    assert_int_equal(f.notices, 1);
    fixture_finish(&f);
}

/* The log of a scenario that has rolls, releases and recycling; stops at the first error. */
static void run_scenario(struct fixture *f)
{
    if (open_log(f)) {
        return;
    }
    for (unsigned i = 0; i < 120; i++) {
        if (stage_next(f)) {
            return;
        }
        if (i % 4 == 3 && commit(f)) {
            return;
        }
        if (i % 30 == 29) {
            /* A checkpoint: what is durable now need not be replayed. */
            f->start = wal_durable(f->wal);
            wal_release(f->wal, f->start);
        }
    }
}

/* Number of the first record that the last opening replayed; run_scenario moves the beginning. */
static uint64_t first_seen(const struct fixture *f)
{
    return f->seen_count ? f->seen[0] : f->acked;
}

/* Power is lost in any call that changes something: what was acknowledged is there after it, in two
 * recoveries in a row, and the log goes on. */
static void test_power_loss_anywhere(void **state)
{
    (void)state;
    bool crashed = true;
    for (uint64_t i = 0; crashed; i++) {
        struct fixture f;
        fixture_init(&f, i);
        fakedisk_crash_at(f.disk, i);
        run_scenario(&f);
        crashed = fakedisk_crashed(f.disk);
        uint64_t acked = f.acked;
        if (!crashed) {
            fakedisk_crash(f.disk, i);
        }
        kill_log(&f);
        assert_int_equal(open_log(&f), 0);
        uint64_t from = first_seen(&f);
        assert_seen(&f, from);
        assert_true(from <= acked);
        f.next = from + f.seen_count;
        f.acked = f.next;
        size_t first_time = f.seen_count;
        fakedisk_crash(f.disk, i + 1);
        kill_log(&f);
        assert_int_equal(open_log(&f), 0);
        assert_int_equal(f.seen_count, first_time);
        write_records(&f, 20, 3);
        fakedisk_crash(f.disk, i + 2);
        kill_log(&f);
        assert_int_equal(open_log(&f), 0);
        assert_int_equal(f.seen_count, first_time + 20);
        fixture_finish(&f);
    }
}

static void run_with_fault(uint64_t i, int code, bool for_ever, bool *ret_hit)
{
    struct fixture f;
    fixture_init(&f, i);
    fakedisk_fail(f.disk, CALL_ANY, i, code, for_ever);
    run_scenario(&f);
    *ret_hit = fakedisk_fault_hit(f.disk);
    if (f.wal && wal_failed(f.wal)) {
        assert_int_equal(stage_once(&f, f.next), ERR_FAILED);
        assert_int_equal(wal_commit_now(f.wal), ERR_FAILED);
    }
    fakedisk_crash(f.disk, i);
    kill_log(&f);
    int rc = open_log(&f);
    if (rc) {
        fail_msg("fault %llu %s: %s", (unsigned long long)i, err_name(code), f.msg.text);
    }
    uint64_t from = first_seen(&f);
    assert_true(from <= f.acked);
    assert_seen(&f, from);
    fixture_finish(&f);
}

/* Any call fails, once or for ever, with an error or a full disk: the log refuses or fails, and
 * after a power loss every acknowledged record is read. */
static void test_fault_in_any_call(void **state)
{
    (void)state;
    const int codes[] = {ERR_IO, ERR_NOSPC};
    for (unsigned c = 0; c < 4; c++) {
        bool hit = true;
        for (uint64_t i = 0; hit; i++) {
            run_with_fault(i, codes[c % 2], c >= 2, &hit);
        }
    }
}

/* Frames of a recycled segment's former life stand just where new ones would, and are not taken for
 * them. */
static void test_recycled_frames_are_stale(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f, 1);
    reopen(&f, 0);
    f.next = EVEN_FROM;
    f.acked = EVEN_FROM;
    uint64_t start_number = EVEN_FROM;
    uint32_t generation = 0;
    for (int i = 0; i < 20 && generation == 0; i++) {
        f.start = wal_durable(f.wal);
        start_number = f.next;
        wal_release(f.wal, f.start);
        write_records(&f, 129, 3);
        generation = chain_find(&f.wal->chain, wal_durable(f.wal))->generation;
    }
    assert_true(generation > 0);
    uint64_t count = f.next - start_number;
    kill_log(&f);
    reopen(&f, start_number);
    assert_int_equal(f.seen_count, count);
    assert_int_equal(f.report.torn_bytes, 0);
    fixture_finish(&f);
}

/* Released segments are used again: the directory does not grow with the log. */
static void test_recycling(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f, 1);
    reopen(&f, 0);
    unsigned most = 0;
    for (int i = 0; i < 40; i++) {
        write_records(&f, 30, 5);
        f.start = wal_durable(f.wal);
        wal_release(f.wal, f.start);
        unsigned files = count_files(&f);
        most = files > most ? files : most;
    }
    uint64_t created = fakedisk_calls(f.disk, CALL_CREATE);
    assert_true(most <= 12);
    assert_true(created < 60);
    write_records(&f, 30, 5);
    uint64_t from = f.next - 30;
    kill_log(&f);
    reopen(&f, from);
    assert_int_equal(f.seen_count, 30);
    assert_int_equal(f.report.torn_bytes, 0);
    fixture_finish(&f);
}

/* A full disk refuses before anything is staged; what was staged is committed; space that comes
 * back is found without a restart. */
static void test_full_disk(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f, 1);
    reopen(&f, 0);
    write_records(&f, 10, 5);
    fakedisk_set_capacity(f.disk, fakedisk_used(f.disk));
    int rc = 0;
    while (rc == 0) {
        rc = stage_next(&f);
    }
    assert_int_equal(rc, ERR_NOSPC);
    assert_int_equal(commit(&f), 0);
    assert_false(wal_failed(f.wal));
    log_pos next = f.wal->next;
    for (int i = 0; i < 5; i++) {
        assert_int_equal(stage_next(&f), ERR_NOSPC);
        assert_int_equal(commit(&f), 0);
    }
    assert_int_equal(f.wal->next, next);
    fakedisk_set_capacity(f.disk, UINT64_MAX);
    rc = ERR_NOSPC;
    for (int i = 0; i < 3 && rc == ERR_NOSPC; i++) {
        rc = stage_next(&f);
        assert_int_equal(commit(&f), 0);
    }
    assert_int_equal(rc, 0);
    write_records(&f, 60, 5);
    kill_log(&f);
    reopen(&f, 0);
    assert_int_equal(f.seen_count, f.next);
    fixture_finish(&f);
}

/* The first failed write makes the log failed for good: later ones are not tried, nothing more
 * becomes durable, and the code is told. */
static void test_failure_sticks(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f, 1);
    reopen(&f, 0);
    write_records(&f, 5, 5);
    log_pos durable = wal_durable(f.wal);
    assert_int_equal(stage_next(&f), 0);
    fakedisk_fail(f.disk, CALL_PWRITEV, 0, ERR_IO, false);
    f.notices = 0;
    assert_int_equal(wal_commit_now(f.wal), ERR_FAILED);
    assert_int_equal(f.notices, 1);
    assert_true(wal_failed(f.wal));
    assert_int_equal(wal_error(f.wal), ERR_IO);
    uint64_t calls = fakedisk_calls(f.disk, CALL_ANY);
    assert_int_equal(stage_once(&f, f.next), ERR_FAILED);
    assert_int_equal(wal_commit_now(f.wal), ERR_FAILED);
    wal_release(f.wal, durable);
    assert_int_equal(fakedisk_calls(f.disk, CALL_ANY), calls);
    assert_int_equal(wal_durable(f.wal), durable);
    fixture_finish(&f);
}

/* More than staged_bytes_max waiting is refused as busy; a single record may be larger. */
static void test_busy(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f, 1);
    f.capacity = 4000;
    reopen(&f, 0);
    f.next = 49; /* one of 30,000 bytes */
    assert_int_equal(stage_next(&f), 0);
    assert_int_equal(stage_next(&f), ERR_BUSY);
    assert_int_equal(commit(&f), 0);
    assert_int_equal(stage_next(&f), 0);
    fixture_finish(&f);
}

/* Without sync nothing is synced on the way, and a killed process loses nothing. */
static void test_os_durability(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f, 1);
    f.durability = DURABILITY_OS;
    reopen(&f, 0);
    write_records(&f, 3, 1);
    uint64_t syncs = fakedisk_calls(f.disk, CALL_FDATASYNC);
    write_records(&f, 3, 1);
    assert_int_equal(fakedisk_calls(f.disk, CALL_FDATASYNC), syncs);
    kill_log(&f);
    reopen(&f, 0);
    assert_int_equal(f.seen_count, 6);
    fixture_finish(&f);
}

/* A directory that is too long for a path is refused with a sentence. */
static void test_long_directory(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f, 1);
    char dir[SEGMENT_PATH_MAX];
    memset(dir, 'd', sizeof(dir) - 1);
    dir[sizeof(dir) - 1] = '\0';
    struct wal_config config = {.sys = fakedisk_sys(f.disk), .dir = dir};
    assert_int_equal(wal_open(&config, on_record, &f, &f.report, &f.wal, &f.msg), ERR_INVALID);
    fixture_finish(&f);
}

struct writer {
    struct fixture *f;
    uint64_t number; /* of its first record; then by 4 */
    log_pos last;    /* end of its last record */
};

static void *write_thread(void *context)
{
    struct writer *w = context;
    for (uint64_t n = 0; n < 300; n++) {
        size_t len = 100;
        char body[100];
        uint64_t number = w->number + 4 * n;
        fill_body(number, body, len);
        char mark[VARINT_BYTES_MAX];
        size_t mark_len = bytes_put_varint(mark, len << 1 | 1);
        struct record r = {
            .type = RECORD_APPEND,
            .id = w->number + 1,
            .append = {.offset = number, .marks = {mark, mark_len}, .body = {body, len}}};
        int rc = ERR_AGAIN;
        while (rc == ERR_AGAIN || rc == ERR_BUSY) {
            rc = wal_stage(w->f->wal, &r, NULL, &w->last);
        }
        assert(rc == 0);
    }
    return NULL;
}

static int on_thread_record(void *context, const struct record *r, log_pos end)
{
    uint64_t *next = context;
    (void)end; /* order alone is looked at */
    assert_int_equal(r->append.offset, next[r->id - 1]);
    next[r->id - 1] += 4;
    return 0;
}

/* Several threads stage while the committer writes and the preparer makes room: everything becomes
 * durable, and each thread's records keep their order. */
static void test_threads(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f, 1);
    f.threads = true;
    f.capacity = 20000;
    assert_int_equal(open_log(&f), 0);
    struct writer writers[4];
    pthread_t threads[4];
    for (uint64_t i = 0; i < 4; i++) {
        writers[i] = (struct writer){.f = &f, .number = i};
        assert_int_equal(pthread_create(&threads[i], NULL, write_thread, &writers[i]), 0);
    }
    for (int i = 0; i < 4; i++) {
        pthread_join(threads[i], NULL);
    }
    assert_int_equal(wal_flush(f.wal), 0);
    for (int i = 0; i < 4; i++) {
        assert_true(wal_durable(f.wal) >= writers[i].last);
    }
    wal_close(f.wal);
    fakedisk_crash(f.disk, 9);
    fakedisk_restart(f.disk);
    uint64_t next[4] = {0, 1, 2, 3};
    struct wal_config config = {.sys = fakedisk_sys(f.disk),
                                .dir = DIR_PATH,
                                .uuid = "0123456789abcde",
                                .segment_bytes = SEGMENT_BYTES_SMALL,
                                .staged_bytes_max = MIB,
                                .epoch = 2};
    assert_int_equal(wal_open(&config, on_thread_record, next, &f.report, &f.wal, &f.msg), 0);
    for (uint64_t i = 0; i < 4; i++) {
        assert_int_equal(next[i], i + 4 * 300);
    }
    fixture_finish(&f);
}

/* A new log begins with a small file, so that its server listens soon; those behind it are of full
 * size, and the small one is not used again. */
static void test_first_segment_is_small(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f, 1);
    f.segment_bytes = 2 * FIRST_BYTES_MAX;
    reopen(&f, 0);
    uint64_t size = 0;
    char path[2 * SEGMENT_PATH_MAX];
    (void)locate(&f, 0, path);
    assert_true(fakedisk_file_size(f.disk, path, &size));
    assert_int_equal(size, FIRST_BYTES_MAX);
    write_records(&f, 1000, 50);
    assert_true(wal_durable(f.wal) > FIRST_BYTES_MAX);
    (void)locate(&f, FIRST_BYTES_MAX, path);
    assert_true(fakedisk_file_size(f.disk, path, &size));
    assert_int_equal(size, f.segment_bytes);
    wal_release(f.wal, wal_durable(f.wal));
    assert_int_equal(f.wal->spare_count, 0);
    f.start = wal_durable(f.wal);
    kill_log(&f);
    reopen(&f, 1000);
    fixture_finish(&f);
}

/* With threads, a failed sync reaches those who wait for it. */
static void test_flush_of_failed_log(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f, 1);
    f.threads = true;
    assert_int_equal(open_log(&f), 0);
    fakedisk_fail(f.disk, CALL_FDATASYNC, 0, ERR_IO, true);
    int rc = ERR_AGAIN;
    while (rc == ERR_AGAIN) {
        rc = stage_once(&f, 0);
    }
    /* The preparer may have met the failure first. */
    assert_true(rc == 0 || rc == ERR_FAILED);
    assert_int_equal(wal_flush(f.wal), rc == 0 ? ERR_FAILED : 0);
    assert_true(wal_failed(f.wal));
    fixture_finish(&f);
}

static bool refuse_growth(void *context, uint64_t file_bytes, uint64_t spare_bytes, log_pos end)
{
    (void)context;     /* nothing but this answer */
    (void)file_bytes;  /* any is too much */
    (void)spare_bytes; /* whatever stays */
    (void)end;         /* wherever */
    return false;
}

/* A spare file takes no space, but what is put into it will: it asks too, and stays if refused. */
static void test_spares_ask(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f, 1);
    reopen(&f, 0);
    while (chain_file_bytes(&f.wal->chain) < 6 * f.wal->dir.segment_bytes) {
        assert_int_equal(stage_next(&f), 0);
        assert_int_equal(commit(&f), 0);
    }
    wal_release(f.wal, wal_durable(f.wal));
    assert_true(spare_bytes(f.wal) > 0);
    uint64_t spares = spare_bytes(f.wal);
    f.wal->config.may_grow = refuse_growth;
    int rc = 0;
    while (rc == 0) {
        rc = stage_next(&f);
        (void)!wal_commit_now(f.wal);
    }
    assert_int_equal(rc, ERR_NOSPC);
    assert_int_equal(spare_bytes(f.wal), spares);
    f.wal->config.may_grow = NULL;
    assert_int_equal(stage_next(&f), ERR_NOSPC); /* the last answer, and a new attempt */
    assert_int_equal(commit(&f), 0);
    assert_int_equal(stage_next(&f), 0);
    assert_true(spare_bytes(f.wal) < spares);
    fixture_finish(&f);
}

static bool release_and_refuse(void *context, uint64_t file_bytes, uint64_t spare_bytes,
                               log_pos end)
{
    struct fixture *f = context;
    wal_release(f->wal, wal_durable(f->wal));
    return refuse_growth(context, file_bytes, spare_bytes, end);
}

/* There are never more spares than may be, also when segments are released while one of them waits
 * for the answer. */
static void test_spares_are_few(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f, 1);
    reopen(&f, 0);
    while (chain_file_bytes(&f.wal->chain) < 12 * f.wal->dir.segment_bytes) {
        assert_int_equal(stage_next(&f), 0);
        assert_int_equal(commit(&f), 0);
    }
    wal_release(f.wal, wal_durable(f.wal) / 2);
    assert_int_equal(f.wal->spare_count, SEGMENT_SPARES_MAX);
    f.wal->config.may_grow = release_and_refuse;
    int rc = 0;
    while (rc == 0) {
        rc = stage_next(&f);
        (void)!wal_commit_now(f.wal);
    }
    assert_int_equal(rc, ERR_NOSPC);
    assert_int_equal(f.wal->spare_count, SEGMENT_SPARES_MAX);
    fixture_finish(&f);
}

/* A log that may not grow refuses appends as on a full disk, and still takes deletes in the room
 * that is kept for them. */
static void test_room_for_deletes(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f, 1);
    reopen(&f, 0);
    f.wal->config.may_grow = refuse_growth;
    int rc = 0;
    while (rc == 0) {
        rc = stage_next(&f);
        (void)!wal_commit_now(f.wal);
    }
    assert_int_equal(rc, ERR_NOSPC);
    struct record r = {.type = RECORD_DELETE, .id = 7};
    log_pos end = 0;
    assert_int_equal(wal_stage(f.wal, &r, NULL, &end), 0);
    static const char put[2000] = {1, 1, 0, 'k', (char)(1992 & 0xff), 1992 >> 8};
    r = (struct record){.type = RECORD_NOTE, .note = {.changes = {put, sizeof(put)}}};
    assert_int_equal(wal_stage(f.wal, &r, NULL, &end), ERR_NOSPC);
    r.note.changes = SLICE("\2\1\0k");
    assert_int_equal(wal_stage(f.wal, &r, NULL, &end), 0);
    assert_int_equal(wal_commit_now(f.wal), 0);
    assert_int_equal(wal_durable(f.wal), end);
    f.wal->config.may_grow = NULL;
    assert_int_equal(stage_next(&f), ERR_NOSPC); /* the last answer, and a new attempt */
    assert_int_equal(commit(&f), 0);
    assert_int_equal(stage_next(&f), 0);
    fixture_finish(&f);
}

/* Released segments that are kept for later can be let go. */
static void test_drop_spares(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f, 1);
    reopen(&f, 0);
    write_records(&f, 120, 5);
    assert_false(wal_drop_spares(f.wal));
    wal_release(f.wal, wal_durable(f.wal));
    struct sys *sys = fakedisk_sys(f.disk);
    fakedisk_set_capacity(f.disk, 1024 * MIB);
    int64_t before = sys->free_bytes(sys->context, DIR_PATH);
    assert_true(wal_drop_spares(f.wal));
    assert_int_equal(sys->sync_dir(sys->context, DIR_PATH), 0);
    assert_true(sys->free_bytes(sys->context, DIR_PATH) > before);
    assert_false(wal_drop_spares(f.wal));
    write_records(&f, 50, 5);
    fixture_finish(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_spares_ask),
        cmocka_unit_test(test_spares_are_few),
        cmocka_unit_test(test_room_for_deletes),
        cmocka_unit_test(test_drop_spares),
        cmocka_unit_test(test_reads_back),
        cmocka_unit_test(test_staged_is_not_written),
        cmocka_unit_test(test_stats),
        cmocka_unit_test(test_one_notice_per_batch),
        cmocka_unit_test(test_power_loss_anywhere),
        cmocka_unit_test(test_fault_in_any_call),
        cmocka_unit_test(test_recycled_frames_are_stale),
        cmocka_unit_test(test_recycling),
        cmocka_unit_test(test_full_disk),
        cmocka_unit_test(test_failure_sticks),
        cmocka_unit_test(test_busy),
        cmocka_unit_test(test_os_durability),
        cmocka_unit_test(test_long_directory),
        cmocka_unit_test(test_threads),
        cmocka_unit_test(test_first_segment_is_small),
        cmocka_unit_test(test_flush_of_failed_log),
    };
    return UNIT_RUN(tests);
}
