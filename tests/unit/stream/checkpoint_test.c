/* Checkpoints from the streams' side: what they take, what they leave, the cache that is left
 * behind. */
#include "log/store.h"

static int fragile_add(struct checkpoint *c, const struct checkpoint_item *item);

#define checkpoint_add fragile_add
#include "stream/checkpoint.c"
#undef checkpoint_add

#include "unit/stream/rig.h"

#define TEXT "text/plain"

static struct rig rig;
static int adds_left; /* until one fails; below 0: none does */
static unsigned added_count;
static unsigned dropped_count; /* of these */
static stream_id last_id;

static void (*meanwhile)(void); /* called between the first stream and the second */

static int fragile_add(struct checkpoint *c, const struct checkpoint_item *item)
{
    if (meanwhile) {
        void (*now)(void) = meanwhile;
        meanwhile = NULL;
        now();
    }

    if (adds_left == 0) {
        return ERR_NOSPC;
    }
    adds_left--;
    assert_true(item->id > last_id);
    last_id = item->id;
    added_count++;
    dropped_count += item->dropped;
    return c ? checkpoint_add(c, item) : 0;
}

static int open_rig(void **state)
{
    (void)state;
    adds_left = -1;
    rig_open(&rig);
    return 0;
}

static int close_rig(void **state)
{
    (void)state;
    rig_close(&rig);
    return 0;
}

static int run_checkpoint(void)
{
    struct store *store = rig.engine->store;
    last_id = 0;
    added_count = 0;
    return store->ops->checkpoint(store);
}

static struct engine_stats stats(void)
{
    struct engine_stats s;
    engine_get_stats(rig.engine, &s);
    return s;
}

static void expect_counts(uint64_t streams, uint64_t bytes)
{
    struct engine_stats s = stats();
    assert_int_equal(s.streams, streams);
    assert_int_equal(s.bytes, bytes);
}

/* A checkpoint takes the streams that changed, in the order of their ids, and only these. */
static void test_dirty(void **state)
{
    (void)state;
    assert_int_equal(rig_put(&rig, "a", TEXT, "a"), 0);
    assert_int_equal(rig_put(&rig, "b", TEXT, "b"), 0);
    assert_int_equal(rig_put(&rig, "c", TEXT, "c"), 0);
    assert_int_equal(run_checkpoint(), 0);
    assert_int_equal(added_count, 3);
    assert_int_equal(stats().hot_bytes, 0);
    assert_int_equal(rig_post_body(&rig, "c", TEXT, "c"), 0);
    assert_int_equal(rig_post_body(&rig, "a", TEXT, "a"), 0);
    assert_int_equal(run_checkpoint(), 0);
    assert_int_equal(added_count, 2);
    assert_int_equal(run_checkpoint(), 0);
    assert_int_equal(added_count, 0);
}

/* What is staged and not durable is not taken, and its stream stays dirty for the next one. */
static void test_not_durable(void **state)
{
    (void)state;
    bool done = false;
    assert_int_equal(rig_put(&rig, "a", TEXT, "a"), 0);
    assert_int_equal(run_checkpoint(), 0);
    struct stream_op op = {.verb = STREAM_APPEND, .name = SLICE("a")};
    op.append.content_type = SLICE(TEXT);
    op.append.body = SLICE("late");
    op.done = rig_done;
    op.context = &done;
    assert_int_equal(stream_start(rig.worker, &op), STREAM_PENDING);
    assert_int_equal(run_checkpoint(), 0);
    assert_int_equal(stats().hot_bytes, 4);
    rig_commit(&rig);
    assert_true(done);
    assert_int_equal(run_checkpoint(), 0);
    assert_int_equal(added_count, 1);
    assert_int_equal(stats().hot_bytes, 0);
}

/* After a failure, wherever it came, everything is dirty as before and the next one takes it
 * all. */
static void test_failure(void **state)
{
    (void)state;
    struct stream_op op = {.verb = STREAM_APPEND, .name = SLICE("b")};
    op.append.content_type = SLICE(TEXT);
    op.append.body = SLICE("x");
    op.append.producer = (struct record_producer){SLICE("p"), 1, 0};
    assert_int_equal(rig_put(&rig, "a", TEXT, "a"), 0);
    assert_int_equal(rig_put(&rig, "b", TEXT, "b"), 0);
    assert_int_equal(rig_put(&rig, "c", TEXT, "c"), 0);
    assert_int_equal(rig_op(&rig, &op), 0);
    for (int i = 0; i < 3; i++) {
        adds_left = i;
        assert_int_equal(run_checkpoint(), ERR_NOSPC);
        assert_int_equal(stats().hot_bytes, 4);
    }
    adds_left = -1;
    assert_int_equal(run_checkpoint(), 0);
    assert_int_equal(added_count, 3);
    rig_reopen(&rig, false);
    rig_expect(&rig, "b", "bx");
    assert_int_equal(rig_op(&rig, &op), 0);
    assert_true(op.result.duplicate);
}

/* A deleted stream leaves catalog and memory with the checkpoint; one made and deleted between two
 * never gets there. */
static void test_dropped(void **state)
{
    (void)state;
    assert_int_equal(rig_put(&rig, "a", TEXT, "a"), 0);
    assert_int_equal(run_checkpoint(), 0);
    assert_int_equal(rig_delete(&rig, "a"), 0);
    assert_int_equal(rig_put(&rig, "b", TEXT, "b"), 0);
    assert_int_equal(rig_delete(&rig, "b"), 0);
    assert_int_equal(stats().streams_loaded, 2);
    assert_int_equal(run_checkpoint(), 0);
    assert_int_equal(stats().streams_loaded, 0);
    assert_int_equal(rig_head(&rig, "a"), ERR_NOTFOUND);
    rig_reopen(&rig, false);
    assert_int_equal(rig_head(&rig, "a"), ERR_NOTFOUND);
}

/* A checkpoint of removals alone, which goes nowhere: only what the streams make of it matters. */
static int drop_only(size_t max, size_t *ret_count)
{
    last_id = 0;
    added_count = 0;
    dropped_count = 0;
    *ret_count = 99;
    return checkpoint_collect_dropped(rig.engine, NULL, max, ret_count);
}

/* On a full disk only streams whose removal is durable are taken, no more than asked for; all the
 * others are dirty as before, and so are these when it fails. */
static void test_drops_only(void **state)
{
    (void)state;
    const char *const names[] = {"a", "b", "c", "d", "e"};
    size_t count;
    bool done = false;
    for (size_t i = 0; i < ARRAY_COUNT(names); i++) {
        assert_int_equal(rig_put(&rig, names[i], TEXT, names[i]), 0);
    }
    assert_int_equal(run_checkpoint(), 0);
    assert_int_equal(drop_only(8, &count), 0);
    assert_int_equal(count, 0);
    checkpoint_done(rig.engine, 0);
    assert_int_equal(rig_post_body(&rig, "a", TEXT, "more"), 0);
    assert_int_equal(rig_delete(&rig, "b"), 0);
    assert_int_equal(rig_delete(&rig, "d"), 0);
    assert_int_equal(rig_delete(&rig, "e"), 0);
    struct stream_op op = {
        .verb = STREAM_DELETE, .name = SLICE("c"), .done = rig_done, .context = &done};
    assert_int_equal(stream_start(rig.worker, &op), STREAM_PENDING);

    adds_left = 1;
    assert_int_equal(drop_only(8, &count), ERR_NOSPC);
    assert_int_equal(count, 99);
    checkpoint_done(rig.engine, ERR_NOSPC); /* as the store says once more */
    adds_left = -1;
    assert_int_equal(drop_only(2, &count), 0);
    assert_int_equal(count, 2);
    assert_int_equal(dropped_count, 2);
    checkpoint_done(rig.engine, ERR_IO);
    assert_int_equal(stats().streams_loaded, 5);
    assert_int_equal(drop_only(2, &count), 0);
    assert_int_equal(count, 2);
    checkpoint_done(rig.engine, 0);
    assert_int_equal(stats().streams_loaded, 3);
    assert_int_equal(drop_only(2, &count), 0);
    assert_int_equal(count, 1); /* what is staged does not count */
    checkpoint_done(rig.engine, 0);
    rig_commit(&rig);
    assert_true(done);
    assert_int_equal(drop_only(2, &count), 0);
    assert_int_equal(count, 1);
    checkpoint_done(rig.engine, 0);
    assert_int_equal(stats().streams_loaded, 1);
    assert_int_equal(stats().hot_bytes, 4);

    assert_int_equal(run_checkpoint(), 0);
    assert_int_equal(added_count, 1);
    rig_expect(&rig, "a", "amore");
}

static void delete_fork(void)
{
    assert_int_equal(rig_delete(&rig, "fork"), 0);
}

/* A source that goes with its fork while a checkpoint is taken may be dropped by it while the fork
 * is not: after a crash both are gone all the same, from the counts as well, and the fork's name
 * is free. */
static void test_cascade_meanwhile(void **state)
{
    (void)state;
    assert_int_equal(rig_put(&rig, "first", TEXT, "1"), 0);
    assert_int_equal(rig_put(&rig, "source", TEXT, "s"), 0);
    assert_int_equal(rig_fork(&rig, "fork", "source"), 0);
    assert_int_equal(rig_post_body(&rig, "fork", TEXT, "own"), 0);
    assert_int_equal(run_checkpoint(), 0);
    assert_int_equal(rig_post_body(&rig, "first", TEXT, "2"), 0);
    expect_counts(3, 6);
    assert_int_equal(rig_delete(&rig, "source"), 0);
    meanwhile = delete_fork;
    assert_int_equal(run_checkpoint(), 0);
    expect_counts(1, 2);
    for (int i = 0; i < 3; i++) {
        rig_reopen(&rig, false);
        expect_counts(1, 2);
        assert_int_equal(rig_head(&rig, "source"), ERR_NOTFOUND);
        assert_int_equal(rig_head(&rig, "fork"), ERR_NOTFOUND);
        if (i > 0) {
            assert_int_equal(run_checkpoint(), 0);
        }
        expect_counts(1, 2);
    }
    assert_int_equal(rig_put(&rig, "fork", TEXT, "new"), 0);
    rig_expect(&rig, "fork", "new");
    rig_expect(&rig, "first", "12");
}

/* Saved bytes stay in memory within the budget; those that are read outlive those that are not. */
static void test_cache(void **state)
{
    (void)state;
    rig.engine->config.cache_bytes_max = 8;
    assert_int_equal(rig_put(&rig, "a", TEXT, "aaaa"), 0);
    assert_int_equal(rig_put(&rig, "b", TEXT, "bbbb"), 0);
    assert_int_equal(run_checkpoint(), 0);
    assert_int_equal(stats().cache_bytes, 8);
    rig_expect(&rig, "a", "aaaa");
    assert_int_equal(rig_put(&rig, "c", TEXT, "cccc"), 0);
    assert_int_equal(run_checkpoint(), 0);
    assert_int_equal(stats().cache_bytes, 8);
    struct stream *a = table_name(rig.engine, SLICE("a"));
    struct stream *b = table_name(rig.engine, SLICE("b"));
    assert_non_null(tail_find(&a->tail, 0));
    assert_null(tail_find(&b->tail, 0));
    stream_unref(a);
    stream_unref(b);
    rig_expect(&rig, "b", "bbbb");
    assert_int_equal(rig_delete(&rig, "a"), 0);
    assert_int_equal(rig_delete(&rig, "c"), 0);
    assert_int_equal(stats().cache_bytes, 0);
}

/* Appends that go on in a block that is saved in part are saved from there. */
static void test_partial_chunk(void **state)
{
    (void)state;
    assert_int_equal(rig_put(&rig, "a", TEXT, "first"), 0);
    for (char digit = '0'; digit < '8'; digit++) {
        char body[2] = {digit, '\0'};
        assert_int_equal(rig_post_body(&rig, "a", TEXT, body), 0);
        assert_int_equal(run_checkpoint(), 0);
        assert_int_equal(stats().hot_bytes, 0);
    }
    rig_expect(&rig, "a", "first01234567");
    rig_reopen(&rig, false);
    rig_expect(&rig, "a", "first01234567");
}

/* Many small extents are merged behind the reader's back, and reads go on as before. */
static void test_compaction(void **state)
{
    (void)state;
    char expected[8 * STREAM_EXTENTS_SMALL_MAX + 2] = "";
    rig.engine->config.cache_bytes_max = 0;
    assert_int_equal(rig_put(&rig, "a", TEXT, ""), 0);
    for (unsigned i = 0; i < 4 * STREAM_EXTENTS_SMALL_MAX; i++) {
        char body[2] = {(char)('a' + i % 26), '\0'};
        assert_int_equal(rig_post_body(&rig, "a", TEXT, body), 0);
        assert_int_equal(run_checkpoint(), 0);
        expected[i] = body[0];
    }
    struct stream *a = table_name(rig.engine, SLICE("a"));
    assert_in_range(a->extent_count, 1, 2 * STREAM_EXTENTS_SMALL_MAX);
    stream_unref(a);
    rig_expect(&rig, "a", expected);
    rig_reopen(&rig, false);
    rig_expect(&rig, "a", expected);
}

/* A producer that was forgotten leaves the catalog, unless it came back under its id. */
static void test_forgotten(void **state)
{
    (void)state;
    static const char *const ids[] = {"p", "q"};
    assert_int_equal(rig_put(&rig, "a", TEXT, ""), 0);
    struct stream_op op = {.verb = STREAM_APPEND, .name = SLICE("a")};
    op.append.content_type = SLICE(TEXT);
    op.append.body = SLICE("x");
    for (int i = 0; i < 2; i++) {
        op.append.producer = (struct record_producer){slice_of(ids[i]), 5, 0};
        assert_int_equal(rig_op(&rig, &op), 0);
    }
    assert_int_equal(run_checkpoint(), 0);
    struct stream *a = table_name(rig.engine, SLICE("a"));
    a->producers->gone = calloc(2, sizeof(a->producers->gone[0]));
    for (int i = 0; i < 2; i++) {
        struct producer *p = producers_find(a->producers, slice_of(ids[i]));
        map_remove(&a->producers->map, &p->node);
        a->producers->gone[a->producers->gone_count++] = p;
    }
    stream_unref(a);
    op.append.producer = (struct record_producer){SLICE("q"), 0, 0};
    assert_int_equal(rig_op(&rig, &op), 0);
    assert_int_equal(run_checkpoint(), 0);
    rig_reopen(&rig, false);
    op.append.producer = (struct record_producer){SLICE("q"), 0, 0};
    assert_int_equal(rig_op(&rig, &op), 0);
    assert_true(op.result.duplicate);
    op.append.producer = (struct record_producer){SLICE("p"), 0, 0};
    assert_int_equal(rig_op(&rig, &op), 0);
    assert_false(op.result.duplicate);
}

/* In memory mode nothing is parked, and checkpoints keep the bytes that wait within bounds. */
static void test_memory_mode(void **state)
{
    (void)state;
    rig_detach(&rig, false);
    assert_int_equal(nftw(rig.dir, rig_remove, 8, FTW_DEPTH | FTW_PHYS), 0);
    rig.config.store.durability = DURABILITY_MEMORY;
    rig_attach(&rig);
    struct stream_op op = {.verb = STREAM_CREATE, .name = SLICE("a")};
    assert_int_equal(rig_op(&rig, &op), 0);
    op = (struct stream_op){.verb = STREAM_APPEND, .name = SLICE("a")};
    op.append.content_type = SLICE("application/octet-stream");
    op.append.body = SLICE("bytes");
    assert_int_equal(stream_start(rig.worker, &op), 0);
    assert_int_equal(op.result.code, 0);
    assert_int_equal(run_checkpoint(), 0);
    assert_int_equal(stats().hot_bytes, 0);
    rig_expect(&rig, "a", "bytes");
    rig_reopen(&rig, true);
    assert_int_equal(rig_head(&rig, "a"), ERR_NOTFOUND);
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, open_rig, close_rig)
    const struct CMUnitTest tests[] = {
        TEST(test_dirty),         TEST(test_not_durable),       TEST(test_failure),
        TEST(test_dropped),       TEST(test_cascade_meanwhile), TEST(test_cache),
        TEST(test_partial_chunk), TEST(test_compaction),        TEST(test_forgotten),
        TEST(test_memory_mode),   TEST(test_drops_only),
    };
    return UNIT_RUN(tests);
}
