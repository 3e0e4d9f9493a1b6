/* Media types: syntax, equality, the set. */
#include "stream/media.c"

#include "unit/base/unit.h"

/* A media type is token "/" token, perhaps with parameters. */
static void test_valid(void **state)
{
    (void)state;
    static const char *const good[] = {
        "text/plain", "application/json; charset=utf-8", "application/json;",
        "x/y",        "application/vnd.api+json",
    };
    static const char *const bad[] = {
        "",
        "garbage",
        "/",
        "text/",
        "/plain",
        "te xt/plain",
        "text/plain\r\nX: y",
        "text/pl\xc3\xa4in",
        ";a/b",
        "a/b/c",
    };
    for (size_t i = 0; i < ARRAY_COUNT(good); i++) {
        assert_true(media_valid(slice_of(good[i])));
    }
    for (size_t i = 0; i < ARRAY_COUNT(bad); i++) {
        assert_false(media_valid(slice_of(bad[i])));
    }
}

/* A type longer than the limit is refused. */
static void test_too_long(void **state)
{
    (void)state;
    char text[STREAM_CONTENT_TYPE_BYTES_MAX + 1];
    memset(text, 'a', sizeof(text));
    text[1] = '/';
    assert_true(media_valid((struct slice){text, sizeof(text) - 1}));
    assert_false(media_valid((struct slice){text, sizeof(text)}));
}

/* Parameters, spaces around and ASCII case do not count; other letters never fold. */
static void test_equal(void **state)
{
    (void)state;
    struct slice json = SLICE("application/json");
    assert_true(media_equal(json, SLICE("Application/JSON")));
    assert_true(media_equal(json, SLICE("application/json; charset=utf-8")));
    assert_true(media_equal(json, SLICE(" application/json ;")));
    assert_false(media_equal(json, SLICE("APPL\xc4\xb0"
                                         "CATION/JSON")));
    assert_false(media_equal(json, SLICE("text/json")));
    assert_true(media_json(SLICE("application/json;a=b")));
    assert_false(media_json(SLICE("application/vnd.api+json")));
    assert_false(media_json((struct slice){0}));
}

/* The set keeps one copy per distinct text, and none when nobody refers to it. */
static void test_set(void **state)
{
    (void)state;
    struct media_set set;
    media_set_init(&set);
    struct media *a = media_get(&set, SLICE("text/plain"));
    struct media *b = media_get(&set, SLICE("text/plain"));
    struct media *c = media_get(&set, SLICE("Text/Plain"));
    assert_ptr_equal(a, b);
    assert_ptr_not_equal(a, c);
    assert_true(slice_equal(media_text(c), SLICE("Text/Plain")));
    media_put(&set, a);
    media_put(&set, b);
    media_put(&set, c);
    media_put(&set, NULL);
    assert_int_equal(set.types.count, 0);
    media_set_finish(&set);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_valid),
        cmocka_unit_test(test_too_long),
        cmocka_unit_test(test_equal),
        cmocka_unit_test(test_set),
    };
    return UNIT_RUN(tests);
}
