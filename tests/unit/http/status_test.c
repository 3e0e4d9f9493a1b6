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

/* Methods have names, for the others too. */
static void test_method_names(void **state)
{
    (void)state;
    assert_string_equal(http_method_name(HTTP_OPTIONS), "OPTIONS");
    assert_string_equal(http_method_name(HTTP_OTHER), "other");
    assert_int_equal(HTTP_METHOD_COUNT, HTTP_OPTIONS + 1);
}

/* The places of statuses go from 0 on, and each leads back. */
static void test_places(void **state)
{
    (void)state;
    for (unsigned i = 0; i < HTTP_STATUS_COUNT; i++) {
        assert_int_equal(http_status_index(http_status_at(i)), i);
    }
    assert_int_equal(http_status_index(299), HTTP_STATUS_COUNT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_reasons),
        cmocka_unit_test(test_methods),
        cmocka_unit_test(test_method_names),
        cmocka_unit_test(test_places),
    };

    return UNIT_RUN(tests);
}
