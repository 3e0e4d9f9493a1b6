/* The two lists, from the outside. */
#include "http/status.c"

#include "unit/base/unit.h"

/* Known codes have their reason, others a placeholder. */
static void test_reasons(void **state)
{
    (void)state;
    assert_string_equal(http_status_reason(200), "OK");
    assert_string_equal(http_status_reason(507), "Insufficient Storage");
    assert_string_equal(http_status_reason(999), "Unknown");
}

/* Methods are told apart with case, whole. */
static void test_methods(void **state)
{
    (void)state;
    assert_int_equal(http_method_of(SLICE("GET")), HTTP_GET);
    assert_int_equal(http_method_of(SLICE("DELETE")), HTTP_DELETE);
    assert_int_equal(http_method_of(SLICE("get")), HTTP_OTHER);
    assert_int_equal(http_method_of(SLICE("GETS")), HTTP_OTHER);
    assert_int_equal(http_method_of(SLICE("")), HTTP_OTHER);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_reasons),
        cmocka_unit_test(test_methods),
    };

    return UNIT_RUN(tests);
}
