/* Latencies: percentiles within their promise, and pictures that add up. */
#include "cli/latency.c"

#include "unit/base/unit.h"

#include <stdlib.h>

/* Every value falls into a bin whose greatest value is at most 1/32 above it. */
static void bins_are_tight(void **state)
{
    uint64_t value = 0;

    (void)state;
    for (unsigned i = 0; i < 100000; i++) {
        unsigned bin = bin_of(value);

        assert_true(bin < LATENCY_BINS);
        assert_true(top_of(bin) >= value);
        assert_true(top_of(bin) - value <= value / LATENCY_STEPS);
        assert_true(bin == 0 || top_of(bin - 1) < value);
        value = value < 5000 ? value + 1 : value + value / 997;
        if (value > (UINT64_MAX >> 8)) {
            return;
        }
    }
}

/* Against a sorted list. */
static void quantiles_are_near(void **state)
{
    static struct latency l;
    static struct latency half;

    (void)state;
    for (uint64_t i = 1; i <= 10000; i++) {
        latency_add(i % 2 == 0 ? &l : &half, i * 1000);
    }
    latency_merge(&l, &half);
    assert_int_equal(l.count, 10000);
    assert_int_equal(l.min, 1000);
    assert_int_equal(l.max, 10000000);
    for (unsigned part = 1; part <= 1000; part++) {
        uint64_t wanted = part * 10000ull;
        uint64_t got = latency_quantile(&l, part / 1000.0);

        assert_true(got >= wanted && got - wanted <= wanted / LATENCY_STEPS + 1000);
    }
}

/* No values, and one of each extreme. */
static void ends(void **state)
{
    static struct latency l;
    static struct latency none;

    (void)state;
    assert_int_equal(latency_quantile(&l, 0.5), 0);
    latency_merge(&l, &none);
    assert_int_equal(l.count, 0);
    latency_add(&l, UINT64_MAX);
    latency_add(&l, 0);
    assert_int_equal(l.min, 0);
    assert_true(l.max == UINT64_MAX);
    assert_int_equal(latency_quantile(&l, 0.1), 0);
}

static void assert_text(uint64_t ns, const char *wanted)
{
    char text[32];

    latency_format(text, sizeof(text), ns);
    assert_string_equal(text, wanted);
}

static void words(void **state)
{
    (void)state;
    assert_text(0, "0.00 us");
    assert_text(999, "1.00 us");
    assert_text(34500, "34.5 us");
    assert_text(340000, "340 us");
    assert_text(1000000, "1.00 ms");
    assert_text(2500000000, "2.50 s");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bins_are_tight),
        cmocka_unit_test(quantiles_are_near),
        cmocka_unit_test(ends),
        cmocka_unit_test(words),
    };

    return UNIT_RUN(tests);
}
