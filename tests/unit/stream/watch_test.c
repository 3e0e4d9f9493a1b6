/* Live readers: no wake is lost, none comes twice, and frames are shared while somebody follows. */
#include "unit/stream/fake_store.h"

#include "stream/watch.c"

#include "unit/stream/rig.h"

#define TEXT "text/plain"

static struct rig rig;
static struct stream *stream;

static int open_rig(void **state)
{
    (void)state;
    rig_open(&rig);
    assert_int_equal(rig_put(&rig, "s", TEXT, "abc"), 0);
    stream = table_name(rig.engine, SLICE("s"));
    assert_non_null(stream);
    return 0;
}

static int close_rig(void **state)
{
    (void)state;
    stream_unref(stream);
    rig_close(&rig);
    return 0;
}

static int wait(struct rig_waiter *w, uint64_t from)
{
    *w = (struct rig_waiter){.waiter = {.wake = rig_wake, .from = from}};
    return stream_wait(rig.worker, stream, &w->waiter);
}

/* What is there already is not waited for. */
static void test_behind(void **state)
{
    (void)state;
    struct rig_waiter w;
    assert_int_equal(wait(&w, 2), STREAM_PENDING);
    assert_int_equal(rig_post_body(&rig, "s", TEXT, "d"), 0);
    assert_int_equal(w.wakes, 0);
    stream_unwait(&w.waiter);
}

/* An append wakes once, and only when it is durable. */
static void test_append(void **state)
{
    (void)state;
    struct rig_waiter w;
    bool done = false;
    assert_int_equal(wait(&w, 3), 0);
    struct stream_op op = {.verb = STREAM_APPEND, .name = SLICE("s")};
    op.append.content_type = SLICE(TEXT);
    op.append.body = SLICE("d");
    op.done = rig_done;
    op.context = &done;
    assert_int_equal(stream_start(rig.worker, &op), STREAM_PENDING);
    rig_run(&rig);
    assert_int_equal(w.wakes, 0);
    rig_commit(&rig);
    assert_int_equal(w.wakes, 1);
    assert_int_equal(rig_post_body(&rig, "s", TEXT, "e"), 0);
    assert_int_equal(w.wakes, 1);
}

/* A reader that waits beyond the tail sleeps until the tail has passed it. */
static void test_beyond(void **state)
{
    (void)state;
    struct rig_waiter w;
    assert_int_equal(wait(&w, 4), 0);
    assert_int_equal(rig_post_body(&rig, "s", TEXT, "d"), 0);
    assert_int_equal(w.wakes, 0);
    assert_int_equal(rig_post_body(&rig, "s", TEXT, "e"), 0);
    assert_int_equal(w.wakes, 1);
}

/* Closing and deleting wake whoever waits, wherever. */
static void test_end(void **state)
{
    (void)state;
    struct rig_waiter w[2];
    struct stream_op op = {.verb = STREAM_APPEND, .name = SLICE("s")};
    op.append.close = true;
    assert_int_equal(wait(&w[0], 3), 0);
    assert_int_equal(rig_op(&rig, &op), 0);
    assert_int_equal(w[0].wakes, 1);
    assert_int_equal(wait(&w[1], 3), STREAM_PENDING);
    assert_int_equal(rig_put(&rig, "t", TEXT, ""), 0);
    stream_unref(stream);
    stream = table_name(rig.engine, SLICE("t"));
    assert_int_equal(wait(&w[1], 7), 0);
    assert_int_equal(rig_delete(&rig, "t"), 0);
    assert_int_equal(w[1].wakes, 1);
    assert_int_equal(wait(&w[1], 7), STREAM_PENDING);
}

/* A source's appends do not wake those who read its fork. */
static void test_fork(void **state)
{
    (void)state;
    struct rig_waiter w;
    assert_int_equal(rig_fork(&rig, "f", "s"), 0);
    stream_unref(stream);
    stream = table_name(rig.engine, SLICE("f"));
    assert_int_equal(wait(&w, 3), 0);
    assert_int_equal(rig_post_body(&rig, "s", TEXT, "d"), 0);
    assert_int_equal(w.wakes, 0);
    assert_int_equal(rig_post_body(&rig, "f", TEXT, "d"), 0);
    assert_int_equal(w.wakes, 1);
}

/* Whoever leaves is not woken, leaving twice is well, and the last takes the watch along. */
static void test_unwait(void **state)
{
    (void)state;
    struct rig_waiter w[2];
    struct engine_stats stats;
    assert_int_equal(wait(&w[0], 3), 0);
    assert_int_equal(wait(&w[1], 3), 0);
    engine_get_stats(rig.engine, &stats);
    assert_int_equal(stats.waiters, 2);
    stream_unwait(&w[0].waiter);
    stream_unwait(&w[0].waiter);
    assert_int_equal(rig_post_body(&rig, "s", TEXT, "d"), 0);
    assert_int_equal(w[0].wakes, 0);
    assert_int_equal(w[1].wakes, 1);
    stream_unwait(&w[1].waiter);
    assert_null(stream->live);
    engine_get_stats(rig.engine, &stats);
    assert_int_equal(stats.waiters, 0);
}

/* One that leaves while the wake is on its way is not woken, and nothing is left behind. */
static void test_unwait_latched(void **state)
{
    (void)state;
    struct rig_waiter w;
    assert_int_equal(wait(&w, 3), 0);
    watch_publish(stream);
    stream_unwait(&w.waiter);
    assert_non_null(stream->live);
    rig_run(&rig);
    assert_int_equal(w.wakes, 0);
    assert_null(stream->live);
}

struct rewaiter {
    struct rig_waiter own;
    struct rig_waiter *victim;
};

static void wake_and_shuffle(struct stream_waiter *waiter)
{
    struct rewaiter *r = container_of(waiter, struct rewaiter, own.waiter);
    r->own.wakes++;
    stream_unwait(&r->victim->waiter);
    waiter->from = 4;
    assert_int_equal(stream_wait(rig.worker, stream, waiter), 0);
}

/* Inside a wake other waiters may leave and this one may wait again. */
static void test_shuffle(void **state)
{
    (void)state;
    struct rig_waiter victim;
    struct rewaiter r = {.own = {.waiter = {.wake = wake_and_shuffle, .from = 3}},
                         .victim = &victim};
    assert_int_equal(stream_wait(rig.worker, stream, &r.own.waiter), 0);
    assert_int_equal(wait(&victim, 3), 0);
    assert_int_equal(rig_post_body(&rig, "s", TEXT, "d"), 0);
    assert_int_equal(r.own.wakes, 1);
    assert_int_equal(victim.wakes, 0);
    r.own.waiter.wake = rig_wake;
    assert_int_equal(rig_post_body(&rig, "s", TEXT, "e"), 0);
    assert_int_equal(r.own.wakes, 2);
}

/* A crowd is woken in parts, and each of it once, also when more comes meanwhile. */
static void test_crowd(void **state)
{
    (void)state;
    static struct rig_waiter crowd[3 * WAKES_PER_RUN];
    for (size_t i = 0; i < ARRAY_COUNT(crowd); i++) {
        assert_int_equal(wait(&crowd[i], i % 2 ? 3 : 4), 0);
    }
    assert_int_equal(rig_post_body(&rig, "s", TEXT, "d"), 0);
    for (size_t i = 0; i < ARRAY_COUNT(crowd); i++) {
        assert_int_equal(crowd[i].wakes, i % 2);
    }
    assert_int_equal(rig_post_body(&rig, "s", TEXT, "e"), 0);
    for (size_t i = 0; i < ARRAY_COUNT(crowd); i++) {
        assert_int_equal(crowd[i].wakes, 1);
    }
    assert_null(stream->live);
}

/* Live readers of one stream are limited. */
static void test_limit(void **state)
{
    (void)state;
    struct rig_waiter w[2];
    assert_int_equal(wait(&w[0], 3), 0);
    stream->live->waiters = WAITERS_PER_STREAM_MAX;
    assert_int_equal(wait(&w[1], 3), ERR_LIMIT);
    stream_unwait(&w[1].waiter);
    stream->live->waiters = 1;
    stream_unwait(&w[0].waiter);
}

/* The newest frame is shared by its beginning, while somebody follows the stream. */
static void test_frames(void **state)
{
    (void)state;
    struct rig_waiter w;
    struct block *frame = block_try_create(8);
    uint64_t to = 0;
    bool closed = true;
    stream_frame_put(stream, 0, 3, false, frame);
    assert_null(stream_frame_get(stream, 0, &to, &closed));
    assert_int_equal(wait(&w, 3), 0);
    stream_frame_put(stream, 0, 3, false, frame);
    struct block *got = stream_frame_get(stream, 0, &to, &closed);
    assert_ptr_equal(got, frame);
    assert_int_equal(to, 3);
    assert_false(closed);
    block_unref(got);
    assert_null(stream_frame_get(stream, 1, &to, &closed));
    stream_frame_put(stream, 0, 2, false, frame);
    got = stream_frame_get(stream, 0, &to, &closed);
    assert_int_equal(to, 3);
    block_unref(got);
    stream_unwait(&w.waiter);
    assert_int_equal(frame->refs, 1);
    block_unref(frame);
}

/* A waiter that is left behind by a detached worker is freed with the engine. */
static void test_detached(void **state)
{
    (void)state;
    struct rig_waiter w;
    assert_int_equal(wait(&w, 3), 0);
    watch_publish(stream);
    stream_unwait(&w.waiter);
    struct list *first = list_first(&rig.tasks);
    assert_non_null(first);
    list_remove(first);
}

/* A wake-up on its way keeps its worker from being still, also when nobody waits any more. */
static void test_still(void **state)
{
    (void)state;
    struct rig_waiter w;
    assert_true(engine_worker_still(rig.worker));
    assert_int_equal(wait(&w, 3), 0);
    assert_false(engine_worker_still(rig.worker));
    watch_publish(stream);
    stream_unwait(&w.waiter);
    assert_false(engine_worker_still(rig.worker));
    rig_run(&rig);
    assert_true(engine_worker_still(rig.worker));
    assert_int_equal(w.wakes, 0);
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, open_rig, close_rig)
    const struct CMUnitTest tests[] = {
        TEST(test_behind),   TEST(test_still), TEST(test_append), TEST(test_beyond),
        TEST(test_end),      TEST(test_fork),  TEST(test_unwait), TEST(test_unwait_latched),
        TEST(test_shuffle),  TEST(test_crowd), TEST(test_limit),  TEST(test_frames),
        TEST(test_detached),
    };
    return UNIT_RUN(tests);
}
