/* Numbers on disk: their exact bytes, varints in one form only, and reads that cannot overrun. */
#include "base/bytes.c"

#include "base/attr.h"
#include "unit/base/unit.h"

/* The layout is what the format says, byte by byte, at any alignment. */
static void test_layout_is_fixed(void **state)
{
    uint8_t at[9];

    (void)state;
    bytes_put_u16(at + 1, 0x0102);
    assert_memory_equal(at + 1, "\x02\x01", 2);
    assert_int_equal(bytes_get_u16(at + 1), 0x0102);
    bytes_put_u32(at + 1, 0x01020304);
    assert_memory_equal(at + 1, "\x04\x03\x02\x01", 4);
    assert_int_equal(bytes_get_u32(at + 1), 0x01020304);
    bytes_put_u64(at + 1, UINT64_C(0x0102030405060708));
    assert_memory_equal(at + 1, "\x08\x07\x06\x05\x04\x03\x02\x01", 8);
    assert_int_equal(bytes_get_u64(at + 1), UINT64_C(0x0102030405060708));
    bytes_put_u64_be(at + 1, UINT64_C(0x0102030405060708));
    assert_memory_equal(at + 1, "\x01\x02\x03\x04\x05\x06\x07\x08", 8);
    assert_int_equal(bytes_get_u64_be(at + 1), UINT64_C(0x0102030405060708));
}

static const struct {
    uint64_t value;
    size_t len;
} varints[] = {
    {0, 1},
    {1, 1},
    {0x7f, 1},
    {0x80, 2},
    {0x3fff, 2},
    {0x4000, 3},
    {UINT32_MAX, 5},
    {(UINT64_C(1) << 56) - 1, 8},
    {UINT64_C(1) << 56, 9},
    {(UINT64_C(1) << 63) - 1, 9},
    {UINT64_C(1) << 63, 10},
    {UINT64_MAX, 10},
};

/* Varints come back as they were, are as short as they can be, and every true prefix of one asks
 * for more. */
static void test_varint_round_trip(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_COUNT(varints); i++) {
        uint8_t at[VARINT_BYTES_MAX];
        uint64_t value = 77;
        size_t len = bytes_put_varint(at, varints[i].value);

        assert_int_equal(len, varints[i].len);
        for (size_t part = 0; part < len; part++) {
            assert_int_equal(bytes_get_varint(at, part, &value), 0);
            assert_int_equal(value, 77);
        }
        assert_int_equal(bytes_get_varint(at, sizeof(at), &value), len);
        assert_int_equal(value, varints[i].value);
    }
}

/* A number has one encoding: padded forms and more than 64 bits are corrupt. */
static void test_varint_refuses_other_forms(void **state)
{
    const struct slice wrong[] = {
        SLICE("\x80\x00"),
        SLICE("\xff\x80\x00"),
        SLICE("\xff\xff\xff\xff\xff\xff\xff\xff\xff\x00"),
        SLICE("\xff\xff\xff\xff\xff\xff\xff\xff\xff\x02"),
        SLICE("\xff\xff\xff\xff\xff\xff\xff\xff\xff\x80"),
        SLICE("\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"),
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_COUNT(wrong); i++) {
        uint64_t value = 77;

        assert_int_equal(bytes_get_varint(wrong[i].ptr, wrong[i].len, &value), ERR_CORRUPT);
        assert_int_equal(value, 77);
    }
}

/* A reader yields the values in turn and has not failed at the exact end. */
static void test_reader_reads_in_turn(void **state)
{
    const uint8_t input[] = {1, 2, 0, 3, 0, 0, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0x85, 0x01, 'a', 'b'};
    struct bytes_reader r = {.at = input, .end = input + sizeof(input)};

    (void)state;
    assert_int_equal(bytes_read_u8(&r), 1);
    assert_int_equal(bytes_read_u16(&r), 2);
    assert_int_equal(bytes_read_u32(&r), 3);
    assert_int_equal(bytes_read_u64(&r), 4);
    assert_int_equal(bytes_read_varint(&r), 0x85);
    assert_true(slice_equal(bytes_read_slice(&r, 2), SLICE("ab")));
    assert_int_equal(bytes_read_slice(&r, 0).len, 0);
    assert_ptr_equal(r.at, r.end);
    assert_false(r.failed);
}

/* Whatever is read past the end is zero, and so is everything after it, even if it would fit. */
static void test_reader_failure_sticks(void **state)
{
    const uint8_t input[] = {9, 9, 9, 9, 9, 9, 9};

    (void)state;
    for (int kind = 0; kind < 5; kind++) {
        struct bytes_reader r = {.at = input, .end = input + (kind == 0 ? 3 : sizeof(input))};

        switch (kind) {
        case 0:
            assert_int_equal(bytes_read_u32(&r), 0);
            break;
        case 1:
            assert_int_equal(bytes_read_u64(&r), 0);
            break;
        case 2:
            assert_null(bytes_read_slice(&r, 8).ptr);
            break;
        case 3:
            assert_null(bytes_read_slice(&r, SIZE_MAX).ptr);
            break;
        default:
            r.end = r.at + 1;
            assert_int_equal(bytes_read_u16(&r), 0);
            break;
        }
        assert_true(r.failed);
        assert_int_equal(bytes_read_u8(&r), 0);
        assert_int_equal(bytes_read_u16(&r), 0);
        assert_int_equal(bytes_read_varint(&r), 0);
        assert_int_equal(bytes_read_slice(&r, 1).len, 0);
    }
}

/* A cut or malformed varint fails the reader, and an empty input may be a null pointer. */
static void test_reader_varint_failures(void **state)
{
    const uint8_t cut[] = {0x80};
    const uint8_t padded[] = {0x80, 0x00};
    struct bytes_reader r = {.at = cut, .end = cut + 1};

    (void)state;
    assert_int_equal(bytes_read_varint(&r), 0);
    assert_true(r.failed);
    r = (struct bytes_reader){.at = padded, .end = padded + 2};
    assert_int_equal(bytes_read_varint(&r), 0);
    assert_true(r.failed);
    r = (struct bytes_reader){0};
    assert_int_equal(bytes_read_slice(&r, 0).len, 0);
    assert_false(r.failed);
    assert_int_equal(bytes_read_varint(&r), 0);
    assert_true(r.failed);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_layout_is_fixed),
        cmocka_unit_test(test_varint_round_trip),
        cmocka_unit_test(test_varint_refuses_other_forms),
        cmocka_unit_test(test_reader_reads_in_turn),
        cmocka_unit_test(test_reader_failure_sticks),
        cmocka_unit_test(test_reader_varint_failures),
    };

    return UNIT_RUN(tests);
}
