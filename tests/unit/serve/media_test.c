/* The grammar of media types. */
#include "serve/media.c"

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
        assert_true(media_type_is_valid(slice_of(good[i])));
    }
}

/* What is no type, a list of types, and parameters without an end. */
static void refuses(void **state)
{
    const char *bad[] = {"",           "garbage",        "text",        "/",
                         "text/",      "/plain",         "te xt/plain", "text/pl ain",
                         "a/b/c",      "text/a, b/c",    ";charset=x",  "text;plain",
                         "tex\xe9t/p", "text/p; a",      "text/p; a=",  "text/p; a=\"x",
                         "text/p; =b", "text/p; a=\"\\", "text/p a=b",  " text/p"};

    (void)state;
    for (size_t i = 0; i < ARRAY_COUNT(bad); i++) {
        assert_false(media_type_is_valid(slice_of(bad[i])));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(accepts),
        cmocka_unit_test(refuses),
    };

    return UNIT_RUN(tests);
}
