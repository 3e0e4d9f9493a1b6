/* Segment files, made and recycled with faults and crashes. */
#include "log/segment.c"

#include "sim/fakedisk.h"
#include "unit/base/unit.h"

#define DIR_PATH "/w"

struct fixture {
    struct fakedisk *disk;
    struct segment_dir dir;
};

static void fixture_init(struct fixture *f, uint64_t seed)
{
    *f = (struct fixture){.disk = fakedisk_create(seed)};
    fakedisk_add_dir(f->disk, DIR_PATH);
    f->dir = (struct segment_dir){.sys = fakedisk_sys(f->disk),
                                  .path = DIR_PATH,
                                  .uuid = "0123456789abcde",
                                  .segment_bytes = 16384,
                                  .zero_fill = true};
}

static enum segment_state state_of(struct fixture *f, uint64_t number, struct segment **ret_segment)
{
    char name[SEGMENT_PATH_MAX];
    enum segment_state state = SEGMENT_GOOD;
    segment_format_name(number, name);
    assert_int_equal(segment_open(&f->dir, name, &state, ret_segment), 0);
    return state;
}

/* A segment is found again after a power loss right after its creation. */
static void test_create(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f, 1);
    struct segment *s = NULL;
    assert_int_equal(segment_create(&f.dir, 4096, &s), 0);
    assert_int_equal(segment_end(s), 4096 + 12288);
    assert_int_equal(segment_offset(s, 4097), 4097);
    segment_close(&f.dir, s);
    fakedisk_crash(f.disk, 3);
    fakedisk_restart(f.disk);
    assert_int_equal(state_of(&f, 4096, &s), SEGMENT_GOOD);
    assert_int_equal(s->start, 4096);
    assert_int_equal(s->bytes, 12288);
    assert_int_equal(s->generation, 0);
    segment_close(&f.dir, s);
    segment_close(&f.dir, NULL);
    fakedisk_destroy(f.disk);
}

/* Whichever call fails while a segment is made, the next attempt succeeds. */
static void test_create_with_faults(void **state)
{
    (void)state;
    bool hit = true;
    for (uint64_t i = 0; hit; i++) {
        struct fixture f;
        fixture_init(&f, i);
        struct segment *s = NULL;
        fakedisk_fail(f.disk, CALL_ANY, i, ERR_NOSPC, false);
        int rc = segment_create(&f.dir, 0, &s);
        hit = fakedisk_fault_hit(f.disk);
        assert_int_equal(rc, hit ? ERR_NOSPC : 0);
        if (rc == 0) {
            segment_close(&f.dir, s);
        }
        fakedisk_fail(f.disk, CALL_ANY, 0, 0, false);
        assert_int_equal(segment_create(&f.dir, 0, &s), 0);
        segment_close(&f.dir, s);
        fakedisk_destroy(f.disk);
    }
}

/* A crash in any call of recycling leaves a segment with its old or its new place. */
static void test_recycle_with_crashes(void **state)
{
    (void)state;
    bool crashed = true;
    for (uint64_t i = 0; crashed; i++) {
        struct fixture f;
        fixture_init(&f, i);
        struct segment *s = NULL;
        assert_int_equal(segment_create(&f.dir, 0, &s), 0);
        fakedisk_crash_at(f.disk, i);
        int rc = segment_recycle(&f.dir, s, 65536);
        crashed = fakedisk_crashed(f.disk);
        assert_true(rc == 0 || crashed);
        segment_close(&f.dir, s);
        fakedisk_restart(f.disk);
        char name[SEGMENT_PATH_MAX];
        enum segment_state judged = SEGMENT_DAMAGED;
        segment_format_name(0, name);
        if (segment_open(&f.dir, name, &judged, &s) == ERR_NOTFOUND) {
            judged = state_of(&f, 65536, &s);
        }
        assert_int_equal(judged, SEGMENT_GOOD);
        assert_true(s->start == 0 || (s->start == 65536 && s->generation == 1));
        segment_close(&f.dir, s);
        fakedisk_destroy(f.disk);
    }
}

/* Headers that are damaged, foreign or of another format are told apart. */
static void test_states(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f, 1);
    struct segment *s = NULL;
    const char *path = DIR_PATH "/wal-0000000000000000";
    assert_int_equal(segment_create(&f.dir, 0, &s), 0);
    segment_close(&f.dir, s);
    f.dir.uuid[0] ^= 1;
    assert_int_equal(state_of(&f, 0, &s), SEGMENT_FOREIGN);
    f.dir.uuid[0] ^= 1;
    uint8_t header[64];
    assert_true(fakedisk_peek(f.disk, path, 0, header, sizeof(header)));
    header[8] = 2;
    bytes_put_u32(header + HEADER_CRC_AT, crc32c(0, header, HEADER_CRC_AT));
    assert_true(fakedisk_poke(f.disk, path, 0, header, sizeof(header)));
    assert_int_equal(state_of(&f, 0, &s), SEGMENT_FORMAT);
    header[9] = 1;
    assert_true(fakedisk_poke(f.disk, path, 0, header, sizeof(header)));
    assert_int_equal(state_of(&f, 0, &s), SEGMENT_DAMAGED);
    header[8] = 1;
    header[9] = 0;
    header[40] = 1; /* a size that is no multiple of a page */
    bytes_put_u32(header + HEADER_CRC_AT, crc32c(0, header, HEADER_CRC_AT));
    assert_true(fakedisk_poke(f.disk, path, 0, header, sizeof(header)));
    assert_int_equal(state_of(&f, 0, &s), SEGMENT_DAMAGED);
    assert_true(fakedisk_cut(f.disk, path, 10));
    assert_int_equal(state_of(&f, 0, &s), SEGMENT_DAMAGED);
    assert_true(fakedisk_cut(f.disk, path, 0));
    assert_int_equal(state_of(&f, 0, &s), SEGMENT_UNFINISHED);
    fakedisk_destroy(f.disk);
}

/* Setting aside never lands on a file that was set aside before. */
static void test_set_aside(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f, 1);
    uint64_t size = 0;
    const char *names[] = {".damaged", ".damaged.1", ".damaged.2"};
    for (size_t i = 0; i < 3; i++) {
        struct segment *s = NULL;
        assert_int_equal(segment_create(&f.dir, 0, &s), 0);
        segment_close(&f.dir, s);
        assert_int_equal(segment_set_aside(&f.dir, "wal-0000000000000000"), 0);
        char path[SEGMENT_PATH_MAX];
        (void)snprintf(path, sizeof(path), "%s/wal-0000000000000000%s", DIR_PATH, names[i]);
        assert_true(fakedisk_file_size(f.disk, path, &size));
    }
    assert_int_equal(segment_set_aside(&f.dir, "wal-0000000000000001"), ERR_NOTFOUND);
    fakedisk_destroy(f.disk);
}

/* Only exact names are segments. */
static void test_names(void **state)
{
    (void)state;
    uint64_t number = 0;
    assert_true(segment_parse_name("wal-00000000000000ff", &number));
    assert_int_equal(number, 255);
    const char *wrong[] = {"wal-00000000000000f",   "wal-00000000000000FF",
                           "wal-00000000000000fg",  "wal-00000000000000ff0",
                           "pack-0000000000000000", "wal-0000000000000000.damaged"};
    for (size_t i = 0; i < ARRAY_COUNT(wrong); i++) {
        assert_false(segment_parse_name(wrong[i], &number));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_create),
        cmocka_unit_test(test_create_with_faults),
        cmocka_unit_test(test_recycle_with_crashes),
        cmocka_unit_test(test_states),
        cmocka_unit_test(test_set_aside),
        cmocka_unit_test(test_names),
    };
    return UNIT_RUN(tests);
}
