/* Times: as they came, and as instants. */
#include "t3/instant.c"

#include "unit/base/unit.h"

static struct t3_instant read_value(const char *value)
{
    return t3_instant_read(slice_of(value));
}

/* Forms differ, instants do not; digits beyond the millisecond count. */
static void test_order(void **state)
{
    static const char *const rising[] = {
        "null",
        "\"1970-01-01T00:00:00Z\"",
        "\"2026-11-05T00:30:00+02:00\"",
        "\"2026-11-04T23:00:00.000Z\"",
        "\"2026-11-04T23:00:00.0001Z\"",
        "\"2026-11-04T23:00:00.00010000001Z\"",
        "\"2026-11-04T23:00:00.001Z\"",
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_COUNT(rising); i++) {
        for (size_t j = 0; j < ARRAY_COUNT(rising); j++) {
            struct t3_instant a = read_value(rising[i]);
            struct t3_instant b = read_value(rising[j]);
            int order = t3_instant_compare(&a, &b);

            assert_int_equal((order > 0) - (order < 0), (i > j) - (i < j));
        }
    }
    struct t3_instant a = read_value("\"2026-11-05T02:00:00+02:00\"");
    struct t3_instant b = read_value("\"2026-11-05T00:00:00.000Z\"");

    assert_int_equal(t3_instant_compare(&a, &b), 0);
    t3_instant_advance(&a, &b);
    assert_string_equal(a.text, "2026-11-05T02:00:00+02:00");
}

/* Anything else is no time, and has no text. */
static void test_none(void **state)
{
    static const char *const values[] = {
        "null",           "7",
        "\"\"",           "\"soon\"",
        "\"2026-11-05\"", "{}",
        "\"\\ud800\"",    "\"2026-11-05T00:00:00.0000000000000000000000000000000000000000Z\"",
    };
    struct t3_instant none = t3_instant_read((struct slice){NULL, 0});
    struct t3_instant text = t3_instant_of(SLICE("2026-11-05T00:00:00.123456Z"));
    struct t3_instant value = t3_instant_read(SLICE("\"2026-11-05T00:00:00.123456Z\""));

    assert_int_equal(t3_instant_compare(&text, &value), 0);
    assert_int_equal(text.picoseconds, 456000000);
    assert_string_equal(text.text, value.text);
    assert_int_equal(t3_instant_of((struct slice){NULL, 0}).len, 0);
    assert_int_equal(t3_instant_of(SLICE("yesterday")).len, 0);

    (void)state;
    assert_null(t3_instant_text(&none).ptr);
    for (size_t i = 0; i < ARRAY_COUNT(values); i++) {
        struct t3_instant t = read_value(values[i]);

        assert_null(t3_instant_text(&t).ptr);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_order),
        cmocka_unit_test(test_none),
    };

    return UNIT_RUN(tests);
}
