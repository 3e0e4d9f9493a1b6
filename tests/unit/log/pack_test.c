/* Packs written, read, damaged, swept and dropped. */
#include "log/pack.c"

#include "sim/fakedisk.h"
#include "unit/base/unit.h"

#define DIR_PATH "/data/packs"

static const uint8_t uuid[16] = "0123456789abcde";

struct fixture {
    struct fakedisk *disk;
    struct pack_set *set;
    struct errmsg msg;
};

static void fixture_init(struct fixture *f, uint64_t seed)
{
    *f = (struct fixture){.disk = fakedisk_create(seed)};
    fakedisk_add_dir(f->disk, DIR_PATH);
    assert_int_equal(pack_set_open(fakedisk_sys(f->disk), DIR_PATH, uuid, &f->set, &f->msg), 0);
}

static void fixture_finish(struct fixture *f)
{
    pack_set_close(f->set);
    fakedisk_destroy(f->disk);
}

static void reopen(struct fixture *f)
{
    pack_set_close(f->set);
    fakedisk_restart(f->disk);
    assert_int_equal(pack_set_open(fakedisk_sys(f->disk), DIR_PATH, uuid, &f->set, &f->msg), 0);
}

/* Writes a pack with one extent of "hello, world" and marks "mm". */
static int write_pack(struct fixture *f, pack_id id, struct extent *ret_extent)
{
    struct pack_writer *w = NULL;
    int rc = pack_writer_create(f->set, id, true, &w);
    if (rc) {
        return rc;
    }
    struct slice pieces[] = {SLICE("hello,"), SLICE(" world")};
    rc = pack_writer_add(w, 9, 40, pieces, 2, SLICE("mm"), ret_extent);
    rc = rc ? rc : pack_writer_finish(w);
    pack_writer_destroy(w);
    return rc;
}

static bool pack_exists(struct fixture *f, pack_id id)
{
    char path[PACK_PATH_MAX];
    uint64_t size = 0;
    format_path(f->set, id, path);
    return fakedisk_file_size(f->disk, path, &size);
}

/* An extent is read back, whole or its marks alone, also after a power loss right after
 * finishing. */
static void test_read_back(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f, 1);
    struct extent e;
    assert_int_equal(write_pack(&f, 3, &e), 0);
    fakedisk_crash(f.disk, 5);
    reopen(&f);
    assert_int_equal(e.start, 40);
    assert_int_equal(e.len, 12);
    assert_int_equal(e.marks_len, 2);
    char data[12];
    char marks[2];
    assert_int_equal(pack_read_extent(f.set, &e, data, marks), 0);
    assert_memory_equal(data, "hello, world", 12);
    assert_memory_equal(marks, "mm", 2);
    memset(marks, 0, sizeof(marks));
    assert_int_equal(pack_read_marks(f.set, &e, marks), 0);
    assert_memory_equal(marks, "mm", 2);
    fixture_finish(&f);
}

/* Extents larger and smaller than the writer's buffer, one behind the other. */
static void test_many_sizes(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f, 1);
    struct pack_writer *w = NULL;
    assert_int_equal(pack_writer_create(f.set, 1, true, &w), 0);
    static const size_t sizes[] = {1, 300000, 7, 1048576, 3000000, 100, EXTENT_BYTES_MAX, 5};
    struct extent e[ARRAY_COUNT(sizes)];
    char *bytes = malloc(EXTENT_BYTES_MAX);
    assert_non_null(bytes);
    for (size_t i = 0; i < ARRAY_COUNT(sizes); i++) {
        memset(bytes, (int)i + 1, sizes[i]);
        struct slice piece = {bytes, sizes[i]};
        assert_int_equal(pack_writer_add(w, i + 1, 0, &piece, 1, SLICE("m"), &e[i]), 0);
    }
    assert_int_equal(pack_writer_finish(w), 0);
    uint64_t total = pack_writer_bytes(w);
    pack_writer_destroy(w);
    assert_int_equal(e[7].at + e[7].len + 1, total);
    for (size_t i = 0; i < ARRAY_COUNT(sizes); i++) {
        char mark = 0;
        assert_int_equal(pack_read_extent(f.set, &e[i], bytes, &mark), 0);
        assert_int_equal(bytes[0], i + 1);
        assert_int_equal(bytes[sizes[i] - 1], i + 1);
        assert_int_equal(mark, 'm');
    }
    free(bytes);
    fixture_finish(&f);
}

/* A flipped byte in data, marks or extent header is found by whoever reads it. */
static void test_damage(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f, 1);
    struct extent e;
    assert_int_equal(write_pack(&f, 1, &e), 0);
    char path[PACK_PATH_MAX];
    format_path(f.set, 1, path);
    char data[12];
    char marks[2];
    for (uint64_t at = e.at - PACK_EXTENT_HEADER_BYTES; at < e.at + e.len + e.marks_len; at++) {
        char good = 0;
        assert_true(fakedisk_peek(f.disk, path, at, &good, 1));
        char bad = (char)(good ^ 0x10);
        assert_true(fakedisk_poke(f.disk, path, at, &bad, 1));
        bool in_header = at < e.at;
        bool in_marks = at >= e.at + e.len;
        /* The header's own stream id and the data do not matter to the marks. */
        if (in_header || in_marks) {
            assert_int_equal(pack_read_marks(f.set, &e, marks), ERR_CORRUPT);
        }
        if (!in_header) {
            assert_int_equal(pack_read_extent(f.set, &e, data, marks), ERR_CORRUPT);
        }
        assert_true(fakedisk_poke(f.disk, path, at, &good, 1));
    }
    assert_true(fakedisk_cut(f.disk, path, e.at + e.len));
    assert_int_equal(pack_read_extent(f.set, &e, data, marks), ERR_CORRUPT);
    fixture_finish(&f);
}

/* A pack of another directory, or under another id's name, is not opened. */
static void test_header_is_proven(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f, 1);
    struct extent e;
    assert_int_equal(write_pack(&f, 1, &e), 0);
    char path[PACK_PATH_MAX];
    format_path(f.set, 1, path);
    assert_true(fakedisk_poke(f.disk, path, 16, "X", 1));
    struct pack *p = NULL;
    assert_int_equal(pack_get(f.set, 1, &p), ERR_CORRUPT);
    assert_int_equal(pack_get(f.set, 2, &p), ERR_NOTFOUND);
    assert_null(pack_try_get(f.set, 1));
    fixture_finish(&f);
}

/* Files that nobody names are removed when they are packs of this directory or empty, and renamed
 * otherwise; known ones stay, and missing ones are counted. */
static void test_sweep(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f, 1);
    struct extent e;
    for (pack_id id = 1; id <= 4; id++) {
        assert_int_equal(write_pack(&f, id, &e), 0);
    }
    char path[PACK_PATH_MAX];
    format_path(f.set, 3, path);
    assert_true(fakedisk_poke(f.disk, path, 0, "garbage", 7));
    format_path(f.set, 4, path);
    assert_true(fakedisk_cut(f.disk, path, 0));
    const pack_id known[] = {1, 77};
    struct pack_sweep sweep;
    assert_int_equal(pack_set_sweep(f.set, known, 2, &sweep), 0);
    assert_int_equal(sweep.missing, 1);
    assert_int_equal(sweep.removed, 2);
    assert_int_equal(sweep.set_aside, 1);
    assert_true(pack_exists(&f, 1));
    assert_false(pack_exists(&f, 2));
    assert_false(pack_exists(&f, 3));
    uint64_t size = 0;
    assert_true(fakedisk_file_size(f.disk, DIR_PATH "/pack-0000000000000003.damaged", &size));
    assert_int_equal(pack_set_sweep(f.set, known, 2, &sweep), 0);
    assert_int_equal(sweep.removed + sweep.set_aside, 0);
    fixture_finish(&f);
}

/* An abandoned writer leaves no file. */
static void test_abandoned_writer(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f, 1);
    struct pack_writer *w = NULL;
    assert_int_equal(pack_writer_create(f.set, 1, true, &w), 0);
    pack_writer_destroy(w);
    pack_writer_destroy(NULL);
    assert_false(pack_exists(&f, 1));
    fixture_finish(&f);
}

/* Whichever call fails, the writer says so and leaves no file; the next one succeeds. */
static void test_fault_in_any_call(void **state)
{
    (void)state;
    bool hit = true;
    for (uint64_t i = 0; hit; i++) {
        struct fixture f;
        fixture_init(&f, i);
        fakedisk_fail(f.disk, CALL_CHANGES, i, i % 2 ? ERR_IO : ERR_NOSPC, false);
        struct extent e;
        int rc = write_pack(&f, 1, &e);
        hit = fakedisk_fault_hit(f.disk);
        assert_int_equal(rc != 0, hit);
        assert_int_equal(pack_exists(&f, 1), !hit);
        fakedisk_fail(f.disk, CALL_ANY, 0, 0, false);
        assert_int_equal(write_pack(&f, 2, &e), 0);
        char data[12];
        char marks[2];
        assert_int_equal(pack_read_extent(f.set, &e, data, marks), 0);
        fixture_finish(&f);
    }
}

/* The second get of a pack opens nothing; a dropped pack is read to the end by who holds it. */
static void test_handles(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f, 1);
    struct extent e;
    assert_int_equal(write_pack(&f, 1, &e), 0);
    assert_null(pack_try_get(f.set, 1));
    struct pack *p = NULL;
    assert_int_equal(pack_get(f.set, 1, &p), 0);
    uint64_t opens = fakedisk_calls(f.disk, CALL_OPEN);
    struct pack *q = pack_try_get(f.set, 1);
    assert_ptr_equal(p, q);
    pack_unref(q);
    pack_set_drop(f.set, 1);
    assert_false(pack_exists(&f, 1));
    assert_null(pack_try_get(f.set, 1));
    char data[5];
    struct sys *sys = fakedisk_sys(f.disk);
    assert_int_equal(sys->pread(sys->context, p->fd, data, 5, e.at), 5);
    assert_memory_equal(data, "hello", 5);
    assert_int_equal(fakedisk_calls(f.disk, CALL_OPEN), opens);
    pack_unref(p);
    pack_unref(NULL);
    struct pack *gone = NULL;
    assert_int_equal(pack_get(f.set, 1, &gone), ERR_NOTFOUND);
    fixture_finish(&f);
}

/* At most PACK_FDS_MAX packs stay open; the idlest is closed for a new one, those in use never. */
static void test_descriptor_cap(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f, 1);
    struct extent e;
    struct pack *held = NULL;
    for (pack_id id = 1; id <= PACK_FDS_MAX + 10; id++) {
        assert_int_equal(write_pack(&f, id, &e), 0);
        struct pack *p = NULL;
        assert_int_equal(pack_get(f.set, id, &p), 0);
        if (id == 1) {
            held = p;
        } else {
            pack_unref(p);
        }
    }
    assert_int_equal(f.set->open.count, PACK_FDS_MAX);
    struct pack *p = pack_try_get(f.set, 1);
    assert_ptr_equal(p, held);
    pack_unref(p);
    pack_unref(held);
    assert_null(pack_try_get(f.set, 2));
    fixture_finish(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_read_back),
        cmocka_unit_test(test_many_sizes),
        cmocka_unit_test(test_damage),
        cmocka_unit_test(test_header_is_proven),
        cmocka_unit_test(test_sweep),
        cmocka_unit_test(test_abandoned_writer),
        cmocka_unit_test(test_fault_in_any_call),
        cmocka_unit_test(test_handles),
        cmocka_unit_test(test_descriptor_cap),
    };
    return UNIT_RUN(tests);
}
