/* Tables of heads, good and bad: each form that is used to smuggle requests is one line. */
#include "http/request.c"

#include "unit/base/unit.h"

#include <stdio.h>
#include <stdlib.h>

static struct http_request request;
static struct http_refusal refusal;

/* Parses in one go, from a heap block of the exact size. */
static long parse(struct slice input)
{
    static char *copy;
    size_t scanned = 0;

    free(copy);
    copy = malloc(input.len + 1);
    assert_non_null(copy);
    memcpy(copy, input.ptr, input.len);
    refusal = (struct http_refusal){0, NULL};
    return http_request_parse((struct slice){copy, input.len}, &scanned, &request, &refusal);
}

static void expect_refused(struct slice input, int status)
{
    long rc = parse(input);

    if (rc != ERR_INVALID || refusal.status != status) {
        print_error("%.*s\n-> %ld, status %d\n", (int)input.len, input.ptr, rc, refusal.status);
    }
    assert_int_equal(rc, ERR_INVALID);
    assert_int_equal(refusal.status, status);
    assert_non_null(refusal.sentence);
}

static void expect_good(struct slice input)
{
    long rc = parse(input);

    if (rc != (long)input.len) {
        print_error("%.*s\n-> %ld, status %d\n", (int)input.len, input.ptr, rc, refusal.status);
    }
    assert_int_equal(rc, input.len);
}

static void expect_slice(struct slice got, const char *wanted)
{
    assert_int_equal(got.len, strlen(wanted));
    assert_memory_equal(got.ptr, wanted, got.len);
}

static const char usual[] = "POST /v1/stream/a%20b?offset=-1&live=sse HTTP/1.1\r\n"
                            "Host: localhost:4437\r\n"
                            "Content-Type:text/plain\r\n"
                            "Content-Length: 005 \r\n"
                            "Expect: 100-Continue\r\n"
                            "X-Empty:\r\n"
                            "X-Tabs: \t a\tb \xc3\xa9\t \r\n"
                            "x-empty: not\r\n"
                            "\r\n";

/* Everything in a usual head is found where it stands. */
static void test_usual_head(void **state)
{
    size_t count;

    (void)state;
    expect_good(SLICE(usual));
    assert_int_equal(request.method, HTTP_POST);
    expect_slice(request.method_token, "POST");
    expect_slice(request.target, "/v1/stream/a%20b?offset=-1&live=sse");
    assert_int_equal(request.minor_version, 1);
    assert_int_equal(request.body, HTTP_BODY_LENGTH);
    assert_int_equal(request.content_length, 5);
    assert_true(request.keep_alive);
    assert_true(request.expect_continue);
    assert_int_equal(request.header_count, 7);
    expect_slice(http_request_header(&request, SLICE("content-type"), &count), "text/plain");
    assert_int_equal(count, 1);
    expect_slice(http_request_header(&request, SLICE("X-TABS"), NULL), "a\tb \xc3\xa9");
    assert_non_null(http_request_header(&request, SLICE("X-Empty"), &count).ptr);
    assert_int_equal(http_request_header(&request, SLICE("X-Empty"), NULL).len, 0);
    assert_int_equal(count, 2);
    assert_null(http_request_header(&request, SLICE("X-None"), &count).ptr);
    assert_int_equal(count, 0);
}

/* Every proper prefix of a good head asks for more, and nothing else. */
static void test_prefixes_need_more(void **state)
{
    (void)state;
    for (size_t len = 0; len < sizeof(usual) - 1; len++) {
        assert_int_equal(parse((struct slice){usual, len}), 0);
    }
}

/* A head that comes byte by byte, or in two parts, gives what it gives in one go. */
static void test_split_input(void **state)
{
    size_t len = sizeof(usual) - 1;
    size_t scanned = 0;

    (void)state;
    for (size_t have = 0; have < len; have++) {
        assert_int_equal(
            http_request_parse((struct slice){usual, have}, &scanned, &request, &refusal), 0);
        assert_int_equal(scanned, have);
    }
    assert_int_equal(http_request_parse(SLICE(usual), &scanned, &request, &refusal), len);
    assert_int_equal(scanned, 0);
    for (size_t split = 1; split < len; split++) {
        assert_int_equal(
            http_request_parse((struct slice){usual, split}, &scanned, &request, &refusal), 0);
        assert_int_equal(http_request_parse(SLICE(usual), &scanned, &request, &refusal), len);
        assert_int_equal(request.header_count, 7);
        assert_int_equal(scanned, 0);
    }
}

/* What follows a head is left alone: the next request is parsed from there. */
static void test_pipelined(void **state)
{
    struct slice two = SLICE(
        "GET /a HTTP/1.1\r\nHost: x\r\n\r\nGET /b HTTP/1.1\r\nHost: y\r\n\r\n");
    long first;

    (void)state;
    first = parse(two);
    assert_int_equal(first, two.len / 2);
    expect_good((struct slice){two.ptr + first, two.len - (size_t)first});
    expect_slice(request.target, "/b");
}

/* One empty line may come before a request (RFC 9112 section 2.2), two may not. */
static void test_leading_empty_line(void **state)
{
    (void)state;
    expect_good(SLICE("\r\nGET / HTTP/1.1\r\nHost: x\r\n\r\n"));
    expect_refused(SLICE("\r\n\r\nGET / HTTP/1.1\r\nHost: x\r\n\r\n"), 400);
    expect_refused(SLICE("\nGET / HTTP/1.1\r\nHost: x\r\n\r\n"), 400);
    expect_refused(SLICE("\rGET / HTTP/1.1\r\nHost: x\r\n\r\n"), 400);
}

struct refused {
    struct slice input;
    int status;
};

#define HEAD(rest)   SLICE("POST / HTTP/1.1\r\nHost: x\r\n" rest "\r\n\r\n")
#define LINE(line)   SLICE(line "\r\nHost: x\r\n\r\n")
#define VALUE(bytes) SLICE("GET / HTTP/1.1\r\nHost: x\r\nA: " bytes "\r\n\r\n")

/* Request lines that are not exactly METHOD SP TARGET SP VERSION CRLF. */
static void test_bad_request_lines(void **state)
{
    static const struct refused cases[] = {
        {LINE("GET  / HTTP/1.1"), 400},
        {LINE("GET\t/ HTTP/1.1"), 400},
        {LINE(" GET / HTTP/1.1"), 400},
        {LINE("GET /  HTTP/1.1"), 400},
        {LINE("GET / HTTP/1.1 "), 400},
        {LINE("GET / HTTP/1.1x"), 400},
        {LINE("GET /"), 400},
        {LINE("GET"), 400},
        {LINE("GET / a HTTP/1.1"), 400},
        {LINE("GET /\x01 HTTP/1.1"), 400},
        {SLICE("GET /\0 HTTP/1.1\r\nHost: x\r\n\r\n"), 400},
        {LINE("GET /\x7f HTTP/1.1"), 400},
        {LINE("GET /\t HTTP/1.1"), 400},
        {LINE("GET /a#b HTTP/1.1"), 400},
        {LINE("G@T / HTTP/1.1"), 400},
        {LINE("GET: / HTTP/1.1"), 400},
        {LINE("GET a HTTP/1.1"), 400},
        {LINE("GET host:80 HTTP/1.1"), 400},
        {LINE("GET * HTTP/1.1"), 400},
        {LINE("GET ftp://x/ HTTP/1.1"), 400},
        {LINE("GET http:/// HTTP/1.1"), 400},
        {LINE("GET http:// HTTP/1.1"), 400},
        {LINE("GET http://u@x/ HTTP/1.1"), 400},
        {LINE("GET / HTTP/1,1"), 400},
        {LINE("GET / http/1.1"), 400},
        {LINE("GET / HTTP/11"), 400},
        {LINE("GET / HTTP/1.10"), 400},
        {LINE("GET / HTTP/a.1"), 400},
        {LINE("GET / HTTP/"), 400},
        {LINE("GET / XTTP/1.1"), 400},
        {LINE("GET / HTTP/2.0"), 505},
        {LINE("GET / HTTP/0.9"), 505},
        {LINE("GET / HTTP/3.1"), 505},
        {SLICE("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"), 505},
        {SLICE("\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03"), 400},
        {SLICE("GET / HTTP/1.1\nHost: x\n\n"), 400},
        {SLICE("GET / HTTP/1.1\rHost: x\r\r"), 400},
        {SLICE("GET / HTTP/1.1\r\rHost: x\r\n\r\n"), 400},
        {SLICE("GET / HTTP/1.1\n\r\nHost: x\r\n\r\n"), 400},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
        expect_refused(cases[i].input, cases[i].status);
    }
}

/* Header lines that another parser might read differently. */
static void test_bad_header_lines(void **state)
{
    static const struct refused cases[] = {
        {HEAD("A : b"), 400},
        {HEAD("A\t: b"), 400},
        {HEAD(" A: b"), 400},
        {HEAD("A: b\r\n c"), 400},
        {HEAD("A: b\r\n\tc"), 400},
        {HEAD(": b"), 400},
        {HEAD("A"), 400},
        {HEAD("A b: c"), 400},
        {HEAD("A(: c"), 400},
        {HEAD("\xc3\xa4: c"), 400},
        {SLICE("GET / HTTP/1.1\r\n Host: x\r\n\r\n"), 400},
        {SLICE("GET / HTTP/1.1\r\nHost: x\n\r\n"), 400},
        {SLICE("GET / HTTP/1.1\r\nHost: x\r\nA: b\nTransfer-Encoding: chunked\r\n\r\n"), 400},
        {SLICE("GET / HTTP/1.1\r\nHost: x\r\nA: b\rTransfer-Encoding: chunked\r\n\r\n"), 400},
        {SLICE("GET / HTTP/1.1\r\nHost: x\r\n\nA: b\r\n\r\n"), 400},
        {SLICE("GET / HTTP/1.1\r\nHost: x\r\n\rA: b\r\n\r\n"), 400},
        {SLICE("GET / HTTP/1.1\r\nHost: x\r\nA\r\n: b\r\n\r\n"), 400},
        {VALUE("a\0b"), 400},
        {VALUE("\x01"), 400},
        {VALUE("a\x1f"), 400},
        {VALUE("\x7f"), 400},
        {VALUE("\x0b"), 400},
        {VALUE("sixteen bytes of text and then\x08more"), 400},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
        expect_refused(cases[i].input, cases[i].status);
    }
}

/* Every control character but tab is refused at every place of a value, whatever its alignment. */
static void test_controls_at_every_place(void **state)
{
    char head[128];

    (void)state;
    for (unsigned at = 0; at < 50; at++) {
        for (unsigned c = 0; c < 256; c++) {
            int len = snprintf(head, sizeof(head), "GET / HTTP/1.1\r\nHost: x\r\nA: %050d\r\n\r\n",
                               0);
            bool bad = (c < 0x20 && c != '\t') || c == 0x7f;

            head[28 + at] = (char)c;
            if (bad) {
                expect_refused((struct slice){head, (size_t)len}, 400);
            } else {
                expect_good((struct slice){head, (size_t)len});
            }
        }
    }
}

/* Bytes from 0x80 on are for the owner of names to judge. */
static void test_high_bytes_in_target(void **state)
{
    (void)state;
    expect_good(LINE("GET /\xc3\xa9\xff HTTP/1.1"));
    expect_slice(request.target, "/\xc3\xa9\xff");
}

/* Host is there once in 1.1, and names a host. */
static void test_host(void **state)
{
    (void)state;
    expect_refused(SLICE("GET / HTTP/1.1\r\n\r\n"), 400);
    expect_refused(SLICE("GET / HTTP/1.1\r\nHost: x\r\nHost: x\r\n\r\n"), 400);
    expect_refused(SLICE("GET / HTTP/1.0\r\nHost: x\r\nhOST: y\r\n\r\n"), 400);
    expect_refused(SLICE("GET / HTTP/1.1\r\nHost: a b\r\n\r\n"), 400);
    expect_refused(SLICE("GET / HTTP/1.1\r\nHost: a/b\r\n\r\n"), 400);
    expect_refused(SLICE("GET / HTTP/1.1\r\nHost: a@b\r\n\r\n"), 400);
    expect_refused(SLICE("GET / HTTP/1.1\r\nHost: a\xc3\xa9\r\n\r\n"), 400);
    expect_refused(SLICE("GET http://x/ HTTP/1.1\r\n\r\n"), 400);
    expect_good(SLICE("GET / HTTP/1.0\r\n\r\n"));
    expect_good(SLICE("GET / HTTP/1.1\r\nHost:\r\n\r\n"));
    expect_good(SLICE("GET / HTTP/1.1\r\nHost: [::1]:4437\r\n\r\n"));
}

/* Whatever could make two parsers see different bodies. */
static void test_smuggling(void **state)
{
    static const struct refused cases[] = {
        {HEAD("Content-Length: 5\r\nTransfer-Encoding: chunked"), 400},
        {HEAD("Transfer-Encoding: chunked\r\nContent-Length: 5"), 400},
        {HEAD("Transfer-Encoding: chunked\r\nContent-Length: 0"), 400},
        {HEAD("Content-Length: 5\r\nContent-Length: 5"), 400},
        {HEAD("Content-Length: 5\r\ncontent-length: 6"), 400},
        {HEAD("Content-Length: 5, 5"), 400},
        {HEAD("Content-Length: 5,"), 400},
        {HEAD("Content-Length:"), 400},
        {HEAD("Content-Length: +5"), 400},
        {HEAD("Content-Length: -5"), 400},
        {HEAD("Content-Length: 5 5"), 400},
        {HEAD("Content-Length: 0x5"), 400},
        {HEAD("Content-Length: 5a"), 400},
        {HEAD("Content-Length: 5.0"), 400},
        {HEAD("Content-Length: 1e3"), 400},
        {HEAD("Content-Length: \"5\""), 400},
        {HEAD("Content-Length: \xef\xbc\x95"), 400},
        {HEAD("Content-Length: 00000000000000000005"), 400},
        {HEAD("Content-Length: 99999999999999999999"), 400},
        {HEAD("Content-Length: 18446744073709551621"), 400},
        {HEAD("Content-Length : 5"), 400},
        {HEAD("Content-Length\x0b: 5"), 400},
        {HEAD("Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked"), 400},
        {HEAD("Transfer-Encoding: chunked\r\ntransfer-encoding: identity"), 400},
        {HEAD("Transfer-Encoding: chunked, chunked"), 400},
        {HEAD("Transfer-Encoding: gzip, chunked"), 400},
        {HEAD("Transfer-Encoding: chunked, gzip"), 400},
        {HEAD("Transfer-Encoding: chunked,"), 400},
        {HEAD("Transfer-Encoding: ,chunked"), 400},
        {HEAD("Transfer-Encoding: chunked;q=1"), 400},
        {HEAD("Transfer-Encoding: \"chunked\""), 400},
        {HEAD("Transfer-Encoding:"), 400},
        {HEAD("Transfer-Encoding : chunked"), 400},
        {HEAD("Transfer-Encoding\t: chunked"), 400},
        {HEAD(" Transfer-Encoding: chunked"), 400},
        {HEAD("Transfer-Encoding: \x0b"
              "chunked"),
         400},
        {HEAD("Transfer-Encoding:\r\n chunked"), 400},
        {HEAD("Transfer-Encoding: chunked\r\n\t"), 400},
        {HEAD("Transfer-Encoding: xchunked"), 501},
        {HEAD("Transfer-Encoding: identity"), 501},
        {HEAD("Transfer-Encoding: gzip"), 501},
        {SLICE("POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n"), 400},
        {SLICE("POST / HTTP/1.0\r\nTransfer-Encoding: gzip\r\n\r\n"), 400},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
        expect_refused(cases[i].input, cases[i].status);
    }
}

/* How a body that is announced properly is delimited. */
static void test_bodies(void **state)
{
    (void)state;
    expect_good(HEAD("A: b"));
    assert_int_equal(request.body, HTTP_BODY_NONE);
    expect_good(HEAD("Content-Length: 0"));
    assert_int_equal(request.body, HTTP_BODY_LENGTH);
    assert_int_equal(request.content_length, 0);
    expect_good(HEAD("Content-Length: 9999999999999999999"));
    assert_true(request.content_length == UINT64_C(9999999999999999999));
    expect_good(HEAD("Transfer-Encoding: \t CHUNKED "));
    assert_int_equal(request.body, HTTP_BODY_CHUNKED);
    assert_int_equal(request.content_length, 0);
}

/* Connection is a list of tokens, and may come several times; close wins. */
static void test_keep_alive(void **state)
{
    static const struct {
        struct slice input;
        bool keep_alive;
    } cases[] = {
        {SLICE("GET / HTTP/1.1\r\nHost: x\r\n\r\n"), true},
        {SLICE("GET / HTTP/1.7\r\nHost: x\r\n\r\n"), true},
        {SLICE("GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"), false},
        {SLICE("GET / HTTP/1.1\r\nHost: x\r\nConnection: x,, CLOSE ,y\r\n\r\n"), false},
        {SLICE("GET / HTTP/1.1\r\nHost: x\r\nConnection: enclose\r\n\r\n"), true},
        {SLICE("GET / HTTP/1.1\r\nHost: x\r\nConnection: keep-alive\r\nConnection: close\r\n\r\n"),
         false},
        {SLICE("GET / HTTP/1.0\r\n\r\n"), false},
        {SLICE("GET / HTTP/1.0\r\nConnection: Keep-Alive\r\n\r\n"), true},
        {SLICE("GET / HTTP/1.0\r\nConnection: keep-alive, close\r\n\r\n"), false},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
        expect_good(cases[i].input);
        assert_int_equal(request.keep_alive, cases[i].keep_alive);
    }
}

/* The one expectation is met, others are not, and 1.0 has none. */
static void test_expect(void **state)
{
    (void)state;
    expect_good(HEAD("Expect: 100-CONTINUE"));
    assert_true(request.expect_continue);
    expect_good(HEAD("A: b"));
    assert_false(request.expect_continue);
    expect_refused(HEAD("Expect: 200-ok"), 417);
    expect_refused(HEAD("Expect:"), 417);
    expect_refused(HEAD("Expect: 100-continue, x"), 417);
    expect_good(SLICE("POST / HTTP/1.0\r\nExpect: 100-continue\r\n\r\n"));
    assert_false(request.expect_continue);
}

/* The other forms of a target (RFC 9112 section 3.2). */
static void test_target_forms(void **state)
{
    (void)state;
    expect_good(LINE("GET http://x:1/a?b HTTP/1.1"));
    expect_slice(request.target, "/a?b");
    expect_good(LINE("GET HTTPS://x HTTP/1.1"));
    expect_slice(request.target, "/");
    expect_good(LINE("GET http://x?q=/ HTTP/1.1"));
    expect_slice(request.target, "?q=/");
    expect_good(LINE("OPTIONS * HTTP/1.1"));
    expect_slice(request.target, "*");
    expect_good(LINE("CONNECT x:443 HTTP/1.1"));
    assert_int_equal(request.method, HTTP_OTHER);
    expect_good(LINE("get / HTTP/1.1"));
    assert_int_equal(request.method, HTTP_OTHER);
    expect_slice(request.method_token, "get");
}

/* Builds a head: `prefix`, then `count` times `c`, then `suffix`. */
static struct slice padded(const char *prefix, char c, size_t count, const char *suffix)
{
    static char text[64 * KIB];
    size_t at = strlen(prefix);

    assert_true(at + count + strlen(suffix) < sizeof(text));
    memcpy(text, prefix, at);
    memset(text + at, c, count);
    memcpy(text + at + count, suffix, strlen(suffix));
    return (struct slice){text, at + count + strlen(suffix)};
}

/* A target of the greatest length passes, one byte more does not, whether or not it ends. */
static void test_target_cap(void **state)
{
    const char *end = " HTTP/1.1\r\nHost: x\r\n\r\n";

    (void)state;
    expect_good(padded("GET /", 'a', HTTP_TARGET_BYTES_MAX - 1, end));
    expect_refused(padded("GET /", 'a', HTTP_TARGET_BYTES_MAX, end), 414);
    expect_refused(padded("GET /", 'a', HTTP_TARGET_BYTES_MAX, ""), 414);
    assert_int_equal(parse(padded("GET /", 'a', HTTP_TARGET_BYTES_MAX - 1, "")), 0);
}

/* A head of the greatest size passes, one byte more does not; without an end the answer comes as
 * soon as the cap is reached. */
static void test_head_cap(void **state)
{
    const char *start = "GET / HTTP/1.1\r\nHost: x\r\nA: ";
    size_t fill = HTTP_HEAD_BYTES_MAX - strlen(start) - 4;
    size_t scanned = 0;
    struct slice endless;

    (void)state;
    expect_good(padded(start, 'a', fill, "\r\n\r\n"));
    expect_refused(padded(start, 'a', fill + 1, "\r\n\r\n"), 431);
    expect_refused(padded(start, 'a', fill + 4, ""), 431);
    expect_refused(padded("", 'A', HTTP_HEAD_BYTES_MAX, ""), 400);
    assert_int_equal(parse(padded(start, 'a', fill + 3, "")), 0);
    endless = padded(start, 'a', fill + 4, "");
    for (size_t len = 0; len < endless.len; len++) {
        struct slice part = {endless.ptr, len};

        assert_int_equal(http_request_parse(part, &scanned, &request, &refusal), 0);
    }
    assert_int_equal(http_request_parse(endless, &scanned, &request, &refusal), ERR_INVALID);
    assert_int_equal(refusal.status, 431);
}

/* The greatest number of headers passes, one more does not. */
static void test_header_count_cap(void **state)
{
    char text[4096];
    size_t len = (size_t)snprintf(text, sizeof(text), "GET / HTTP/1.1\r\nHost: x\r\n");

    (void)state;
    for (unsigned i = 1; i < HTTP_HEADERS_MAX; i++) {
        memcpy(text + len, "A: b\r\n", 6);
        len += 6;
    }
    memcpy(text + len, "\r\n", 2);
    expect_good((struct slice){text, len + 2});
    assert_int_equal(request.header_count, HTTP_HEADERS_MAX);
    memcpy(text + len, "A: b\r\n\r\n", 8);
    expect_refused((struct slice){text, len + 8}, 431);
}

/* Path and query part at the first question mark. */
static void test_target_split(void **state)
{
    struct slice path;
    struct slice query;

    (void)state;
    http_target_split(SLICE("/a?b?c"), &path, &query);
    expect_slice(path, "/a");
    expect_slice(query, "b?c");
    http_target_split(SLICE("/a"), &path, &query);
    expect_slice(path, "/a");
    assert_null(query.ptr);
    http_target_split(SLICE("?"), &path, &query);
    expect_slice(path, "/");
    assert_non_null(query.ptr);
    assert_int_equal(query.len, 0);
}

static void expect_inside(struct slice part, const char *bytes, size_t len)
{
    assert_true(part.ptr >= bytes);
    assert_true(part.ptr + part.len <= bytes + len);
}

/* Every slice of a request lies in its bytes, whatever its form, so that a copy says the same. */
static void test_copy(void **state)
{
    static const char *const heads[] = {
        usual,
        "GET http://x HTTP/1.1\r\nHost: y\r\n\r\n",
        "GET http://x?offset=-1 HTTP/1.1\r\nHost: y\r\n\r\n",
        "OPTIONS https://x:1 HTTP/1.1\r\nHost:\r\n\r\n",
        "\r\nOPTIONS * HTTP/1.1\r\nHost: \t \r\nA:\r\n\r\n",
        "GET / HTTP/1.0\r\n\r\n",
    };
    static struct http_request copy;

    (void)state;
    for (size_t i = 0; i < ARRAY_COUNT(heads); i++) {
        struct slice head = slice_of(heads[i]);
        size_t scanned = 0;
        char *bytes = malloc(head.len);

        assert_non_null(bytes);
        assert_int_equal(http_request_parse(head, &scanned, &request, &refusal), head.len);
        http_request_copy(&request, head, bytes, &copy);
        assert_memory_equal(bytes, head.ptr, head.len);
        expect_inside(request.target, head.ptr, head.len);
        expect_inside(copy.method_token, bytes, head.len);
        expect_inside(copy.target, bytes, head.len);
        assert_true(slice_equal(copy.method_token, request.method_token));
        assert_true(slice_equal(copy.target, request.target));
        assert_int_equal(copy.header_count, request.header_count);
        for (size_t at = 0; at < copy.header_count; at++) {
            expect_inside(copy.headers[at].name, bytes, head.len);
            expect_inside(copy.headers[at].value, bytes, head.len);
            assert_true(slice_equal(copy.headers[at].value, request.headers[at].value));
        }
        free(bytes);
    }
}

/* An absolute form without a path means the root (RFC 9112 section 3.2.2). */
static void test_absolute_without_path(void **state)
{
    struct slice path;
    struct slice query;

    (void)state;
    expect_good(SLICE("GET http://x HTTP/1.1\r\nHost: y\r\n\r\n"));
    http_target_split(request.target, &path, &query);
    expect_slice(path, "/");
    assert_null(query.ptr);
    expect_good(SLICE("GET HTTPS://x:80?a=b HTTP/1.1\r\nHost: y\r\n\r\n"));
    http_target_split(request.target, &path, &query);
    expect_slice(path, "/");
    expect_slice(query, "a=b");
}

/* Escapes become bytes; broken ones are refused; plus stays plus. */
static void test_percent_decode(void **state)
{
    static const struct slice bad[] = {{"%", 1}, {"a%2", 3}, {"%g0", 3}, {"%0g", 3}, {"%%30", 4}};
    char out[32];

    (void)state;
    assert_int_equal(http_percent_decode(SLICE("a%2fB%Ff+%00%25"), out), 7);
    assert_memory_equal(out, "a/B\xff+\0%", 7);
    assert_int_equal(http_percent_decode(SLICE(""), out), 0);
    for (size_t i = 0; i < ARRAY_COUNT(bad); i++) {
        assert_int_equal(http_percent_decode(bad[i], out), ERR_INVALID);
    }
}

/* A query is walked pair by pair; empty parts are passed over. */
static void test_query_next(void **state)
{
    struct slice rest = SLICE("&a=b&&c&d==e&f=&=g&");
    struct slice name;
    struct slice value;

    (void)state;
    assert_true(http_query_next(&rest, &name, &value));
    expect_slice(name, "a");
    expect_slice(value, "b");
    assert_true(http_query_next(&rest, &name, &value));
    expect_slice(name, "c");
    assert_null(value.ptr);
    assert_true(http_query_next(&rest, &name, &value));
    expect_slice(name, "d");
    expect_slice(value, "=e");
    assert_true(http_query_next(&rest, &name, &value));
    expect_slice(name, "f");
    assert_non_null(value.ptr);
    assert_int_equal(value.len, 0);
    assert_true(http_query_next(&rest, &name, &value));
    expect_slice(name, "");
    expect_slice(value, "g");
    assert_false(http_query_next(&rest, &name, &value));
    assert_false(http_query_next(&rest, &name, &value));
}

/* Entity tags are compared weakly, in lists, and a list may hold commas in its tags. */
static void test_etag_matches(void **state)
{
    struct slice tag = SLICE("\"a,b\"");

    (void)state;
    assert_true(http_etag_matches(SLICE("\"a,b\""), tag));
    assert_true(http_etag_matches(SLICE("W/\"a,b\""), tag));
    assert_true(http_etag_matches(SLICE(" \"x\" ,, W/\"y\",\"a,b\" "), tag));
    assert_true(http_etag_matches(SLICE(" * "), tag));
    assert_true(http_etag_matches(SLICE("\"a,b\""), SLICE("W/\"a,b\"")));
    assert_false(http_etag_matches(SLICE("\"a\", \"b\""), tag));
    assert_false(http_etag_matches(SLICE("a,b"), tag));
    assert_false(http_etag_matches(SLICE("\"a,b"), tag));
    assert_false(http_etag_matches(SLICE("w/\"a,b\""), tag));
    assert_false(http_etag_matches(SLICE("\"x\" \"a,b\""), tag));
    assert_false(http_etag_matches(SLICE("*, \"x\""), tag));
    assert_false(http_etag_matches(SLICE(""), tag));
    assert_false(http_etag_matches((struct slice){NULL, 0}, tag));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_usual_head),
        cmocka_unit_test(test_prefixes_need_more),
        cmocka_unit_test(test_split_input),
        cmocka_unit_test(test_pipelined),
        cmocka_unit_test(test_leading_empty_line),
        cmocka_unit_test(test_bad_request_lines),
        cmocka_unit_test(test_bad_header_lines),
        cmocka_unit_test(test_controls_at_every_place),
        cmocka_unit_test(test_high_bytes_in_target),
        cmocka_unit_test(test_host),
        cmocka_unit_test(test_smuggling),
        cmocka_unit_test(test_bodies),
        cmocka_unit_test(test_keep_alive),
        cmocka_unit_test(test_expect),
        cmocka_unit_test(test_target_forms),
        cmocka_unit_test(test_target_cap),
        cmocka_unit_test(test_head_cap),
        cmocka_unit_test(test_header_count_cap),
        cmocka_unit_test(test_target_split),
        cmocka_unit_test(test_copy),
        cmocka_unit_test(test_absolute_without_path),
        cmocka_unit_test(test_percent_decode),
        cmocka_unit_test(test_query_next),
        cmocka_unit_test(test_etag_matches),
    };

    return UNIT_RUN(tests);
}
