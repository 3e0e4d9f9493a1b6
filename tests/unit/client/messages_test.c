/* The splitter of JSON arrays: the same messages however the array is cut, errors where they are,
 * and no more memory than allowed. */
#include "client/messages.c"

#include "unit/base/unit.h"

/* Every message of `text`, given in pieces of `step` bytes, each followed by a newline. 0 or the
 * error; ret_whole: the array has ended. */
static int split(const char *text, size_t step, size_t max, struct buf *out, bool *ret_whole,
                 struct errmsg *msg)
{
    struct messages m;
    size_t len = strlen(text);
    int rc = 0;

    messages_init(&m, max);
    for (size_t at = 0; at < len && rc >= 0; at += step) {
        struct slice piece = {text + at, len - at < step ? len - at : step};
        struct slice message;

        while ((rc = messages_take(&m, &piece, &message, msg)) == 1) {
            buf_append(out, message);
            buf_append_char(out, '\n');
        }
        assert_true(rc < 0 || piece.len == 0);
    }
    *ret_whole = messages_done(&m);
    messages_finish(&m);
    return rc;
}

static void assert_splits(const char *text, const char *want)
{
    for (size_t step = 1; step <= strlen(text) + 1; step++) {
        struct errmsg msg = {.text = ""};
        struct buf out;
        bool whole;

        buf_init(&out, 1 << 20);
        if (split(text, step, 1000, &out, &whole, &msg) != 0 || !whole) {
            fail_msg("%s by %zu: %s", text, step, msg.text);
        }
        if (!slice_equal(buf_slice(&out), slice_of(want))) {
            fail_msg("%s by %zu: %.*s", text, step, (int)out.len, out.ptr);
        }
        buf_finish(&out);
    }
}

/* Messages come as they were sent, without what stands around them, however the array is cut. */
static void test_splits(void **state)
{
    (void)state;
    assert_splits("[]", "");
    assert_splits(" \r\n\t[ \n ] \n", "");
    assert_splits("[1]", "1\n");
    assert_splits("[1,2,3]", "1\n2\n3\n");
    assert_splits("[ {\"a\": 1} ,\n\t[ 2 , 3 ]\r\n, \"x\" , null , -1.50e+9 ]",
                  "{\"a\": 1}\n[ 2 , 3 ]\n\"x\"\nnull\n-1.50e+9\n");
    assert_splits("[[],[[]],{},{\"a\":[{}]}]", "[]\n[[]]\n{}\n{\"a\":[{}]}\n");
    assert_splits("[\"],[\",\"\\\"]\",\"\\\\\",\"{\\\\\\\"[\"]",
                  "\"],[\"\n\"\\\"]\"\n\"\\\\\"\n\"{\\\\\\\"[\"\n");
    assert_splits("[{\"],\":\"}\"},\"\xe2\x82\xac\"]", "{\"],\":\"}\"}\n\"\xe2\x82\xac\"\n");
    assert_splits("[12345678901234567890123456789012345678901234567890]",
                  "12345678901234567890123456789012345678901234567890\n");
    assert_splits("[{\"a\":1,\"a\":2}]", "{\"a\":1,\"a\":2}\n");
}

/* What is no array of JSON values is refused wherever it is cut; what stood before is given. */
static void test_refuses(void **state)
{
    static const struct {
        const char *text;
        const char *before; /* messages given before the error */
    } cases[] = {
        {"{}", ""},
        {"1", ""},
        {"<html>", ""},
        {"x", ""},
        {"[,", ""},
        {"[1,]", "1\n"},
        {"[1,,2]", "1\n"},
        {"[1 2]", ""},
        {"[1]2", "1\n"},
        {"[1],", "1\n"},
        {"[1]]", "1\n"},
        {"[}", ""},
        {"[1}", ""},
        {"[{]}]", ""},
        {"[{\"a\":1]]", ""},
        {"[tru]", ""},
        {"[01]", ""},
        {"[\"\x01\"]", ""},
        {"[\"\xff\"]", ""},
        {"[\"\\x\"]", ""},
        {"[2,{\"a\"}]", "2\n"},
        {"[1\"a\"]", ""},
        {"[\xef\xbb\xbf]", ""},
        {"[[1}]", ""},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
        for (size_t step = 1; step <= strlen(cases[i].text) + 1; step++) {
            struct errmsg msg = {.text = ""};
            struct buf out;
            bool whole;

            buf_init(&out, 1 << 20);
            if (split(cases[i].text, step, 1000, &out, &whole, &msg) != ERR_INVALID) {
                fail_msg("%s by %zu was taken", cases[i].text, step);
            }
            assert_true(msg.text[0] != '\0');
            assert_true(slice_equal(buf_slice(&out), slice_of(cases[i].before)));
            buf_finish(&out);
        }
    }
}

/* An array that breaks off is neither an error nor whole: who reads knows whether more comes. */
static void test_breaks_off(void **state)
{
    static const char text[] = "[{\"a\":\"b\"},[1],22]";

    (void)state;
    for (size_t len = 0; len + 1 < sizeof(text); len++) {
        char cut[sizeof(text)];
        struct buf out;
        bool whole;

        memcpy(cut, text, len);
        cut[len] = '\0';
        buf_init(&out, 1000);
        assert_int_equal(split(cut, 3, 1000, &out, &whole, NULL), 0);
        assert_false(whole);
        assert_int_equal(out.len, len < 11 ? 0 : len < 15 ? 10 : len < 18 ? 14 : 17);
        buf_finish(&out);
    }
}

/* The cap holds for messages within a piece and across pieces, to the byte. */
static void test_longest(void **state)
{
    (void)state;
    for (size_t step = 1; step < 20; step++) {
        struct errmsg msg = {.text = ""};
        struct buf out;
        bool whole;

        buf_init(&out, 1000);
        assert_int_equal(split("[1,\"45678\",2]", step, 7, &out, &whole, &msg), 0);
        assert_int_equal(split("[1,\"456789\",2]", step, 7, &out, &whole, &msg), ERR_TOOBIG);
        assert_string_equal(msg.text, "a message has more than the 7 bytes allowed");
        buf_finish(&out);
    }
}

/* Nesting up to the cap of JSON is taken; deeper is refused and not followed. */
static void test_nesting(void **state)
{
    for (size_t depth = 999; depth <= 1002; depth++) {
        char text[2 * 1010];
        struct buf out;
        bool whole;

        (void)state;
        memset(text, '[', depth);
        memset(text + depth, ']', depth);
        text[2 * depth] = '\0';
        buf_init(&out, 10000);
        assert_int_equal(split(text, 100, 10000, &out, &whole, NULL),
                         depth - 1 <= 1000 ? 0 : ERR_INVALID);
        buf_finish(&out);
    }
}

/* After a reset another array may begin in the middle of one, and large memory is given back. */
static void test_reset(void **state)
{
    char *large = test_malloc(200000);
    struct messages m;
    struct slice rest;
    struct slice message;

    (void)state;
    memset(large, 'x', 200000);
    messages_init(&m, 1 << 20);
    rest = SLICE("[1,\"ab\\");
    assert_int_equal(messages_take(&m, &rest, &message, NULL), 1);
    assert_int_equal(messages_take(&m, &rest, &message, NULL), 0);
    rest = (struct slice){large, 200000};
    assert_int_equal(messages_take(&m, &rest, &message, NULL), 0);
    assert_true(m.part.cap >= 200000);
    messages_reset(&m);
    assert_true(messages_blank(&m));
    assert_true(m.part.cap <= PART_BYTES_KEPT);
    rest = SLICE("[2]");
    assert_int_equal(messages_take(&m, &rest, &message, NULL), 1);
    assert_true(slice_equal(message, SLICE("2")));
    assert_int_equal(messages_take(&m, &rest, &message, NULL), 0);
    assert_true(messages_done(&m));
    messages_finish(&m);
    test_free(large);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_splits),     cmocka_unit_test(test_refuses),
        cmocka_unit_test(test_breaks_off), cmocka_unit_test(test_longest),
        cmocka_unit_test(test_nesting),    cmocka_unit_test(test_reset),
    };

    return UNIT_RUN(tests);
}
