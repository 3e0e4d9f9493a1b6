/* Base64 by the vectors of RFC 4648 and against decoding. */
#include "base/base64.c"

#include "base/attr.h"
#include "unit/base/unit.h"

#include <stdlib.h>

/* The vectors of RFC 4648 section 10. */
static void test_vectors_of_the_rfc(void **state)
{
    const struct {
        struct slice from;
        struct slice to;
    } cases[] = {
        {SLICE(""), SLICE("")},
        {SLICE("f"), SLICE("Zg==")},
        {SLICE("fo"), SLICE("Zm8=")},
        {SLICE("foo"), SLICE("Zm9v")},
        {SLICE("foob"), SLICE("Zm9vYg==")},
        {SLICE("fooba"), SLICE("Zm9vYmE=")},
        {SLICE("foobar"), SLICE("Zm9vYmFy")},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
        char out[8];
        size_t len = base64_encode(out, cases[i].from);

        assert_int_equal(len, BASE64_LEN(cases[i].from.len));
        assert_true(slice_equal((struct slice){out, len}, cases[i].to));
    }
    assert_int_equal(base64_encode(NULL, (struct slice){NULL, 0}), 0);
}

static unsigned sextet(char c)
{
    const char *at = memchr(alphabet, c, 64);

    assert_non_null(at);
    return (unsigned)(at - alphabet);
}

/* Decoding gives the bytes back at every length; exactly BASE64_LEN characters are written. */
static void test_decodes_to_the_same_bytes(void **state)
{
    (void)state;
    for (size_t len = 0; len < 100; len++) {
        unsigned char *bytes = malloc(len + 1);
        char *out = malloc(BASE64_LEN(len) + 1);

        assert_non_null(bytes);
        assert_non_null(out);
        for (size_t i = 0; i < len; i++) {
            bytes[i] = (unsigned char)(i * 151 + len * 7 + 251);
        }
        out[BASE64_LEN(len)] = '#';
        assert_int_equal(base64_encode(out, (struct slice){(char *)bytes, len}), BASE64_LEN(len));
        assert_int_equal(out[BASE64_LEN(len)], '#');
        for (size_t i = 0; i < len; i++) {
            const char *group = out + i / 3 * 4 + i % 3;
            unsigned both = sextet(group[0]) << 6 | sextet(group[1]);

            assert_int_equal(both >> (4 - 2 * (i % 3)) & 0xff, bytes[i]);
        }
        free(bytes);
        free(out);
    }
}

/* Padding stands only at the end, and the bits behind the last byte are zero. */
static void test_padding(void **state)
{
    char out[4];

    (void)state;
    base64_encode(out, SLICE("\xff"));
    assert_memory_equal(out, "/w==", 4);
    base64_encode(out, SLICE("\xff\xff"));
    assert_memory_equal(out, "//8=", 4);
    base64_encode(out, SLICE("\xfb\xef\xbe"));
    assert_memory_equal(out, "++++", 4);
}

/* The URL alphabet, without padding, and the way back. */
static void test_url(void **state)
{
    (void)state;
    for (size_t len = 0; len < 100; len++) {
        unsigned char bytes[100];
        char text[BASE64_LEN(100)];
        char *back = malloc(BASE64URL_LEN(len) / 4 * 3 + 2);
        size_t back_len = 0;

        assert_non_null(back);
        for (size_t i = 0; i < len; i++) {
            bytes[i] = (unsigned char)(i * 151 + len * 7 + 251);
        }
        size_t text_len = base64url_encode(text, (struct slice){(char *)bytes, len});

        assert_int_equal(text_len, BASE64URL_LEN(len));
        assert_null(memchr(text, '=', text_len));
        assert_null(memchr(text, '+', text_len));
        assert_null(memchr(text, '/', text_len));
        assert_true(base64url_decode((struct slice){text, text_len}, back, &back_len));
        assert_int_equal(back_len, len);
        assert_memory_equal(back, bytes, len);
        free(back);
    }
    char out[4];
    assert_int_equal(base64url_encode(out, SLICE("\xff\xff")), 3);
    assert_memory_equal(out, "__8", 3);
}

/* What the encoder would not have written is refused, so that no bytes have two texts. */
static void test_url_strict(void **state)
{
    static const char *const bad[] = {
        "A", "AAAAA", "Zg==", "Zg=", "Z+", "Z/", "Z g", "Zh", "Zm9", "Z\n", "\x80g", "__9",
    };
    char out[8];
    size_t len;

    (void)state;
    for (size_t i = 0; i < ARRAY_COUNT(bad); i++) {
        if (base64url_decode(slice_of(bad[i]), out, &len)) {
            fail_msg("taken: %s", bad[i]);
        }
    }
    assert_true(base64url_decode(SLICE("Zm8"), out, &len));
    assert_true(base64url_decode(SLICE(""), out, &len));
    assert_int_equal(len, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_vectors_of_the_rfc),
        cmocka_unit_test(test_decodes_to_the_same_bytes),
        cmocka_unit_test(test_padding),
        cmocka_unit_test(test_url),
        cmocka_unit_test(test_url_strict),
    };

    return UNIT_RUN(tests);
}
