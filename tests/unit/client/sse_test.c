/* The parser of server-sent events: the same tokens however the bytes are cut, garbage refused, and
 * no more memory than allowed. */
#include "client/sse.c"

#include "unit/base/unit.h"

/* The tokens of `text` in pieces of `step` bytes, written as "D(...)", "." for the end of a data
 * event, "C(...)". The parts of one event are joined. */
static int parse(struct slice text, size_t step, struct buf *out, struct errmsg *msg)
{
    struct sse_parser p;
    bool inside = false;
    int rc = 0;

    sse_parser_init(&p);
    for (size_t at = 0; at < text.len && rc >= 0; at += step) {
        struct slice piece = {text.ptr + at, text.len - at < step ? text.len - at : step};
        struct slice bytes = {NULL, 0};

        while ((rc = sse_parser_take(&p, &piece, &bytes, msg)) > 0) {
            if (rc == SSE_TOKEN_DATA) {
                buf_append(out, inside ? SLICE("") : SLICE("D("));
                buf_append(out, bytes);
                inside = true;
                continue;
            }
            buf_append(out, inside ? SLICE(")") : SLICE(""));
            inside = false;
            if (rc == SSE_TOKEN_CONTROL) {
                buf_append(out, SLICE("C("));
                buf_append(out, bytes);
                buf_append_char(out, ')');
            } else {
                buf_append_char(out, '.');
            }
        }
        assert_true(rc < 0 || piece.len == 0);
    }
    sse_parser_finish(&p);
    return rc;
}

static void assert_tokens(const char *text, const char *want)
{
    for (size_t step = 1; step <= strlen(text) + 1; step++) {
        struct errmsg msg = {.text = ""};
        struct buf out;

        buf_init(&out, 1 << 20);
        if (parse(slice_of(text), step, &out, &msg) != 0) {
            fail_msg("%s by %zu: %s", text, step, msg.text);
        }
        if (!slice_equal(buf_slice(&out), slice_of(want))) {
            fail_msg("%s by %zu: %.*s", text, step, (int)out.len, out.ptr);
        }
        buf_finish(&out);
    }
}

/* Data and control events, as the protocol shows them. */
static void test_events(void **state)
{
    (void)state;
    assert_tokens("", "");
    assert_tokens("event: data\ndata: [\ndata: {\"k\":\"v\"},\ndata: {\"k\":\"w\"}\ndata: ]\n\n"
                  "event: control\ndata: {\"streamNextOffset\":\"1\"}\n\n",
                  "D([\n{\"k\":\"v\"},\n{\"k\":\"w\"}\n]).C({\"streamNextOffset\":\"1\"})");
    assert_tokens("event:data\ndata:a\n\nevent:control\ndata:{}\n\n", "D(a).C({})");
    assert_tokens("event: control\ndata: {\ndata: }\n\n", "C({\n})");
}

/* CR, LF and CRLF end lines, also mixed and cut in two; other line separators are plain bytes. */
static void test_line_ends(void **state)
{
    (void)state;
    assert_tokens("event: data\r\ndata: a\r\ndata: b\r\n\r\n", "D(a\nb).");
    assert_tokens("event: data\rdata: a\rdata: b\r\r", "D(a\nb).");
    assert_tokens("event: data\rdata: a\r\ndata: b\n\revent: control\r\ndata: {}\r\r\n",
                  "D(a\nb).C({})");
    assert_tokens("event: data\ndata: a\xc2\x85"
                  "b\xe2\x80\xa8"
                  "c\n\n",
                  "D(a\xc2\x85"
                  "b\xe2\x80\xa8"
                  "c).");
}

/* One space behind the colon does not count; empty lines of data do. */
static void test_spaces_and_empty_lines(void **state)
{
    (void)state;
    assert_tokens("event: data\ndata:  two\ndata:\tx\ndata:y \n\n", "D( two\n\tx\ny ).");
    assert_tokens("event: data\ndata:\ndata: \ndata\ndata:z\n\n", "D(\n\n\nz).");
    assert_tokens("event: data\ndata:\n\n", ".");
    assert_tokens("event: data\n\nevent: control\n\n", "");
    assert_tokens("event: control\ndata:\n\n", "C()");
    assert_tokens("event:  data\ndata: a\n\n", "");
}

/* Comments, other fields and other events do not count; a byte order mark may come first. */
static void test_ignored(void **state)
{
    (void)state;
    assert_tokens(":\n\n: a comment\nevent: data\nid: 7\nretry: 5\n:x\ndata: a\nfoo-bar: b\n\n",
                  "D(a).");
    assert_tokens("event: future\ndata: {}\n\nevent: data\ndata: a\n\n", "D(a).");
    assert_tokens("event: control-event-of-the-future\ndata: {}\n\ndata: message\n\n", "");
    assert_tokens("event: datadatadatadatadatadata\ndata: a\n\n", "");
    assert_tokens("event: data\nevent: future\ndata: a\n\nevent\ndata: a\n\n", "");
    assert_tokens("\xef\xbb\xbf"
                  "event: data\ndata: a\n\n",
                  "D(a).");
    assert_tokens("\n\n\r\r\n", "");
}

/* The name of an event may stand behind its data, and the last name counts. */
static void test_name_behind_data(void **state)
{
    (void)state;
    assert_tokens("data: a\ndata: b\nevent: data\ndata: c\n\n", "D(a\nb\nc).");
    assert_tokens("data: {}\nevent: control\n\n", "C({})");
    assert_tokens("data: a\nevent: other\n\nevent: data\ndata: b\n\n", "D(b).");
    assert_tokens("event: other\nevent: data\ndata: a\nevent: data\ndata: b\n\n", "D(a\nb).");
}

/* An event whose end does not come is not whole. */
static void test_breaks_off(void **state)
{
    (void)state;
    assert_tokens("event: data\ndata: a\nda", "D(a");
    assert_tokens("event: data\ndata: a\n", "D(a");
    assert_tokens("event: control\ndata: {}\n", "");
}

/* Lines that do not begin like a field are garbage, and so is a data event that becomes another. */
static void test_garbage(void **state)
{
    static const char *const cases[] = {
        "<html>\n",
        "{\"error\":\"x\"}\n",
        "[1]\n",
        "\x01",
        "\x1f\x8b",
        " data: a\n",
        "event: data\ndata: a\n\n\tdata: b\n",
        "event data\n",
        "\xef\xbb"
        "data: a\n",
        "\xef\xbb\xbf\xef\xbb\xbf"
        "data: a\n",
        "averyveryverylongname: a\n",
        "event: data\ndata: a\nevent: control\n\n",
        "\xff\xff\xff",
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
        for (size_t step = 1; step <= strlen(cases[i]); step++) {
            struct errmsg msg = {.text = ""};
            struct buf out;

            buf_init(&out, 1000);
            if (parse(slice_of(cases[i]), step, &out, &msg) != ERR_INVALID) {
                fail_msg("%s by %zu was taken", cases[i], step);
            }
            assert_true(msg.text[0] != '\0');
            buf_finish(&out);
        }
    }
}

/* Data of any size pass through; what must be held is bounded. */
static void test_large(void **state)
{
    size_t len = 3 * (size_t)SSE_HELD_BYTES_MAX;
    char *line = test_malloc(len);
    static const struct {
        const char *before;
        bool taken;
    } cases[] = {{"event: data\ndata: ", true},
                 {"event: other\ndata: ", true},
                 {":", true},
                 {"event: ", true},
                 {"id: ", true},
                 {"event: control\ndata: ", false},
                 {"data: ", false}};

    (void)state;
    memset(line, 'x', len);
    for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
        struct sse_parser p;
        struct slice bytes;
        struct errmsg msg = {.text = ""};
        struct slice rest = slice_of(cases[i].before);
        int rc;

        sse_parser_init(&p);
        assert_int_equal(sse_parser_take(&p, &rest, &bytes, &msg), 0);
        rest = (struct slice){line, len};
        while ((rc = sse_parser_take(&p, &rest, &bytes, &msg)) > 0) {
        }
        assert_int_equal(rc, cases[i].taken ? 0 : ERR_TOOBIG);
        assert_true(p.held.cap <= SSE_HELD_BYTES_MAX);
        sse_parser_finish(&p);
    }
    test_free(line);
}

static void assert_base64(const char *text, const char *want, size_t want_len)
{
    for (size_t step = 1; step <= strlen(text) + 1; step++) {
        struct sse_base64 d = {.bits = 0};
        char out[300];
        size_t len = 0;

        for (size_t at = 0; at < strlen(text); at += step) {
            struct slice piece = {text + at, strlen(text) - at < step ? strlen(text) - at : step};
            size_t more = 0;
            char room[SSE_BASE64_ROOM(100)];

            assert_int_equal(sse_base64_take(&d, piece, room, &more, NULL), 0);
            assert_true(more <= SSE_BASE64_ROOM(piece.len));
            memcpy(out + len, room, more);
            len += more;
        }
        assert_true(sse_base64_whole(&d));
        assert_int_equal(len, want_len);
        assert_memory_equal(out, want, want_len);
    }
}

/* RFC 4648 section 10, line ends anywhere, every cut. */
static void test_base64(void **state)
{
    (void)state;
    assert_base64("", "", 0);
    assert_base64("Zg==", "f", 1);
    assert_base64("Zm8=", "fo", 2);
    assert_base64("Zm9v", "foo", 3);
    assert_base64("Zm9vYg==", "foob", 4);
    assert_base64("Zm9vYmE=", "fooba", 5);
    assert_base64("Z\nm9\r\nvYmFy\n", "foobar", 6);
    assert_base64("AP/+\n+/8=", "\x00\xff\xfe\xfb\xff", 5);
}

/* What is no base64, and what breaks off. */
static void test_base64_refuses(void **state)
{
    static const char *const bad[] = {"Zg=a", "=",    "Z===", "Zg==Zg==", "Zm 9v", "Zm9v=",
                                      "Zm-_", "Zh==", "Zm9=", "\xff",     "Zg===", "Zm9vY=="};

    (void)state;
    for (size_t i = 0; i < ARRAY_COUNT(bad); i++) {
        struct sse_base64 d = {.bits = 0};
        char out[64];
        size_t len;
        int rc = sse_base64_take(&d, slice_of(bad[i]), out, &len, NULL);

        if (rc == 0 && sse_base64_whole(&d)) {
            fail_msg("%s was taken", bad[i]);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_events),
        cmocka_unit_test(test_line_ends),
        cmocka_unit_test(test_spaces_and_empty_lines),
        cmocka_unit_test(test_ignored),
        cmocka_unit_test(test_name_behind_data),
        cmocka_unit_test(test_breaks_off),
        cmocka_unit_test(test_garbage),
        cmocka_unit_test(test_large),
        cmocka_unit_test(test_base64),
        cmocka_unit_test(test_base64_refuses),
    };

    return UNIT_RUN(tests);
}
