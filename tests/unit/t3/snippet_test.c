/* Snippets: white space, graphemes, and what is too long. */
#include "t3/snippet.c"

#include "unit/base/unit.h"

#define FAMILY "\U0001f468\u200d\U0001f469\u200d\U0001f467"
#define FLAG   "\U0001f1ef\U0001f1f5"

static void assert_snippet(const char *text, size_t graphemes, const char *want)
{
    struct buf out;

    buf_init(&out, 1u << 20);
    t3_snippet_append(slice_of(text), graphemes, &out);
    if (out.failed || !slice_equal(buf_slice(&out), slice_of(want))) {
        fail_msg("\"%s\" became \"%.*s\", not \"%s\"", text, (int)out.len, out.ptr, want);
    }
    buf_finish(&out);
}

/* Runs of white space become one space, those at the ends go; of Unicode's white space any. */
static void test_white_space(void **state)
{
    (void)state;
    assert_snippet("", 9, "");
    assert_snippet(" \t\r\n\v\f ", 9, "");
    assert_snippet("  one  two\n\nthree\t \tfour\r\nfive ", 99, "one two three four five");
    assert_snippet("a\u00a0\u2003\u3000\u2028\xc2\x85"
                   "b",
                   99, "a b");
    assert_snippet("a\u200bb", 99, "a\u200bb"); /* is none */
    assert_snippet("a \u0301b", 99, "a \u0301b");
}

/* What people take for one character counts once and is never cut in two. */
static void test_graphemes(void **state)
{
    (void)state;
    assert_snippet("abcdef", 3, "abc");
    assert_snippet("abc", 3, "abc");
    assert_snippet("ab cd", 3, "ab ");
    assert_snippet("e\u0301e\u0301e\u0301", 2, "e\u0301e\u0301");
    assert_snippet("abe\u0301c", 3, "abe\u0301");
    assert_snippet(FAMILY FAMILY FAMILY, 2, FAMILY FAMILY);
    assert_snippet("x" FAMILY "y", 2, "x" FAMILY);
    assert_snippet(FLAG FLAG FLAG, 2, FLAG FLAG);
    assert_snippet("a" FLAG "b" FLAG, 3, "a" FLAG "b");
    assert_snippet("\u1100\u1161\u11a8z", 1, "\u1100\u1161\u11a8");
    assert_snippet("a\x01\x02z", 3, "a\x01\x02");
}

/* A grapheme of a thousand marks does not take more than its share, nor is half of it shown. */
static void test_bytes(void **state)
{
    struct buf text;
    char want[2 * T3_GRAPHEME_BYTES_MAX];

    (void)state;
    buf_init(&text, 1u << 20);
    buf_append_char(&text, 'a');
    buf_append_char(&text, 'b');
    for (int i = 0; i < 1000; i++) {
        buf_append(&text, SLICE("\u0301"));
    }
    buf_append_char(&text, '\0');
    assert_snippet(text.ptr, 2, "a");
    assert_snippet(text.ptr + 1, 1, "");
    buf_finish(&text);
    memset(want, 'x', sizeof(want) - 1);
    want[sizeof(want) - 1] = '\0';
    assert_snippet(want, sizeof(want), want);
}

/* However it is scanned, plain text comes out as it went in. */
static void test_plain_text(void **state)
{
    char text[300];

    (void)state;
    for (size_t len = 0; len < sizeof(text); len++) {
        char want[sizeof(text)];

        for (size_t i = 0; i < len; i++) {
            text[i] = i % 7 == 3 ? ' ' : (char)('a' + i % 26);
        }
        text[len] = '\0';
        size_t kept = len > 160 ? 160 : len;

        memcpy(want, text, sizeof(text));
        want[kept] = '\0';
        if (len <= 160 && len > 0 && want[len - 1] == ' ') {
            want[len - 1] = '\0';
        }
        assert_snippet(text, 160, want);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_white_space),
        cmocka_unit_test(test_graphemes),
        cmocka_unit_test(test_bytes),
        cmocka_unit_test(test_plain_text),
    };

    return UNIT_RUN(tests);
}
