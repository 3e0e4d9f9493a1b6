/* The catalog opened, read and walked. */
#include "log/catalog.c"

#include <sys/stat.h>

#include "unit/log/catalog_fixture.h"

/* A new catalog has an id of its own, which stays. */
static void test_new_catalog(void **state)
{
    (void)state;
    struct catalog_fixture f;
    fixture_init(&f);
    assert_int_equal(f.state.epoch, 0);
    assert_int_equal(f.state.format, CATALOG_FORMAT);
    assert_int_equal(f.state.next_stream, 1);
    assert_int_equal(f.state.next_pack, 1);
    assert_int_equal(catalog_count(f.catalog), 0);
    uint8_t uuid[16];
    memcpy(uuid, f.state.uuid, sizeof(uuid));
    fixture_reopen(&f);
    assert_memory_equal(f.state.uuid, uuid, sizeof(uuid));
    fixture_finish(&f);
}

/* Adds "key=value;" to a text of 64 bytes. */
static int collect_note(void *context, struct slice key, struct slice value)
{
    char *out = context;
    size_t len = strlen(out);
    (void)snprintf(out + len, 64 - len, "%.*s=%.*s;", (int)key.len, key.ptr, (int)value.len,
                   value.ptr);
    return 0;
}

/* The state is what was written last; another format is refused with a sentence. */
static void test_state(void **state)
{
    (void)state;
    struct catalog_fixture f;
    fixture_init(&f);
    struct catalog_state s = f.state;
    s.epoch = 9;
    s.checkpoint = 64;
    struct catalog_txn *t = fixture_begin(&f);
    catalog_put_state(t, &s);
    assert_int_equal(catalog_commit(t), 0);
    fixture_reopen(&f);
    assert_int_equal(f.state.epoch, 9);
    assert_int_equal(f.state.checkpoint, 64);
    s.format = CATALOG_FORMAT + 1;
    t = fixture_begin(&f);
    catalog_put_state(t, &s);
    assert_int_equal(catalog_commit(t), 0);
    catalog_close(f.catalog);
    f.catalog = NULL;
    int rc = catalog_open(fakedisk_sys(f.disk), f.dir, true, NULL, &f.catalog, &f.state, &f.msg);
    assert_int_equal(rc, ERR_MISMATCH);
    assert_non_null(strstr(f.msg.text, "format 3"));
    fixture_finish(&f);
}

/* A catalog of the first format has no notes and no totals: both are there once it was opened. */
static void test_first_format(void **state)
{
    (void)state;
    struct catalog_fixture f;
    fixture_init(&f);
    struct stream_meta meta = fixture_meta(1, "a", 0);
    fixture_put(&f, &meta);
    struct catalog_state s = f.state;
    uint8_t bytes[CATALOG_STATE_BYTES];
    s.format = CATALOG_FORMAT_FIRST;
    s.counted = 0;
    catalog_encode_state(&s, bytes);
    MDB_txn *txn = NULL;
    MDB_val key = catalog_val(CATALOG_STATE_KEY, strlen(CATALOG_STATE_KEY));
    MDB_val value = catalog_val(bytes, sizeof(bytes));
    assert_int_equal(mdb_txn_begin(f.catalog->env, NULL, 0, &txn), 0);
    assert_int_equal(mdb_put(txn, f.catalog->tables[TABLE_META], &key, &value, 0), 0);
    assert_int_equal(mdb_drop(txn, f.catalog->tables[TABLE_NOTES], 1), 0);
    assert_int_equal(mdb_txn_commit(txn), 0);
    fixture_reopen(&f);
    assert_int_equal(f.state.format, CATALOG_FORMAT_FIRST);
    assert_int_equal(catalog_get_totals(f.catalog).streams, 1);
    assert_int_equal(f.state.counted, 1);
    struct catalog_txn *t = fixture_begin(&f);
    catalog_put_note(t, SLICE("k"), SLICE("v"));
    assert_int_equal(catalog_commit(t), 0);
    fixture_reopen(&f);
    char notes[64] = "";
    assert_int_equal(catalog_each_note(f.catalog, SLICE(""), collect_note, notes, &f.msg), 0);
    assert_string_equal(notes, "k=v;");
    fixture_finish(&f);
}

/* A directory that is not there, and a file that is no LMDB environment. */
static void test_open_errors(void **state)
{
    (void)state;
    struct catalog_fixture f;
    fixture_init(&f);
    struct catalog *c = NULL;
    struct catalog_state s;
    int rc = catalog_open(fakedisk_sys(f.disk), "/nonexistent/x", true, NULL, &c, &s, &f.msg);
    assert_int_equal(rc, ERR_NOTFOUND);
    assert_non_null(strstr(f.msg.text, "/nonexistent/x"));
    catalog_close(f.catalog);
    f.catalog = NULL;
    char path[128];
    (void)snprintf(path, sizeof(path), "%s/data.mdb", f.dir);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    for (int i = 0; i < 10000; i++) {
        assert_int_equal(fputs("garbage ", file) >= 0, 1);
    }
    assert_int_equal(fclose(file), 0);
    rc = catalog_open(fakedisk_sys(f.disk), f.dir, true, NULL, &c, &s, &f.msg);
    assert_int_equal(rc, ERR_CORRUPT);
    fixture_finish(&f);
}

/* Cut to any length, it is refused or whole, never the end of the process (LMDB maps the file). */
static void test_cut(void **state)
{
    (void)state;
    char path[128];
    struct catalog_fixture f;
    fixture_init(&f);
    struct catalog_txn *t = fixture_begin(&f);
    for (stream_id id = 1; id <= 400; id++) {
        char name[16];
        (void)snprintf(name, sizeof(name), "s%u", (unsigned)id);
        struct stream_meta meta = fixture_meta(id, name, 1);
        catalog_put_stream(t, &meta);
    }
    assert_int_equal(catalog_commit(t), 0);
    catalog_close(f.catalog);
    f.catalog = NULL;
    (void)snprintf(path, sizeof(path), "%s/data.mdb", f.dir);
    struct stat file;
    assert_int_equal(stat(path, &file), 0);
    int refused = 0;
    for (off_t size = file.st_size - 4096; size >= 0; size -= 4096) {
        struct catalog *c = NULL;
        struct catalog_state s;
        assert_int_equal(truncate(path, size), 0);
        int rc = catalog_open(fakedisk_sys(f.disk), f.dir, true, NULL, &c, &s, &f.msg);
        for (stream_id id = 1; rc == 0 && id <= 400; id++) {
            struct catalog_stream loaded;
            rc = catalog_load(c, id, &loaded);
            if (rc == 0) {
                catalog_stream_finish(&loaded);
            }
        }
        catalog_close(c);
        if (size > 0 && rc) {
            assert_int_equal(rc, ERR_CORRUPT);
            refused++;
        }
    }
    assert_true(refused > 0);
    fixture_finish(&f);
}

/* A stream is found by name and loaded with its extents and producers, all of it a copy. */
static void test_load(void **state)
{
    (void)state;
    struct catalog_fixture f;
    fixture_init(&f);
    struct catalog_txn *t = fixture_begin(&f);
    struct stream_meta meta = fixture_meta(5, "a", 30);
    struct extent e1 = {.start = 0, .len = 10, .marks_len = 1, .pack = 1, .at = 112, .crc = 1};
    struct extent e2 = {.start = 10, .len = 20, .marks_len = 1, .pack = 1, .at = 200, .crc = 2};
    struct producer_meta p1 = {.id = SLICE("p1"), .epoch = 1, .seq = 2, .used_ms = 3};
    struct producer_meta p2 = {.id = SLICE("p2"), .epoch = 4, .seq = 5, .used_ms = 6};
    catalog_add_extent(t, 5, &e1);
    catalog_add_extent(t, 5, &e2);
    catalog_put_stream(t, &meta);
    catalog_put_producer(t, 5, &p2);
    catalog_put_producer(t, 5, &p1);
    assert_int_equal(catalog_commit(t), 0);
    fixture_put(&f, &(struct stream_meta){.id = 6,
                                          .name = SLICE("b"),
                                          .ttl_seconds = UINT64_MAX,
                                          .expires_at_ms = INT64_MAX});
    stream_id id = 0;
    assert_int_equal(catalog_find(f.catalog, SLICE("a"), &id), 0);
    assert_int_equal(id, 5);
    assert_int_equal(catalog_find(f.catalog, SLICE("c"), &id), ERR_NOTFOUND);
    assert_int_equal(catalog_find(f.catalog, SLICE(""), &id), ERR_NOTFOUND);
    struct catalog_stream s;
    assert_int_equal(catalog_load(f.catalog, 5, &s), 0);
    fixture_put(&f, &meta); /* would move what is not a copy */
    assert_true(slice_equal(s.meta.name, SLICE("a")));
    assert_true(slice_equal(s.meta.content_type, SLICE("text/plain")));
    assert_int_equal(s.extent_count, 2);
    assert_int_equal(s.extents[1].start, 10);
    assert_int_equal(s.extents[1].at, 200);
    assert_int_equal(s.producer_count, 2);
    assert_true(slice_equal(s.producers[0].id, SLICE("p1")));
    assert_int_equal(s.producers[1].used_ms, 6);
    catalog_stream_finish(&s);
    assert_int_equal(catalog_load(f.catalog, 6, &s), 0);
    assert_int_equal(s.extent_count + s.producer_count, 0);
    catalog_stream_finish(&s);
    assert_int_equal(catalog_load(f.catalog, 7, &s), ERR_NOTFOUND);
    assert_int_equal(catalog_count(f.catalog), 2);
    fixture_finish(&f);
}

/* Extents that do not reach from the fork offset to the tail are corruption, not a shorter
 * stream. */
static void test_gaps_are_corrupt(void **state)
{
    (void)state;
    struct catalog_fixture f;
    fixture_init(&f);
    struct stream_meta meta = fixture_meta(5, "a", 30);
    fixture_put(&f, &meta);
    struct catalog_stream s;
    assert_int_equal(catalog_load(f.catalog, 5, &s), ERR_CORRUPT);
    struct catalog_txn *t = fixture_begin(&f);
    catalog_add_extent(t, 5, &(struct extent){.start = 1, .len = 29, .pack = 1, .at = 112});
    assert_int_equal(catalog_commit(t), 0);
    assert_int_equal(catalog_load(f.catalog, 5, &s), ERR_CORRUPT);
    fixture_finish(&f);
}

/* A list goes by name, within a prefix, after a name, up to a limit. */
static void test_list(void **state)
{
    (void)state;
    struct catalog_fixture f;
    fixture_init(&f);
    const char *names[] = {"b/2", "a/1", "b/1", "b", "c", "b/10"};
    for (size_t i = 0; i < 6; i++) {
        struct stream_meta meta = fixture_meta(i + 1, names[i], 0);
        fixture_put(&f, &meta);
    }
    char seen[256] = "";
    struct slice none = SLICE("");
    assert_int_equal(catalog_list(f.catalog, none, none, 100, fixture_collect, seen), 0);
    assert_string_equal(seen, "a/1 b b/1 b/10 b/2 c");
    seen[0] = '\0';
    assert_int_equal(catalog_list(f.catalog, SLICE("b/"), none, 100, fixture_collect, seen), 0);
    assert_string_equal(seen, "b/1 b/10 b/2");
    seen[0] = '\0';
    assert_int_equal(catalog_list(f.catalog, SLICE("b/"), SLICE("b/1"), 1, fixture_collect, seen),
                     0);
    assert_string_equal(seen, "b/10");
    seen[0] = '\0';
    assert_int_equal(catalog_list(f.catalog, none, SLICE("c"), 9, fixture_collect, seen), 0);
    assert_string_equal(seen, "");
    assert_int_equal(catalog_list(f.catalog, none, none, 0, fixture_collect, seen), 0);
    assert_string_equal(seen, "");
    fixture_finish(&f);
}

static int stop_with(void *context, const struct stream_meta *meta)
{
    (void)meta; /* whichever comes first */
    return *(int *)context;
}

/* A walk ends with what its callback returns. */
static void test_walk_stops(void **state)
{
    (void)state;
    struct catalog_fixture f;
    fixture_init(&f);
    struct stream_meta meta = fixture_meta(1, "a", 0);
    fixture_put(&f, &meta);
    int code = ERR_STOPPING;
    struct slice none = SLICE("");
    assert_int_equal(catalog_list(f.catalog, none, none, 9, stop_with, &code), ERR_STOPPING);
    fixture_finish(&f);
}

/* Expired streams come earliest first; renewing or removing a deadline moves the entry. */
static void test_expired(void **state)
{
    (void)state;
    struct catalog_fixture f;
    fixture_init(&f);
    struct stream_meta a = fixture_meta(1, "a", 0);
    struct stream_meta b = fixture_meta(2, "b", 0);
    struct stream_meta c = fixture_meta(3, "c", 0);
    a.expires_at_ms = 2000;
    b.ttl_seconds = 1;
    b.accessed_ms = 0; /* at 1,125 with the slack */
    fixture_put(&f, &a);
    fixture_put(&f, &b);
    fixture_put(&f, &c);
    char seen[256] = "";
    assert_int_equal(catalog_expired(f.catalog, 1124, 9, fixture_collect, seen), 0);
    assert_string_equal(seen, "");
    assert_int_equal(catalog_expired(f.catalog, 5000, 9, fixture_collect, seen), 0);
    assert_string_equal(seen, "b a");
    b.accessed_ms = 4000;
    fixture_put(&f, &b);
    fixture_put(&f, &b);
    seen[0] = '\0';
    assert_int_equal(catalog_expired(f.catalog, 5000, 9, fixture_collect, seen), 0);
    assert_string_equal(seen, "a");
    a.soft_deleted = true;
    fixture_put(&f, &a);
    seen[0] = '\0';
    assert_int_equal(catalog_expired(f.catalog, 6000, 9, fixture_collect, seen), 0);
    assert_string_equal(seen, "b");
    a.soft_deleted = false;
    fixture_put(&f, &a);
    seen[0] = '\0';
    assert_int_equal(catalog_expired(f.catalog, 6000, 1, fixture_collect, seen), 0);
    assert_string_equal(seen, "a");
    assert_int_equal(catalog_expired(f.catalog, -1, 9, fixture_collect, seen), 0);
    assert_string_equal(seen, "a");
    fixture_finish(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_new_catalog),
        cmocka_unit_test(test_state),
        cmocka_unit_test(test_first_format),
        cmocka_unit_test(test_open_errors),
        cmocka_unit_test(test_cut),
        cmocka_unit_test(test_load),
        cmocka_unit_test(test_gaps_are_corrupt),
        cmocka_unit_test(test_list),
        cmocka_unit_test(test_walk_stops),
        cmocka_unit_test(test_expired),
    };
    return UNIT_RUN(tests);
}
