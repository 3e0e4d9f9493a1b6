/* The growing buffer: what is appended, where it stops, and that a failure sticks. */
#include "unit/base/unit.h"

#include "unit/base/fault.h"

#include "base/buf.c"

/* Bytes, characters, numbers and formatted text follow each other in order. */
static void test_appends_in_order(void **state)
{
    struct buf b;

    (void)state;
    buf_init(&b, 1000);
    buf_append(&b, SLICE("ab"));
    buf_append(&b, (struct slice){NULL, 0});
    buf_append_char(&b, ' ');
    buf_append_u64(&b, 0);
    buf_append_char(&b, ' ');
    buf_append_u64(&b, UINT64_MAX);
    buf_append_format(&b, " %s=%d", "x", -1);
    assert_false(b.failed);
    assert_true(slice_equal(buf_slice(&b), SLICE("ab 0 18446744073709551615 x=-1")));
    buf_finish(&b);
}

/* Nothing is allocated before the first byte, and finishing twice is harmless. */
static void test_allocates_late_and_finishes_twice(void **state)
{
    struct buf b = {0};

    (void)state;
    buf_finish(&b);
    buf_init(&b, 100);
    buf_append(&b, SLICE(""));
    assert_null(b.ptr);
    buf_append_char(&b, 'x');
    assert_non_null(b.ptr);
    buf_finish(&b);
    buf_finish(&b);
    assert_null(b.ptr);
    assert_int_equal(b.max, 100);
}

/* A buffer holds exactly its maximum; one byte more fails and leaves the bytes as they were. */
static void test_maximum_is_exact(void **state)
{
    (void)state;
    for (size_t max = 0; max < 300; max++) {
        struct buf b;

        buf_init(&b, max);
        for (size_t i = 0; i < max; i++) {
            buf_append_char(&b, 'x');
        }
        assert_false(b.failed);
        assert_int_equal(b.len, max);
        buf_append_char(&b, 'y');
        assert_true(b.failed);
        assert_int_equal(b.len, max);
        buf_finish(&b);
    }
}

/* Formatted text may fill the buffer to the last byte, though printf wants room for a NUL. */
static void test_format_fills_to_the_last_byte(void **state)
{
    (void)state;
    for (int max = 0; max < 200; max++) {
        struct buf b;

        buf_init(&b, (size_t)max);
        buf_append_format(&b, "%*d", max == 0 ? 1 : max, 7);
        assert_int_equal(b.failed, max == 0);
        assert_int_equal(b.len, max);
        buf_append_format(&b, "%d", 7);
        assert_true(b.failed);
        assert_int_equal(b.len, max);
        buf_finish(&b);
    }
}

/* After a failure nothing is appended, also what would have fitted, until the buffer is cleared. */
static void test_failure_sticks_until_cleared(void **state)
{
    struct buf b;

    (void)state;
    buf_init(&b, 4);
    buf_append(&b, SLICE("abc"));
    buf_append(&b, SLICE("de"));
    buf_append(&b, SLICE("f"));
    buf_append_char(&b, 'g');
    buf_append_u64(&b, 1);
    buf_append_format(&b, "h");
    assert_null(buf_reserve(&b, 0));
    assert_true(b.failed);
    assert_true(slice_equal(buf_slice(&b), SLICE("abc")));
    buf_clear(&b);
    assert_false(b.failed);
    buf_append(&b, SLICE("wxyz"));
    assert_true(slice_equal(buf_slice(&b), SLICE("wxyz")));
    buf_finish(&b);
}

/* Sizes near the largest number neither wrap round nor allocate. */
static void test_absurd_sizes_fail(void **state)
{
    struct buf b;

    (void)state;
    buf_init(&b, 1000);
    buf_append_char(&b, 'x');
    assert_null(buf_reserve(&b, SIZE_MAX));
    assert_true(b.failed);
    buf_clear(&b);
    assert_null(buf_reserve(&b, SIZE_MAX - 1));
    buf_finish(&b);
    buf_init(&b, SIZE_MAX);
    assert_null(buf_reserve(&b, SIZE_MAX));
    assert_true(b.failed);
    buf_finish(&b);
}

/* Reserved room counts only when it is advanced over, and is not touched by doing so. */
static void test_reserve_and_advance(void **state)
{
    struct buf b;
    char *at;

    (void)state;
    buf_init(&b, 1000);
    at = buf_reserve(&b, 500);
    assert_non_null(at);
    memset(at, 'r', 500);
    assert_int_equal(b.len, 0);
    buf_advance(&b, 3);
    assert_true(slice_equal(buf_slice(&b), SLICE("rrr")));
    assert_ptr_equal(buf_reserve(&b, 497), at + 3);
    buf_finish(&b);
}

/* Consuming drops from the front; the rest moves up. */
static void test_consume_drops_the_front(void **state)
{
    struct buf b;

    (void)state;
    buf_init(&b, 1000);
    buf_consume(&b, 0);
    buf_append(&b, SLICE("abcdef"));
    buf_consume(&b, 2);
    assert_true(slice_equal(buf_slice(&b), SLICE("cdef")));
    buf_consume(&b, 0);
    buf_consume(&b, 4);
    assert_int_equal(b.len, 0);
    buf_append(&b, SLICE("g"));
    assert_true(slice_equal(buf_slice(&b), SLICE("g")));
    buf_finish(&b);
}

/* A buffer in the caller's memory fills it but for one byte and never allocates. */
static void test_fixed_memory(void **state)
{
    char memory[8];
    struct buf b;

    (void)state;
    fault_countdown = 0;
    buf_init_fixed(&b, memory, sizeof(memory));
    buf_append_format(&b, "%d", 1234567);
    assert_false(b.failed);
    assert_ptr_equal(b.ptr, memory);
    assert_string_equal(memory, "1234567");
    buf_append_char(&b, '8');
    assert_true(b.failed);
    assert_int_equal(b.len, 7);
    fault_countdown = -1;
}

static void build(struct buf *b)
{
    for (unsigned i = 0; i < 40; i++) {
        buf_append(b, SLICE("0123456789abcdef"));
        buf_append_format(b, "%032u", i);
        buf_append_u64(b, i);
    }
}

/* Whichever allocation fails, the buffer says so at the end, keeps a prefix and leaks nothing. */
static void test_every_failed_allocation_is_told(void **state)
{
    struct buf whole;
    long round = -1;
    bool failed;

    (void)state;
    buf_init(&whole, 1u << 20);
    build(&whole);
    do {
        struct buf b;

        buf_init(&b, 1u << 20);
        fault_countdown = ++round;
        build(&b);
        fault_countdown = -1;
        failed = b.failed;
        assert_true(slice_starts_with(buf_slice(&whole), buf_slice(&b)));
        assert_int_equal(failed, b.len < whole.len);
        buf_finish(&b);
    } while (failed);
    assert_in_range(round, 2, 20);
    buf_finish(&whole);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_appends_in_order),
        cmocka_unit_test(test_allocates_late_and_finishes_twice),
        cmocka_unit_test(test_maximum_is_exact),
        cmocka_unit_test(test_format_fills_to_the_last_byte),
        cmocka_unit_test(test_failure_sticks_until_cleared),
        cmocka_unit_test(test_absurd_sizes_fail),
        cmocka_unit_test(test_reserve_and_advance),
        cmocka_unit_test(test_consume_drops_the_front),
        cmocka_unit_test(test_fixed_memory),
        cmocka_unit_test(test_every_failed_allocation_is_told),
    };

    return UNIT_RUN(tests);
}
