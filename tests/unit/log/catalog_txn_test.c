/* Write transactions of the catalog, and what must hold between its tables. */
#include "unit/base/fault.h"

#include "log/catalog_txn.c"

#undef malloc
#undef calloc
#undef realloc

#include "unit/log/catalog_fixture.h"

static struct extent make_extent(uint64_t start, uint32_t len, pack_id pack, uint64_t at)
{
    return (struct extent){
        .start = start, .len = len, .marks_len = 2, .pack = pack, .at = at, .crc = 7};
}

static struct fixture_pack last_pack(struct catalog_fixture *f)
{
    struct fixture_pack p = {0};
    assert_int_equal(catalog_each_pack(f->catalog, fixture_last_pack, &p), 0);
    return p;
}

/* An aborted transaction, and one that the disk refuses to commit, leave nothing. */
static void test_nothing_without_commit(void **state)
{
    (void)state;
    struct catalog_fixture f;
    fixture_init(&f);
    struct stream_meta meta = fixture_meta(1, "a", 0);
    struct catalog_txn *t = fixture_begin(&f);
    catalog_put_stream(t, &meta);
    catalog_abort(t);
    fakedisk_fail(f.disk, CALL_COMMIT, 0, ERR_NOSPC, false);
    t = fixture_begin(&f);
    catalog_put_stream(t, &meta);
    assert_int_equal(catalog_commit(t), ERR_NOSPC);
    stream_id id = 0;
    assert_int_equal(catalog_find(f.catalog, meta.name, &id), ERR_NOTFOUND);
    fixture_put(&f, &meta);
    assert_int_equal(catalog_find(f.catalog, meta.name, &id), 0);
    fixture_finish(&f);
}

/* The first failure of a transaction sticks, and the commit returns it. */
static void test_sticky_error(void **state)
{
    (void)state;
    struct catalog_fixture f;
    fixture_init(&f);
    struct catalog_txn *t = fixture_begin(&f);
    struct extent e = make_extent(0, 10, 1, 112);
    catalog_add_extent(t, 1, &e);
    e.start = 11; /* a gap */
    catalog_add_extent(t, 1, &e);
    struct stream_meta meta = fixture_meta(1, "a", 0);
    catalog_put_stream(t, &meta);
    assert_int_equal(catalog_replace_extents(t, 1, &e), ERR_CORRUPT);
    assert_int_equal(catalog_commit(t), ERR_CORRUPT);
    assert_int_equal(catalog_count(f.catalog), 0);
    fixture_finish(&f);
}

/* A name belongs to the newest stream that bears it, whatever the order of writing; dropping an
 * older one does not take it away. */
static void test_names(void **state)
{
    (void)state;
    struct catalog_fixture f;
    fixture_init(&f);
    struct stream_meta old = fixture_meta(1, "a", 0);
    struct stream_meta new = fixture_meta(2, "a", 0);
    fixture_put(&f, &old);
    fixture_put(&f, &new);
    fixture_put(&f, &old);
    stream_id id = 0;
    assert_int_equal(catalog_find(f.catalog, old.name, &id), 0);
    assert_int_equal(id, 2);
    struct catalog_txn *t = fixture_begin(&f);
    catalog_drop_stream(t, 1);
    assert_int_equal(catalog_commit(t), 0);
    assert_int_equal(catalog_find(f.catalog, old.name, &id), 0);
    assert_int_equal(id, 2);
    t = fixture_begin(&f);
    catalog_drop_stream(t, 2);
    catalog_drop_stream(t, 99);
    assert_int_equal(catalog_commit(t), 0);
    assert_int_equal(catalog_find(f.catalog, old.name, &id), ERR_NOTFOUND);
    fixture_finish(&f);
}

/* A dropped stream leaves no entry in any table, and its pack has no live bytes. */
static void test_drop_leaves_nothing(void **state)
{
    (void)state;
    struct catalog_fixture f;
    fixture_init(&f);
    struct catalog_txn *t = fixture_begin(&f);
    struct stream_meta meta = fixture_meta(1, "a", 300);
    meta.expires_at_ms = 5;
    for (uint32_t i = 0; i < 30; i++) {
        struct extent e = make_extent(i * 10, 10, 1, 112 + i * 60);
        struct producer_meta p = {.id = {(char[]){(char)('a' + i % 26), (char)('0' + i / 26)}, 2}};
        catalog_add_extent(t, 1, &e);
        catalog_put_producer(t, 1, &p);
    }
    catalog_put_stream(t, &meta);
    catalog_put_pack(t, 1, 2000);
    assert_int_equal(catalog_commit(t), 0);
    struct fixture_pack p = last_pack(&f);
    assert_int_equal(p.live, 30 * (PACK_EXTENT_HEADER_BYTES + 12));
    assert_int_equal(p.total, 2000);
    t = fixture_begin(&f);
    catalog_drop_stream(t, 1);
    assert_int_equal(catalog_commit(t), 0);
    p = last_pack(&f);
    assert_int_equal(p.live, 0);
    MDB_txn *txn = NULL;
    assert_int_equal(mdb_txn_begin(f.catalog->env, NULL, MDB_RDONLY, &txn), 0);
    for (unsigned i = 0; i < TABLE_COUNT; i++) {
        MDB_stat stat;
        assert_int_equal(mdb_stat(txn, f.catalog->tables[i], &stat), 0);
        assert_int_equal(stat.ms_entries, i == TABLE_META || i == TABLE_PACKS ? 1 : 0);
    }
    mdb_txn_abort(txn);
    t = fixture_begin(&f);
    catalog_del_pack(t, 1);
    catalog_del_pack(t, 44);
    assert_int_equal(catalog_commit(t), 0);
    assert_int_equal(last_pack(&f).id, 0);
    fixture_finish(&f);
}

/* A neighbour with the next id is not touched by a drop. */
static void test_drop_spares_neighbours(void **state)
{
    (void)state;
    struct catalog_fixture f;
    fixture_init(&f);
    struct catalog_txn *t = fixture_begin(&f);
    for (stream_id id = 1; id <= 3; id++) {
        struct extent e = make_extent(0, 10, 1, id * 112);
        struct producer_meta p = {.id = SLICE("p")};
        char name[] = {(char)('a' + id), '\0'};
        struct stream_meta meta = fixture_meta(id, name, 10);
        catalog_add_extent(t, id, &e);
        catalog_put_producer(t, id, &p);
        catalog_put_stream(t, &meta);
    }
    catalog_drop_stream(t, 2);
    assert_int_equal(catalog_commit(t), 0);
    for (stream_id id = 1; id <= 3; id += 2) {
        struct catalog_stream s;
        assert_int_equal(catalog_load(f.catalog, id, &s), 0);
        assert_int_equal(s.extent_count + s.producer_count, 2);
        catalog_stream_finish(&s);
    }
    assert_int_equal(last_pack(&f).live, 2 * (PACK_EXTENT_HEADER_BYTES + 12));
    fixture_finish(&f);
}

/* A pack with live bytes cannot be forgotten. */
static void test_live_pack_stays(void **state)
{
    (void)state;
    struct catalog_fixture f;
    fixture_init(&f);
    struct catalog_txn *t = fixture_begin(&f);
    struct extent e = make_extent(0, 10, 1, 112);
    catalog_add_extent(t, 1, &e);
    catalog_del_pack(t, 1);
    assert_int_equal(catalog_commit(t), ERR_CORRUPT);
    fixture_finish(&f);
}

static int count_extents(void *context, stream_id id, const struct extent *e)
{
    (void)id; /* there is one stream */
    (void)e;  /* only counted */
    ++*(unsigned *)context;
    return 0;
}

/* Extents are replaced only if the new one exactly covers whole ones; the live bytes move with
 * it. */
static void test_replace(void **state)
{
    (void)state;
    struct catalog_fixture f;
    fixture_init(&f);
    struct catalog_txn *t = fixture_begin(&f);
    struct stream_meta meta = fixture_meta(1, "a", 40);
    for (uint32_t i = 0; i < 4; i++) {
        struct extent e = make_extent(i * 10, 10, 1, 112 + i * 60);
        catalog_add_extent(t, 1, &e);
    }
    catalog_put_stream(t, &meta);
    assert_int_equal(catalog_commit(t), 0);
    t = fixture_begin(&f);
    const struct extent wrong[] = {
        make_extent(5, 15, 2, 112),  /* begins inside of one */
        make_extent(10, 15, 2, 112), /* ends inside of one */
        make_extent(30, 20, 2, 112), /* goes beyond */
        make_extent(50, 10, 2, 112), /* is behind all */
    };
    for (size_t i = 0; i < ARRAY_COUNT(wrong); i++) {
        assert_int_equal(catalog_replace_extents(t, 1, &wrong[i]), ERR_NOTFOUND);
    }
    assert_int_equal(catalog_replace_extents(t, 9, &wrong[1]), ERR_NOTFOUND);
    struct extent good = make_extent(10, 20, 2, 112);
    assert_int_equal(catalog_replace_extents(t, 1, &good), 0);
    assert_int_equal(catalog_commit(t), 0);
    struct catalog_stream s;
    assert_int_equal(catalog_load(f.catalog, 1, &s), 0);
    assert_int_equal(s.extent_count, 3);
    assert_int_equal(s.extents[1].pack, 2);
    assert_int_equal(s.extents[1].len, 20);
    catalog_stream_finish(&s);
    unsigned count = 0;
    assert_int_equal(catalog_each_extent(f.catalog, 1, count_extents, &count), 0);
    assert_int_equal(count, 2);
    count = 0;
    assert_int_equal(catalog_each_stream_extent(f.catalog, 1, count_extents, &count), 0);
    assert_int_equal(count, 3);
    assert_int_equal(last_pack(&f).live, PACK_EXTENT_HEADER_BYTES + 22);
    fixture_finish(&f);
}

/* An extent that is there already is left alone, so a flush may be repeated. */
static void test_add_twice(void **state)
{
    (void)state;
    struct catalog_fixture f;
    fixture_init(&f);
    struct catalog_txn *t = fixture_begin(&f);
    struct extent e = make_extent(0, 10, 1, 112);
    struct extent again = make_extent(0, 10, 2, 112);
    catalog_add_extent(t, 1, &e);
    catalog_add_extent(t, 1, &again);
    assert_int_equal(catalog_commit(t), 0);
    assert_int_equal(last_pack(&f).id, 1);
    fixture_finish(&f);
}

/* Producers are overwritten and removed one by one. */
static void test_producers(void **state)
{
    (void)state;
    struct catalog_fixture f;
    fixture_init(&f);
    struct catalog_txn *t = fixture_begin(&f);
    struct stream_meta meta = fixture_meta(1, "a", 0);
    struct producer_meta p = {.id = SLICE("p"), .epoch = 1, .seq = 1};
    struct producer_meta q = {.id = SLICE("q"), .epoch = 1, .seq = 1};
    catalog_put_stream(t, &meta);
    catalog_put_producer(t, 1, &p);
    catalog_put_producer(t, 1, &q);
    p.seq = 2;
    catalog_put_producer(t, 1, &p);
    catalog_del_producer(t, 1, SLICE("q"));
    catalog_del_producer(t, 1, SLICE("unknown"));
    assert_int_equal(catalog_commit(t), 0);
    struct catalog_stream s;
    assert_int_equal(catalog_load(f.catalog, 1, &s), 0);
    assert_int_equal(s.producer_count, 1);
    assert_int_equal(s.producers[0].seq, 2);
    catalog_stream_finish(&s);
    fixture_finish(&f);
}

/* Clearing forgets everything but the state it is given. */
static void test_clear(void **state)
{
    (void)state;
    struct catalog_fixture f;
    fixture_init(&f);
    struct stream_meta meta = fixture_meta(1, "a", 0);
    fixture_put(&f, &meta);
    struct catalog_state s = f.state;
    s.epoch = 3;
    assert_int_equal(catalog_clear(f.catalog, &s), 0);
    assert_int_equal(catalog_count(f.catalog), 0);
    fixture_reopen(&f);
    assert_int_equal(f.state.epoch, 3);
    fixture_finish(&f);
}

static void expect_totals(struct catalog_fixture *f, uint64_t streams, uint64_t bytes)
{
    struct catalog_totals measured = {0};
    struct catalog_totals kept = catalog_get_totals(f->catalog);
    assert_int_equal(catalog_measure(f->catalog, &measured), 0);
    assert_int_equal(measured.streams, streams);
    assert_int_equal(measured.bytes, bytes);
    assert_int_equal(kept.streams, streams);
    assert_int_equal(kept.bytes, bytes);
}

/* The totals follow what is committed and nothing else, and outlive the process. */
static void test_totals(void **state)
{
    (void)state;
    struct catalog_fixture f;
    fixture_init(&f);
    expect_totals(&f, 0, 0);
    struct stream_meta a = fixture_meta(1, "a", 100);
    struct stream_meta fork = fixture_meta(2, "fork", 150);
    fork.source_id = 1;
    fork.fork_offset = 90; /* what it inherits is its source's */
    fixture_put(&f, &a);
    fixture_put(&f, &fork);
    expect_totals(&f, 2, 160);
    a.tail = 130;
    a.soft_deleted = true;
    fixture_put(&f, &a);
    expect_totals(&f, 2, 190);
    struct catalog_txn *t = fixture_begin(&f);
    catalog_drop_stream(t, 1);
    catalog_abort(t);
    fakedisk_fail(f.disk, CALL_COMMIT, 0, ERR_NOSPC, false);
    t = fixture_begin(&f);
    catalog_drop_stream(t, 1);
    assert_int_equal(catalog_commit(t), ERR_NOSPC);
    expect_totals(&f, 2, 190);
    fixture_reopen(&f);
    expect_totals(&f, 2, 190);
    t = fixture_begin(&f);
    catalog_drop_stream(t, 2);
    catalog_drop_stream(t, 7); /* unknown */
    catalog_put_state(t, &f.state);
    catalog_drop_stream(t, 1); /* after the state was written */
    assert_int_equal(catalog_commit(t), 0);
    expect_totals(&f, 0, 0);
    fixture_put(&f, &a);
    assert_int_equal(catalog_clear(f.catalog, &f.state), 0);
    expect_totals(&f, 0, 0);
    fixture_reopen(&f);
    expect_totals(&f, 0, 0);
    fixture_finish(&f);
}

/* Writes bytes to a table behind the catalog's back. */
static void put_raw(struct catalog_fixture *f, enum catalog_table table, struct slice key,
                    struct slice value)
{
    MDB_txn *txn = NULL;
    MDB_val k = catalog_val(key.ptr, key.len);
    MDB_val v = catalog_val(value.ptr, value.len);
    assert_int_equal(mdb_txn_begin(f->catalog->env, NULL, 0, &txn), 0);
    assert_int_equal(mdb_put(txn, f->catalog->tables[table], &k, &v, 0), 0);
    assert_int_equal(mdb_txn_commit(txn), 0);
}

/* A version that does not know the totals leaves zeros: they are counted at the next start. A
 * damaged stream is no reason not to start. */
static void test_totals_of_older(void **state)
{
    (void)state;
    struct catalog_fixture f;
    fixture_init(&f);
    struct stream_meta a = fixture_meta(1, "a", 100);
    struct stream_meta b = fixture_meta(2, "b", 1000);
    fixture_put(&f, &a);
    fixture_put(&f, &b);
    uint8_t bytes[CATALOG_STATE_BYTES];
    struct catalog_state old = f.state;
    old.counted = 0;
    old.own_bytes = 0;
    catalog_encode_state(&old, bytes);
    struct slice value = {(const char *)bytes, sizeof(bytes)};
    put_raw(&f, TABLE_META, SLICE(CATALOG_STATE_KEY), value);
    fixture_reopen(&f);
    expect_totals(&f, 2, 1100);
    assert_int_equal(f.state.counted, 1);
    put_raw(&f, TABLE_STREAMS, SLICE("\0\0\0\0\0\0\0\2"), SLICE("damage"));
    put_raw(&f, TABLE_META, SLICE(CATALOG_STATE_KEY), value);
    fixture_reopen(&f);
    expect_totals(&f, 2, 100);
    fixture_finish(&f);
}

static int join_note(void *context, struct slice key, struct slice value)
{
    char *out = context;
    size_t len = strlen(out);
    (void)snprintf(out + len, 256 - len, "%.*s=%.*s ", (int)key.len, key.ptr, (int)value.len,
                   value.ptr);
    return 0;
}

static void expect_notes(struct catalog_fixture *f, struct slice prefix, const char *want)
{
    char got[256] = "";
    assert_int_equal(catalog_each_note(f->catalog, prefix, join_note, got, &f->msg), 0);
    assert_string_equal(got, want);
}

/* Notes are walked by key, are replaced and removed, and go when the catalog is cleared. */
static void test_notes(void **state)
{
    (void)state;
    struct catalog_fixture f;
    fixture_init(&f);
    expect_notes(&f, SLICE(""), "");
    struct catalog_txn *t = fixture_begin(&f);
    catalog_put_note(t, SLICE("b/2"), SLICE("two"));
    catalog_put_note(t, SLICE("b/1"), SLICE("one"));
    catalog_put_note(t, SLICE("a"), SLICE(""));
    catalog_put_note(t, SLICE("c"), SLICE("x"));
    catalog_del_note(t, SLICE("never"));
    assert_int_equal(catalog_commit(t), 0);
    expect_notes(&f, SLICE(""), "a= b/1=one b/2=two c=x ");
    expect_notes(&f, SLICE("b/"), "b/1=one b/2=two ");
    expect_notes(&f, SLICE("b/3"), "");
    char long_prefix[NOTE_KEY_BYTES_MAX + 100] = "b";
    expect_notes(&f, (struct slice){long_prefix, sizeof(long_prefix)}, "");
    t = fixture_begin(&f);
    catalog_put_note(t, SLICE("b/1"), SLICE("1"));
    catalog_del_note(t, SLICE("b/2"));
    assert_int_equal(catalog_commit(t), 0);
    fixture_reopen(&f);
    expect_notes(&f, SLICE(""), "a= b/1=1 c=x ");
    assert_int_equal(catalog_clear(f.catalog, &f.state), 0);
    expect_notes(&f, SLICE(""), "");
    fixture_finish(&f);
}

static int stop_note(void *context, struct slice key, struct slice value)
{
    (void)key;
    (void)value;
    ++*(int *)context;
    return ERR_TOOBIG;
}

/* A note that does not prove itself is told by name, those before it are shown. An error of the
 * caller's is the caller's to tell. */
static void test_damaged_note(void **state)
{
    (void)state;
    struct catalog_fixture f;
    char got[256] = "";
    int calls = 0;
    fixture_init(&f);
    struct catalog_txn *t = fixture_begin(&f);
    catalog_put_note(t, SLICE("a"), SLICE("1"));
    catalog_put_note(t, SLICE("c"), SLICE("2"));
    assert_int_equal(catalog_commit(t), 0);
    f.msg.text[0] = '\0';
    assert_int_equal(catalog_each_note(f.catalog, SLICE(""), stop_note, &calls, &f.msg),
                     ERR_TOOBIG);
    assert_int_equal(calls, 1);
    assert_string_equal(f.msg.text, "");
    put_raw(&f, TABLE_NOTES, SLICE("b\0\n!"), SLICE("damage"));
    assert_int_equal(catalog_each_note(f.catalog, SLICE(""), join_note, got, &f.msg), ERR_CORRUPT);
    assert_string_equal(got, "a=1 ");
    assert_non_null(strstr(f.msg.text, "the note b"
                                       "??"
                                       "! in the catalog is damaged"));
    expect_notes(&f, SLICE("c"), "c=2 ");
    fixture_finish(&f);
}

/* Without memory for a value the transaction fails as a whole. */
static void test_note_without_memory(void **state)
{
    (void)state;
    struct catalog_fixture f;
    fixture_init(&f);
    struct catalog_txn *t = fixture_begin(&f);
    catalog_put_note(t, SLICE("a"), SLICE("1"));
    fault_countdown = 0;
    catalog_put_note(t, SLICE("b"), SLICE("2"));
    fault_countdown = -1;
    assert_int_equal(catalog_commit(t), ERR_NOMEM);
    expect_notes(&f, SLICE(""), "");
    fixture_finish(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_nothing_without_commit),
        cmocka_unit_test(test_sticky_error),
        cmocka_unit_test(test_names),
        cmocka_unit_test(test_drop_leaves_nothing),
        cmocka_unit_test(test_drop_spares_neighbours),
        cmocka_unit_test(test_live_pack_stays),
        cmocka_unit_test(test_replace),
        cmocka_unit_test(test_add_twice),
        cmocka_unit_test(test_producers),
        cmocka_unit_test(test_clear),
        cmocka_unit_test(test_totals),
        cmocka_unit_test(test_totals_of_older),
        cmocka_unit_test(test_notes),
        cmocka_unit_test(test_damaged_note),
        cmocka_unit_test(test_note_without_memory),
    };
    return UNIT_RUN(tests);
}
