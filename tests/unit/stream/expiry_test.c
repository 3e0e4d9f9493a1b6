/* Expiry: one deadline for every path, what renews it, what survives a restart. */
#include "stream/expiry.c"

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

static int put_ttl(const char *name, uint64_t ttl_seconds)
{
    struct stream_op op = {0};
    op.create.expiry = (struct stream_expiry){.has_ttl = true, .ttl_seconds = ttl_seconds};
    return rig_create(&rig, &op, name, TEXT, "old");
}

static int get(const char *name)
{
    char *bytes = rig_read(&rig, name, 0);
    free(bytes);
    return bytes ? 0 : ERR_NOTFOUND;
}

/* Every path finds the stream up to its last millisecond and not from the deadline on. */
static void test_all_paths(void **state)
{
    (void)state;
    static const char *const names[] = {"head", "get", "post", "delete", "put"};
    for (size_t i = 0; i < ARRAY_COUNT(names); i++) {
        assert_int_equal(put_ttl(names[i], 1), 0);
    }
    rig_sleep(999);
    for (size_t i = 0; i < ARRAY_COUNT(names); i++) {
        assert_int_equal(rig_head(&rig, names[i]), 0);
    }
    rig_sleep(1);
    assert_int_equal(rig_head(&rig, "head"), ERR_NOTFOUND);
    assert_int_equal(get("get"), ERR_NOTFOUND);
    assert_int_equal(rig_post_body(&rig, "post", TEXT, "x"), ERR_NOTFOUND);
    assert_int_equal(rig_delete(&rig, "delete"), ERR_NOTFOUND);
    struct stream_op op = {0};
    assert_int_equal(rig_create(&rig, &op, "put", "application/json", ""), 0);
    assert_true(op.result.created);
    rig_expect(&rig, "put", "");
    struct engine_stats stats;
    engine_get_stats(rig.engine, &stats);
    assert_int_equal(stats.hot_bytes, 0);
}

/* Reads and writes renew a TTL, closing and reading from now too; HEAD does not. */
static void test_renewal(void **state)
{
    (void)state;
    assert_int_equal(put_ttl("s", 2), 0);
    assert_int_equal(put_ttl("head", 2), 0);
    struct stream_op now = {.verb = STREAM_READ, .name = SLICE("s")};
    now.read.from.kind = OFFSET_NOW;
    now.read.touch = true;
    struct stream_op close = {.verb = STREAM_APPEND, .name = SLICE("s")};
    close.append.close = true;
    for (int i = 0; i < 5; i++) {
        rig_sleep(1500);
        switch (i) {
        case 0:
            assert_int_equal(rig_post_body(&rig, "s", TEXT, "x"), 0);
            assert_int_equal(rig_head(&rig, "head"), 0);
            break;
        case 1:
            assert_int_equal(get("s"), 0);
            assert_int_equal(rig_head(&rig, "head"), ERR_NOTFOUND);
            break;
        case 2:
            assert_int_equal(rig_op(&rig, &now), 0);
            stream_page_finish(&now.result.page);
            break;
        default:
            assert_int_equal(rig_op(&rig, &close), 0);
            break;
        }
    }
    rig_sleep(2000);
    assert_int_equal(rig_head(&rig, "s"), ERR_NOTFOUND);
}

/* Expires-At is never extended. */
static void test_expires_at(void **state)
{
    (void)state;
    struct stream_op op = {0};
    op.create.expiry = (struct stream_expiry){.has_expires_at = true,
                                              .expires_at_ms = rig_now_ms + 1000};
    assert_int_equal(rig_create(&rig, &op, "s", TEXT, ""), 0);
    rig_sleep(999);
    assert_int_equal(rig_post_body(&rig, "s", TEXT, "x"), 0);
    rig_sleep(1);
    assert_int_equal(get("s"), ERR_NOTFOUND);
}

/* A TTL of 0 is valid and over at once; the longest one does not overflow. */
static void test_extremes(void **state)
{
    (void)state;
    assert_int_equal(put_ttl("s", 0), 0);
    assert_int_equal(get("s"), ERR_NOTFOUND);
    assert_int_equal(put_ttl("s", STREAM_TTL_SECONDS_MAX), 0);
    rig_sleep(UINT64_C(1000) * 3600 * 24 * 365 * 50);
    assert_int_equal(get("s"), 0);
    rig_reopen(&rig, true);
    assert_int_equal(get("s"), 0);
}

/* A live reader keeps its stream; the TTL runs from when the last one leaves. */
static void test_live_reader(void **state)
{
    (void)state;
    struct rig_waiter w = {.waiter = {.wake = rig_wake, .from = 3}};
    assert_int_equal(put_ttl("s", 1), 0);
    struct stream *s = table_name(rig.engine, SLICE("s"));
    assert_int_equal(stream_wait(rig.worker, s, &w.waiter), 0);
    rig_sleep(5000);
    assert_int_equal(rig_head(&rig, "s"), 0);
    stream_unwait(&w.waiter);
    rig_sleep(999);
    assert_int_equal(rig_head(&rig, "s"), 0);
    rig_sleep(1);
    assert_int_equal(rig_head(&rig, "s"), ERR_NOTFOUND);
    stream_unref(s);
}

/* After a restart, with a checkpoint or without, a stream is never gone early: what was not logged
 * of a renewal is made up for. */
static void test_restart(void **state)
{
    (void)state;
    for (int checkpoint = 0; checkpoint < 2; checkpoint++) {
        assert_int_equal(put_ttl("s", 40), 0);
        rig_sleep(4900);
        assert_int_equal(get("s"), 0);
        rig_reopen(&rig, checkpoint);
        rig_sleep(39999);
        assert_int_equal(rig_head(&rig, "s"), 0);
        rig_sleep(5001);
        assert_int_equal(rig_head(&rig, "s"), ERR_NOTFOUND);
    }
}

/* A renewal is logged once an eighth of the TTL has passed since the last. */
static void test_logged(void **state)
{
    (void)state;
    assert_int_equal(put_ttl("s", 40), 0);
    struct stream *s = table_name(rig.engine, SLICE("s"));
    rig_sleep(4999);
    assert_int_equal(get("s"), 0);
    assert_int_equal(s->staged.accessed_ms, rig_now_ms - 4999);
    rig_sleep(1);
    assert_int_equal(get("s"), 0);
    assert_int_equal(s->staged.accessed_ms, rig_now_ms);
    stream_unref(s);
}

/* What a restart adds to be on the safe side is not logged as if it had been an access. */
static void test_slack_not_logged(void **state)
{
    (void)state;
    assert_int_equal(put_ttl("s", 40), 0);
    for (int i = 0; i < 10; i++) {
        rig_reopen(&rig, true);
        assert_int_equal(get("s"), 0);
    }
    rig_sleep(46000);
    assert_int_equal(rig_head(&rig, "s"), ERR_NOTFOUND);
}

/* An expired source with forks is kept for them, and goes with the last. */
static void test_source(void **state)
{
    (void)state;
    assert_int_equal(put_ttl("s", 1), 0);
    struct stream_op op = {.verb = STREAM_CREATE, .name = SLICE("f")};
    op.create.forked_from = SLICE("s");
    op.create.expiry = (struct stream_expiry){.has_ttl = true, .ttl_seconds = 60};
    assert_int_equal(rig_op(&rig, &op), 0);
    rig_sleep(2000);
    assert_int_equal(rig_head(&rig, "s"), ERR_GONE);
    assert_int_equal(rig_put(&rig, "s", TEXT, ""), ERR_CONFLICT);
    rig_expect(&rig, "f", "old");
    assert_int_equal(rig_fork(&rig, "g", "s"), ERR_CONFLICT);
    assert_int_equal(rig_delete(&rig, "f"), 0);
    assert_int_equal(rig_head(&rig, "s"), ERR_NOTFOUND);
    assert_int_equal(put_ttl("t", 1), 0);
    rig_sleep(1000);
    assert_int_equal(rig_fork(&rig, "g", "t"), ERR_NOTFOUND);
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, open_rig, close_rig)
    const struct CMUnitTest tests[] = {
        TEST(test_all_paths), TEST(test_renewal),     TEST(test_expires_at),
        TEST(test_extremes),  TEST(test_live_reader), TEST(test_restart),
        TEST(test_logged),    TEST(test_source),      TEST(test_slack_not_logged),
    };
    return UNIT_RUN(tests);
}
