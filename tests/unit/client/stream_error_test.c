/* Each code has a name of its own, and a number that is none has one as well. */
#include "client/stream_error.c"

#include "unit/base/unit.h"

#include <string.h>

static void test_names(void **state)
{
    (void)state;
    assert_string_equal(stream_error_name(STREAM_OK), "OK");
    assert_string_equal(stream_error_name(STREAM_ERROR_NOT_FOUND), "NOT_FOUND");
    for (int a = STREAM_OK; a <= (int)STREAM_ERROR_FORMAT; a++) {
        const char *name = stream_error_name((enum stream_error_code)a);

        assert_string_not_equal(name, "UNKNOWN");
        for (int b = STREAM_OK; b < a; b++) {
            assert_string_not_equal(name, stream_error_name((enum stream_error_code)b));
        }
    }
    assert_string_equal(stream_error_name((enum stream_error_code)(STREAM_ERROR_FORMAT + 1)),
                        "UNKNOWN");
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_names)};

    return UNIT_RUN(tests);
}
