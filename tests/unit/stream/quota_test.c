/* Shares of streams and bytes: all or nothing, never above, nothing lost. */
#include "stream/quota.c"

#include "base/attr.h"
#include "unit/base/unit.h"

#include <string.h>

static int take(struct quota *q, uint64_t streams, uint64_t bytes)
{
    struct errmsg msg = {{0}};
    int code = quota_take(q, (struct quota_share){streams, bytes}, &msg);
    assert_int_equal(code == 0, msg.text[0] == '\0');
    return code;
}

static void expect(struct quota *q, uint64_t streams, uint64_t bytes)
{
    assert_int_equal(atomic_load(&q->streams), streams);
    assert_int_equal(atomic_load(&q->bytes), bytes);
}

/* Without limits there is always room, and the counts are kept. */
static void test_no_limit(void **state)
{
    (void)state;
    struct quota q;
    quota_init(&q);
    assert_int_equal(take(&q, 1, 0), 0);
    assert_int_equal(take(&q, 1, 1ull << 40), 0);
    assert_int_equal(take(&q, 0, 1ull << 40), 0);
    expect(&q, 2, 1ull << 41);
    quota_give(&q, (struct quota_share){2, 1ull << 41});
    expect(&q, 0, 0);
    quota_finish(&q);
}

/* The last one fits and the next does not; a refusal takes nothing of either. */
static void test_limits(void **state)
{
    (void)state;
    struct quota q;
    quota_init(&q);
    quota_limit(&q, 2, 100);
    assert_int_equal(take(&q, 1, 101), ERR_NOSPC);
    expect(&q, 0, 0);
    assert_int_equal(take(&q, 1, 60), 0);
    assert_int_equal(take(&q, 1, 41), ERR_NOSPC);
    assert_int_equal(take(&q, 0, 41), ERR_NOSPC);
    assert_int_equal(take(&q, 1, 40), 0);
    assert_int_equal(take(&q, 1, 0), ERR_NOSPC);
    assert_int_equal(take(&q, 0, 1), ERR_NOSPC);
    assert_int_equal(take(&q, 0, UINT64_MAX), ERR_NOSPC);
    assert_int_equal(take(&q, 0, 0), 0);
    expect(&q, 2, 100);
    quota_give(&q, (struct quota_share){1, 60});
    assert_int_equal(take(&q, 1, 60), 0);
    quota_finish(&q);
}

/* What is above a lowered limit stays, and what takes nothing more still goes. */
static void test_lowered(void **state)
{
    (void)state;
    struct quota q;
    quota_init(&q);
    quota_count(&q, (struct quota_share){10, 1000});
    quota_limit(&q, 5, 500);
    assert_int_equal(take(&q, 1, 0), ERR_NOSPC);
    assert_int_equal(take(&q, 0, 1), ERR_NOSPC);
    assert_int_equal(take(&q, 0, 0), 0);
    quota_give(&q, (struct quota_share){6, 600});
    assert_int_equal(take(&q, 1, 100), 0);
    assert_int_equal(take(&q, 1, 0), ERR_NOSPC);
    quota_limit(&q, 0, 0);
    assert_int_equal(take(&q, 1, 1000), 0);
    expect(&q, 6, 1500);
    quota_finish(&q);
}

/* A sentence says the limit and what is left. */
static void test_sentence(void **state)
{
    (void)state;
    struct quota q;
    struct errmsg msg;
    quota_init(&q);
    quota_limit(&q, 1, 10);
    assert_int_equal(quota_take(&q, (struct quota_share){1, 7}, &msg), 0);
    assert_int_equal(quota_take(&q, (struct quota_share){0, 4}, &msg), ERR_NOSPC);
    assert_non_null(strstr(msg.text, "at most 10 bytes and has room for 3 more"));
    assert_int_equal(quota_take(&q, (struct quota_share){1, 0}, &msg), ERR_NOSPC);
    assert_non_null(strstr(msg.text, "at most 1 streams"));
    quota_finish(&q);
}

struct taker {
    struct quota *quota;
    uint64_t streams; /* held at the end */
    uint64_t bytes;   /* likewise */
    uint64_t refused; /* though there was room for sure */
    unsigned number;
};

/* Takes and gives back at random; those with even numbers take bytes only. */
static void *take_and_give(void *context)
{
    struct taker *t = context;
    unsigned random = t->number + 1;
    for (int i = 0; i < 20000; i++) {
        random = random * 1103515245u + 12345u;
        uint64_t streams = t->number % 2;
        uint64_t bytes = (random >> 16) % 5;
        struct errmsg msg;
        if (quota_take(t->quota, (struct quota_share){streams, bytes}, &msg) == 0) {
            t->streams += streams;
            t->bytes += bytes;
        }
        if ((random >> 24) % 2) {
            quota_give(t->quota, (struct quota_share){t->streams, t->bytes});
            t->streams = 0;
            t->bytes = 0;
        }
    }
    return NULL;
}

static void *watch(void *context)
{
    struct taker *t = context;
    for (int i = 0; i < 100000; i++) {
        t->refused += atomic_load(&t->quota->streams) > 7 || atomic_load(&t->quota->bytes) > 50;
    }
    return NULL;
}

/* Threads that take and give at the same time never get above a limit, not for a moment, and the
 * counts end as what they hold. */
static void test_threads(void **state)
{
    (void)state;
    struct quota q;
    struct taker takers[5] = {{0}};
    pthread_t threads[ARRAY_COUNT(takers)];
    quota_init(&q);
    quota_limit(&q, 7, 50);
    for (unsigned i = 0; i < ARRAY_COUNT(takers); i++) {
        takers[i] = (struct taker){.quota = &q, .number = i};
        assert_int_equal(
            pthread_create(&threads[i], NULL, i == 4 ? watch : take_and_give, &takers[i]), 0);
    }
    uint64_t streams = 0;
    uint64_t bytes = 0;
    for (unsigned i = 0; i < ARRAY_COUNT(takers); i++) {
        assert_int_equal(pthread_join(threads[i], NULL), 0);
        streams += takers[i].streams;
        bytes += takers[i].bytes;
    }
    assert_int_equal(takers[4].refused, 0);
    expect(&q, streams, bytes);
    quota_finish(&q);
}

static void *take_one(void *context)
{
    struct taker *t = context;
    for (int i = 0; i < 1000; i++) {
        struct errmsg msg;
        t->bytes += quota_take(t->quota, (struct quota_share){1, 1}, &msg) == 0;
        t->bytes += quota_take(t->quota, (struct quota_share){0, 1}, &msg) == 0;
    }
    return NULL;
}

/* Nobody is refused while there is room: what threads get together is all there is. */
static void test_nothing_lost(void **state)
{
    (void)state;
    struct quota q;
    struct taker takers[4] = {{0}};
    pthread_t threads[ARRAY_COUNT(takers)];
    quota_init(&q);
    quota_limit(&q, 100, 3000);
    uint64_t bytes = 0;
    for (unsigned i = 0; i < ARRAY_COUNT(takers); i++) {
        takers[i] = (struct taker){.quota = &q};
        assert_int_equal(pthread_create(&threads[i], NULL, take_one, &takers[i]), 0);
    }
    for (unsigned i = 0; i < ARRAY_COUNT(takers); i++) {
        assert_int_equal(pthread_join(threads[i], NULL), 0);
        bytes += takers[i].bytes;
    }
    expect(&q, 100, 3000);
    assert_int_equal(bytes, 3000);
    quota_finish(&q);
}

/* What a stream has of the counts: nothing before it is born and after it is gone; of a fork what
 * is its own. */
static void test_share(void **state)
{
    (void)state;
    struct stream s = {0};
    struct stream_fork fork = {.offset = 30};
    struct stream_state now = {.tail = 100};
    const struct {
        enum stream_life life;
        bool is_fork;
        struct quota_share share;
    } cases[] = {
        {LIFE_UNBORN, false, {0, 0}}, {LIFE_ALIVE, false, {1, 100}}, {LIFE_SOFT, false, {1, 100}},
        {LIFE_GONE, false, {0, 0}},   {LIFE_ALIVE, true, {1, 70}},   {LIFE_SOFT, true, {1, 70}},
        {LIFE_GONE, true, {0, 0}},
    };
    for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
        s.fork = cases[i].is_fork ? &fork : NULL;
        now.life = (uint8_t)cases[i].life;
        struct quota_share share = quota_share_of(&s, &now);
        assert_int_equal(share.streams, cases[i].share.streams);
        assert_int_equal(share.bytes, cases[i].share.bytes);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_no_limit), cmocka_unit_test(test_limits),
        cmocka_unit_test(test_lowered),  cmocka_unit_test(test_sentence),
        cmocka_unit_test(test_threads),  cmocka_unit_test(test_nothing_lost),
        cmocka_unit_test(test_share),
    };
    return UNIT_RUN(tests);
}
