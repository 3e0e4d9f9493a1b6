/* Recovery of a log whose files are torn, damaged, missing or not its own. */
#include "unit/log/wal_fixture.h"

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
    char aside[2 * SEGMENT_PATH_MAX + 16];
    (void)snprintf(aside, sizeof(aside), "%s.damaged", path);
    assert_true(fakedisk_file_size(f.disk, aside, &size));
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

/* A file that was cut is told of, and what was left of it is kept as it was. */
static void test_cut_file_is_told(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f, 1);
    reopen(&f, 0);
    write_records(&f, 3, 1);
    log_pos keep = wal_durable(f.wal);
    write_records(&f, 1, 1);
    char path[2 * SEGMENT_PATH_MAX];
    char aside[2 * SEGMENT_PATH_MAX + 16];
    uint64_t at = locate(&f, keep, path);
    uint64_t whole = 0;
    assert_true(fakedisk_file_size(f.disk, path, &whole));
    kill_log(&f);
    assert_true(fakedisk_cut(f.disk, path, at));
    f.acked = 3;
    reopen(&f, 0);
    assert_int_equal(f.report.files_short, 1);
    assert_int_equal(f.report.short_bytes, whole - at);
    assert_non_null(strstr(f.report.text, "bytes short"));
    uint64_t kept = 0;
    (void)snprintf(aside, sizeof(aside), "%s.damaged", path);
    assert_true(fakedisk_file_size(f.disk, aside, &kept));
    assert_int_equal(kept, at);
    kill_log(&f);
    reopen(&f, 0);
    assert_int_equal(f.report.files_short, 0);
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

/* Writes four records, one that is then damaged, and `behind` more. */
static void damage_record(struct fixture *f, unsigned behind, char *ret_path)
{
    fixture_init(f, 1);
    reopen(f, 0);
    write_records(f, 4, 1);
    log_pos begin = wal_durable(f->wal);
    write_records(f, 1 + behind, 1);
    uint64_t at = locate(f, begin, ret_path);
    kill_log(f);
    assert_true(fakedisk_poke(f->disk, ret_path, at + RECORD_FRAME_BYTES, "\xff", 1));
    f->acked = 4;
}

static bool is_there(struct fixture *f, const char *path, const char *suffix)
{
    uint64_t size = 0;
    char whole[2 * SEGMENT_PATH_MAX + 16];
    (void)snprintf(whole, sizeof(whole), "%s%s", path, suffix);
    return fakedisk_file_size(f->disk, whole, &size);
}

/* One record in the middle is damaged: the whole ones behind it are copied aside, in all files that
 * hold them, before they are overwritten; once, and told. */
static void test_keeps_what_damage_strands(void **state)
{
    (void)state;
    struct fixture f;
    char path[2 * SEGMENT_PATH_MAX];
    damage_record(&f, 40, path);
    char before[SEGMENT_BYTES_SMALL];
    char after[SEGMENT_BYTES_SMALL];
    char copy[2 * SEGMENT_PATH_MAX + 16];
    assert_true(fakedisk_peek(f.disk, path, 0, before, sizeof(before)));
    reopen(&f, 0);
    assert_int_equal(f.seen_count, 4);
    assert_int_equal(f.report.stranded, 40);
    assert_true(f.report.files_copied > 1);
    assert_non_null(strstr(f.report.text, "40 whole records behind the damage were kept"));
    write_records(&f, 20, 5);
    fakedisk_crash(f.disk, 3);
    kill_log(&f);
    (void)snprintf(copy, sizeof(copy), "%s.damaged", path);
    assert_true(fakedisk_peek(f.disk, copy, 0, after, sizeof(after)));
    assert_memory_equal(before, after, sizeof(before));
    reopen(&f, 0);
    assert_int_equal(f.seen_count, 24);
    assert_int_equal(f.report.stranded, 0);
    fixture_finish(&f);
}

/* Kept once: a second start without any append in between finds nothing to keep. */
static void test_keeps_stranded_records_once(void **state)
{
    (void)state;
    struct fixture f;
    char path[2 * SEGMENT_PATH_MAX];
    damage_record(&f, 3, path);
    reopen(&f, 0);
    assert_int_equal(f.report.stranded, 3);
    kill_log(&f);
    reopen(&f, 0);
    assert_int_equal(f.report.stranded, 0);
    assert_true(is_there(&f, path, ".damaged"));
    assert_false(is_there(&f, path, ".damaged.1"));
    fixture_finish(&f);
}

/* Without room for the copy the log opens all the same and says so; no half copy stays. The next
 * start, with room, keeps them. */
static void test_stranded_records_on_full_disk(void **state)
{
    (void)state;
    struct fixture f;
    char path[2 * SEGMENT_PATH_MAX];
    damage_record(&f, 3, path);
    fakedisk_set_capacity(f.disk, fakedisk_used(f.disk) + 100);
    reopen(&f, 0);
    assert_int_equal(f.seen_count, 4);
    assert_int_equal(f.report.copy_error, ERR_NOSPC);
    assert_non_null(strstr(f.report.text, "could not be kept"));
    assert_false(is_there(&f, path, ".damaged"));
    kill_log(&f);
    fakedisk_set_capacity(f.disk, UINT64_MAX);
    reopen(&f, 0);
    assert_int_equal(f.report.stranded, 3);
    assert_int_equal(f.report.copy_error, 0);
    assert_true(is_there(&f, path, ".damaged"));
    fixture_finish(&f);
}

/* Power is lost in any call that keeps records: either they are still in the log or the copy is
 * whole. */
static void test_power_loss_while_keeping(void **state)
{
    (void)state;
    bool crashed = true;
    for (uint64_t i = 0; crashed; i++) {
        struct fixture f;
        char path[2 * SEGMENT_PATH_MAX];
        damage_record(&f, 3, path);
        fakedisk_crash_at(f.disk, i);
        (void)!open_log(&f);
        crashed = fakedisk_crashed(f.disk);
        kill_log(&f);
        reopen(&f, 0);
        assert_int_equal(f.seen_count, 4);
        assert_true(f.report.stranded == 3 || is_there(&f, path, ".damaged"));
        fixture_finish(&f);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_power_loss_in_recovery),
        cmocka_unit_test(test_zeroed_tail_at_every_byte),
        cmocka_unit_test(test_garbage_tail),
        cmocka_unit_test(test_stale_neighbours_stay_dead),
        cmocka_unit_test(test_old_header_is_zeroed),
        cmocka_unit_test(test_replayed_records_are_durable),
        cmocka_unit_test(test_missing_segment_in_the_middle),
        cmocka_unit_test(test_missing_first_segment),
        cmocka_unit_test(test_empty_directory),
        cmocka_unit_test(test_foreign_segment),
        cmocka_unit_test(test_broken_header),
        cmocka_unit_test(test_unfinished_segment),
        cmocka_unit_test(test_short_last_segment),
        cmocka_unit_test(test_cut_file_is_told),
        cmocka_unit_test(test_opens_on_full_disk),
        cmocka_unit_test(test_keeps_what_damage_strands),
        cmocka_unit_test(test_keeps_stranded_records_once),
        cmocka_unit_test(test_stranded_records_on_full_disk),
        cmocka_unit_test(test_power_loss_while_keeping),
    };
    return UNIT_RUN(tests);
}
