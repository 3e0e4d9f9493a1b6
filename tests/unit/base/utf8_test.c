/* UTF-8 against a decoder that is as simple as the definition, over all short inputs. */
#include "base/utf8.c"

#include "base/attr.h"
#include "unit/base/unit.h"

#include <stdlib.h>

/* The length of the character at `at` by RFC 3629: decode, then ask what the number may be. */
static size_t naive_length(const unsigned char *at, size_t left)
{
    static const uint32_t smallest[] = {0, 0, 0x80, 0x800, 0x10000};
    size_t len = at[0] < 0x80 ? 1 : at[0] >> 5 == 6 ? 2 : at[0] >> 4 == 14 ? 3 : 4;
    uint32_t code = at[0] & (len == 1 ? 0x7fu : 0xffu >> (len + 1));

    if ((len == 4 && at[0] >> 3 != 30) || len > left) {
        return 0;
    }
    for (size_t i = 1; i < len; i++) {
        if (at[i] >> 6 != 2) {
            return 0;
        }
        code = code << 6 | (at[i] & 0x3f);
    }
    if (code < smallest[len] || code > 0x10ffff || (code >= 0xd800 && code <= 0xdfff)) {
        return 0;
    }
    return len;
}

static size_t naive_prefix(const unsigned char *bytes, size_t len)
{
    size_t at = 0;

    while (at < len) {
        size_t step = naive_length(bytes + at, len - at);

        if (step == 0) {
            break;
        }
        at += step;
    }
    return at;
}

/* All pairs of bytes, and all lead bytes with the boundary values behind them, are judged as by the
 * definition, also when the input ends inside a character. */
static void test_agrees_with_the_definition(void **state)
{
    const unsigned char edge[] = {0x00, 0x22, 0x7f, 0x80, 0x8f, 0x90,
                                  0x9f, 0xa0, 0xbf, 0xc0, 0xc2, 0xff};

    (void)state;
    for (unsigned pair = 0; pair < 0x10000; pair++) {
        for (size_t tail = 0; tail < ARRAY_COUNT(edge) * ARRAY_COUNT(edge); tail++) {
            unsigned char bytes[4] = {(unsigned char)(pair >> 8), (unsigned char)pair,
                                      edge[tail / ARRAY_COUNT(edge)],
                                      edge[tail % ARRAY_COUNT(edge)]};
            size_t len = 1 + (pair + tail) % 4;
            struct slice s = {(const char *)bytes, len};

            if (utf8_valid_prefix(s) != naive_prefix(bytes, len)) {
                print_error("%02x %02x %02x %02x, %zu bytes\n", bytes[0], bytes[1], bytes[2],
                            bytes[3], len);
                fail();
            }
        }
    }
}

/* A wrong byte is found at every place of a long text, whatever stands before it. */
static void test_finds_the_place(void **state)
{
    (void)state;
    for (size_t len = 1; len < 40; len++) {
        for (size_t wrong = 0; wrong < len; wrong++) {
            char *text = malloc(len);

            assert_non_null(text);
            memset(text, 'a', len);
            text[wrong] = '\xff';
            assert_int_equal(utf8_valid_prefix((struct slice){text, len}), wrong);
            assert_false(utf8_valid((struct slice){text, len}));
            text[wrong] = 'b';
            assert_true(utf8_valid((struct slice){text, len}));
            free(text);
        }
    }
}

/* The empty text is valid, with or without a pointer. */
static void test_empty_is_valid(void **state)
{
    (void)state;
    assert_true(utf8_valid((struct slice){NULL, 0}));
    assert_true(utf8_valid(SLICE("")));
    assert_int_equal(utf8_multibyte_prefix((struct slice){NULL, 0}), 0);
}

/* The run of longer characters ends at ASCII, at the end, or before what is wrong. */
static void test_multibyte_run(void **state)
{
    (void)state;
    assert_int_equal(utf8_multibyte_prefix(SLICE("abc")), 0);
    assert_int_equal(utf8_multibyte_prefix(SLICE("\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80x\xc3\xa4")),
                     9);
    assert_int_equal(utf8_multibyte_prefix(SLICE("\xc3\xa4\xc3")), 2);
    assert_int_equal(utf8_multibyte_prefix(SLICE("\xc3\xa4\xff")), 2);
    assert_true(
        utf8_valid(SLICE("gr\xc3\xbc\xc3\x9f dich, \xe4\xb8\x96\xe7\x95\x8c \xf0\x9f\x8c\x8d!")));
}

/* What a terminal obeys: ASCII's, and those of eight bits, as UTF-8 has them. */
static void test_control(void **state)
{
    (void)state;
    assert_int_equal(utf8_control(SLICE("\x1b[31m")), 1);
    assert_int_equal(utf8_control(SLICE("\x7f")), 1);
    assert_int_equal(utf8_control((struct slice){"\0", 1}), 1);
    assert_int_equal(utf8_control(SLICE("\xc2\x80")), 2);
    assert_int_equal(utf8_control(SLICE("\xc2\x9f")), 2);
    assert_int_equal(utf8_control(SLICE("\xc2\xa0")), 0);
    assert_int_equal(utf8_control(SLICE("\xc3\x9f")), 0);
    assert_int_equal(utf8_control(SLICE("\xc2")), 0);
    assert_int_equal(utf8_control(SLICE(" ")), 0);
    assert_int_equal(utf8_control((struct slice){NULL, 0}), 0);
    for (unsigned code = 0x2000; code < 0x2100; code++) {
        const char text[] = {'\xe2', (char)(0x80 | (code >> 6 & 0x3f)),
                             (char)(0x80 | (code & 0x3f))};
        bool does = code == 0x200e || code == 0x200f || (code >= 0x2028 && code <= 0x202e) ||
                    (code >= 0x2066 && code <= 0x2069);

        assert_int_equal(utf8_reorders((struct slice){text, 3}), does ? 3 : 0);
        assert_int_equal(utf8_reorders((struct slice){text, 2}), 0);
    }
    assert_int_equal(utf8_reorders(SLICE("\xd8\x9c")), 2);
    assert_int_equal(utf8_reorders(SLICE("\xd8\x9d")), 0);
    assert_int_equal(utf8_reorders(SLICE("\xe3\x80\xae")), 0);
    assert_int_equal(utf8_reorders((struct slice){NULL, 0}), 0);
    assert_int_equal(utf8_harmful(SLICE("\xd8\x9c")), 2);
    assert_int_equal(utf8_harmful(SLICE("\xe2\x80\xae")), 3);
    assert_int_equal(utf8_harmful(SLICE("\xc2\x9b")), 2);
    assert_int_equal(utf8_harmful(SLICE("\n")), 1);
    assert_int_equal(utf8_harmful(SLICE("\xc3\xa4")), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_agrees_with_the_definition),
        cmocka_unit_test(test_finds_the_place),
        cmocka_unit_test(test_empty_is_valid),
        cmocka_unit_test(test_multibyte_run),
        cmocka_unit_test(test_control),
    };

    return UNIT_RUN(tests);
}
