/* The text of a manifest: round trips, and that nothing else is taken for one. */
#include "log/manifest.c"

#include <stdlib.h>

#include "unit/base/unit.h"

static void put(struct buf *out)
{
    struct manifest_head head = {.from = 8, .to = 4096};
    struct manifest_file file = {.bytes = 12288, .crc = 0xabcdef01};
    for (unsigned i = 0; i < 16; i++) {
        head.uuid[i] = (uint8_t)(i * 17);
    }
    buf_init(out, 4096);
    manifest_put_head(out, &head);
    memcpy(file.name, "wal/wal-0000000000000008", 25);
    manifest_put_file(out, &file);
    memcpy(file.name, "catalog/data.mdb", 17);
    file.bytes = 0;
    manifest_put_file(out, &file);
    manifest_put_end(out);
    assert_false(out->failed);
}

static int count_file(void *context, const struct manifest_file *file)
{
    unsigned *count = context;
    assert_int_equal(file->crc, 0xabcdef01);
    ++*count;
    return 0;
}

static void test_round_trip(void **state)
{
    (void)state;
    struct buf text;
    struct manifest_head head;
    struct errmsg msg = {{0}};
    unsigned count = 0;
    put(&text);
    assert_int_equal(manifest_read(buf_slice(&text), &head, count_file, &count, &msg), 0);
    assert_int_equal(count, 2);
    assert_int_equal(head.from, 8);
    assert_int_equal(head.to, 4096);
    assert_int_equal(head.uuid[3], 51);
    assert_int_equal(head.uuid[15], 255);
    buf_finish(&text);
}

/* Cut anywhere, or with any bit changed, it is refused before a file is named. */
static void test_damage(void **state)
{
    (void)state;
    struct buf text;
    struct manifest_head head;
    struct errmsg msg = {{0}};
    unsigned count = 0;
    put(&text);
    for (size_t len = 0; len < text.len; len++) {
        struct slice cut = {text.ptr, len};
        assert_int_equal(manifest_read(cut, &head, count_file, &count, &msg), ERR_CORRUPT);
    }
    for (size_t i = 0; i < text.len * 8; i++) {
        text.ptr[i / 8] ^= (char)(1 << i % 8);
        assert_true(manifest_read(buf_slice(&text), &head, count_file, &count, &msg) < 0);
        text.ptr[i / 8] ^= (char)(1 << i % 8);
    }
    assert_int_equal(count, 0);
    buf_finish(&text);
}

/* With its checksum made right, a text is taken as strictly. */
static void test_odd_texts(void **state)
{
    static const char *const bodies[] = {
        "",
        "arbe-backup 1\n",
        "arbe-backup 1\nuuid 00\nlog 0 0\n",
        "arbe-backup 1\nuuid 000102030405060708090a0b0c0d0e0F\nlog 0 0\n",
        "arbe-backup 1\nuuid 000102030405060708090a0b0c0d0e0f\nlog 8 0\n",
        "arbe-backup 1\nuuid 000102030405060708090a0b0c0d0e0f\nlog 0 0\nfile 1 00000000 ../x\n",
        "arbe-backup 1\nuuid 000102030405060708090a0b0c0d0e0f\nlog 0 0\nfile 1 0000000 wal/x\n",
        "arbe-backup 1\nuuid 000102030405060708090a0b0c0d0e0f\nlog 0 0\nfile -1 00000000 wal/x\n",
        "arbe-backup 1\nuuid 000102030405060708090a0b0c0d0e0f\nlog 0 0\nfile 1 00000000\n",
        "arbe-backup 1\nuuid 000102030405060708090a0b0c0d0e0f\nlog 0 0\nmore\n",
    };
    (void)state;
    for (size_t i = 0; i <= ARRAY_COUNT(bodies); i++) {
        struct buf text;
        struct manifest_head head;
        struct errmsg msg = {{0}};
        unsigned count = 0;
        bool known = i < ARRAY_COUNT(bodies);
        buf_init(&text, 4096);
        buf_append(&text, slice_of(known ? bodies[i] : "arbe-backup 2\nanything\n"));
        manifest_put_end(&text);
        assert_int_equal(manifest_read(buf_slice(&text), &head, count_file, &count, &msg),
                         known ? ERR_CORRUPT : ERR_MISMATCH);
        assert_int_equal(count, 0);
        buf_finish(&text);
    }
}

static void test_names(void **state)
{
    static const char *const good[] = {"catalog/data.mdb", "wal/wal-0", "packs/p", "keys/keys.pem",
                                       "app.db"};
    static const char *const bad[] = {"",           "wal",        "wal/",      "/wal/x",
                                      "wal/../x",   "packs/.x",   "packs/a/b", "catalog/lock.mdb",
                                      "lock",       "keys/a b",   "wal/\n",    "manifest",
                                      "app.db-wal", "app.db.part"};
    (void)state;
    for (size_t i = 0; i < ARRAY_COUNT(good); i++) {
        assert_true(manifest_name_good(slice_of(good[i])));
    }
    for (size_t i = 0; i < ARRAY_COUNT(bad); i++) {
        assert_false(manifest_name_good(slice_of(bad[i])));
    }
    char name[200] = "packs/";
    memset(name + 6, 'x', sizeof(name) - 7);
    name[sizeof(name) - 1] = '\0';
    assert_false(manifest_name_good(slice_of(name)));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_round_trip),
        cmocka_unit_test(test_damage),
        cmocka_unit_test(test_odd_texts),
        cmocka_unit_test(test_names),
    };
    return UNIT_RUN(tests);
}
