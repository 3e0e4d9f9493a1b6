/* Cursors: intervals since the epoch, and always beyond what the client shows. */
#include "serve/cursor.c"

#include "unit/base/unit.h"

#include "base/attr.h"

/* Intervals are counted in 20 seconds from 2024-10-09. */
static void counts_intervals(void **state)
{
    (void)state;
    assert_int_equal(cursor_current(EPOCH_MS), 0);
    assert_int_equal(cursor_current(EPOCH_MS + 19999), 0);
    assert_int_equal(cursor_current(EPOCH_MS + 20000), 1);
    assert_int_equal(cursor_current(EPOCH_MS - 1), 0);
    assert_int_equal(cursor_current(0), 0);
}

/* What no server made is ignored: it is never echoed, and never an error. */
static void ignores_garbage(void **state)
{
    const char *bad[] = {"",
                         "abc",
                         "-1",
                         "1.5",
                         "+1",
                         " 1",
                         "01",
                         "999999999999999999999999999999",
                         "18446744073709551615",
                         "18446744073709551616"};

    (void)state;
    for (size_t i = 0; i < ARRAY_COUNT(bad); i++) {
        struct cursor cursor = cursor_parse(slice_of(bad[i]));

        assert_false(cursor.given);
        assert_int_equal(cursor_next(&cursor, EPOCH_MS + 100000, 7), 5);
    }
}

/* A client that is behind, or shows nothing, gets the current interval. */
static void answers_current(void **state)
{
    struct cursor behind = cursor_parse(SLICE("4"));

    (void)state;
    assert_false(cursor_is_ahead(&behind, EPOCH_MS + 100000));
    assert_int_equal(cursor_next(&behind, EPOCH_MS + 100000, 7), 5);
}

/* A client that is not behind gets more than it showed, by 1 to 3600 seconds. */
static void moves_on(void **state)
{
    const char *shown[] = {"5",
                           "6",
                           "1000000",
                           "9007199254740991",
                           "9223372036854775807",
                           "9223372036854775808",
                           "18446744073709548015"};

    (void)state;
    for (size_t i = 0; i < ARRAY_COUNT(shown); i++) {
        struct cursor client = cursor_parse(slice_of(shown[i]));

        assert_true(cursor_is_ahead(&client, EPOCH_MS + 100000));
        for (uint64_t random = 0; random < 10000; random += 17) {
            uint64_t next = cursor_next(&client, EPOCH_MS + 100000, random);

            assert_true(next > client.value);
            assert_true(next <= client.value + JITTER_SECONDS_MAX / 20);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(counts_intervals),
        cmocka_unit_test(ignores_garbage),
        cmocka_unit_test(answers_current),
        cmocka_unit_test(moves_on),
    };

    return UNIT_RUN(tests);
}
