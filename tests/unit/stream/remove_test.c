/* Deletion: soft, for good, and up the chain of forks. */
#include "unit/stream/fake_store.h"

#include "stream/remove.c"

#include "unit/stream/rig.h"

#define TEXT "text/plain"

static struct rig rig;

static int open_rig(void **state)
{
    (void)state;
    rig_open(&rig);
    assert_int_equal(rig_put(&rig, "a", TEXT, "aa"), 0);
    return 0;
}

static int close_rig(void **state)
{
    (void)state;
    rig_close(&rig);
    return 0;
}

/* A deleted stream is 404 for everything, and its bytes are given back. */
static void test_delete(void **state)
{
    (void)state;
    assert_int_equal(rig_delete(&rig, "a"), 0);
    assert_int_equal(rig_delete(&rig, "a"), ERR_NOTFOUND);
    assert_int_equal(rig_head(&rig, "a"), ERR_NOTFOUND);
    assert_int_equal(rig_post_body(&rig, "a", TEXT, "x"), ERR_NOTFOUND);
    assert_null(rig_read(&rig, "a", 0));
    struct engine_stats stats;
    engine_get_stats(rig.engine, &stats);
    assert_int_equal(stats.hot_bytes, 0);
}

/* With forks it is 410 for everything, its name is blocked, and forks still have its bytes. */
static void test_soft(void **state)
{
    (void)state;
    assert_int_equal(rig_fork(&rig, "b", "a"), 0);
    assert_int_equal(rig_delete(&rig, "a"), 0);
    assert_int_equal(rig_delete(&rig, "a"), ERR_GONE);
    assert_int_equal(rig_head(&rig, "a"), ERR_GONE);
    assert_int_equal(rig_post_body(&rig, "a", TEXT, "x"), ERR_GONE);
    assert_null(rig_read(&rig, "a", 0));
    assert_int_equal(rig_put(&rig, "a", TEXT, ""), ERR_CONFLICT);
    assert_int_equal(rig_fork(&rig, "c", "a"), ERR_CONFLICT);
    rig_expect(&rig, "b", "aa");
}

/* The last fork takes its soft-deleted ancestors along, up to the first that is alive. */
static void test_cascade(void **state)
{
    (void)state;
    assert_int_equal(rig_fork(&rig, "b", "a"), 0);
    assert_int_equal(rig_fork(&rig, "c", "b"), 0);
    assert_int_equal(rig_fork(&rig, "d", "c"), 0);
    assert_int_equal(rig_delete(&rig, "b"), 0);
    assert_int_equal(rig_delete(&rig, "c"), 0);
    assert_int_equal(rig_delete(&rig, "d"), 0);
    assert_int_equal(fake.last.del.cascade_count, 2);
    assert_int_equal(fake.last.del.released, 1);
    assert_int_equal(rig_head(&rig, "b"), ERR_NOTFOUND);
    assert_int_equal(rig_head(&rig, "c"), ERR_NOTFOUND);
    assert_int_equal(rig_head(&rig, "a"), 0);
    assert_int_equal(rig_delete(&rig, "a"), 0);
    assert_int_equal(rig_head(&rig, "a"), ERR_NOTFOUND);
}

/* A cascade ends where another fork still needs the ancestor. */
static void test_cascade_shared(void **state)
{
    (void)state;
    assert_int_equal(rig_fork(&rig, "b", "a"), 0);
    assert_int_equal(rig_fork(&rig, "c", "a"), 0);
    assert_int_equal(rig_delete(&rig, "a"), 0);
    assert_int_equal(rig_delete(&rig, "b"), 0);
    assert_int_equal(rig_head(&rig, "a"), ERR_GONE);
    rig_expect(&rig, "c", "aa");
    assert_int_equal(rig_delete(&rig, "c"), 0);
    assert_int_equal(rig_head(&rig, "a"), ERR_NOTFOUND);
}

/* A refused deletion changes neither the stream nor any ancestor. */
static void test_refused(void **state)
{
    (void)state;
    assert_int_equal(rig_fork(&rig, "b", "a"), 0);
    assert_int_equal(rig_delete(&rig, "a"), 0);
    fake.refuse = ERR_NOSPC;
    assert_int_equal(rig_delete(&rig, "b"), ERR_NOSPC);
    fake.refuse = 0;
    assert_int_equal(rig_head(&rig, "a"), ERR_GONE);
    rig_expect(&rig, "b", "aa");
    assert_int_equal(rig_delete(&rig, "b"), 0);
    assert_int_equal(rig_head(&rig, "a"), ERR_NOTFOUND);
}

/* Until the deletion is durable the stream is read as ever, and nobody is told that it is gone. */
static void test_parked(void **state)
{
    (void)state;
    bool done[2] = {false, false};
    struct stream_op ops[2] = {{.verb = STREAM_DELETE, .name = SLICE("a")},
                               {.verb = STREAM_DELETE, .name = SLICE("a")}};
    for (int i = 0; i < 2; i++) {
        ops[i].done = rig_done;
        ops[i].context = &done[i];
        assert_int_equal(stream_start(rig.worker, &ops[i]), STREAM_PENDING);
    }
    rig_run(&rig);
    rig_expect(&rig, "a", "aa");
    assert_false(done[0] || done[1]);
    rig_commit(&rig);
    assert_int_equal(ops[0].result.code, 0);
    assert_int_equal(ops[1].result.code, ERR_NOTFOUND);
}

/* A reader that holds the old stream is told that it is gone, and never sees the new one of the
 * name. */
static void test_old_reader(void **state)
{
    (void)state;
    struct stream_op first;
    assert_int_equal(rig_page(&rig, &first, "a", 0, false), 0);
    assert_int_equal(rig_delete(&rig, "a"), 0);
    assert_int_equal(rig_put(&rig, "a", TEXT, "new"), 0);
    struct stream_op next = {.verb = STREAM_READ};
    next.read.stream = first.result.page.stream;
    next.read.from = (struct offset){OFFSET_AT, 0};
    assert_int_equal(rig_op(&rig, &next), 0);
    assert_true(next.result.page.gone);
    assert_int_equal(next.result.page.bytes, 0);
    struct buf old;
    buf_init(&old, 16);
    rig_collect(&first.result.page, &old);
    assert_memory_equal(old.ptr, "aa", 2);
    buf_finish(&old);
    stream_page_finish(&next.result.page);
    stream_page_finish(&first.result.page);
    stream_page_finish(&first.result.page);
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, open_rig, close_rig)
    const struct CMUnitTest tests[] = {
        TEST(test_delete),  TEST(test_soft),   TEST(test_cascade),    TEST(test_cascade_shared),
        TEST(test_refused), TEST(test_parked), TEST(test_old_reader),
    };
    return UNIT_RUN(tests);
}
