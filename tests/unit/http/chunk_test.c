/* Bodies in one go and byte by byte; every lenient form of a size that some parser accepts. */
#include "http/chunk.c"

#include "unit/base/unit.h"

#include <stdio.h>

static char body[4096];
static size_t body_len;

/* Decodes `input`, `step` bytes at a time: bytes used until done, 0 when it is not done, or an
 * error. */
static long decode(struct slice input, size_t step_bytes)
{
    struct chunk_decoder d;
    size_t used = 0;
    bool done = false;

    chunk_decoder_init(&d);
    body_len = 0;
    while (!done && used < input.len) {
        size_t left = input.len - used;
        struct slice part = {input.ptr + used, left < step_bytes ? left : step_bytes};
        struct slice data;
        long rc = chunk_decode(&d, part, &data, &done);

        if (rc < 0) {
            return rc;
        }
        assert_true(rc > 0);
        assert_true((size_t)rc <= part.len);
        assert_true(body_len + data.len <= sizeof(body));
        if (data.len > 0) {
            memcpy(body + body_len, data.ptr, data.len);
            body_len += data.len;
        }
        used += (size_t)rc;
    }
    return done ? (long)used : 0;
}

static void expect_body(struct slice input, size_t used, const char *wanted)
{
    for (size_t step_bytes = 1; step_bytes <= input.len; step_bytes++) {
        assert_int_equal(decode(input, step_bytes), used);
        assert_int_equal(body_len, strlen(wanted));
        assert_memory_equal(body, wanted, body_len);
    }
}

/* Good bodies decode alike however they are cut, and what follows them is left alone. */
static void test_good_bodies(void **state)
{
    (void)state;
    expect_body(SLICE("0\r\n\r\n"), 5, "");
    expect_body(SLICE("3\r\nabc\r\n0\r\n\r\n"), 13, "abc");
    expect_body(SLICE("3\r\nabc\r\n0a\r\n0123456789\r\n0\r\n\r\nGET / HTTP/1.1"), 29,
                "abc0123456789");
    expect_body(SLICE("2\r\n\r\n\r\n000\r\n\r\n"), 14, "\r\n");
    expect_body(SLICE("1;a=b;c=\"d;e\"\r\nx\r\n0;z\r\n\r\n"), 25, "x");
    expect_body(SLICE("1\r\nx\r\n0\r\nA: b\r\nC:\t\r\n\r\n"), 22, "x");
    expect_body(SLICE("000000000000001\r\nx\r\n0\r\n\r\n"), 25, "x");
    expect_body(SLICE("A\r\n0123456789\r\n00000\r\n\r\n"), 24, "0123456789");
}

/* No prefix of a good body is malformed or done. */
static void test_prefixes_are_not_done(void **state)
{
    struct slice whole = SLICE("3;x\r\nabc\r\n0\r\nA: b\r\n\r\n");

    (void)state;
    for (size_t len = 0; len < whole.len; len++) {
        assert_int_equal(decode((struct slice){whole.ptr, len}, 7), 0);
    }
}

/* Sizes, line ends and trailers that other parsers would take are refused. */
static void test_malformed(void **state)
{
    static const struct slice bad[] = {
        {"\r\n", 2},
        {"-1\r\nx", 5},
        {"+1\r\nx", 5},
        {"0x10\r\n", 6},
        {"1g\r\nx", 5},
        {"g\r\n", 3},
        {" 1\r\nx", 5},
        {"1 \r\nx", 5},
        {"1\t\r\nx", 5},
        {"1 ;a\r\n", 6},
        {"1_0\r\n", 5},
        {"1\nx\r\n", 5},
        {"1\rx\r\n", 5},
        {"\n1\r\n", 4},
        {";a\r\n", 4},
        {"FFFFFFFFFFFFFFFF\r\n", 18},
        {"10000000000000001\r\n", 19},
        {"0000000000000001\r\n", 18},
        {"1\r\nxy\r\n", 7},
        {"1\r\nx\n", 5},
        {"1\r\nx\ry", 6},
        {"1\r\nx0\r\n", 7},
        {"1;a\nb\r\nx", 8},
        {"1;a\rb\r\nx", 8},
        {"1;\0\r\nx", 6},
        {"1;\x01\r\nx", 6},
        {"1;\x7f\r\nx", 6},
        {"0\r\n\n", 4},
        {"0\r\n\rx", 5},
        {"0\r\n: b\r\n", 8},
        {"0\r\nA\r\n", 6},
        {"0\r\nA : b\r\n", 10},
        {"0\r\n A: b\r\n", 10},
        {"0\r\nA: b\r\n c\r\n", 13},
        {"0\r\nA: b\n", 8},
        {"0\r\nA: \0\r\n", 9},
        {"0\r\nGET / HTTP/1.1\r\n", 19},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_COUNT(bad); i++) {
        for (size_t step_bytes = 1; step_bytes <= bad[i].len; step_bytes++) {
            assert_int_equal(decode(bad[i], step_bytes), ERR_INVALID);
        }
    }
}

static long decode_padded(const char *prefix, size_t count, const char *suffix)
{
    static char text[64 * KIB];
    size_t at = strlen(prefix);

    memcpy(text, prefix, at);
    memset(text + at, 'a', count);
    memcpy(text + at + count, suffix, strlen(suffix));
    return decode((struct slice){text, at + count + strlen(suffix)}, 1000);
}

/* Extensions and trailers of the greatest length pass, one byte more does not. */
static void test_caps(void **state)
{
    (void)state;
    assert_true(decode_padded("1;", HTTP_CHUNK_LINE_BYTES_MAX - 1, "\r\nx\r\n0\r\n\r\n") > 0);
    assert_int_equal(decode_padded("1;", HTTP_CHUNK_LINE_BYTES_MAX, "\r\nx\r\n0\r\n\r\n"),
                     ERR_TOOBIG);
    assert_true(decode_padded("0\r\nA:", HTTP_TRAILER_BYTES_MAX - 6, "\r\n\r\n") > 0);
    assert_int_equal(decode_padded("0\r\nA:", HTTP_TRAILER_BYTES_MAX - 5, "\r\n\r\n"), ERR_TOOBIG);
}

/* The greatest size is taken at its word: a number, not memory. */
static void test_greatest_size(void **state)
{
    struct chunk_decoder d;
    struct slice data;
    bool done = true;

    (void)state;
    chunk_decoder_init(&d);
    assert_int_equal(chunk_decoder_left(&d), 0);
    assert_int_equal(chunk_decode(&d, SLICE("FFFFFFFFFFFFFFF\r\nab"), &data, &done), 19);
    assert_false(done);
    assert_int_equal(data.len, 2);
    assert_true(chunk_decoder_left(&d) == UINT64_C(0xfffffffffffffff) - 2);
}

/* Data that the caller receives itself is skipped, and decoding goes on behind it. */
static void test_skip(void **state)
{
    struct chunk_decoder d;
    struct slice data;
    bool done;

    (void)state;
    chunk_decoder_init(&d);
    assert_int_equal(chunk_decode(&d, SLICE("5\r\n"), &data, &done), 3);
    assert_int_equal(data.len, 0);
    assert_int_equal(chunk_decoder_left(&d), 5);
    chunk_decoder_skip(&d, 2);
    assert_int_equal(chunk_decoder_left(&d), 3);
    chunk_decoder_skip(&d, 3);
    assert_int_equal(chunk_decoder_left(&d), 0);
    assert_int_equal(chunk_decode(&d, SLICE("\r\n0\r\n\r\nnext"), &data, &done), 7);
    assert_true(done);
    assert_int_equal(chunk_decode(&d, SLICE("next"), &data, &done), 0);
    assert_true(done);
}

/* 20,000 chunks of one byte cost one step each. */
static void test_many_tiny_chunks(void **state)
{
    struct chunk_decoder d;
    struct slice data;
    bool done = false;
    size_t total = 0;

    (void)state;
    chunk_decoder_init(&d);
    for (unsigned i = 0; i < 20000; i++) {
        struct slice chunk = SLICE("1\r\nx\r\n");

        while (chunk.len > 0) {
            long rc = chunk_decode(&d, chunk, &data, &done);

            assert_true(rc > 0);
            total += data.len;
            chunk = (struct slice){chunk.ptr + rc, chunk.len - (size_t)rc};
        }
    }
    assert_int_equal(total, 20000);
    assert_false(done);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_good_bodies),      cmocka_unit_test(test_prefixes_are_not_done),
        cmocka_unit_test(test_malformed),        cmocka_unit_test(test_caps),
        cmocka_unit_test(test_greatest_size),    cmocka_unit_test(test_skip),
        cmocka_unit_test(test_many_tiny_chunks),
    };

    return UNIT_RUN(tests);
}
