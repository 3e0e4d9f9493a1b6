/* The protocol's request headers. */
#include "serve/fields.c"

#include "base/number.h"

#include "unit/serve/request_of.h"

#define PRODUCER(id, epoch, seq) \
    "Producer-Id: " id "\r\nProducer-Epoch: " epoch "\r\nProducer-Seq: " seq "\r\n"

/* Only the word true closes, in any case; the field may not be doubled. */
static void reads_closed(void **state)
{
    struct request_of r;
    struct errmsg msg = {{0}};
    const char *no[] = {"",
                        "Stream-Closed:\r\n",
                        "Stream-Closed: false\r\n",
                        "Stream-Closed: yes\r\n",
                        "Stream-Closed: 1\r\n",
                        "Stream-Closed: truee\r\n"};
    bool closed = false;

    (void)state;
    assert_int_equal(fields_closed(request_of(&r, "stream-closed: TrUe\r\n"), &closed, &msg), 0);
    assert_true(closed);
    for (size_t i = 0; i < ARRAY_COUNT(no); i++) {
        assert_int_equal(fields_closed(request_of(&r, no[i]), &closed, &msg), 0);
        assert_false(closed);
    }
    assert_int_equal(fields_closed(request_of(&r, "Stream-Closed: true\r\nStream-Closed: true\r\n"),
                                   &closed, &msg),
                     ERR_INVALID);
}

/* A TTL is plain digits within its bounds. */
static void reads_ttl(void **state)
{
    struct request_of r;
    struct errmsg msg = {{0}};
    struct stream_expiry expiry;
    const char *bad[] = {"+60",
                         "060",
                         "60.0",
                         "6e1",
                         "-1",
                         "6 0",
                         "",
                         "abc",
                         "0x10",
                         "00",
                         "18446744073709551615",
                         "9223372036854775807",
                         "99999999999999999999"};

    (void)state;
    assert_int_equal(fields_expiry(request_of(&r, "Stream-TTL: 0\r\n"), &expiry, &msg), 0);
    assert_true(expiry.has_ttl);
    assert_int_equal(expiry.ttl_seconds, 0);
    assert_int_equal(fields_expiry(request_of(&r, "Stream-TTL: 3155760000\r\n"), &expiry, &msg), 0);
    assert_int_equal(expiry.ttl_seconds, 3155760000);
    for (size_t i = 0; i < ARRAY_COUNT(bad); i++) {
        char line[64];

        (void)snprintf(line, sizeof(line), "Stream-TTL: %s\r\n", bad[i]);
        assert_int_equal(fields_expiry(request_of(&r, line), &expiry, &msg), ERR_INVALID);
    }
}

/* An instant is RFC 3339; both kinds of expiry at once are refused; none is none. */
static void reads_expires_at(void **state)
{
    struct request_of r;
    struct errmsg msg = {{0}};
    struct stream_expiry expiry;

    (void)state;
    assert_int_equal(
        fields_expiry(request_of(&r, "Stream-Expires-At: 1970-01-01T01:00:01+01:00\r\n"), &expiry,
                      &msg),
        0);
    assert_true(expiry.has_expires_at && !expiry.has_ttl);
    assert_int_equal(expiry.expires_at_ms, 1000);
    assert_int_equal(
        fields_expiry(request_of(&r, "Stream-Expires-At: tomorrow\r\n"), &expiry, &msg),
        ERR_INVALID);
    assert_int_equal(
        fields_expiry(
            request_of(&r, "Stream-TTL: 1\r\nStream-Expires-At: 2030-01-01T00:00:00Z\r\n"), &expiry,
            &msg),
        ERR_INVALID);
    assert_int_equal(fields_expiry(request_of(&r, ""), &expiry, &msg), 0);
    assert_false(expiry.has_ttl || expiry.has_expires_at);
}

/* A producer is three headers or none. */
static void reads_producer(void **state)
{
    struct request_of r;
    struct errmsg msg = {{0}};
    struct record_producer producer = {.epoch = 9};
    const char *partial[] = {"Producer-Id: p\r\n",
                             "Producer-Epoch: 0\r\n",
                             "Producer-Seq: 0\r\n",
                             "Producer-Id: p\r\nProducer-Epoch: 0\r\n",
                             "Producer-Id: p\r\nProducer-Seq: 0\r\n",
                             "Producer-Epoch: 0\r\nProducer-Seq: 0\r\n",
                             PRODUCER("", "0", "0"),
                             PRODUCER("p", "0", "0") "Producer-Seq: 1\r\n"};

    (void)state;
    for (size_t i = 0; i < ARRAY_COUNT(partial); i++) {
        assert_int_equal(fields_producer(request_of(&r, partial[i]), &producer, &msg), ERR_INVALID);
        assert_int_equal(producer.epoch, 9);
    }
    assert_int_equal(fields_producer(request_of(&r, ""), &producer, &msg), 0);
    assert_int_equal(producer.id.len, 0);
    assert_int_equal(
        fields_producer(request_of(&r, PRODUCER("p q", "3", "9007199254740991")), &producer, &msg),
        0);
    assert_true(slice_equal(producer.id, SLICE("p q")));
    assert_int_equal(producer.epoch, 3);
    assert_int_equal(producer.seq, NUMBER_JS_MAX);
}

/* Numbers that a lenient parser would take are refused in both places. */
static void refuses_loose_integers(void **state)
{
    struct request_of r;
    struct errmsg msg = {{0}};
    struct record_producer producer;
    const char *bad[] = {"1abc", "1e3", "1.5", "0x10", "-1", "9007199254740992", "00", "", "+1"};

    (void)state;
    for (size_t i = 0; i < ARRAY_COUNT(bad); i++) {
        char lines[256];

        (void)snprintf(lines, sizeof(lines), PRODUCER("p", "%s", "0"), bad[i]);
        assert_int_equal(fields_producer(request_of(&r, lines), &producer, &msg), ERR_INVALID);
        (void)snprintf(lines, sizeof(lines), PRODUCER("p", "0", "%s"), bad[i]);
        assert_int_equal(fields_producer(request_of(&r, lines), &producer, &msg), ERR_INVALID);
    }
}

/* Stream-Seq is any bytes, but some. */
static void reads_seq(void **state)
{
    struct request_of r;
    struct errmsg msg = {{0}};
    struct slice seq;
    bool has = true;

    (void)state;
    assert_int_equal(fields_seq(request_of(&r, ""), &has, &seq, &msg), 0);
    assert_false(has);
    assert_int_equal(fields_seq(request_of(&r, "Stream-Seq: a b\r\n"), &has, &seq, &msg), 0);
    assert_true(has && slice_equal(seq, SLICE("a b")));
    assert_int_equal(fields_seq(request_of(&r, "Stream-Seq:\r\n"), &has, &seq, &msg), ERR_INVALID);
}

static int fork_of(const char *lines, struct stream_create_request *create, char *name)
{
    struct request_of r;
    struct errmsg msg = {{0}};

    *create = (struct stream_create_request){.closed = false};
    return fields_fork(request_of(&r, lines), name, create, &msg);
}

/* A fork names its source by path, canonically, and its place by offset and sub-offset. */
static void reads_fork(void **state)
{
    struct stream_create_request create;
    char name[STREAM_NAME_BYTES_MAX];

    (void)state;
    assert_int_equal(fork_of("", &create, name), 0);
    assert_int_equal(create.forked_from.len, 0);
    assert_int_equal(fork_of("Stream-Forked-From: /v1/stream/a%62\r\nStream-Fork-Offset: -1\r\n"
                             "Stream-Fork-Sub-Offset: 3\r\n",
                             &create, name),
                     0);
    assert_true(slice_equal(create.forked_from, SLICE("ab")));
    assert_true(create.has_fork_offset && create.has_sub_offset);
    assert_int_equal(create.fork_offset.kind, OFFSET_START);
    assert_int_equal(create.sub_offset, 3);
    assert_int_equal(fork_of("Stream-Forked-From: /v1/stream/a?offset=-1\r\n", &create, name), 0);
    assert_true(slice_equal(create.forked_from, SLICE("a")));
}

/* Places without a source, sources elsewhere, and loose numbers are refused. */
static void refuses_forks(void **state)
{
    struct stream_create_request create;
    char name[STREAM_NAME_BYTES_MAX];
    const char *bad[] = {
        "Stream-Fork-Offset: -1\r\n",
        "Stream-Fork-Sub-Offset: 0\r\n",
        "Stream-Forked-From:\r\n",
        "Stream-Forked-From: a\r\n",
        "Stream-Forked-From: /etc/passwd\r\n",
        "Stream-Forked-From: http://x/v1/stream/a\r\n",
        "Stream-Forked-From: /v1/stream/a/../b\r\n",
        "Stream-Forked-From: /v1/stream/%zz\r\n",
        "Stream-Forked-From: /v1/stream/a\r\nStream-Forked-From: /v1/stream/a\r\n",
        "Stream-Forked-From: /v1/stream/a\r\nStream-Fork-Offset: x\r\n",
        "Stream-Forked-From: /v1/stream/a\r\nStream-Fork-Sub-Offset: 1\r\n",
        ("Stream-Forked-From: /v1/stream/a\r\n"
         "Stream-Fork-Offset: -1\r\nStream-Fork-Sub-Offset: -1\r\n"),
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_COUNT(bad); i++) {
        assert_int_equal(fork_of(bad[i], &create, name), ERR_INVALID);
    }
    assert_int_equal(fork_of("Stream-Forked-From: /v1/stream/__ds/a\r\n", &create, name),
                     ERR_NOTFOUND);
    assert_int_equal(fork_of("Stream-Forked-From: /v1/stream/\r\n", &create, name), ERR_NOTFOUND);
}

/* An empty type is none; a list, a doubled or an endless one is refused. */
static void reads_content_type(void **state)
{
    struct request_of r;
    struct errmsg msg = {{0}};
    struct slice type;
    char line[512] = "Content-Type: text/";

    (void)state;
    assert_int_equal(fields_content_type(request_of(&r, ""), &type, &msg), 0);
    assert_int_equal(type.len, 0);
    assert_int_equal(fields_content_type(request_of(&r, "Content-Type:\r\n"), &type, &msg), 0);
    assert_int_equal(type.len, 0);
    assert_int_equal(fields_content_type(request_of(&r, "Content-Type: a/b \r\n"), &type, &msg), 0);
    assert_true(slice_equal(type, SLICE("a/b")));
    assert_int_equal(fields_content_type(
                         request_of(&r, "Content-Type: a/b\r\nContent-Type: a/b\r\n"), &type, &msg),
                     ERR_INVALID);
    memset(line + 19, 'x', 300);
    memcpy(line + 319, "\r\n", 3);
    assert_int_equal(fields_content_type(request_of(&r, line), &type, &msg), ERR_INVALID);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads_closed),
        cmocka_unit_test(reads_ttl),
        cmocka_unit_test(reads_expires_at),
        cmocka_unit_test(reads_producer),
        cmocka_unit_test(refuses_loose_integers),
        cmocka_unit_test(reads_seq),
        cmocka_unit_test(reads_fork),
        cmocka_unit_test(refuses_forks),
        cmocka_unit_test(reads_content_type),
    };

    return UNIT_RUN(tests);
}
