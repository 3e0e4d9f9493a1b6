/* Heads of answers, also malformed ones. */
#include "client/http_head.c"

#include "unit/base/unit.h"

#include <stdio.h>

struct parsed {
    struct call call;
    struct http_head head;
};

/* Feeds lines that end with "\n"; each becomes one with CR LF. */
static void feed(struct parsed *p, const char *lines)
{
    char line[512];
    struct slice rest = slice_of(lines);
    struct slice one;

    *p = (struct parsed){.call = {.verb = CALL_READ}};
    call_begin(&p->call);
    while (slice_split(&rest, '\n', &one) && rest.ptr != NULL) {
        int len = snprintf(line, sizeof(line), "%.*s\r\n", (int)one.len, one.ptr);

        assert_true(http_head_line(&p->head, &p->call, (struct slice){line, (size_t)len}));
    }
}

/* Every field that means something to a client, in any case and with white space around. */
static void test_all_fields(void **state)
{
    struct parsed p;
    const struct stream_info *info = &p.call.result.info;

    (void)state;
    feed(&p, "HTTP/1.1 200 OK\ncontent-type:  text/Event-Stream; charset=utf-8 \n"
             "STREAM-NEXT-OFFSET: 0_12\nStream-Cursor: c1\nETag: \"e\"\nStream-Closed: TRUE\n"
             "Stream-Up-To-Date: true\nStream-TTL: 60\nStream-Expires-At: 2030-01-01T00:00:00Z\n"
             "Producer-Epoch: 3\nProducer-Seq: 9\nProducer-Expected-Seq: 4\n"
             "stream-sse-data-encoding: base64\nX-Other: 1\nStream-Unheard-Of: x\n\n");
    assert_true(p.head.whole);
    assert_true(p.head.is_event_stream);
    assert_null(p.head.malformed);
    assert_int_equal(info->status, 200);
    assert_string_equal(info->content_type, "text/Event-Stream; charset=utf-8");
    assert_string_equal(info->next_offset, "0_12");
    assert_string_equal(info->cursor, "c1");
    assert_string_equal(info->etag, "\"e\"");
    assert_string_equal(info->expires_at, "2030-01-01T00:00:00Z");
    assert_int_equal(info->closed, 1);
    assert_int_equal(info->ttl_seconds, 60);
    assert_int_equal(info->producer_epoch, 3);
    assert_int_equal(info->producer_seq, 9);
    assert_int_equal(p.call.result.error.expected_seq, 4);
    assert_true(p.call.result.up_to_date);
    assert_true(p.call.result.base64);
}

/* What was not said is empty or -1; "closed" is said by "true" alone. */
static void test_absent(void **state)
{
    struct parsed p;

    (void)state;
    feed(&p, "HTTP/1.1 204 No Content\nStream-Closed: yes\nStream-Up-To-Date: 1\n\n");
    assert_int_equal(p.call.result.info.closed, 0);
    assert_false(p.call.result.up_to_date);
    assert_int_equal(p.call.result.info.ttl_seconds, -1);
    assert_int_equal(p.call.result.info.producer_epoch, -1);
    assert_string_equal(p.call.result.info.next_offset, "");
    assert_int_equal(http_head_retry_after(&p.head, 0), -1);
}

/* An interim answer is forgotten, and trailers are none of the head's. */
static void test_interim_and_trailer(void **state)
{
    struct parsed p;

    (void)state;
    feed(&p,
         "HTTP/1.1 103 Early Hints\nStream-Closed: true\nStream-Next-Offset: 1\n\n"
         "HTTP/1.1 200 OK\nStream-Next-Offset: 2\nStream-Next-Offset: 3\n\nStream-Closed: true\n");
    assert_int_equal(p.head.status, 200);
    assert_int_equal(p.call.result.info.closed, 0);
    assert_string_equal(p.call.result.info.next_offset, "2");
}

/* What the protocol does not allow is noticed. */
static void test_malformed(void **state)
{
    static const char *const fields[] = {
        "Stream-Next-Offset:",      "Stream-Next-Offset: a\x01z",
        "Stream-TTL: -1",           "Stream-TTL: soon",
        "Producer-Epoch: 1.5",      "Producer-Seq: 99999999999999999",
        "Producer-Expected-Seq: x", "Stream-SSE-Data-Encoding: gzip",
    };
    struct parsed p;
    char lines[256];

    (void)state;
    for (size_t i = 0; i < ARRAY_COUNT(fields); i++) {
        (void)snprintf(lines, sizeof(lines), "HTTP/1.1 200 OK\n%s\n\n", fields[i]);
        feed(&p, lines);
        if (p.head.malformed == NULL) {
            print_error("taken: %s\n", fields[i]);
        }
        assert_non_null(p.head.malformed);
    }
}

/* An offset of 127 bytes is the longest that fits. */
static void test_long_offset(void **state)
{
    struct parsed p;
    char offset[STREAM_OFFSET_BYTES + 1];
    char lines[400];

    (void)state;
    memset(offset, '7', sizeof(offset));
    offset[STREAM_OFFSET_BYTES - 1] = '\0';
    (void)snprintf(lines, sizeof(lines), "HTTP/1.1 200 OK\nStream-Next-Offset: %s\n\n", offset);
    feed(&p, lines);
    assert_null(p.head.malformed);
    assert_string_equal(p.call.result.info.next_offset, offset);
    (void)snprintf(lines, sizeof(lines), "HTTP/1.1 200 OK\nStream-Next-Offset: 7%s\n\n", offset);
    feed(&p, lines);
    assert_non_null(p.head.malformed);
}

/* A head has an end. */
static void test_endless(void **state)
{
    struct call call = {.verb = CALL_READ};
    struct http_head head = {0};
    unsigned lines = 0;

    (void)state;
    call_begin(&call);
    while (http_head_line(&head, &call, SLICE("X-Padding: 0123456789\r\n"))) {
        lines++;
        assert_true(lines < CLIENT_HEAD_BYTES_MAX);
    }
    assert_int_equal(lines, CLIENT_HEAD_BYTES_MAX / 21);
}

static void assert_retry_after(const char *fields, long expected_ms)
{
    struct parsed p;
    char lines[256];

    (void)snprintf(lines, sizeof(lines), "HTTP/1.1 503 No\n%s\n\n", fields);
    feed(&p, lines);
    assert_int_equal(http_head_retry_after(&p.head, 1000000000), expected_ms);
}

/* Seconds or a date, which counts from the server's own clock where it tells it. */
static void test_retry_after(void **state)
{
    (void)state;
    assert_retry_after("Retry-After: 0", 0);
    assert_retry_after("Retry-After: 7", 7000);
    assert_retry_after("Retry-After: -7", -1);
    assert_retry_after("Retry-After: soon", -1);
    assert_retry_after("Retry-After: Sun, 09 Sep 2001 01:46:45 GMT", 5000);
    assert_retry_after("Retry-After: Sun, 09 Sep 2001 01:46:30 GMT", 0);
    assert_retry_after("Retry-After: Sun, 09 Sep 2001 01:46:45 GMT\n"
                       "Date: Sun, 09 Sep 2001 01:46:43 GMT",
                       2000);
    assert_retry_after("Retry-After: Fri, 31 Dec 9999 23:59:59 GMT", 1000000000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_all_fields),          cmocka_unit_test(test_absent),
        cmocka_unit_test(test_interim_and_trailer), cmocka_unit_test(test_malformed),
        cmocka_unit_test(test_long_offset),         cmocka_unit_test(test_endless),
        cmocka_unit_test(test_retry_after),
    };

    return UNIT_RUN(tests);
}
