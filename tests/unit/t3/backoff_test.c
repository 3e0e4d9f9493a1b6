/* Pauses between connections: how they grow, what the dice take away, what is refused. */
#include "t3/backoff.c"

#include "unit/base/unit.h"

#include "base/attr.h"

#include <string.h>

/* 0.5 s, then half as much again each time, up to 5 s. */
static void test_growth(void **state)
{
    static const int pauses[] = {500, 750, 1125, 1687, 2531, 3796, 5000, 5000};
    struct t3_backoff backoff;

    (void)state;
    t3_backoff_init(&backoff, 500, 5000, 1.5);
    for (size_t i = 0; i < ARRAY_COUNT(pauses); i++) {
        assert_int_equal(t3_backoff_next(&backoff, 0), pauses[i]);
    }
    t3_backoff_reset(&backoff);
    assert_int_equal(t3_backoff_next(&backoff, 0), 500);
    t3_backoff_jump(&backoff);
    assert_int_equal(t3_backoff_next(&backoff, 0), 5000);
    t3_backoff_reset(&backoff);
    assert_int_equal(t3_backoff_next(&backoff, 0), 500);
}

/* A half at most goes, whatever the dice, and what was taken from one pause not from the next. */
static void test_dice(void **state)
{
    struct t3_backoff backoff;

    (void)state;
    t3_backoff_init(&backoff, 500, 5000, 1.5);
    assert_int_equal(t3_backoff_next(&backoff, UINT64_MAX), 250);
    assert_int_equal(t3_backoff_next(&backoff, UINT64_C(1) << 63), 562);
    assert_int_equal(t3_backoff_next(&backoff, UINT64_C(1) << 62), 984);
}

/* A pause is never 0, and numbers that are huge stay in their range. */
static void test_ends_of_the_range(void **state)
{
    struct t3_backoff backoff;

    (void)state;
    t3_backoff_init(&backoff, 1, 1, 1.0);
    assert_int_equal(t3_backoff_next(&backoff, UINT64_MAX), 1);
    assert_int_equal(t3_backoff_next(&backoff, UINT64_MAX), 1);
    t3_backoff_init(&backoff, 1, INT32_MAX, 1e308);
    for (int i = 0; i < 5; i++) {
        assert_int_equal(t3_backoff_next(&backoff, 0), i == 0 ? 1 : INT32_MAX);
    }
}

/* What makes no sense is named. */
static void test_check(void **state)
{
    (void)state;
    assert_null(t3_backoff_check(1, 1, 1.0));
    assert_non_null(strstr(t3_backoff_check(0, 1, 1.0), "initial_delay_ms"));
    assert_non_null(strstr(t3_backoff_check(2, 1, 1.0), "max_delay_ms"));
    assert_non_null(strstr(t3_backoff_check(1, 1, 0.99), "multiplier"));
    assert_non_null(strstr(t3_backoff_check(1, 1, (double)NAN), "multiplier"));
    assert_non_null(strstr(t3_backoff_check(1, 1, (double)INFINITY), "multiplier"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_growth),
        cmocka_unit_test(test_dice),
        cmocka_unit_test(test_ends_of_the_range),
        cmocka_unit_test(test_check),
    };

    return UNIT_RUN(tests);
}
