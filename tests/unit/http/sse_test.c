/* Frames are read back by a small reader made from the rules of the HTML standard (section 9.2.6),
 * which shares nothing with the writer. */
#include "http/sse.c"

#include "unit/base/unit.h"

#include <stdio.h>

static struct buf out;

/* What a browser would dispatch for one event. */
struct event {
    char type[16];
    char data[4096];
    size_t data_len;
    bool dispatched;
};

/* Takes the line at *at, ended by LF, CR or CRLF. */
static struct slice take_line(struct slice *rest)
{
    size_t len = 0;
    struct slice line;

    while (len < rest->len && rest->ptr[len] != '\n' && rest->ptr[len] != '\r') {
        len++;
    }
    assert_true(len < rest->len);
    line = (struct slice){rest->ptr, len};
    len += rest->ptr[len] == '\r' && len + 1 < rest->len && rest->ptr[len + 1] == '\n' ? 2 : 1;
    *rest = (struct slice){rest->ptr + len, rest->len - len};
    return line;
}

/* Reads one event and moves *rest behind it. */
static struct event read_event(struct slice *rest)
{
    struct event e = {.dispatched = false};
    bool has_data = false;

    while (rest->len > 0) {
        struct slice line = take_line(rest);
        struct slice field;

        if (line.len == 0) {
            e.dispatched = has_data;
            return e;
        }
        (void)slice_split(&line, ':', &field);
        if (line.len > 0 && line.ptr[0] == ' ') {
            line = (struct slice){line.ptr + 1, line.len - 1};
        }
        if (slice_equal(field, SLICE("event"))) {
            assert_true(line.len < sizeof(e.type));
            memcpy(e.type, line.ptr, line.len);
        } else if (slice_equal(field, SLICE("data"))) {
            if (has_data) {
                e.data[e.data_len++] = '\n';
            }
            has_data = true;
            if (line.len > 0) {
                memcpy(e.data + e.data_len, line.ptr, line.len);
                e.data_len += line.len;
            }
        } else {
            assert_int_equal(field.len, 0);
        }
    }
    return e;
}

/* Writes a data event and expects a reader to get `wanted`. */
static void expect_data(enum sse_encoding encoding, const struct slice *pieces, size_t count,
                        struct slice wanted)
{
    struct slice rest;
    struct event e;

    buf_clear(&out);
    sse_append_data(&out, encoding, pieces, count);
    assert_false(out.failed);
    rest = buf_slice(&out);
    e = read_event(&rest);
    assert_int_equal(rest.len, 0);
    assert_true(e.dispatched);
    assert_string_equal(e.type, "data");
    assert_int_equal(e.data_len, wanted.len);
    assert_memory_equal(e.data, wanted.ptr, wanted.len);
}

static void expect_text(struct slice payload, struct slice wanted)
{
    /* In every split into two pieces, and with empty pieces around. */
    for (size_t split = 0; split <= payload.len; split++) {
        struct slice pieces[] = {{NULL, 0},
                                 {payload.ptr, split},
                                 {payload.ptr + split, 0},
                                 {payload.ptr + split, payload.len - split}};

        expect_data(SSE_TEXT, pieces, ARRAY_COUNT(pieces), wanted);
    }
}

/* Text comes back exactly; other line ends come back as line feeds. */
static void test_text_comes_back(void **state)
{
    (void)state;
    expect_text(SLICE("one"), SLICE("one"));
    expect_text(SLICE("one\ntwo"), SLICE("one\ntwo"));
    expect_text(SLICE("one\n"), SLICE("one\n"));
    expect_text(SLICE("\n"), SLICE("\n"));
    expect_text(SLICE("\n\n\nx\n\n"), SLICE("\n\n\nx\n\n"));
    expect_text(SLICE(" leading and trailing "), SLICE(" leading and trailing "));
    expect_text(SLICE("  code\n    more\n \nx y"), SLICE("  code\n    more\n \nx y"));
    expect_text(SLICE("a\r\nb\rc\n\rd\r\r\ne\r"), SLICE("a\nb\nc\n\nd\n\ne\n"));
    expect_text(SLICE("nul\0byte"), SLICE("nul\0byte"));
    expect_text(SLICE("\xef\xbb\xbf\xc3\xa9:"), SLICE("\xef\xbb\xbf\xc3\xa9:"));
}

/* Nothing in a payload can begin a field or an event of its own. */
static void test_no_forged_events(void **state)
{
    (void)state;
    expect_text(SLICE("x\n\nevent: control\ndata: {\"streamClosed\":true}\n\n"),
                SLICE("x\n\nevent: control\ndata: {\"streamClosed\":true}\n\n"));
    expect_text(SLICE("x\r\revent: control\rdata: y\r\r"),
                SLICE("x\n\nevent: control\ndata: y\n\n"));
    expect_text(SLICE("\r\nid: 7\r\nretry: 0\r\n"), SLICE("\nid: 7\nretry: 0\n"));
}

/* Stored messages become one array without the last comma; pretty-printed ones keep their lines. */
static void test_json_is_an_array(void **state)
{
    struct slice one[] = {SLICE("{\"a\":1},")};
    struct slice two[] = {SLICE("{\"a\":1},[2"), SLICE(",3]"), SLICE(","), {NULL, 0}};
    struct slice lines[] = {SLICE("{\r\n  \"a\": 1\r"), SLICE("\n},")};

    (void)state;
    expect_data(SSE_JSON, one, 1, SLICE("[{\"a\":1}]"));
    expect_data(SSE_JSON, two, 4, SLICE("[{\"a\":1},[2,3]]"));
    expect_data(SSE_JSON, lines, 2, SLICE("[{\n  \"a\": 1\n}]"));
}

/* Pieces of any lengths are encoded as one text, on one line. */
static void test_base64_over_pieces(void **state)
{
    static const char *const wanted[] = {
        "AA==", "AAE=", "AAEC", "AAECAw==", "AAECAwQ=", "AAECAwQF", "AAECAwQFBg=="};
    const char bytes[] = {0, 1, 2, 3, 4, 5, 6};

    (void)state;
    for (size_t len = 1; len <= sizeof(bytes); len++) {
        for (size_t a = 0; a <= len; a++) {
            for (size_t b = a; b <= len; b++) {
                struct slice pieces[] = {
                    {bytes, a}, {bytes + a, b - a}, {NULL, 0}, {bytes + b, len - b}};

                expect_data(SSE_BASE64, pieces, ARRAY_COUNT(pieces), slice_of(wanted[len - 1]));
            }
        }
    }
}

/* Bytes of text that belong to no character become U+FFFD, wherever the pieces part. */
static void test_text_becomes_utf8(void **state)
{
    static const struct {
        const char *text;
        const char *wanted;
    } cases[] = {
        {"\xc3\xa9", "\xc3\xa9"},
        {"\xc3", "\xef\xbf\xbd"},
        {"\xff\xfe", "\xef\xbf\xbd\xef\xbf\xbd"},
        {"a\xe2\x82\nb\xe2\x82\xac\xac"
         "c",
         "a\xef\xbf\xbd\xef\xbf\xbd\nb\xe2\x82\xac\xef\xbf\xbd"
         "c"},
        {"\xe9t\xe9\r\n\xe9", "\xef\xbf\xbdt\xef\xbf\xbd\n\xef\xbf\xbd"},
        {"\xc3\r\xa9", "\xef\xbf\xbd\n\xef\xbf\xbd"},
        {"\xed\xa0\x80", "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd"},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
        struct slice text = slice_of(cases[i].text);

        for (size_t cut = 0; cut <= text.len; cut++) {
            struct slice pieces[] = {{text.ptr, cut}, {text.ptr + cut, text.len - cut}};

            expect_data(SSE_TEXT, pieces, 2, slice_of(cases[i].wanted));
        }
    }
}

/* Empty data makes no event. */
static void test_empty_data_is_nothing(void **state)
{
    struct slice nothing[] = {{NULL, 0}, {"", 0}};

    (void)state;
    buf_clear(&out);
    sse_append_data(&out, SSE_TEXT, nothing, 2);
    sse_append_data(&out, SSE_JSON, nothing, 2);
    sse_append_data(&out, SSE_BASE64, nothing, 0);
    assert_int_equal(out.len, 0);
}

static void expect_control(struct sse_control control, const char *wanted)
{
    buf_clear(&out);
    sse_append_control(&out, &control);
    assert_int_equal(out.len, strlen(wanted));
    assert_memory_equal(out.ptr, wanted, out.len);
}

/* A control event says what PROTOCOL.md 5.8 asks for, and nothing when it is not so. */
static void test_control(void **state)
{
    (void)state;
    expect_control((struct sse_control){.next = SLICE("1_2"), .cursor = 7},
                   "event: control\n"
                   "data:{\"streamNextOffset\":\"1_2\",\"streamCursor\":\"7\"}\n\n");
    expect_control(
        (struct sse_control){.next = SLICE("1"), .cursor = 0, .up_to_date = true},
        "event: control\n"
        "data:{\"streamNextOffset\":\"1\",\"streamCursor\":\"0\",\"upToDate\":true}\n\n");
    expect_control((struct sse_control){.next = SLICE("1"), .cursor = 7, .closed = true},
                   "event: control\n"
                   "data:{\"streamNextOffset\":\"1\",\"upToDate\":true,\"streamClosed\":true}\n\n");
}

/* A heartbeat is seen by proxies and by no reader. */
static void test_heartbeat(void **state)
{
    struct slice rest;

    (void)state;
    buf_clear(&out);
    sse_append_heartbeat(&out);
    rest = buf_slice(&out);
    assert_int_equal(rest.ptr[0], ':');
    assert_false(read_event(&rest).dispatched);
    assert_int_equal(rest.len, 0);
}

/* The encoding goes by the media type, whatever its case and parameters. */
static void test_encoding_of(void **state)
{
    (void)state;
    assert_int_equal(sse_encoding_of(SLICE("text/plain")), SSE_TEXT);
    assert_int_equal(sse_encoding_of(SLICE("Text/HTML; charset=utf-8")), SSE_TEXT);
    assert_int_equal(sse_encoding_of(SLICE("application/json")), SSE_JSON);
    assert_int_equal(sse_encoding_of(SLICE(" APPLICATION/JSON ;x=y")), SSE_JSON);
    assert_int_equal(sse_encoding_of(SLICE("application/jsonl")), SSE_BASE64);
    assert_int_equal(sse_encoding_of(SLICE("application/x-ndjson")), SSE_BASE64);
    assert_int_equal(sse_encoding_of(SLICE("application/octet-stream; a=text/x")), SSE_BASE64);
    assert_int_equal(sse_encoding_of(SLICE("text")), SSE_BASE64);
    assert_int_equal(sse_encoding_of(SLICE("")), SSE_BASE64);
    assert_int_equal(sse_encoding_of((struct slice){NULL, 0}), SSE_BASE64);
}

/* An event that does not fit fails the buffer and writes past nothing. */
static void test_buffer_too_small(void **state)
{
    struct slice piece = SLICE("0123456789\n0123456789");

    (void)state;
    for (size_t max = 0; max < 60; max++) {
        for (int encoding = SSE_TEXT; encoding <= SSE_BASE64; encoding++) {
            struct buf small;

            buf_init(&small, max);
            sse_append_data(&small, (enum sse_encoding)encoding, &piece, 1);
            assert_true(small.failed || small.len <= max);
            buf_finish(&small);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_text_comes_back),   cmocka_unit_test(test_no_forged_events),
        cmocka_unit_test(test_json_is_an_array),  cmocka_unit_test(test_base64_over_pieces),
        cmocka_unit_test(test_text_becomes_utf8), cmocka_unit_test(test_empty_data_is_nothing),
        cmocka_unit_test(test_control),           cmocka_unit_test(test_heartbeat),
        cmocka_unit_test(test_encoding_of),       cmocka_unit_test(test_buffer_too_small),
    };
    int failed;

    buf_init(&out, 1 << 20);
    failed = UNIT_RUN(tests);
    buf_finish(&out);
    return failed;
}
