/* Housekeeping: expired streams go though nobody asks, idle ones leave memory, clocks may jump. */
#include "stream/sweep.c"

#include "unit/stream/rig.h"

#define TEXT "text/plain"

static struct rig rig;

static int open_rig(void **state)
{
    (void)state;
    rig_open(&rig);
    return 0;
}

static int close_rig(void **state)
{
    (void)state;
    rig_close(&rig);
    return 0;
}

static void put_ttl(const char *name)
{
    struct stream_op op = {0};
    op.create.expiry = (struct stream_expiry){.has_ttl = true, .ttl_seconds = 10};
    assert_int_equal(rig_create(&rig, &op, name, TEXT, "bytes"), 0);
}

/* As many rounds as see every stream in memory. */
static void housekeep(void)
{
    for (unsigned i = 0; i < TABLE_SHARDS / SHARDS_PER_ROUND; i++) {
        engine_housekeep(rig.engine);
        rig_commit(&rig);
    }
}

static struct engine_stats stats(void)
{
    struct engine_stats s;
    engine_get_stats(rig.engine, &s);
    return s;
}

static void checkpoint(void)
{
    assert_int_equal(rig.engine->store->ops->checkpoint(rig.engine->store), 0);
}

/* A stream in memory whose time is over is deleted without being asked for. */
static void test_in_memory(void **state)
{
    (void)state;
    put_ttl("s");
    assert_int_equal(rig_put(&rig, "stays", TEXT, "x"), 0);
    rig_sleep(10000);
    housekeep();
    assert_int_equal(stats().hot_bytes, 1);
    checkpoint();
    housekeep();
    assert_int_equal(rig_head(&rig, "s"), ERR_NOTFOUND);
    assert_int_equal(rig_head(&rig, "stays"), 0);
}

/* So is one that is only in the catalog. */
static void test_in_catalog(void **state)
{
    (void)state;
    put_ttl("s");
    rig_reopen(&rig, true);
    assert_int_equal(stats().streams_loaded, 0);
    rig_sleep(20000);
    housekeep();
    assert_int_equal(stats().streams_loaded, 1);
    checkpoint();
    assert_int_equal(stats().streams_loaded, 0);
    stream_id id;
    struct store *store = rig.engine->store;
    assert_int_equal(store->ops->find(store, SLICE("s"), &id), ERR_NOTFOUND);
}

static bool wants_all(void *context, struct slice name)
{
    (void)context;
    (void)name;
    return true;
}

static void ignore_growth(void *context, struct slice name, uint64_t id, uint64_t tail)
{
    (void)context;
    (void)name;
    (void)id;
    (void)tail;
}

static void count_dropped(void *context, struct slice name, uint64_t id)
{
    (void)name;
    (void)id;
    (*(unsigned *)context)++;
}

/* The observer is told of streams that go unasked, in memory and in the catalog. */
static void test_observer(void **state)
{
    (void)state;
    unsigned dropped = 0;
    const struct engine_observer observer = {&dropped, wants_all, ignore_growth, count_dropped,
                                             NULL};
    put_ttl("in catalog");
    rig_reopen(&rig, true);
    engine_observe(rig.engine, &observer);
    put_ttl("in memory");
    rig_sleep(20000);
    housekeep();
    assert_int_equal(dropped, 2);
    checkpoint();
    housekeep();
    assert_int_equal(dropped, 2);
}

/* Whoever reads an expiring stream live is told. */
static void test_waiter(void **state)
{
    (void)state;
    struct rig_waiter w = {.waiter = {.wake = rig_wake, .from = 0}};
    struct stream_op op = {0};
    op.create.expiry = (struct stream_expiry){.has_expires_at = true,
                                              .expires_at_ms = rig_now_ms + 1000};
    assert_int_equal(rig_create(&rig, &op, "s", TEXT, ""), 0);
    struct stream *s = table_name(rig.engine, SLICE("s"));
    assert_int_equal(stream_wait(rig.worker, s, &w.waiter), 0);
    rig_sleep(1000);
    housekeep();
    rig_run(&rig);
    assert_int_equal(w.wakes, 1);
    stream_unref(s);
}

/* The TTL of a stream that is read live is logged now and then, for the case of a crash. */
static void test_live_logged(void **state)
{
    (void)state;
    struct rig_waiter w = {.waiter = {.wake = rig_wake, .from = 5}};
    put_ttl("s");
    struct stream *s = table_name(rig.engine, SLICE("s"));
    assert_int_equal(stream_wait(rig.worker, s, &w.waiter), 0);
    rig_sleep(60000);
    housekeep();
    assert_int_equal(s->staged.accessed_ms, rig_now_ms);
    stream_unwait(&w.waiter);
    stream_unref(s);
}

/* After a checkpoint idle streams leave memory, forks with their sources, and come back when asked
 * for. */
static void test_eviction(void **state)
{
    (void)state;
    assert_int_equal(rig_put(&rig, "a", TEXT, "aaa"), 0);
    assert_int_equal(rig_fork(&rig, "b", "a"), 0);
    assert_int_equal(rig_post_body(&rig, "b", TEXT, "bbb"), 0);
    rig_sleep(5000);
    housekeep();
    assert_int_equal(stats().streams_loaded, 2);
    checkpoint();
    housekeep();
    housekeep();
    assert_int_equal(stats().streams_loaded, 0);
    assert_int_equal(stats().cache_bytes, 0);
    assert_int_equal(stats().evicted, 2);
    rig_expect(&rig, "b", "aaabbb");
    assert_int_equal(stats().streams_loaded, 2);
    assert_int_equal(rig_post_body(&rig, "a", TEXT, "!"), 0);
    rig_expect(&rig, "a", "aaa!");
}

/* One that was used lately stays, and so does one that a page refers to. */
static void test_not_idle(void **state)
{
    (void)state;
    struct stream_op op;
    assert_int_equal(rig_put(&rig, "s", TEXT, "abc"), 0);
    checkpoint();
    housekeep();
    assert_int_equal(stats().streams_loaded, 1);
    assert_int_equal(rig_page(&rig, &op, "s", 0, false), 0);
    rig_sleep(5000);
    housekeep();
    assert_int_equal(stats().streams_loaded, 1);
    stream_page_finish(&op.result.page);
    housekeep();
    assert_int_equal(stats().streams_loaded, 0);
}

/* When the wall clock jumps the sweeper waits; an access goes by the clock. */
static void test_clock_jump(void **state)
{
    (void)state;
    put_ttl("a");
    put_ttl("b");
    housekeep();
    rig_now_ms += 24 * 3600 * 1000;
    housekeep();
    assert_int_equal(stats().hot_bytes, 10);
    assert_int_equal(rig_head(&rig, "a"), ERR_NOTFOUND);
    rig_sleep(JUMP_PAUSE_MS);
    housekeep();
    assert_int_equal(stats().hot_bytes, 0);
}

/* Twenty thousand idle streams cost less than 600 bytes each. */
static void test_lean(void **state)
{
    (void)state;
    assert_true(sizeof(struct stream) + 2 * sizeof(void *) + 64 <= 600);
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, open_rig, close_rig)
    const struct CMUnitTest tests[] = {
        TEST(test_in_memory),   TEST(test_in_catalog), TEST(test_waiter),
        TEST(test_live_logged), TEST(test_eviction),   TEST(test_not_idle),
        TEST(test_clock_jump),  TEST(test_lean),       TEST(test_observer),
    };
    return UNIT_RUN(tests);
}
