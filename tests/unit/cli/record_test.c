/* Values of records by name, whatever a server sends. */
#include "cli/record.c"

#include "unit/base/unit.h"

#include <stdlib.h>

static struct slice scanned(const char *text)
{
    struct slice value;

    assert_int_equal(json_text_read(slice_of(text), &value, NULL), 0);
    return value;
}

/* Texts are decoded; what is none reads as empty, never as NULL. */
static void reads_texts(void **state)
{
    static const struct {
        const char *record;
        const char *text;
    } cases[] = {
        {"{\"x\":\"a\\u00e4\\n\"}", "aä\n"},
        {"{\"\\u0078\":\"escaped name\"}", "escaped name"},
        {"{\"x\":\"half \\ud800\"}", "half \xef\xbf\xbd"},
        {"{\"x\":null}", ""},
        {"{\"x\":7}", ""},
        {"{\"x\":\"a\",\"x\":\"b\"}", ""},
        {"{\"y\":\"a\"}", ""},
        {"[]", ""},
    };
    struct arena memory;

    (void)state;
    arena_init(&memory, 4096);
    for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
        struct slice text = record_text(scanned(cases[i].record), "x", &memory);

        assert_string_equal(text.ptr, cases[i].text);
        assert_int_equal(text.len, strlen(cases[i].text));
    }
    assert_string_equal(record_text((struct slice){NULL, 0}, "x", &memory).ptr, "");
    arena_finish(&memory);
    arena_init(&memory, 1);
    assert_string_equal(record_text(scanned("{\"x\":\"long\"}"), "x", &memory).ptr, "");
    arena_finish(&memory);
}

/* Numbers, flags and lists likewise. */
static void reads_other_kinds(void **state)
{
    struct slice record = scanned("{\"n\":12,\"f\":1.5,\"s\":\"1\",\"yes\":true,\"no\":false,"
                                  "\"list\":[1,2],\"big\":1e300}");
    struct json_walk walk;
    struct slice element;
    size_t count = 0;

    (void)state;
    assert_int_equal(record_number(record, "n"), 12);
    assert_int_equal(record_number(record, "f"), 0);
    assert_int_equal(record_number(record, "s"), 0);
    assert_int_equal(record_number(record, "big"), 0);
    assert_int_equal(record_number(record, "none"), 0);
    assert_true(record_flag(record, "yes"));
    assert_false(record_flag(record, "no"));
    assert_false(record_flag(record, "n"));
    record_walk(&walk, record, "list");
    while (json_walk_element(&walk, &element)) {
        count++;
    }
    assert_int_equal(count, 2);
    record_walk(&walk, record, "none");
    assert_false(json_walk_element(&walk, &element));
    record_walk(&walk, record, "s");
    assert_false(json_walk_element(&walk, &element));
}

/* Times are those of the user's clock. */
static void tells_times(void **state)
{
    char text[RECORD_TIME_BYTES];

    (void)state;
    assert_int_equal(setenv("TZ", "CET-1", 1), 0);
    tzset();
    record_format_time(text, UINT64_C(1796076978142));
    assert_string_equal(text, "2026-11-30 23:16");
    record_format_time(text, 0);
    assert_string_equal(text, "-");
    record_format_time(text, NUMBER_JS_MAX); /* the furthest that a number may be */
    assert_string_equal(text, "287396-10-12 09:59");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads_texts),
        cmocka_unit_test(reads_other_kinds),
        cmocka_unit_test(tells_times),
    };

    return UNIT_RUN(tests);
}
