/* What of another server's head a client is told, and which heads are none. */
#include "app/upstream_head.c"

#include "unit/base/unit.h"

#define SECRET "hush"

/* Gives it line by line; the code of the first that is refused, else the last's. */
static int feed(struct upstream_head *h, const char *text)
{
    struct slice rest = slice_of(text);
    int code = 0;

    upstream_head_init(h, SLICE(SECRET));
    while (code == 0 && rest.len > 0) {
        const char *end = memchr(rest.ptr, '\n', rest.len);
        size_t len = end == NULL ? rest.len : (size_t)(end - rest.ptr) + 1;

        code = upstream_head_line(h, (struct slice){rest.ptr, len});
        rest = (struct slice){rest.ptr + len, rest.len - len};
    }
    return code;
}

static void check(const char *text, const char *told)
{
    struct upstream_head h;

    assert_int_equal(feed(&h, text), 0);
    assert_true(h.whole);
    buf_append_char(&h.out, '\0');
    assert_string_equal(h.out.ptr, told);
    upstream_head_finish(&h);
}

/* Fields keep their order, case and number; white space around a value is not part of it. */
static void tells_what_is_end_to_end(void **state)
{
    (void)state;
    check("HTTP/1.1 200 OK\r\n\r\n", "HTTP/1.1 200 OK\r\n");
    check("HTTP/1.0 200\r\nA:b\r\nA: \t c \r\nB:\r\n\r\n",
          "HTTP/1.1 200 \r\nA: b\r\nA: c\r\nB: \r\n");
    check("HTTP/1.1 599 Ho ho: ho\nA: b:c\n\n", "HTTP/1.1 599 Ho ho: ho\r\nA: b:c\r\n");
    check("HTTP/1.1 200 \xc3\xa9\r\nA: \xff\r\n\r\n", "HTTP/1.1 200 \xc3\xa9\r\nA: \xff\r\n");
}

/* In whatever case and place. A length is no field between two hops, whatever Connection says. */
static void leaves_out_what_is_between_hops(void **state)
{
    (void)state;
    check("HTTP/1.1 200 OK\r\nX-A: 1\r\nCONNECTION: close\r\nx-b: 2\r\n"
          "connection:  X-A ,,X-B, content-length\r\nkeep-alive: 1\r\nTe: x\r\ntrailer: y\r\n"
          "UPGRADE: z\r\nProxy-Connection: q\r\nproxy-: w\r\nProxy: kept\r\n"
          "Content-Length: 3\r\nX-C: 3\r\n\r\n",
          "HTTP/1.1 200 OK\r\nProxy: kept\r\nContent-Length: 3\r\nX-C: 3\r\n");
    check("HTTP/1.1 200 OK\r\nTransfer-Encoding: Chunked\r\nA: b\r\n\r\n",
          "HTTP/1.1 200 OK\r\nA: b\r\n");
}

static void keeps_secrets(void **state)
{
    (void)state;
    check("HTTP/1.1 200 OK " SECRET "\r\nLocation: http://a/?x=" SECRET "&y\r\nSet-Cookie: a=b\r\n"
          "X-" SECRET ": 1\r\nA: hus\r\n\r\n",
          "HTTP/1.1 200 \r\nA: hus\r\n");
}

static void passes_interim_answers_over(void **state)
{
    (void)state;
    check("HTTP/1.1 100 Continue\r\nContent-Length: x\r\n\r\nHTTP/1.1 103 Early\r\nA: 1\r\n\r\n"
          "HTTP/1.1 200 OK\r\nB: 2\r\n\r\n",
          "HTTP/1.1 200 OK\r\nB: 2\r\n");
}

static void says_how_long_the_body_is(void **state)
{
    struct upstream_head h;

    (void)state;
    assert_int_equal(feed(&h, "HTTP/1.1 200 OK\r\nContent-Length: 012\r\n\r\n"), 0);
    assert_true(h.has_length);
    assert_int_equal(h.length, 12);
    assert_true(upstream_head_has_body(&h));
    upstream_head_finish(&h);
    assert_int_equal(feed(&h, "HTTP/1.1 304 Not Modified\r\nContent-Length: 12\r\n\r\n"), 0);
    assert_true(h.has_length);
    assert_false(upstream_head_has_body(&h));
    upstream_head_finish(&h);
    assert_int_equal(feed(&h, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"), 0);
    assert_false(h.has_length);
    upstream_head_finish(&h);
    /* RFC 9110 section 8.6: 204 has none. */
    check("HTTP/1.1 204 No Content\r\nContent-Length: 0\r\nA: b\r\n\r\n",
          "HTTP/1.1 204 No Content\r\nA: b\r\n");
}

static void refuses_what_is_no_head(void **state)
{
    static const char *const heads[] = {
        "\r\n",
        "A: b\r\n\r\n",
        "HTTP/2 200 OK\r\n\r\n",
        "HTTP/1.1 20 OK\r\n\r\n",
        "HTTP/1.1 099 OK\r\n\r\n",
        "HTTP/1.1 600 OK\r\n\r\n",
        "HTTP/1.1 2000 OK\r\n\r\n",
        "HTTP/1.1  200 OK\r\n\r\n",
        "HTTP/1.1 200 O\x01K\r\n\r\n",
        "HTTP/1.1 200 OK\r\nA\r\n\r\n",
        "HTTP/1.1 200 OK\r\n: b\r\n\r\n",
        "HTTP/1.1 200 OK\r\nA : b\r\n\r\n",
        "HTTP/1.1 200 OK\r\n A: b\r\n\r\n",
        "HTTP/1.1 200 OK\r\nA: b\rc\r\n\r\n",
        "HTTP/1.1 200 OK\r\nA: b\x7f\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length:\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: 1, 1\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: 9223372036854775808\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: 1\r\ncontent-length: 1\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: identity\r\n\r\n",
    };
    struct upstream_head h;

    (void)state;
    for (size_t i = 0; i < ARRAY_COUNT(heads); i++) {
        if (feed(&h, heads[i]) != ERR_INVALID) {
            fail_msg("good: %s", heads[i]);
        }
        assert_false(h.whole);
        upstream_head_finish(&h);
    }
}

/* A line may hold a NUL. */
static void refuses_nul(void **state)
{
    struct upstream_head h;

    (void)state;
    upstream_head_init(&h, SLICE(""));
    assert_int_equal(upstream_head_line(&h, SLICE("HTTP/1.1 200 OK\r\n")), 0);
    assert_int_equal(upstream_head_line(&h, SLICE("A: b\0c\r\n")), 0);
    assert_int_equal(upstream_head_line(&h, SLICE("\r\n")), ERR_INVALID);
    upstream_head_finish(&h);
}

/* As large as it may be, and one byte more. */
static void bounds_it(void **state)
{
    static char line[UPSTREAM_HEAD_BYTES_MAX];
    struct upstream_head h;

    (void)state;
    memset(line, 'x', sizeof(line));
    memcpy(line, "X: ", 3);
    for (size_t extra = 0; extra < 2; extra++) {
        struct slice status = SLICE("HTTP/1.1 200 OK\r\n");
        size_t len = UPSTREAM_HEAD_BYTES_MAX - status.len + extra;

        line[len - 1] = '\n';
        upstream_head_init(&h, SLICE(""));
        assert_int_equal(upstream_head_line(&h, status), 0);
        assert_int_equal(upstream_head_line(&h, (struct slice){line, len}),
                         extra == 0 ? 0 : ERR_TOOBIG);
        if (extra == 0) {
            assert_int_equal(upstream_head_line(&h, SLICE("\r\n")), 0);
            assert_true(h.whole);
        }
        upstream_head_finish(&h);
        line[len - 1] = 'x';
    }
    upstream_head_finish(&(struct upstream_head){.whole = false});
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tells_what_is_end_to_end),
        cmocka_unit_test(leaves_out_what_is_between_hops),
        cmocka_unit_test(keeps_secrets),
        cmocka_unit_test(passes_interim_answers_over),
        cmocka_unit_test(says_how_long_the_body_is),
        cmocka_unit_test(refuses_what_is_no_head),
        cmocka_unit_test(refuses_nul),
        cmocka_unit_test(bounds_it),
    };

    return UNIT_RUN(tests);
}
