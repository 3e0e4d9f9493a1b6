/* When two JSON messages are the same. */
#include "cli/cursor.c"

#include "unit/base/unit.h"

static void assert_same(const char *a, const char *b, bool wanted)
{
    assert_int_equal(cursor_same_json(slice_of(a), slice_of(b)), wanted);
    assert_int_equal(cursor_same_json(slice_of(b), slice_of(a)), wanted);
}

/* White space between tokens does not count, within strings it does. */
static void white_space(void **state)
{
    (void)state;
    assert_same("{\"a\":[1,2]}", " {\n\"a\" : [ 1,\t2 ] }\r\n", true);
    assert_same("\"a b\"", "\"ab\"", false);
    assert_same("\"a\\\" b\"", "\"a\\\"b\"", false);
    assert_same("\"a\\\\\" ", "\"a\\\\\"", true);
    assert_same("[\"\\\\\", 1]", "[\"\\\\\",1]", true);
}

/* Anything else does. */
static void contents(void **state)
{
    (void)state;
    assert_same("1", "2", false);
    assert_same("1", "12", false);
    assert_same("", "", true);
    assert_same("[1]", "[1", false);
    assert_same("1.0", "1", false);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(white_space),
        cmocka_unit_test(contents),
    };

    return UNIT_RUN(tests);
}
