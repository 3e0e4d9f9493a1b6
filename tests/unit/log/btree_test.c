/* The reader of the catalog's file: look-ups, walks, and memory that runs out. */
#include "unit/base/fault.h"

#include "log/btree.c"

#include "unit/log/verify_fixture.h"

static struct btree_file *open_file(const struct site *s)
{
    char path[256];
    struct btree_file *f = NULL;
    struct errmsg msg = {{0}};
    struct sys sys;
    sys_posix_init(&sys);
    static struct sys kept;
    kept = sys;
    site_path(s, CATALOG_FILE, path);
    assert_int_equal(btree_file_open(&kept, path, &f, &msg), 0);
    return f;
}

/* Every key that a walk shows is found, and what lies between is not. */
static void test_lookups(void **state)
{
    (void)state;
    struct site s = {0};
    struct btree names;
    struct btree_cursor walk;
    struct btree_cursor look;
    struct slice key;
    struct slice value;
    rig_open(&s.rig);
    for (unsigned i = 0; i < 700; i++) {
        char name[64];
        (void)snprintf(name, sizeof(name), "n/%05u/with-a-tail-that-makes-it-longer", i * 7);
        assert_int_equal(rig_put(&s.rig, name, "text/plain", ""), 0);
    }
    site_save(&s.rig);
    site_down(&s);
    struct btree_file *f = open_file(&s);
    assert_int_equal(btree_file_table(f, "names", &names), 0);
    assert_int_equal(names.entries, 700);
    assert_true(names.depth > 1);
    assert_int_equal(btree_file_table(f, "nothing", &names), ERR_NOTFOUND);
    assert_int_equal(btree_file_table(f, "names", &names), 0);
    btree_cursor_init(&walk, f, &names);
    btree_cursor_init(&look, f, &names);
    assert_int_equal(btree_cursor_seek(&walk, (struct slice){0}), 0);
    unsigned count = 0;
    while (btree_cursor_next(&walk, &key, &value) == 1) {
        char bytes[64];
        struct slice found;
        memcpy(bytes, key.ptr, key.len);
        assert_int_equal(btree_cursor_get(&look, (struct slice){bytes, key.len}, &found), 0);
        assert_true(slice_equal(found, value));
        bytes[key.len] = '!';
        assert_int_equal(btree_cursor_get(&look, (struct slice){bytes, key.len + 1}, &found),
                         ERR_NOTFOUND);
        count++;
    }
    assert_int_equal(count, 700);
    assert_int_equal(btree_cursor_get(&look, SLICE("zzz"), &value), ERR_NOTFOUND);
    assert_int_equal(btree_cursor_get(&look, SLICE("a"), &value), ERR_NOTFOUND);
    assert_int_equal(btree_cursor_seek(&look, SLICE("n/01400")), 0);
    assert_int_equal(btree_cursor_next(&look, &key, &value), 1);
    assert_memory_equal(key.ptr, "n/01400", 7);
    btree_cursor_finish(&walk);
    btree_cursor_finish(&look);
    btree_file_close(f);
    btree_file_close(NULL);
    site_remove(&s);
}

/* A note is longer than a page. */
static void test_large_values(void **state)
{
    (void)state;
    struct site s = {0};
    struct btree notes;
    struct btree_cursor c;
    struct slice value;
    static char large[20000];
    memset(large, 'n', sizeof(large) - 1);
    rig_open(&s.rig);
    struct buf batch;
    buf_init(&batch, 64 * 1024);
    note_put(&batch, SLICE("large"), slice_of(large));
    struct stream_op op = {.verb = STREAM_NOTE, .note = {.changes = buf_slice(&batch)}};
    assert_int_equal(rig_op(&s.rig, &op), 0);
    buf_finish(&batch);
    site_save(&s.rig);
    site_down(&s);
    site_expect_good(&s);
    struct btree_file *f = open_file(&s);
    assert_int_equal(btree_file_table(f, "notes", &notes), 0);
    btree_cursor_init(&c, f, &notes);
    assert_int_equal(btree_cursor_get(&c, SLICE("large"), &value), 0);
    assert_true(value.len > sizeof(large));
    assert_memory_equal(value.ptr + 1, large, sizeof(large) - 1);
    btree_cursor_finish(&c);
    btree_file_close(f);
    site_remove(&s);
}

static void test_no_memory(void **state)
{
    (void)state;
    struct site s;
    char path[256];
    site_build(&s);
    site_path(&s, CATALOG_FILE, path);
    int rc = ERR_NOMEM;
    for (long i = 0; rc != 0; i++) {
        struct btree_file *f = NULL;
        struct errmsg msg = {{0}};
        struct btree streams;
        struct btree_cursor c = {0};
        struct slice key;
        struct slice value;
        assert_true(i < 100);
        fault_countdown = i;
        rc = btree_file_open(&s.rig.sys, path, &f, &msg);
        rc = rc ? rc : btree_file_table(f, "streams", &streams);
        if (rc == 0) {
            btree_cursor_init(&c, f, &streams);
            rc = btree_cursor_seek(&c, (struct slice){0});
            rc = rc ? rc : btree_cursor_next(&c, &key, &value) == 1 ? 0 : ERR_NOMEM;
        }
        fault_countdown = -1;
        assert_true(rc == 0 || rc == ERR_NOMEM);
        btree_cursor_finish(&c);
        btree_file_close(f);
    }
    site_remove(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_lookups),
        cmocka_unit_test(test_large_values),
        cmocka_unit_test(test_no_memory),
    };
    return UNIT_RUN(tests);
}
