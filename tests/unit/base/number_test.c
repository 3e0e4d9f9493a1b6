/* Strict numbers, sizes and durations: what is taken, and all the near misses that are not. */
#include "base/number.c"

#include "unit/base/unit.h"

#include <stdio.h>

/* Decimal digits up to the maximum, and nothing above it. */
static void test_u64_respects_its_maximum(void **state)
{
    uint64_t value;

    (void)state;
    assert_true(number_parse_u64(SLICE("0"), 0, false, &value));
    assert_int_equal(value, 0);
    assert_true(number_parse_u64(SLICE("9007199254740991"), NUMBER_JS_MAX, false, &value));
    assert_int_equal(value, NUMBER_JS_MAX);
    value = 5;
    assert_false(number_parse_u64(SLICE("9007199254740992"), NUMBER_JS_MAX, false, &value));
    assert_int_equal(value, 5);
    assert_true(number_parse_u64(SLICE("18446744073709551615"), UINT64_MAX, false, &value));
    assert_int_equal(value, UINT64_MAX);
    assert_false(number_parse_u64(SLICE("18446744073709551616"), UINT64_MAX, false, &value));
    assert_false(number_parse_u64(SLICE("99999999999999999999999"), UINT64_MAX, false, &value));
    assert_false(number_parse_u64(SLICE("36893488147419103232"), UINT64_MAX, false, &value));
}

/* Leading zeros are taken only where they are asked for, in any number. */
static void test_u64_leading_zeros(void **state)
{
    uint64_t value;

    (void)state;
    assert_false(number_parse_u64(SLICE("00"), 9, false, &value));
    assert_false(number_parse_u64(SLICE("07"), 9, false, &value));
    assert_true(number_parse_u64(SLICE("07"), 9, true, &value));
    assert_int_equal(value, 7);
    assert_true(number_parse_u64(SLICE("0000000000000000000000000000042"), 99, true, &value));
    assert_int_equal(value, 42);
}

/* Signs, spaces, fractions, exponents, other bases and other digits are refused. */
static void test_u64_refuses_lenient_forms(void **state)
{
    const struct slice wrong[] = {
        SLICE(""),   SLICE("+1"),    SLICE("-1"),  SLICE("-0"),   SLICE(" 1"),
        SLICE("1 "), SLICE("1e3"),   SLICE("1.0"), SLICE("0x10"), SLICE("1\0"),
        SLICE("a"),  SLICE("1_000"), SLICE("/"),   SLICE(":"),    SLICE("\xef\xbc\x91"),
        {NULL, 0},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_COUNT(wrong); i++) {
        uint64_t value = 5;

        assert_false(number_parse_u64(wrong[i], UINT64_MAX, true, &value));
        assert_int_equal(value, 5);
    }
}

/* Every number that prints parses back. */
static void test_u64_round_trip(void **state)
{
    (void)state;
    for (uint64_t n = 1; n < UINT64_MAX / 7; n = n * 7 + 3) {
        char text[24];
        uint64_t value;

        (void)snprintf(text, sizeof(text), "%llu", (unsigned long long)n);
        assert_true(number_parse_u64(slice_of(text), UINT64_MAX, false, &value));
        assert_int_equal(value, n);
        assert_false(number_parse_u64(slice_of(text), n - 1, false, &value));
    }
}

/* Sizes are bytes or whole binary units, written without a space and in one spelling. */
static void test_sizes(void **state)
{
    const struct slice wrong[] = {
        SLICE(""),
        SLICE("KiB"),
        SLICE("4 KiB"),
        SLICE("4KiB "),
        SLICE("4kib"),
        SLICE("4KB"),
        SLICE("4K"),
        SLICE("4TiB"),
        SLICE("-4KiB"),
        SLICE("04KiB"),
        SLICE("1.5MiB"),
        SLICE("4B"),
        SLICE("18014398509481984KiB"),
    };
    uint64_t bytes;

    (void)state;
    assert_true(number_parse_size(SLICE("0"), &bytes));
    assert_int_equal(bytes, 0);
    assert_true(number_parse_size(SLICE("1000"), &bytes));
    assert_int_equal(bytes, 1000);
    assert_true(number_parse_size(SLICE("4KiB"), &bytes));
    assert_int_equal(bytes, 4096);
    assert_true(number_parse_size(SLICE("64MiB"), &bytes));
    assert_int_equal(bytes, 64u << 20);
    assert_true(number_parse_size(SLICE("17179869183GiB"), &bytes));
    assert_int_equal(bytes, UINT64_C(17179869183) << 30);
    bytes = 5;
    assert_false(number_parse_size(SLICE("17179869184GiB"), &bytes));
    for (size_t i = 0; i < ARRAY_COUNT(wrong); i++) {
        assert_false(number_parse_size(wrong[i], &bytes));
    }
    assert_int_equal(bytes, 5);
}

/* Durations need a unit, since a bare number means seconds to one and milliseconds to another. */
static void test_durations(void **state)
{
    const struct slice wrong[] = {
        SLICE(""),
        SLICE("30"),
        SLICE("0"),
        SLICE("s"),
        SLICE("30 s"),
        SLICE("30S"),
        SLICE("1d"),
        SLICE("1.5s"),
        SLICE("-1s"),
        SLICE("1h30m"),
        SLICE("007s"),
        SLICE("1ms "),
        SLICE("18446744073709551615s"),
    };
    uint64_t ms;

    (void)state;
    assert_true(number_parse_duration(SLICE("20ms"), &ms));
    assert_int_equal(ms, 20);
    assert_true(number_parse_duration(SLICE("30s"), &ms));
    assert_int_equal(ms, 30000);
    assert_true(number_parse_duration(SLICE("5m"), &ms));
    assert_int_equal(ms, 300000);
    assert_true(number_parse_duration(SLICE("1h"), &ms));
    assert_int_equal(ms, 3600000);
    assert_true(number_parse_duration(SLICE("0s"), &ms));
    assert_int_equal(ms, 0);
    ms = 5;
    for (size_t i = 0; i < ARRAY_COUNT(wrong); i++) {
        assert_false(number_parse_duration(wrong[i], &ms));
    }
    assert_int_equal(ms, 5);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_u64_respects_its_maximum),
        cmocka_unit_test(test_u64_leading_zeros),
        cmocka_unit_test(test_u64_refuses_lenient_forms),
        cmocka_unit_test(test_u64_round_trip),
        cmocka_unit_test(test_sizes),
        cmocka_unit_test(test_durations),
    };

    return UNIT_RUN(tests);
}
