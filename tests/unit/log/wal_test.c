/* The log on a disk that fails and crashes, at every call; and every way in which its files can be
 * damaged. */
#include "log/wal.c"

#include <stdio.h>

#include "base/bytes.h"
#include "base/err.h"
#include "sim/fakedisk.h"
#include "unit/base/unit.h"

#define SEGMENT_BYTES_SMALL 16384u /* 12 KiB of log in each */
#define DIR_PATH            "/data/wal"
#define SEEN_MAX            4096u

/* A log on a fake disk with the numbers of the records that the last opening replayed. */
struct fixture {
    struct fakedisk *disk;
    struct wal *wal;
    struct wal_report report;
    struct errmsg msg;
    log_pos start;          /* where recovery begins */
    log_pos ends[SEEN_MAX]; /* of the records replayed last */
    uint64_t seen[SEEN_MAX];
    size_t seen_count;
    uint64_t next;   /* number of the next record to stage */
    uint64_t acked;  /* every record below was durable while the log worked */
    size_t capacity; /* staged_bytes_max */
    uint32_t epoch;
    bool made; /* an opening succeeded */
    bool threads;
    unsigned notices;
    enum durability durability;
};

#define EVEN_FROM 1000000u /* records from this number on take 96 bytes, 128 of them a segment */

/* Records differ in size and are told by their offset; a few are larger than a segment. */
static size_t body_bytes(uint64_t number)
{
    if (number >= EVEN_FROM) {
        return 34;
    }
    return number % 50 == 49 ? 30000 : number % 7 == 3 ? 3000 : 1 + (size_t)(number * 37 % 500);
}

static void fill_body(uint64_t number, char *out, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        out[i] = (char)(number * 31 + i * 7);
    }
}

static int on_record(void *context, const struct record *r, log_pos end)
{
    struct fixture *f = context;
    uint64_t number = r->append.offset;
    assert_int_equal(r->type, RECORD_APPEND);
    assert_int_equal(r->append.body.len, body_bytes(number));
    char *wanted = malloc(r->append.body.len);
    fill_body(number, wanted, r->append.body.len);
    assert_memory_equal(r->append.body.ptr, wanted, r->append.body.len);
    free(wanted);
    assert_true(f->seen_count < SEEN_MAX);
    f->ends[f->seen_count] = end;
    f->seen[f->seen_count++] = number;
    return 0;
}

static void on_notice_count(void *context)
{
    struct fixture *f = context;
    __atomic_fetch_add(&f->notices, 1, __ATOMIC_RELAXED);
}

static int open_log(struct fixture *f)
{
    struct wal_config config = {.sys = fakedisk_sys(f->disk),
                                .dir = DIR_PATH,
                                .uuid = "0123456789abcde",
                                .segment_bytes = SEGMENT_BYTES_SMALL,
                                .staged_bytes_max = f->capacity,
                                .durability = f->durability,
                                .start = f->start,
                                .epoch = ++f->epoch,
                                .fresh = !f->made,
                                .threads = f->threads,
                                .notice = on_notice_count,
                                .notice_context = f};
    f->seen_count = 0;
    f->wal = NULL;
    int rc = wal_open(&config, on_record, f, &f->report, &f->wal, &f->msg);
    f->made = f->made || rc == 0;
    return rc;
}

static void fixture_init(struct fixture *f, uint64_t seed)
{
    *f = (struct fixture){.capacity = MIB, .durability = DURABILITY_SYNC};
    f->disk = fakedisk_create(seed);
    fakedisk_add_dir(f->disk, DIR_PATH);
}

static void fixture_finish(struct fixture *f)
{
    wal_close(f->wal);
    fakedisk_destroy(f->disk);
}

/* Closes as a killed process does: nothing is committed any more. */
static void kill_log(struct fixture *f)
{
    if (f->wal) {
        wal_free(f->wal);
        f->wal = NULL;
    }
    fakedisk_restart(f->disk);
}

static int stage_once(struct fixture *f, uint64_t number)
{
    size_t len = body_bytes(number);
    struct block *block = block_try_create(len);
    assert_non_null(block);
    fill_body(number, block->data, len);
    char mark[VARINT_BYTES_MAX];
    size_t mark_len = bytes_put_varint(mark, len << 1 | 1);
    struct record r = {
        .type = RECORD_APPEND,
        .id = 7,
        .append = {.offset = number, .marks = {mark, mark_len}, .body = {block->data, len}}};
    log_pos end = 0;
    int rc = wal_stage(f->wal, &r, block, &end);
    block_unref(block);
    return rc;
}

/* Stages the next record, making room when that is all it takes. */
static int stage_next(struct fixture *f)
{
    int rc = ERR_AGAIN;
    for (int i = 0; i < 3 && rc == ERR_AGAIN; i++) {
        rc = stage_once(f, f->next);
        if (rc == ERR_AGAIN) {
            (void)!wal_commit_now(f->wal);
        }
    }
    f->next += rc == 0;
    return rc;
}

static int commit(struct fixture *f)
{
    int rc = wal_commit_now(f->wal);
    if (rc == 0) {
        f->acked = f->next;
    }
    return rc;
}

/* Stages and commits `count` records, `batch` at a time. */
static void write_records(struct fixture *f, unsigned count, unsigned batch)
{
    for (unsigned i = 0; i < count; i++) {
        assert_int_equal(stage_next(f), 0);
        if (i % batch == batch - 1 || i == count - 1) {
            assert_int_equal(commit(f), 0);
        }
    }
}

/* Whether the last opening replayed `from` and on without a gap, up to at least what was
 * acknowledged. */
static void assert_seen(const struct fixture *f, uint64_t from)
{
    for (size_t i = 0; i < f->seen_count; i++) {
        assert_int_equal(f->seen[i], from + i);
    }
    assert_true(from + f->seen_count >= f->acked);
    assert_true(from + f->seen_count <= f->next);
}

/* Reopens after a kill or a crash and goes on where recovery ended. */
static void reopen(struct fixture *f, uint64_t from)
{
    int rc = open_log(f);
    if (rc) {
        fail_msg("%s: %s", err_name(rc), f->msg.text);
    }
    assert_seen(f, from);
    f->next = from + f->seen_count;
    f->acked = f->next;
}

/* Path of the segment that holds `pos`, and where in the file that is. */
static uint64_t locate(struct fixture *f, log_pos pos, char *path)
{
    struct segment *s = chain_find(&f->wal->chain, pos);
    assert_non_null(s);
    char name[SEGMENT_PATH_MAX];
    segment_format_name(s->name, name);
    (void)snprintf(path, 2 * SEGMENT_PATH_MAX, "%s/%s", DIR_PATH, name);
    return segment_offset(s, pos);
}

static int count_name(void *context, const char *name)
{
    unsigned *count = context;
    *count += strstr(name, "wal-") == name;
    return 0;
}

static unsigned count_files(struct fixture *f)
{
    unsigned count = 0;
    struct sys *sys = fakedisk_sys(f->disk);
    assert_int_equal(sys->list_dir(sys->context, DIR_PATH, count_name, &count), 0);
    return count;
}

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

/* Recovery itself is killed in any call: the next one finds the same records. */
static void test_power_loss_in_recovery(void **state)
{
    (void)state;
    bool crashed = true;
    for (uint64_t i = 0; crashed; i++) {
        struct fixture f;
        fixture_init(&f, i);
        reopen(&f, 0);
        write_records(&f, 60, 5);
        for (int k = 0; k < 6; k++) {
            assert_int_equal(stage_next(&f), 0);
        }
        fakedisk_crash_at(f.disk, 0); /* in the write of the last batch */
        (void)!wal_commit_now(f.wal);
        kill_log(&f);
        fakedisk_crash_at(f.disk, i);
        (void)!open_log(&f);
        crashed = fakedisk_crashed(f.disk);
        kill_log(&f);
        reopen(&f, 0);
        size_t count = f.seen_count;
        write_records(&f, 5, 2);
        kill_log(&f);
        reopen(&f, 0);
        assert_int_equal(f.seen_count, count + 5);
        fixture_finish(&f);
    }
}

/* The last record is overwritten with zeros from any of its bytes on: it is gone, the ones before
 * are not, and the log goes on from there. */
static void test_zeroed_tail_at_every_byte(void **state)
{
    (void)state;
    for (uint64_t cut_at = 0;; cut_at++) {
        struct fixture f;
        fixture_init(&f, 1);
        reopen(&f, 0);
        write_records(&f, 5, 1);
        log_pos begin = wal_durable(f.wal);
        write_records(&f, 1, 1);
        uint64_t total = wal_durable(f.wal) - begin;
        /* Padding is not proven, and the last bytes of a body may be zero by themselves. */
        if (cut_at + 8 >= total) {
            fixture_finish(&f);
            return;
        }
        char path[2 * SEGMENT_PATH_MAX];
        uint64_t at = locate(&f, begin, path);
        static const char zeros[4096];
        kill_log(&f);
        assert_true(fakedisk_poke(f.disk, path, at + cut_at, zeros, total - cut_at));
        f.acked = 5;
        reopen(&f, 0);
        assert_int_equal(f.seen_count, 5);
        assert_int_equal(f.report.torn_bytes > 0, cut_at > 0);
        write_records(&f, 3, 1);
        kill_log(&f);
        reopen(&f, 0);
        assert_int_equal(f.seen_count, 8);
        fixture_finish(&f);
    }
}

/* Garbage behind the last record is cut off and told. */
static void test_garbage_tail(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f, 1);
    reopen(&f, 0);
    write_records(&f, 3, 1);
    char path[2 * SEGMENT_PATH_MAX];
    uint64_t at = locate(&f, wal_durable(f.wal), path);
    kill_log(&f);
    assert_true(fakedisk_poke(f.disk, path, at, "garbage garbage", 15));
    reopen(&f, 0);
    assert_int_equal(f.seen_count, 3);
    assert_int_equal(f.report.torn_bytes, 15);
    assert_non_null(strstr(f.report.text, "cut off 15 bytes"));
    fixture_finish(&f);
}

/* A batch of three whose first record tore: the two whole ones behind it stay dead, also when a new
 * record of the very length of the first stands in front of them again. */
static void test_stale_neighbours_stay_dead(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f, 1);
    reopen(&f, 0);
    write_records(&f, 4, 4);
    log_pos begin = wal_durable(f.wal);
    write_records(&f, 3, 3);
    char path[2 * SEGMENT_PATH_MAX];
    uint64_t at = locate(&f, begin, path);
    kill_log(&f);
    assert_true(fakedisk_poke(f.disk, path, at + RECORD_FRAME_BYTES, "\xff", 1));
    f.acked = 4;
    reopen(&f, 0);
    assert_int_equal(f.seen_count, 4);
    write_records(&f, 1, 1); /* number 4 again, of the same length */
    kill_log(&f);
    reopen(&f, 0);
    assert_int_equal(f.seen_count, 5);
    assert_int_equal(f.seen[4], 4);
    fixture_finish(&f);
}

/* Of a record that tore, the header survived, and recovery cut it off. A client sends the same
 * bytes again, and a crash lets only the payload reach the disk: nothing comes back, neither that
 * record nor its neighbours. */
static void test_old_header_is_zeroed(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f, 1);
    reopen(&f, 0);
    write_records(&f, 4, 4);
    log_pos begin = wal_durable(f.wal);
    write_records(&f, 3, 3);
    char path[2 * SEGMENT_PATH_MAX];
    uint64_t at = locate(&f, begin, path);
    char good = 0;
    kill_log(&f);
    assert_true(fakedisk_peek(f.disk, path, at + RECORD_FRAME_BYTES, &good, 1));
    assert_true(fakedisk_poke(f.disk, path, at + RECORD_FRAME_BYTES, "\xff", 1));
    f.acked = 4;
    reopen(&f, 0);
    kill_log(&f);
    assert_true(fakedisk_poke(f.disk, path, at + RECORD_FRAME_BYTES, &good, 1));
    reopen(&f, 0);
    assert_int_equal(f.seen_count, 4);
    fixture_finish(&f);
}

/* A sync failed and left pages that look clean. The next process reads them from memory, shows
 * them to readers, and must have made them durable first. */
static void test_replayed_records_are_durable(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < 40; seed++) {
        struct fixture f;
        fixture_init(&f, seed);
        reopen(&f, 0);
        write_records(&f, 10, 2);
        assert_int_equal(stage_next(&f), 0);
        fakedisk_fail(f.disk, CALL_FDATASYNC, 0, ERR_IO, false);
        assert_int_equal(wal_commit_now(f.wal), ERR_FAILED);
        assert_int_equal(wal_error(f.wal), ERR_IO);
        kill_log(&f);
        reopen(&f, 0);
        size_t seen = f.seen_count;
        assert_int_equal(seen, 11);
        fakedisk_crash(f.disk, seed);
        kill_log(&f);
        reopen(&f, 0);
        assert_int_equal(f.seen_count, seen);
        fixture_finish(&f);
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

/* A missing segment in the middle ends the log there; the later ones are renamed, not deleted. */
static void test_missing_segment_in_the_middle(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f, 1);
    reopen(&f, 0);
    write_records(&f, 150, 5);
    char path[2 * SEGMENT_PATH_MAX];
    (void)locate(&f, SEGMENT_BYTES_SMALL, path); /* in the second one */
    unsigned files = count_files(&f);
    kill_log(&f);
    assert_true(fakedisk_remove(f.disk, path));
    f.acked = 0;
    reopen(&f, 0);
    assert_true(f.seen_count > 0 && f.seen_count < 150);
    assert_int_equal(f.report.files_set_aside, files - 2);
    assert_non_null(strstr(f.report.text, "set aside"));
    write_records(&f, 30, 5);
    assert_true(count_files(&f) >= files - 2);
    kill_log(&f);
    f.report = (struct wal_report){0};
    reopen(&f, 0);
    assert_int_equal(f.report.files_set_aside, 0);
    fixture_finish(&f);
}

/* Without the segment that holds the checkpoint the log is refused, and nothing is touched. */
static void test_missing_first_segment(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f, 1);
    reopen(&f, 0);
    write_records(&f, 100, 5);
    char path[2 * SEGMENT_PATH_MAX];
    (void)locate(&f, 0, path);
    unsigned files = count_files(&f);
    kill_log(&f);
    assert_true(fakedisk_remove(f.disk, path));
    assert_int_equal(open_log(&f), ERR_MISMATCH);
    assert_non_null(strstr(f.msg.text, "missing"));
    assert_int_equal(count_files(&f), files - 1);
    fixture_finish(&f);
}

/* An empty directory is a new log only if there never was one. */
static void test_empty_directory(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f, 1);
    f.made = true;
    assert_int_equal(open_log(&f), ERR_MISMATCH);
    f.made = false;
    reopen(&f, 0);
    fixture_finish(&f);
}

/* Segments of another data directory are refused. */
static void test_foreign_segment(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f, 1);
    reopen(&f, 0);
    write_records(&f, 5, 5);
    char path[2 * SEGMENT_PATH_MAX];
    (void)locate(&f, 0, path);
    uint8_t header[64];
    kill_log(&f);
    assert_true(fakedisk_peek(f.disk, path, 0, header, sizeof(header)));
    header[16] ^= 1;
    bytes_put_u32(header + 52, crc32c(0, header, 52));
    assert_true(fakedisk_poke(f.disk, path, 0, header, sizeof(header)));
    assert_int_equal(open_log(&f), ERR_MISMATCH);
    assert_non_null(strstr(f.msg.text, "another data directory"));
    fixture_finish(&f);
}

/* A broken header page: the file is set aside and counts as missing. */
static void test_broken_header(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f, 1);
    reopen(&f, 0);
    write_records(&f, 150, 5);
    char path[2 * SEGMENT_PATH_MAX];
    (void)locate(&f, SEGMENT_BYTES_SMALL, path);
    unsigned files = count_files(&f);
    kill_log(&f);
    assert_true(fakedisk_poke(f.disk, path, 20, "x", 1));
    f.acked = 0;
    reopen(&f, 0);
    assert_true(f.seen_count > 0 && f.seen_count < 150);
    assert_int_equal(f.report.files_set_aside, files - 1);
    uint64_t size = 0;
    strcat(path, ".damaged");
    assert_true(fakedisk_file_size(f.disk, path, &size));
    fixture_finish(&f);
}

/* A file whose creation was cut short is removed without a word. */
static void test_unfinished_segment(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f, 1);
    reopen(&f, 0);
    write_records(&f, 5, 5);
    unsigned files = count_files(&f);
    kill_log(&f);
    struct sys *sys = fakedisk_sys(f.disk);
    int fd = sys->open(sys->context, DIR_PATH "/wal-0000000000100000", true);
    assert_true(fd >= 0);
    assert_int_equal(sys->allocate(sys->context, fd, SEGMENT_BYTES_SMALL), 0);
    assert_int_equal(sys->sync_dir(sys->context, DIR_PATH), 0);
    sys->close(sys->context, fd);
    reopen(&f, 0);
    assert_int_equal(f.seen_count, 5);
    assert_int_equal(f.report.files_set_aside, 0);
    assert_int_equal(count_files(&f), files);
    fixture_finish(&f);
}

/* The last file is shorter than it should be: what is missing reads as zeros, and writes have
 * room. */
static void test_short_last_segment(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f, 1);
    reopen(&f, 0);
    write_records(&f, 3, 1);
    log_pos keep = wal_durable(f.wal);
    write_records(&f, 1, 1);
    char path[2 * SEGMENT_PATH_MAX];
    uint64_t at = locate(&f, keep, path);
    kill_log(&f);
    assert_true(fakedisk_cut(f.disk, path, at + 20));
    f.acked = 3;
    reopen(&f, 0);
    assert_int_equal(f.seen_count, 3);
    write_records(&f, 40, 4);
    kill_log(&f);
    reopen(&f, 0);
    assert_int_equal(f.seen_count, 43);
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

/* A log that lies on a full disk opens and is read. */
static void test_opens_on_full_disk(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f, 1);
    reopen(&f, 0);
    write_records(&f, 50, 5);
    fakedisk_set_capacity(f.disk, fakedisk_used(f.disk));
    kill_log(&f);
    reopen(&f, 0);
    assert_int_equal(f.seen_count, 50);
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_reads_back),
        cmocka_unit_test(test_staged_is_not_written),
        cmocka_unit_test(test_one_notice_per_batch),
        cmocka_unit_test(test_power_loss_anywhere),
        cmocka_unit_test(test_fault_in_any_call),
        cmocka_unit_test(test_power_loss_in_recovery),
        cmocka_unit_test(test_zeroed_tail_at_every_byte),
        cmocka_unit_test(test_garbage_tail),
        cmocka_unit_test(test_stale_neighbours_stay_dead),
        cmocka_unit_test(test_old_header_is_zeroed),
        cmocka_unit_test(test_replayed_records_are_durable),
        cmocka_unit_test(test_recycled_frames_are_stale),
        cmocka_unit_test(test_missing_segment_in_the_middle),
        cmocka_unit_test(test_missing_first_segment),
        cmocka_unit_test(test_empty_directory),
        cmocka_unit_test(test_foreign_segment),
        cmocka_unit_test(test_broken_header),
        cmocka_unit_test(test_unfinished_segment),
        cmocka_unit_test(test_short_last_segment),
        cmocka_unit_test(test_recycling),
        cmocka_unit_test(test_full_disk),
        cmocka_unit_test(test_opens_on_full_disk),
        cmocka_unit_test(test_failure_sticks),
        cmocka_unit_test(test_busy),
        cmocka_unit_test(test_os_durability),
        cmocka_unit_test(test_long_directory),
        cmocka_unit_test(test_threads),
        cmocka_unit_test(test_flush_of_failed_log),
    };
    return UNIT_RUN(tests);
}
