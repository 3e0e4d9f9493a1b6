/* Back-off: how long, how often, and what a server's Retry-After makes of it. */
#include "client/retry.c"

#include "unit/base/unit.h"

#include <string.h>

static const struct stream_retry rules = {
    .max_retries = 4,
    .initial_delay_ms = 100,
    .max_delay_ms = 500,
    .multiplier = 2.0,
    .retry_after_max_ms = 3000,
};

/* Without jitter pauses grow by the multiplier, up to the longest, and then there are no more. */
static void test_pauses_grow_and_end(void **state)
{
    static const uint64_t pauses[] = {100, 200, 400, 500};
    struct retry retry;
    uint64_t pause = 0;

    (void)state;
    retry_reset(&retry, &rules);
    for (size_t i = 0; i < ARRAY_COUNT(pauses); i++) {
        assert_true(retry_next(&retry, -1, 0, &pause));
        assert_int_equal(pause, pauses[i]);
    }
    assert_false(retry_next(&retry, -1, 0, &pause));
    assert_int_equal(pause, 500); /* untouched */
    retry_reset(&retry, &rules);
    assert_true(retry_next(&retry, -1, 0, &pause));
    assert_int_equal(pause, 100);
}

/* Jitter takes away up to a half, and nothing is 0. */
static void test_jitter(void **state)
{
    struct stream_retry small = rules;
    struct retry retry;
    uint64_t pause = 0;

    (void)state;
    retry_reset(&retry, &rules);
    assert_true(retry_next(&retry, -1, UINT64_MAX, &pause));
    assert_in_range(pause, 50, 51);
    small.initial_delay_ms = 1;
    retry_reset(&retry, &small);
    assert_true(retry_next(&retry, -1, UINT64_MAX, &pause));
    assert_int_equal(pause, 1);
}

/* FOREVER has no last try, and with 0 no second one. */
static void test_counts(void **state)
{
    struct stream_retry endless = rules;
    struct retry retry;
    uint64_t pause;

    (void)state;
    endless.max_retries = STREAM_RETRY_FOREVER;
    retry_reset(&retry, &endless);
    for (int i = 0; i < 10000; i++) {
        assert_true(retry_next(&retry, -1, (uint64_t)i << 40, &pause));
        assert_in_range(pause, 50, 500);
    }
    endless.max_retries = 0;
    retry_reset(&retry, &endless);
    assert_false(retry_next(&retry, 1000, 0, &pause));
}

/* What the server asks for outranks the back-off, within its own bound, but makes no hot loop. */
static void test_retry_after(void **state)
{
    struct retry retry;
    uint64_t pause;

    (void)state;
    retry_reset(&retry, &rules);
    assert_true(retry_next(&retry, 2000, 0, &pause));
    assert_int_equal(pause, 2000);
    assert_true(retry_next(&retry, 3600000, 0, &pause));
    assert_int_equal(pause, 3000);
    assert_true(retry_next(&retry, 150, 0, &pause)); /* the back-off would be 400 */
    assert_int_equal(pause, 150);
    assert_true(retry_next(&retry, 0, 0, &pause));
    assert_int_equal(pause, 100);
}

static void assert_refused(struct stream_retry bad, const char *option)
{
    struct stream_error error;

    assert_int_equal(retry_check(&bad, &error), STREAM_ERROR_ARGUMENT);
    assert_int_equal(error.code, STREAM_ERROR_ARGUMENT);
    assert_non_null(strstr(error.message, option));
    assert_int_equal(retry_check(&bad, NULL), STREAM_ERROR_ARGUMENT);
}

/* Options that make no sense are refused by name. */
static void test_check(void **state)
{
    struct stream_retry bad;

    (void)state;
    assert_int_equal(retry_check(&rules, NULL), STREAM_OK);
    bad = rules;
    bad.max_retries = -1;
    assert_refused(bad, "max_retries");
    bad = rules;
    bad.initial_delay_ms = 0;
    assert_refused(bad, "initial_delay_ms");
    bad = rules;
    bad.max_delay_ms = 99;
    assert_refused(bad, "max_delay_ms");
    bad = rules;
    bad.multiplier = 0.5;
    assert_refused(bad, "multiplier");
    bad.multiplier = (double)NAN;
    assert_refused(bad, "multiplier");
    bad.multiplier = (double)INFINITY;
    assert_refused(bad, "multiplier");
    bad = rules;
    bad.retry_after_max_ms = -1;
    assert_refused(bad, "retry_after_max_ms");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_pauses_grow_and_end),
        cmocka_unit_test(test_jitter),
        cmocka_unit_test(test_counts),
        cmocka_unit_test(test_retry_after),
        cmocka_unit_test(test_check),
    };

    return UNIT_RUN(tests);
}
