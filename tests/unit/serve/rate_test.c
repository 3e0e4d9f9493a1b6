/* Rates, by a clock that the test moves. */
#include "serve/rate.c"

#include "unit/base/unit.h"

#include <pthread.h>
#include <string.h>

#define SECOND_US 1000000ull
#define START_US  (77 * SECOND_US)

static void new_rate(struct rate *r, uint64_t per_second)
{
    memset(r, 0, sizeof(*r));
    rate_set(r, per_second);
}

/* Without a limit everything is given, and nothing is written. */
static void no_limit(void **state)
{
    struct rate r;

    (void)state;
    new_rate(&r, 0);
    for (int i = 0; i < 1000; i++) {
        assert_int_equal(rate_take(&r, START_US, UINT64_MAX), 0);
        rate_charge(&r, START_US, UINT64_MAX);
    }
    assert_int_equal(atomic_load(&r.full_from_ns), 0);
    assert_int_equal(sizeof(r), 2 * RATE_LINE_BYTES);
}

/* A burst of one second is there at once; then as much as the time brings. */
static void burst_then_rate(void **state)
{
    struct rate r;

    (void)state;
    new_rate(&r, 10);
    for (int i = 0; i < 10; i++) {
        assert_int_equal(rate_take(&r, START_US, 1), 0);
    }
    assert_int_equal(rate_take(&r, START_US, 1), 1);
    assert_int_equal(rate_take(&r, START_US + SECOND_US / 10 - 1, 1), 1);
    assert_int_equal(rate_take(&r, START_US + SECOND_US / 10, 1), 0);
    assert_int_equal(rate_take(&r, START_US + SECOND_US / 10, 1), 1);
    /* An idle hour is not saved up. */
    for (int i = 0; i < 10; i++) {
        assert_int_equal(rate_take(&r, START_US + 3600 * SECOND_US, 1), 0);
    }
    assert_int_equal(rate_take(&r, START_US + 3600 * SECOND_US, 1), 1);
}

/* In any stretch of time at most its rate and a burst are given, and those who ask all the time get
 * nearly that. */
static void never_above(void **state)
{
    const uint64_t rates[] = {1, 3, 7, 1000, 999983};

    (void)state;
    for (size_t i = 0; i < ARRAY_COUNT(rates); i++) {
        struct rate r;
        uint64_t given = 0;
        uint64_t now = START_US;

        new_rate(&r, rates[i]);
        for (int step = 0; step < 20000; step++, now += 997) {
            while (given < 3000000 && rate_take(&r, now, 1) == 0) {
                given++;
            }
            uint64_t most = rates[i] + rates[i] * (now - START_US) / SECOND_US;

            assert_true(given <= most);
            assert_true(given >= 3000000 || given + 1 + most / 500 >= most); /* whole ns */
        }
    }
}

/* What is larger than the bucket goes through when it is full; the next waits until that is paid
 * for, and is told how long. */
static void larger_than_the_bucket(void **state)
{
    struct rate r;

    (void)state;
    new_rate(&r, 1000);
    assert_int_equal(rate_take(&r, START_US, 1), 0);
    assert_int_equal(rate_take(&r, START_US, 5000), 1);
    assert_int_equal(rate_take(&r, START_US + 1000, 5000), 0);
    assert_int_equal(rate_take(&r, START_US + 1000, 1), 5);
    assert_int_equal(rate_take(&r, START_US + 1000, 5000), 5);
    assert_int_equal(rate_take(&r, START_US + 4 * SECOND_US, 1), 1);
    assert_int_equal(rate_take(&r, START_US + 1000 + 4 * SECOND_US, 1000), 1);
    assert_int_equal(rate_take(&r, START_US + 1000 + 5 * SECOND_US, 1000), 0);
}

/* What was used already is taken whatever is there. */
static void debts(void **state)
{
    struct rate r;

    (void)state;
    new_rate(&r, 100);
    rate_charge(&r, START_US, 0);
    assert_int_equal(atomic_load(&r.full_from_ns), 0);
    rate_charge(&r, START_US, 250);
    assert_int_equal(rate_take(&r, START_US, 1), 2);
    assert_int_equal(rate_take(&r, START_US + 2 * SECOND_US, 50), 0);
    assert_int_equal(rate_take(&r, START_US + 2 * SECOND_US, 1), 1);
}

/* What is given back is there again at once, and a full bucket holds no more for it. */
static void gives_back(void **state)
{
    struct rate r;

    (void)state;
    new_rate(&r, 100);
    assert_int_equal(rate_take(&r, START_US, 5000), 0);
    assert_int_equal(rate_take(&r, START_US, 1), 50);
    rate_return(&r, 0);
    assert_int_equal(rate_take(&r, START_US, 1), 50);
    rate_return(&r, 4990);
    assert_int_equal(rate_take(&r, START_US, 90), 0);
    assert_int_equal(rate_take(&r, START_US, 1), 1);
    rate_return(&r, UINT64_MAX);
    assert_int_equal(rate_take(&r, START_US, 100), 0);
    assert_int_equal(rate_take(&r, START_US, 1), 1);
    new_rate(&r, 0);
    rate_return(&r, UINT64_MAX);
    assert_int_equal(atomic_load(&r.full_from_ns), 0);
}

/* A limit may come, change and go. */
static void changes(void **state)
{
    struct rate r;

    (void)state;
    new_rate(&r, 1);
    assert_int_equal(rate_take(&r, START_US, 1), 0);
    assert_int_equal(rate_take(&r, START_US, 1), 1);
    rate_set(&r, 0);
    assert_int_equal(rate_take(&r, START_US, 1), 0);
    rate_set(&r, 1000);
    assert_int_equal(rate_get(&r), 1000);
    assert_int_equal(rate_take(&r, START_US + SECOND_US / 1000, 1), 0);
}

/* Another limit begins with a full bucket: what is owed under a small one would otherwise be waited
 * for under a large one too. The same limit again changes nothing. */
static void another_limit_begins_full(void **state)
{
    struct rate r;

    (void)state;
    new_rate(&r, 10);
    assert_int_equal(rate_take(&r, START_US, 100000), 0);
    assert_int_equal(rate_take(&r, START_US, 1), 10000);
    rate_set(&r, 10);
    assert_int_equal(rate_take(&r, START_US, 1), 10000);
    rate_set(&r, 1000);
    assert_int_equal(rate_take(&r, START_US, 1000), 0);
    assert_int_equal(rate_take(&r, START_US, 1), 1);
    rate_set(&r, 0);
    rate_set(&r, 1000);
    assert_int_equal(rate_take(&r, START_US, 1000), 0);
}

/* No amount and no rate overflows. */
static void extremes(void **state)
{
    const uint64_t values[] = {1,
                               2,
                               SECOND_NS - 1,
                               SECOND_NS,
                               SECOND_NS + 1,
                               1ull << 40,
                               UINT64_MAX / SECOND_NS,
                               UINT64_MAX - 1,
                               UINT64_MAX};

    (void)state;
    for (size_t i = 0; i < ARRAY_COUNT(values); i++) {
        for (size_t j = 0; j < ARRAY_COUNT(values); j++) {
            struct rate r;

            new_rate(&r, values[i]);
            assert_int_equal(rate_take(&r, START_US, values[j]), 0);
            rate_charge(&r, START_US, values[j]);
            rate_charge(&r, START_US, UINT64_MAX);
            uint64_t wait = rate_take(&r, START_US, UINT64_MAX);

            assert_true(wait >= 1);
            assert_true(values[i] > 1 || wait > 1000000000);
        }
    }
}

static void *take_all(void *context)
{
    uint64_t given = 0;

    for (int i = 0; i < 20000; i++) {
        given += rate_take(context, START_US, 1) == 0;
    }
    return (void *)(uintptr_t)given;
}

/* Threads together get no more than one alone would, and no less. */
static void threads(void **state)
{
    struct rate r;
    pthread_t threads[4];
    uint64_t given = 0;

    (void)state;
    new_rate(&r, 50000);
    for (size_t i = 0; i < ARRAY_COUNT(threads); i++) {
        assert_int_equal(pthread_create(&threads[i], NULL, take_all, &r), 0);
    }
    for (size_t i = 0; i < ARRAY_COUNT(threads); i++) {
        void *result = NULL;

        assert_int_equal(pthread_join(threads[i], &result), 0);
        given += (uintptr_t)result;
    }
    assert_int_equal(given, 50000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_limit),    cmocka_unit_test(burst_then_rate),
        cmocka_unit_test(never_above), cmocka_unit_test(larger_than_the_bucket),
        cmocka_unit_test(debts),       cmocka_unit_test(gives_back),
        cmocka_unit_test(changes),     cmocka_unit_test(another_limit_begins_full),
        cmocka_unit_test(extremes),    cmocka_unit_test(threads),
    };
    return UNIT_RUN(tests);
}
