/* Media types: the grammar, and what makes two the same. */
#include "base/media_type.c"

#include "unit/base/unit.h"

#include "base/attr.h"

/* Types with parameters of all kinds, empty ones too. */
static void accepts(void **state)
{
    const char *good[] = {"text/plain",
                          "application/vnd.api+json",
                          "text/plain; charset=utf-8",
                          "text/plain;",
                          "text/plain ;a=b ; c=\"d;e\"",
                          "text/plain;a=\"\\\"\"",
                          "x/y;;a=b",
                          "TEXT/Plain"};

    (void)state;
    for (size_t i = 0; i < ARRAY_COUNT(good); i++) {
        assert_true(media_type_valid(slice_of(good[i])));
    }
}

/* What is no type, a list of types, and parameters without an end. */
static void refuses(void **state)
{
    const char *bad[] = {"",
                         "garbage",
                         "text",
                         "/",
                         "text/",
                         "/plain",
                         "te xt/plain",
                         "text/pl ain",
                         "a/b/c",
                         "text/a, b/c",
                         ";charset=x",
                         "text;plain",
                         "tex\xe9t/p",
                         "text/p; a",
                         "text/p; a=",
                         "text/p; a=\"x",
                         "text/p; a=\"\xe9\"",
                         "text/p; a=\"\n\"",
                         "text/plain\r\nX: y",
                         "text/p; =b",
                         "text/p; a=\"\\",
                         "text/p a=b",
                         " text/p"};

    (void)state;
    for (size_t i = 0; i < ARRAY_COUNT(bad); i++) {
        assert_false(media_type_valid(slice_of(bad[i])));
    }
}

/* A type longer than the limit is refused. */
static void test_too_long(void **state)
{
    (void)state;
    char text[STREAM_CONTENT_TYPE_BYTES_MAX + 1];
    memset(text, 'a', sizeof(text));
    text[1] = '/';
    assert_true(media_type_valid((struct slice){text, sizeof(text) - 1}));
    assert_false(media_type_valid((struct slice){text, sizeof(text)}));
}

/* Parameters, spaces around and ASCII case do not count; other letters never fold. */
static void test_equal(void **state)
{
    (void)state;
    struct slice json = SLICE("application/json");
    assert_true(media_type_equal(json, SLICE("Application/JSON")));
    assert_true(media_type_equal(json, SLICE("application/json; charset=utf-8")));
    assert_true(media_type_equal(json, SLICE(" application/json ;")));
    assert_false(media_type_equal(json, SLICE("APPL\xc4\xb0"
                                              "CATION/JSON")));
    assert_false(media_type_equal(json, SLICE("text/json")));
    assert_true(media_type_is_json(SLICE("application/json;a=b")));
    assert_false(media_type_is_json(SLICE("application/vnd.api+json")));
    assert_false(media_type_is_json((struct slice){0}));
}

/* Text is what begins with "text/", whatever its case. */
static void test_is_text(void **state)
{
    (void)state;
    assert_true(media_type_is_text(SLICE("text/plain")));
    assert_true(media_type_is_text(SLICE("Text/HTML; charset=utf-8")));
    assert_false(media_type_is_text(SLICE("text")));
    assert_false(media_type_is_text(SLICE("application/octet-stream; a=text/x")));
    assert_false(media_type_is_text((struct slice){NULL, 0}));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(accepts),       cmocka_unit_test(refuses),
        cmocka_unit_test(test_too_long), cmocka_unit_test(test_equal),
        cmocka_unit_test(test_is_text),
    };

    return UNIT_RUN(tests);
}
