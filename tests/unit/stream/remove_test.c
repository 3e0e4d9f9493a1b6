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

static int put_expiring(const char *name, struct stream_expiry expiry)
{
    struct stream_op op = {0};
    op.create.expiry = expiry;
    return rig_create(&rig, &op, name, TEXT, "x");
}

static int get(const char *name)
{
    struct stream_op op;
    int code = rig_page(&rig, &op, name, 0, false);
    stream_page_finish(&op.result.page);
    return code;
}

/* Whichever verb meets an expired stream whose deletion cannot be recorded: nobody is told that it
 * is gone, since it may be back after a restart. */
static void test_expired_refused(void **state)
{
    (void)state;
    static const int codes[] = {ERR_FAILED, ERR_NOSPC};
    assert_int_equal(put_expiring("t", (struct stream_expiry){.has_ttl = true, .ttl_seconds = 1}),
                     0);
    rig_sleep(1000);
    for (size_t i = 0; i < ARRAY_COUNT(codes); i++) {
        fake.refuse = codes[i];
        assert_int_equal(rig_head(&rig, "t"), codes[i]);
        assert_int_equal(get("t"), codes[i]);
        assert_int_equal(rig_post_body(&rig, "t", TEXT, "y"), codes[i]);
        assert_int_equal(rig_delete(&rig, "t"), codes[i]);
        assert_int_equal(rig_put(&rig, "t", TEXT, ""), codes[i]);
        assert_int_equal(rig_fork(&rig, "fork", "t"), codes[i]);
    }
    fake.refuse = ERR_AGAIN;
    fake.refuse_once = true;
    assert_int_equal(rig_head(&rig, "t"), ERR_NOTFOUND);
    fake.refuse = 0;
    assert_int_equal(get("t"), ERR_NOTFOUND);
}

/* One that waits for room in the log is tried again, whichever verb it is. */
static void test_expired_waits(void **state)
{
    (void)state;
    struct stream_expiry second = {.has_ttl = true, .ttl_seconds = 1};
    static const char *const names[] = {"get", "post", "delete", "put", "source"};
    for (size_t i = 0; i < ARRAY_COUNT(names); i++) {
        assert_int_equal(put_expiring(names[i], second), 0);
    }
    rig_sleep(1000);
    fake.refuse_once = true;
    fake.refuse = ERR_AGAIN;
    assert_int_equal(get("get"), ERR_NOTFOUND);
    fake.refuse = ERR_AGAIN;
    assert_int_equal(rig_post_body(&rig, "post", TEXT, "y"), ERR_NOTFOUND);
    fake.refuse = ERR_AGAIN;
    assert_int_equal(rig_delete(&rig, "delete"), ERR_NOTFOUND);
    fake.refuse = ERR_AGAIN;
    assert_int_equal(rig_put(&rig, "put", TEXT, ""), 0);
    fake.refuse = ERR_AGAIN;
    assert_int_equal(rig_fork(&rig, "fork", "source"), ERR_NOTFOUND);
    assert_int_equal(fake.refuse, 0);
}

/* A fixed deadline is the same after a restart: nothing needs to be recorded for it. */
static void test_deadline_refused(void **state)
{
    (void)state;
    struct stream_expiry fixed = {.has_expires_at = true, .expires_at_ms = rig_now_ms + 1000};
    assert_int_equal(put_expiring("t", fixed), 0);
    rig_sleep(1000);
    fake.refuse = ERR_FAILED;
    assert_int_equal(rig_head(&rig, "t"), ERR_NOTFOUND);
    assert_int_equal(get("t"), ERR_NOTFOUND);
    assert_int_equal(rig_post_body(&rig, "t", TEXT, "y"), ERR_NOTFOUND);
    assert_int_equal(rig_put(&rig, "t", TEXT, ""), ERR_FAILED);
    fake.refuse = 0;
}

/* Answers that rest on an older record are parked behind at most a few newer ones too many: all are
 * given once everything is durable, however many wait. */
static void test_parked_many(void **state)
{
    (void)state;
    static struct stream_op ops[200];
    bool done[ARRAY_COUNT(ops)] = {false};
    assert_int_equal(rig_put(&rig, "b", TEXT, ""), 0);
    for (size_t i = 0; i < ARRAY_COUNT(ops); i++) {
        struct stream_op *op = &ops[i];
        *op = (struct stream_op){.verb = STREAM_APPEND, .name = SLICE("a")};
        op->append.content_type = SLICE(TEXT);
        op->append.body = SLICE("x");
        if (i == 0 || i > 150) {
            *op = (struct stream_op){.verb = STREAM_DELETE, .name = SLICE("b")};
        }
        op->done = rig_done;
        op->context = &done[i];
        assert_int_equal(stream_start(rig.worker, op), STREAM_PENDING);
    }
    rig_run(&rig);
    assert_false(done[0]);
    rig_commit(&rig);
    for (size_t i = 0; i < ARRAY_COUNT(ops); i++) {
        assert_true(done[i]);
        assert_int_equal(ops[i].result.code, i > 150 ? ERR_NOTFOUND : 0);
    }
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, open_rig, close_rig)
    const struct CMUnitTest tests[] = {
        TEST(test_delete),        TEST(test_soft),
        TEST(test_cascade),       TEST(test_cascade_shared),
        TEST(test_refused),       TEST(test_parked),
        TEST(test_old_reader),    TEST(test_expired_refused),
        TEST(test_expired_waits), TEST(test_deadline_refused),
        TEST(test_parked_many),
    };
    return UNIT_RUN(tests);
}
