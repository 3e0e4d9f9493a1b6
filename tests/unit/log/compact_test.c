/* Compaction: rows of small extents, packs that are mostly dead, budgets, damage and faults. */
#include "log/compact.c"

#include "unit/log/catalog_fixture.h"

#define DIR_PATH "/packs"

struct fixture {
    struct catalog_fixture base;
    struct pack_set *packs;
    pack_id next_pack;
    struct output_target target;
    struct compaction_ids ids;
    struct compaction_work work; /* of all rounds */
    unsigned replaced;
    uint64_t bytes_max;
    size_t marks_len; /* of each extent of add_pack */
};

static void on_replaced(void *context, stream_id id, const struct extent *e)
{
    (void)id; /* the catalog is asked */
    (void)e;  /* the catalog is asked */
    ((struct fixture *)context)->replaced++;
}

static void init(struct fixture *f)
{
    *f = (struct fixture){.next_pack = 1, .bytes_max = UINT64_MAX, .marks_len = 1};
    fixture_init(&f->base);
    fakedisk_add_dir(f->base.disk, DIR_PATH);
    struct sys *sys = fakedisk_sys(f->base.disk);
    assert_int_equal(pack_set_open(sys, DIR_PATH, f->base.state.uuid, &f->packs, &f->base.msg), 0);
    f->target = (struct output_target){
        .catalog = f->base.catalog, .packs = f->packs, .next_pack = &f->next_pack, .sync = true};
}

static void finish(struct fixture *f)
{
    compaction_ids_finish(&f->ids);
    pack_set_close(f->packs);
    fixture_finish(&f->base);
}

static int run(struct fixture *f, bool *ret_more)
{
    struct compaction k = {.target = &f->target,
                           .state = &f->base.state,
                           .bytes_max = f->bytes_max,
                           .work = &f->work,
                           .replaced = on_replaced,
                           .context = f};
    return compact_round(&k, &f->ids, ret_more);
}

/* A pack with `count` extents of `len` bytes: all of one stream, or of a stream each from `id`
 * on. */
static void add_pack(struct fixture *f, stream_id id, bool one_stream, uint64_t start, size_t count,
                     size_t len)
{
    struct output o;
    output_init(&o, &f->target);
    struct catalog_txn *t = fixture_begin(&f->base);
    char *bytes = malloc(len);
    char *marks = calloc(1, f->marks_len);
    assert_true(bytes && marks);
    for (size_t i = 0; i < count; i++) {
        stream_id owner = one_stream ? id : id + i;
        uint64_t at = one_stream ? start + i * len : start;
        for (size_t b = 0; b < len; b++) {
            bytes[b] = (char)(at + b + owner);
        }
        struct slice data = {bytes, len};
        struct extent e;
        assert_int_equal(
            output_add(&o, owner, at, &data, 1, (struct slice){marks, f->marks_len}, &e), 0);
        catalog_add_extent(t, owner, &e);
        char name[32];
        (void)snprintf(name, sizeof(name), "s%llu", (unsigned long long)owner);
        struct stream_meta meta = fixture_meta(owner, name, at + len);
        catalog_put_stream(t, &meta);
        compaction_note(&f->ids, owner);
    }
    free(bytes);
    free(marks);
    assert_int_equal(output_finish(&o, t), 0);
    assert_int_equal(catalog_commit(t), 0);
    output_close(&o, true);
}

/* Reads a stream and compares; returns the number of its extents. */
static size_t verify(struct fixture *f, stream_id id)
{
    struct catalog_stream s;
    assert_int_equal(catalog_load(f->base.catalog, id, &s), 0);
    for (size_t i = 0; i < s.extent_count; i++) {
        const struct extent *e = &s.extents[i];
        char *data = malloc(e->len);
        char *marks = malloc(e->marks_len);
        assert_int_equal(pack_read_extent(f->packs, e, data, marks), 0);
        for (size_t b = 0; b < e->len; b++) {
            assert_int_equal(data[b], (char)(e->start + b + id));
        }
        free(data);
        free(marks);
    }
    size_t count = s.extent_count;
    catalog_stream_finish(&s);
    return count;
}

static size_t count_packs(struct fixture *f)
{
    struct pack_list packs = {0};
    assert_int_equal(catalog_each_pack(f->base.catalog, collect_pack, &packs), 0);
    free(packs.items);
    return packs.count;
}

/* Sixteen small extents may stand in a row; one more, and they become one. */
static void test_row(void **state)
{
    (void)state;
    struct fixture f;
    bool more = true;
    init(&f);
    add_pack(&f, 1, true, 0, STREAM_EXTENTS_SMALL_MAX, 100);
    assert_int_equal(run(&f, &more), 0);
    assert_false(more);
    assert_int_equal(verify(&f, 1), STREAM_EXTENTS_SMALL_MAX);
    add_pack(&f, 1, true, 1600, 1, 100);
    assert_int_equal(run(&f, &more), 0);
    assert_int_equal(verify(&f, 1), 1);
    assert_int_equal(f.work.moved_bytes, (STREAM_EXTENTS_SMALL_MAX + 1) * 100);
    assert_int_equal(f.work.packs_gone, 0);
    /* Looked at once more, since one row may hide another; then there is nothing left. */
    assert_true(more);
    assert_int_equal(run(&f, &more), 0);
    assert_false(more);
    assert_int_equal(count_packs(&f), 1);
    assert_int_equal(f.work.moved_bytes, (STREAM_EXTENTS_SMALL_MAX + 1) * 100);
    assert_int_equal(f.work.packs_gone, 2);
    finish(&f);
}

/* Large extents are not part of a row, and what becomes of one is never larger than may be. */
static void test_row_of_nearly_large(void **state)
{
    (void)state;
    struct fixture f;
    bool more = true;
    init(&f);
    add_pack(&f, 1, true, 0, 20, 900 * KIB);
    assert_int_equal(run(&f, &more), 0);
    assert_int_equal(verify(&f, 1), 3);
    add_pack(&f, 2, true, 0, 20, MIB);
    while (more) {
        assert_int_equal(run(&f, &more), 0);
    }
    assert_int_equal(verify(&f, 2), 20);
    finish(&f);
}

/* An extent has no more marks than a reader may be made to walk, and those that have many already
 * are left alone. */
static void test_row_of_many_marks(void **state)
{
    (void)state;
    struct fixture f;
    bool more = true;
    init(&f);
    f.marks_len = RUN_MARKS_BYTES_MAX / 4;
    add_pack(&f, 1, true, 0, 20, 10000);
    while (more) {
        assert_int_equal(run(&f, &more), 0);
    }
    assert_int_equal(verify(&f, 1), 5);
    unsigned replaced = f.replaced;
    f.marks_len = RUN_MARKS_BYTES_MAX / 2;
    add_pack(&f, 2, true, 0, 20, 10000);
    add_pack(&f, 1, true, 20 * 10000, 20, 10000);
    assert_int_equal(run(&f, &more), 0);
    assert_false(more);
    assert_int_equal(f.replaced, replaced);
    assert_int_equal(verify(&f, 1) + verify(&f, 2), 45);
    finish(&f);
}

/* A round stops at its budget and says that there is more; further rounds finish it. */
static void test_budget(void **state)
{
    (void)state;
    struct fixture f;
    bool more = true;
    init(&f);
    for (stream_id id = 1; id <= 4; id++) {
        add_pack(&f, id, true, 0, 20, 1000);
    }
    f.bytes_max = 25000;
    assert_int_equal(run(&f, &more), 0);
    assert_true(more);
    assert_true(f.replaced < 4);
    for (int i = 0; i < 10 && more; i++) {
        assert_int_equal(run(&f, &more), 0);
    }
    assert_false(more);
    for (stream_id id = 1; id <= 4; id++) {
        assert_int_equal(verify(&f, id), 1);
    }
    finish(&f);
}

/* Of a pack that is mostly dead the rest moves; the pack itself goes a round later. */
static void test_dead_pack(void **state)
{
    (void)state;
    struct fixture f;
    bool more = true;
    init(&f);
    add_pack(&f, 1, false, 0, 10, 1000);
    struct catalog_txn *t = fixture_begin(&f.base);
    for (stream_id id = 1; id <= 4; id++) {
        catalog_drop_stream(t, id);
    }
    assert_int_equal(catalog_commit(t), 0);
    assert_int_equal(run(&f, &more), 0);
    assert_int_equal(f.replaced, 0);
    t = fixture_begin(&f.base);
    for (stream_id id = 5; id <= 8; id++) {
        catalog_drop_stream(t, id);
    }
    assert_int_equal(catalog_commit(t), 0);
    assert_int_equal(run(&f, &more), 0);
    assert_int_equal(f.replaced, 2);
    uint64_t size = 0;
    assert_true(fakedisk_file_size(f.base.disk, DIR_PATH "/pack-0000000000000001", &size));
    assert_int_equal(run(&f, &more), 0);
    assert_false(fakedisk_file_size(f.base.disk, DIR_PATH "/pack-0000000000000001", &size));
    assert_int_equal(count_packs(&f), 1);
    assert_int_equal(verify(&f, 9) + verify(&f, 10), 2);
    finish(&f);
}

/* Many small packs become one, also when nothing in them is dead. */
static void test_small_packs(void **state)
{
    (void)state;
    struct fixture f;
    bool more = true;
    init(&f);
    for (stream_id id = 1; id <= PACKS_IN_TIER; id++) {
        add_pack(&f, id, false, 0, 1, 1000);
    }
    assert_int_equal(run(&f, &more), 0);
    assert_int_equal(f.replaced, 0);
    add_pack(&f, 100, false, 0, 1, 1000);
    assert_int_equal(run(&f, &more), 0);
    assert_int_equal(run(&f, &more), 0);
    assert_int_equal(count_packs(&f), 1);
    assert_int_equal(verify(&f, 1) + verify(&f, 100), 2);
    finish(&f);
}

/* A round that is too short to get beyond a tier does not begin with it, for it would never end;
 * one that just reaches it does. */
static void test_short_rounds(void **state)
{
    (void)state;
    struct fixture f;
    bool more = true;
    init(&f);
    for (stream_id id = 1; id <= PACKS_IN_TIER + 1; id++) {
        add_pack(&f, id, false, 0, 1, 300 * KIB);
    }
    f.bytes_max = 256 * KIB;
    for (unsigned i = 0; i < 2 * PACKS_IN_TIER && more; i++) {
        assert_int_equal(run(&f, &more), 0);
    }
    assert_false(more);
    assert_int_equal(f.work.moved_bytes, 0);
    f.bytes_max = 4 * MIB;
    assert_int_equal(run(&f, &more), 0);
    assert_true(more);
    assert_int_equal(run(&f, &more), 0);
    assert_false(more);
    assert_int_equal(f.replaced, 14);
    assert_int_equal(count_packs(&f), 4);
    assert_int_equal(verify(&f, 1) + verify(&f, PACKS_IN_TIER + 1), 2);
    finish(&f);
}

/* A damaged extent stays where it is and hinders nobody else. */
static void test_damage(void **state)
{
    (void)state;
    struct fixture f;
    bool more = true;
    init(&f);
    add_pack(&f, 1, true, 0, 20, 100);
    assert_true(fakedisk_poke(f.base.disk, DIR_PATH "/pack-0000000000000001", 200, "\xff\xff", 2));
    add_pack(&f, 2, true, 0, 20, 100);
    assert_int_equal(run(&f, &more), 0);
    assert_int_equal(verify(&f, 2), 1);
    assert_int_equal(run(&f, &more), 0);
    assert_false(more);
    struct catalog_stream s;
    assert_int_equal(catalog_load(f.base.catalog, 1, &s), 0);
    assert_int_equal(s.extent_count, 20);
    catalog_stream_finish(&s);
    finish(&f);
}

/* Small packs that cannot be moved are no reason to move the one that can, again and again. */
static void test_damaged_packs(void **state)
{
    (void)state;
    struct fixture f;
    bool more = true;
    init(&f);
    for (stream_id id = 1; id <= PACKS_IN_TIER + 3; id++) {
        char path[64];
        add_pack(&f, id, false, 0, 1, 1000);
        (void)snprintf(path, sizeof(path), DIR_PATH "/pack-%016llx", (unsigned long long)id);
        assert_true(id > PACKS_IN_TIER + 1 || fakedisk_poke(f.base.disk, path, 200, "\xff\xff", 2));
    }
    assert_int_equal(run(&f, &more), 0); /* joins the two that are good */
    assert_int_equal(f.replaced, 2);
    for (unsigned i = 0; i < 3; i++) {
        assert_int_equal(run(&f, &more), 0);
        assert_false(more);
    }
    assert_int_equal(f.replaced, 2);
    assert_int_equal(f.work.packs_gone, 2);
    assert_int_equal(count_packs(&f), PACKS_IN_TIER + 2);
    finish(&f);
}

/* Whichever call fails, the round leaves everything readable and the next one does the work. */
static void test_fault_in_any_call(void **state)
{
    (void)state;
    bool hit = true;
    for (uint64_t i = 0; hit; i++) {
        struct fixture f;
        bool more = false;
        init(&f);
        add_pack(&f, 1, true, 0, 20, 100);
        add_pack(&f, 2, false, 0, 5, 100);
        struct catalog_txn *t = fixture_begin(&f.base);
        for (stream_id id = 2; id <= 5; id++) {
            catalog_drop_stream(t, id);
        }
        assert_int_equal(catalog_commit(t), 0);
        fakedisk_fail(f.base.disk, CALL_ANY, i, i % 2 ? ERR_IO : ERR_NOSPC, false);
        int rc = run(&f, &more);
        hit = fakedisk_fault_hit(f.base.disk);
        fakedisk_fail(f.base.disk, CALL_ANY, 0, 0, false);
        assert_true(hit || rc == 0);
        assert_true(verify(&f, 1) >= 1 && verify(&f, 6) == 1);
        compaction_note(&f.ids, 1);
        for (int k = 0; k < 4; k++) {
            assert_int_equal(run(&f, &more), 0);
        }
        assert_int_equal(verify(&f, 1) + verify(&f, 6), 2);
        finish(&f);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_row),
        cmocka_unit_test(test_row_of_nearly_large),
        cmocka_unit_test(test_row_of_many_marks),
        cmocka_unit_test(test_budget),
        cmocka_unit_test(test_dead_pack),
        cmocka_unit_test(test_small_packs),
        cmocka_unit_test(test_short_rounds),
        cmocka_unit_test(test_damage),
        cmocka_unit_test(test_damaged_packs),
        cmocka_unit_test(test_fault_in_any_call),
    };
    return UNIT_RUN(tests);
}
