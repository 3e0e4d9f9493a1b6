/* Opening a store: what is refused, what is told, what is never given out twice. */
#include "log/local_open.c"

#include "unit/log/local_store_fixture.h"

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

/* Writes the number of a format into the catalog of a closed store. */
static void set_format(struct fixture *f, uint32_t format)
{
    struct catalog *c = NULL;
    struct catalog_state state;
    struct catalog_txn *t = NULL;
    assert_int_equal(
        catalog_open(fakedisk_sys(f->disk), f->catalog, true, NULL, &c, &state, &f->msg), 0);
    state.format = format;
    assert_int_equal(catalog_begin(c, &t), 0);
    catalog_put_state(t, &state);
    assert_int_equal(catalog_commit(t), 0);
    catalog_close(c);
}

/* Whatever writes records that an older version would take for the end of the log has a format that
 * this version refuses; the format of this one is there from the first opening on. */
static void test_formats(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f, 12);
    assert_int_equal(open_store(&f), 0);
    assert_int_equal(create(&f, 0), 0);
    assert_int_equal(append(&f, 0, 100), 0);
    assert_int_equal(commit(&f), 0);
    stream_id id = f.slots[0].id;
    assert_int_equal(f.store->ops->close(f.store, true), 0);
    set_format(&f, CATALOG_FORMAT_FIRST);
    assert_int_equal(open_store(&f), 0);
    assert_int_equal(local_of(f.store)->state.format, CATALOG_FORMAT);
    assert_int_equal(verify_extents(&f, id), 100);
    assert_int_equal(f.store->ops->close(f.store, false), 0);
    set_format(&f, CATALOG_FORMAT + 1);
    assert_int_equal(open_store(&f), ERR_MISMATCH);
    assert_non_null(strstr(f.msg.text, "this version knows 1 to 2"));
    f.store = NULL;
    fixture_finish(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_lock),      cmocka_unit_test(test_ids_grow),
        cmocka_unit_test(test_kinds),     cmocka_unit_test(test_memory_mode),
        cmocka_unit_test(test_lost_log),  cmocka_unit_test(test_lost_pack),
        cmocka_unit_test(test_long_path), cmocka_unit_test(test_formats),
    };
    return UNIT_RUN(tests);
}
