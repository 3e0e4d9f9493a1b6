/* Heads as bytes on the wire. */
#include "http/response.c"

#include "unit/base/unit.h"

/* A head is the status line, its headers and an empty line. */
static void test_head(void **state)
{
    const char *wanted = "HTTP/1.1 409 Conflict\r\n"
                         "A: b\r\n"
                         "Empty: \r\n"
                         "Content-Length: 18446744073709551615\r\n"
                         "\r\n";
    struct buf out;

    (void)state;
    buf_init(&out, 4096);
    response_begin(&out, 409);
    response_header(&out, SLICE("A"), SLICE("b"));
    response_header(&out, SLICE("Empty"), (struct slice){NULL, 0});
    response_header_u64(&out, SLICE("Content-Length"), UINT64_MAX);
    response_end_head(&out);
    assert_false(out.failed);
    assert_int_equal(out.len, strlen(wanted));
    assert_memory_equal(out.ptr, wanted, out.len);
    buf_finish(&out);
}

/* A status that is not in the list still makes a status line. */
static void test_unknown_status(void **state)
{
    struct buf out;

    (void)state;
    buf_init(&out, 4096);
    response_begin(&out, 299);
    assert_int_equal(out.len, 22);
    assert_memory_equal(out.ptr, "HTTP/1.1 299 Unknown\r\n", 22);
    buf_finish(&out);
}

/* A value that would end the header fails the head instead. */
static void test_unsafe_values(void **state)
{
    static const struct slice bad[] = {{"a\r\nB: c", 7}, {"a\nb", 3}, {"\r", 1}, {"a\0", 2}};

    (void)state;
    for (size_t i = 0; i < ARRAY_COUNT(bad); i++) {
        struct buf out;

        buf_init(&out, 4096);
        response_header(&out, SLICE("A"), bad[i]);
        assert_true(out.failed);
        assert_int_equal(out.len, 0);
        buf_finish(&out);
    }
}

/* A head over the buffer's maximum fails it. */
static void test_too_long(void **state)
{
    struct buf out;

    (void)state;
    buf_init(&out, 20);
    response_begin(&out, 200);
    assert_false(out.failed);
    response_header(&out, SLICE("A"), SLICE("b"));
    assert_true(out.failed);
    buf_finish(&out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_head),
        cmocka_unit_test(test_unknown_status),
        cmocka_unit_test(test_unsafe_values),
        cmocka_unit_test(test_too_long),
    };

    return UNIT_RUN(tests);
}
