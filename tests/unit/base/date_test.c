/* Dates: parsing near misses, and every day up to the year 9999 against a calendar that counts. */
#include "base/date.c"

#include "unit/base/unit.h"

#include <stdio.h>
#include <time.h>

/* The forms that RFC 3339 allows give the instant they name. */
static void test_parses_what_the_rfc_allows(void **state)
{
    const struct {
        struct slice text;
        int64_t ms;
    } cases[] = {
        {SLICE("1970-01-01T00:00:00Z"), 0},
        {SLICE("1970-01-01T00:00:00.001Z"), 1},
        {SLICE("1985-04-12T23:20:50.52Z"), INT64_C(482196050520)},
        {SLICE("1996-12-19T16:39:57-08:00"), INT64_C(851042397000)},
        {SLICE("1996-12-20T00:39:57Z"), INT64_C(851042397000)},
        {SLICE("1937-01-01T12:00:27.87+00:20"), -1},
        {SLICE("1970-01-01T01:00:00+01:00"), 0},
        {SLICE("1969-12-31T23:59:59-00:01"), 59000},
        {SLICE("2000-02-29t12:00:00z"), INT64_C(951825600000)},
        {SLICE("2026-11-30T13:10:00-00:00"), INT64_C(1796044200000)},
        {SLICE("2026-11-30T13:10:00.1239999999999999999999Z"), INT64_C(1796044200123)},
        {SLICE("9999-12-31T23:59:59.999Z"), DATE_MS_MAX},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
        int64_t ms = -1;

        assert_int_equal(date_parse_rfc3339(cases[i].text, &ms), cases[i].ms >= 0);
        assert_int_equal(ms, cases[i].ms);
    }
}

/* A leap second is the second after it, and exists only at the end of a day of UTC. */
static void test_leap_seconds(void **state)
{
    int64_t ms;

    (void)state;
    assert_true(date_parse_rfc3339(SLICE("1990-12-31T23:59:60Z"), &ms));
    assert_int_equal(ms, INT64_C(662688000000));
    assert_true(date_parse_rfc3339(SLICE("1990-12-31T15:59:60-08:00"), &ms));
    assert_int_equal(ms, INT64_C(662688000000));
    assert_true(date_parse_rfc3339(SLICE("1990-12-31T23:59:60.5Z"), &ms));
    assert_int_equal(ms, INT64_C(662688000500));
    assert_false(date_parse_rfc3339(SLICE("1990-12-31T12:00:60Z"), &ms));
    assert_false(date_parse_rfc3339(SLICE("1990-12-31T23:59:60+01:00"), &ms));
    assert_false(date_parse_rfc3339(SLICE("9999-12-31T23:59:60Z"), &ms));
}

/* Anything else is refused and leaves the output alone. */
static void test_refuses_everything_else(void **state)
{
    const char *const wrong[] = {
        "",
        "2026",
        "2026-11-30",
        "2026-11-30T13:10:00",
        "2026-11-30T13:10Z",
        "2026-11-30 13:10:00Z",
        "2026-11-30T13:10:00.Z",
        "2026-11-30T13:10:00,5Z",
        "2026-11-30T13:10:00ZZ",
        "2026-11-30T13:10:00Z ",
        " 2026-11-30T13:10:00Z",
        "2026-11-30T13:10:00+0100",
        "2026-11-30T13:10:00+01",
        "2026-11-30T13:10:00+24:00",
        "2026-11-30T13:10:00+01:60",
        "2026-11-30T24:00:00Z",
        "2026-11-30T13:60:00Z",
        "2026-11-30T13:10:61Z",
        "2026-00-30T13:10:00Z",
        "2026-13-30T13:10:00Z",
        "2026-11-00T13:10:00Z",
        "2026-11-31T13:10:00Z",
        "2026-02-29T13:10:00Z",
        "2100-02-29T13:10:00Z",
        "2026-1-30T13:10:00Z",
        "+2026-11-30T13:10:00Z",
        "-2026-11-30T13:10:00Z",
        "12026-11-30T13:10:00Z",
        "0000-01-01T00:00:00Z",
        "1969-12-31T23:59:59Z",
        "1970-01-01T00:59:59+01:00",
        "9999-12-31T23:59:59-00:01",
        "Mon, 30 Nov 2026 13:10:00 GMT",
        "1796044200",
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_COUNT(wrong); i++) {
        int64_t ms = 5;

        if (date_parse_rfc3339(slice_of(wrong[i]), &ms)) {
            fail_msg("took %s", wrong[i]);
        }
        assert_int_equal(ms, 5);
    }
}

/* A NUL inside the text is no digit, sign or separator. */
static void test_refuses_nul_bytes(void **state)
{
    char text[] = "2026-11-30T13:10:00.5+01:00";
    int64_t ms;

    (void)state;
    for (size_t i = 0; i < sizeof(text) - 1; i++) {
        char kept = text[i];

        text[i] = '\0';
        assert_false(date_parse_rfc3339((struct slice){text, sizeof(text) - 1}, &ms));
        text[i] = kept;
    }
    assert_true(date_parse_rfc3339((struct slice){text, sizeof(text) - 1}, &ms));
}

/* Each day from 1970 to 9999 is the successor of the day before, both ways. */
static void test_every_day_counts(void **state)
{
    int64_t days = 0;

    (void)state;
    for (int year = 1970; year <= 9999; year++) {
        for (int month = 1; month <= 12; month++) {
            for (int day = 1; day <= month_days(year, month); day++) {
                struct moment m;

                date_of_days(days, &m);
                if (m.year != year || m.month != month || m.day != day ||
                    days_of_date(year, month, day) != days) {
                    fail_msg("%d-%d-%d is not day %lld", year, month, day, (long long)days);
                }
                days++;
            }
        }
    }
    assert_int_equal(days, DATE_MS_MAX / 1000 / DAY_SECONDS + 1);
}

/* Formatting agrees with the C library, and what is formatted parses back. */
static void test_formats_like_the_library(void **state)
{
    (void)state;
    for (int64_t ms = 0; ms <= DATE_MS_MAX; ms += INT64_C(12345678901)) {
        char got[DATE_HTTP_BYTES];
        char want[64];
        time_t seconds = (time_t)(ms / 1000);
        struct tm parts;
        size_t len;
        int64_t back = -1;

        assert_non_null(gmtime_r(&seconds, &parts));
        assert_true(strftime(want, sizeof(want), "%a, %d %b %Y %H:%M:%S GMT", &parts) > 0);
        date_format_http(got, ms);
        assert_string_equal(got, want);
        len = strftime(want, sizeof(want), "%Y-%m-%dT%H:%M:%S", &parts);
        (void)snprintf(want + len, sizeof(want) - len, ".%03dZ", (int)(ms % 1000));
        date_format_rfc3339(got, ms);
        assert_string_equal(got, want);
        assert_true(date_parse_rfc3339(slice_of(got), &back));
        assert_int_equal(back, ms);
    }
}

/* Times out of bounds are written as the bound, not as garbage. */
static void test_formats_within_bounds(void **state)
{
    char text[DATE_HTTP_BYTES];

    (void)state;
    date_format_rfc3339(text, -1);
    assert_string_equal(text, "1970-01-01T00:00:00.000Z");
    date_format_rfc3339(text, INT64_MIN);
    assert_string_equal(text, "1970-01-01T00:00:00.000Z");
    date_format_rfc3339(text, INT64_MAX);
    assert_string_equal(text, "9999-12-31T23:59:59.999Z");
    date_format_http(text, INT64_MAX);
    assert_string_equal(text, "Fri, 31 Dec 9999 23:59:59 GMT");
    date_format_http(text, INT64_C(784111777000));
    assert_string_equal(text, "Sun, 06 Nov 1994 08:49:37 GMT");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_parses_what_the_rfc_allows),
        cmocka_unit_test(test_leap_seconds),
        cmocka_unit_test(test_refuses_everything_else),
        cmocka_unit_test(test_refuses_nul_bytes),
        cmocka_unit_test(test_every_day_counts),
        cmocka_unit_test(test_formats_like_the_library),
        cmocka_unit_test(test_formats_within_bounds),
    };

    return UNIT_RUN(tests);
}
