/* CRC-32C by its published values, and the two ways of computing it against each other. */
#include "base/crc32c.c"

#include "base/attr.h"
#include "unit/base/unit.h"

#include <string.h>

/* The examples of RFC 3720 B.4, and the usual check value. */
static void test_published_values(void **state)
{
    uint8_t bytes[32];

    (void)state;
    assert_int_equal(crc32c(0, "123456789", 9), 0xe3069283);
    assert_int_equal(crc32c(0, "", 0), 0);
    assert_int_equal(crc32c(0, NULL, 0), 0);
    memset(bytes, 0, sizeof(bytes));
    assert_int_equal(crc32c(0, bytes, sizeof(bytes)), 0x8a9136aa);
    memset(bytes, 0xff, sizeof(bytes));
    assert_int_equal(crc32c(0, bytes, sizeof(bytes)), 0x62a8ab43);
    for (uint8_t i = 0; i < 32; i++) {
        bytes[i] = i;
    }
    assert_int_equal(crc32c(0, bytes, sizeof(bytes)), 0x46dd794e);
    for (uint8_t i = 0; i < 32; i++) {
        bytes[i] = (uint8_t)(31 - i);
    }
    assert_int_equal(crc32c(0, bytes, sizeof(bytes)), 0x113fdb5c);
}

/* The tables give what bit-by-bit division gives. */
static void test_tables_are_right(void **state)
{
    (void)state;
    for (unsigned byte = 0; byte < 256; byte++) {
        uint32_t value = byte;

        for (unsigned table = 0; table < 8; table++) {
            for (int bit = 0; bit < 8; bit++) {
                value = (value >> 1) ^ ((value & 1) != 0 ? 0x82f63b78u : 0);
            }
            assert_int_equal(tables[table][byte], value);
        }
    }
}

static void fill(uint8_t *bytes, size_t len)
{
    uint32_t seed = 1;

    for (size_t i = 0; i < len; i++) {
        seed = seed * 1664525 + 1013904223;
        bytes[i] = (uint8_t)(seed >> 24);
    }
}

/* Instruction and tables agree at every length and alignment. */
static void test_instruction_agrees_with_tables(void **state)
{
    uint8_t bytes[300];

    (void)state;
    fill(bytes, sizeof(bytes));
    for (size_t from = 0; from < 9; from++) {
        for (size_t len = 0; len + from <= sizeof(bytes); len++) {
            uint32_t by_table = ~update_by_table(~0u, bytes + from, len);

            assert_int_equal(crc32c(0, bytes + from, len), by_table);
        }
    }
}

/* A checksum may be continued from any point. */
static void test_continues(void **state)
{
    uint8_t bytes[100];
    uint32_t whole;

    (void)state;
    fill(bytes, sizeof(bytes));
    whole = crc32c(0, bytes, sizeof(bytes));
    for (size_t cut = 0; cut <= sizeof(bytes); cut++) {
        uint32_t first = crc32c(0, bytes, cut);

        assert_int_equal(crc32c(first, bytes + cut, sizeof(bytes) - cut), whole);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_published_values),
        cmocka_unit_test(test_tables_are_right),
        cmocka_unit_test(test_instruction_agrees_with_tables),
        cmocka_unit_test(test_continues),
    };

    return UNIT_RUN(tests);
}
