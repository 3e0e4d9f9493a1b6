/* Tokens out and in. */
#include "stream/offset.c"

#include "base/bytes.h"
#include "unit/base/unit.h"

static struct slice format(char *out, uint64_t position)
{
    offset_format(out, position);
    return (struct slice){out, OFFSET_TOKEN_BYTES};
}

/* A token is 16 zeros, an underscore and the position in 16 digits. */
static void test_format(void **state)
{
    (void)state;
    char out[OFFSET_TOKEN_BYTES];
    assert_true(slice_equal(format(out, 0), SLICE("0000000000000000_0000000000000000")));
    assert_true(slice_equal(format(out, 1024), SLICE("0000000000000000_0000000000001024")));
    assert_true(
        slice_equal(format(out, STREAM_OFFSET_MAX), SLICE("0000000000000000_9999999999999999")));
}

/* Byte order of tokens is the order of positions, also where a digit is added. */
static void test_order(void **state)
{
    (void)state;
    static const uint64_t positions[] = {0, 1, 9, 10, 11, 99, 100, 4294967296, STREAM_OFFSET_MAX};
    for (size_t i = 1; i < ARRAY_COUNT(positions); i++) {
        char a[OFFSET_TOKEN_BYTES];
        char b[OFFSET_TOKEN_BYTES];
        assert_true(slice_compare(format(a, positions[i - 1]), format(b, positions[i])) < 0);
    }
}

/* What is formatted is parsed back to the same position. */
static void test_round_trip(void **state)
{
    (void)state;
    for (uint64_t position = 1; position <= STREAM_OFFSET_MAX; position *= 7) {
        char out[OFFSET_TOKEN_BYTES];
        struct offset offset;
        assert_true(offset_parse(format(out, position), &offset));
        assert_int_equal(offset.kind, OFFSET_AT);
        assert_int_equal(offset.position, position);
    }
}

/* The two sentinels are known. */
static void test_sentinels(void **state)
{
    (void)state;
    struct offset offset;
    assert_true(offset_parse(SLICE("-1"), &offset));
    assert_int_equal(offset.kind, OFFSET_START);
    assert_true(offset_parse(SLICE("now"), &offset));
    assert_int_equal(offset.kind, OFFSET_NOW);
}

/* A well-formed token of a generation that does not exist lies beyond every stream. */
static void test_beyond(void **state)
{
    (void)state;
    struct offset offset;
    assert_true(offset_parse(SLICE("9999999999999999_9999999999999999"), &offset));
    assert_int_equal(offset.kind, OFFSET_AT);
    assert_true(offset.position == OFFSET_BEYOND);
}

/* Anything else is refused, and leaves the output alone. */
static void test_refused(void **state)
{
    (void)state;
    static const char *const texts[] = {
        "",
        "-2",
        "--1",
        "NOW",
        "now ",
        "0",
        "0x10",
        "18446744073709551616",
        "0000000000000000_000000000000000",
        "0000000000000000_00000000000000000",
        "0000000000000000-0000000000000000",
        "0000000000000000_00000000000000a0",
        "+000000000000000_0000000000000000",
        "0000000000000000_ 000000000000000",
        "0000000000000000_000000000000000\n",
    };
    for (size_t i = 0; i < ARRAY_COUNT(texts); i++) {
        struct offset offset = {OFFSET_NOW, 42};
        assert_false(offset_parse(slice_of(texts[i]), &offset));
        assert_int_equal(offset.position, 42);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_format),     cmocka_unit_test(test_order),
        cmocka_unit_test(test_round_trip), cmocka_unit_test(test_sentinels),
        cmocka_unit_test(test_beyond),     cmocka_unit_test(test_refused),
    };
    return UNIT_RUN(tests);
}
