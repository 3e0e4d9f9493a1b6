/* Request bodies: every framing, every split, the caps, and the budget, on a connection that is a
 * string in memory. */
#include "serve/body.c"

#include "unit/base/unit.h"

/* What the peer has sent and has not been taken. */
static struct {
    struct slice input; /* visible to conn_input */
    char *into;         /* conn_read_into */
    size_t into_len;
} wire;

struct slice conn_input(const struct conn *c)
{
    (void)c;
    return wire.input;
}

void conn_consume(struct conn *c, size_t count)
{
    (void)c;
    assert_true(count <= wire.input.len);
    wire.input.ptr += count;
    wire.input.len -= count;
}

size_t conn_into_missing(const struct conn *c)
{
    (void)c;
    return wire.into_len;
}

/* Moves what has come to where the reader wants it. */
static void pour(void)
{
    size_t count = wire.input.len < wire.into_len ? wire.input.len : wire.into_len;

    if (count > 0) {
        memcpy(wire.into, wire.input.ptr, count);
        wire.into += count;
        wire.into_len -= count;
        conn_consume(NULL, count);
    }
}

void conn_read_into(struct conn *c, void *into, size_t len)
{
    (void)c;
    wire.into = into;
    wire.into_len = len;
    pour();
}

static struct serve_config config = {.body_bytes_max = 8 * MIB};
static struct server server = {.config = &config, .body_bytes_total_max = 16 * MIB};

static int begin(struct body *b, enum http_body_kind kind, uint64_t length)
{
    static struct http_request request;

    request.body = kind;
    request.content_length = length;
    wire.input = (struct slice){NULL, 0};
    wire.into_len = 0;
    return body_begin(b, &server, &request);
}

/* Feeds `text` in parts of `part` bytes. */
static int feed(struct body *b, struct slice text, size_t part)
{
    int code = 0;

    while (text.len > 0 && code == 0 && !b->whole) {
        size_t count = text.len < part ? text.len : part;

        wire.input = (struct slice){text.ptr, count};
        pour();
        if (wire.into_len == 0) {
            code = body_feed(b, &server, NULL);
        }
        text.ptr += count;
        text.len -= count;
    }
    return code;
}

/* A body by length arrives whole, however it is cut, and its memory is given back. */
static void reads_length(void **state)
{
    static char bytes[5 * MIB];

    (void)state;
    for (size_t i = 0; i < sizeof(bytes); i++) {
        bytes[i] = (char)(i * 31 >> 3);
    }
    const size_t lengths[] = {1, 2, 4096, 4097, MIB, MIB + 1, sizeof(bytes)};
    const size_t parts[] = {1000, 65536, sizeof(bytes)};

    for (size_t i = 0; i < ARRAY_COUNT(lengths); i++) {
        for (size_t j = 0; j < ARRAY_COUNT(parts); j++) {
            struct body b;

            assert_int_equal(begin(&b, HTTP_BODY_LENGTH, lengths[i]), 0);
            assert_int_equal(feed(&b, (struct slice){bytes, lengths[i]}, parts[j]), 0);
            assert_true(b.whole);
            assert_int_equal(b.block->len, lengths[i]);
            assert_memory_equal(b.block->data, bytes, lengths[i]);
            assert_int_equal(body_unread(&b), 0);
            body_finish(&b, &server);
            assert_int_equal(atomic_load(&server.body_bytes), 0);
        }
    }
}

/* An announced length costs a few KiB, which the budget does not feel; then memory follows what has
 * come, within twice that. */
static void trusts_no_length(void **state)
{
    static char bytes[6 * MIB];
    struct body b;

    (void)state;
    assert_int_equal(begin(&b, HTTP_BODY_LENGTH, sizeof(bytes)), 0);
    assert_int_equal(feed(&b, (struct slice){bytes, 1}, 1), 0);
    assert_int_equal(b.block->cap, 4 * KIB);
    assert_int_equal(b.charged, 0);
    for (size_t sent = 1; sent < sizeof(bytes);) {
        size_t part = sent + 10000 < sizeof(bytes) ? 10000 : sizeof(bytes) - sent;

        assert_int_equal(feed(&b, (struct slice){bytes, part}, 700), 0);
        sent += part;
        assert_true(b.block->cap <= 2 * sent + 4 * KIB);
        assert_true(b.charged == 0 || b.charged == b.block->cap);
    }
    assert_true(b.whole);
    assert_int_equal(b.block->cap, sizeof(bytes));
    body_finish(&b, &server);
}

/* What has come with the head gets its exact size at once; of a longer body, room for what is
 * there. */
static void sizes_by_what_is_there(void **state)
{
    static char bytes[16 * KIB];
    struct body b;

    (void)state;
    assert_int_equal(begin(&b, HTTP_BODY_LENGTH, 9000), 0);
    assert_int_equal(feed(&b, (struct slice){bytes, 9000}, 9000), 0);
    assert_true(b.whole);
    assert_int_equal(b.block->cap, 9000);
    body_finish(&b, &server);
    assert_int_equal(begin(&b, HTTP_BODY_LENGTH, MIB), 0);
    wire.input = (struct slice){bytes, sizeof(bytes)};
    assert_int_equal(body_feed(&b, &server, NULL), 0);
    assert_int_equal(b.block->cap, 32 * KIB);
    assert_int_equal(b.len, 16 * KIB);
    body_finish(&b, &server);
}

/* Ten thousand uploads that announce much and send a byte leave the budget to the others. */
static void bears_idle_uploads(void **state)
{
    static struct body idle[10000];
    struct body b;

    (void)state;
    for (size_t i = 0; i < ARRAY_COUNT(idle); i++) {
        assert_int_equal(begin(&idle[i], HTTP_BODY_LENGTH, 8 * MIB), 0);
        assert_int_equal(feed(&idle[i], SLICE("x"), 1), 0);
    }
    assert_int_equal(begin(&b, HTTP_BODY_LENGTH, 5000), 0);
    for (int i = 0; i < 5; i++) {
        static const char part[1000];

        assert_int_equal(feed(&b, (struct slice){part, sizeof(part)}, sizeof(part)), 0);
    }
    assert_true(b.whole);
    body_finish(&b, &server);
    for (size_t i = 0; i < ARRAY_COUNT(idle); i++) {
        body_finish(&idle[i], &server);
    }
    assert_int_equal(atomic_load(&server.body_bytes), 0);
}

/* Chunks are joined, however the bytes are cut. */
static void reads_chunks(void **state)
{
    const struct slice text = SLICE(
        "5\r\nhello\r\n1;x=y\r\n \r\n00a\r\nbrave new!\r\n0\r\nT: v\r\n\r\n");

    (void)state;
    for (size_t part = 1; part <= text.len; part++) {
        struct body b;

        assert_int_equal(begin(&b, HTTP_BODY_CHUNKED, 0), 0);
        assert_int_equal(feed(&b, text, part), 0);
        assert_true(b.whole);
        assert_int_equal(b.block->len, 16);
        assert_memory_equal(b.block->data, "hello brave new!", 16);
        body_finish(&b, &server);
    }
}

/* Nothing at all is a body too, and needs no memory. */
static void reads_nothing(void **state)
{
    struct body b;

    (void)state;
    assert_int_equal(begin(&b, HTTP_BODY_NONE, 0), 0);
    assert_true(b.whole);
    assert_int_equal(begin(&b, HTTP_BODY_LENGTH, 0), 0);
    assert_true(b.whole && b.block == NULL);
    assert_int_equal(begin(&b, HTTP_BODY_CHUNKED, 0), 0);
    assert_int_equal(feed(&b, SLICE("0\r\n\r\n"), 1), 0);
    assert_true(b.whole && b.block == NULL);
    body_finish(&b, &server);
}

/* Over the cap: told at once by length, as soon as it shows by chunks; exactly at the cap is
 * fine. */
static void caps_bodies(void **state)
{
    struct body b;

    (void)state;
    config.body_bytes_max = 10;
    assert_int_equal(begin(&b, HTTP_BODY_LENGTH, 11), ERR_TOOBIG);
    assert_int_equal(begin(&b, HTTP_BODY_CHUNKED, 0), 0);
    assert_int_equal(feed(&b, SLICE("6\r\nsixsix\r\n5\r\nfives\r\n"), 100), ERR_TOOBIG);
    body_finish(&b, &server);
    assert_int_equal(begin(&b, HTTP_BODY_CHUNKED, 0), 0);
    assert_int_equal(feed(&b, SLICE("6\r\nsixsix\r\n4\r\nfour\r\n0\r\n\r\n"), 100), 0);
    assert_true(b.whole);
    body_finish(&b, &server);
    config.body_bytes_max = 8 * MIB;
}

/* A route may want less, never more, than --max-body. */
static void lowers_the_cap(void **state)
{
    struct body b;

    (void)state;
    assert_int_equal(begin(&b, HTTP_BODY_LENGTH, 11), 0);
    assert_int_equal(body_limit(&b, 10), ERR_TOOBIG);
    assert_int_equal(begin(&b, HTTP_BODY_LENGTH, 10), 0);
    assert_int_equal(body_limit(&b, 10), 0);
    assert_int_equal(begin(&b, HTTP_BODY_CHUNKED, 0), 0);
    assert_int_equal(body_limit(&b, 10), 0);
    assert_int_equal(feed(&b, SLICE("6\r\nsixsix\r\n5\r\nfives\r\n"), 100), ERR_TOOBIG);
    body_finish(&b, &server);
    assert_int_equal(begin(&b, HTTP_BODY_CHUNKED, 0), 0);
    assert_int_equal(body_limit(&b, UINT64_MAX), 0);
    assert_int_equal(b.max, config.body_bytes_max);
    body_finish(&b, &server);
}

/* Malformed chunks are refused. */
static void refuses_chunks(void **state)
{
    const char *bad[] = {"x\r\n", "-1\r\n", "FFFFFFFFFFFFFFFFFF\r\n", "1\r\nab\r\n", "1\nA\r\n"};

    (void)state;
    for (size_t i = 0; i < ARRAY_COUNT(bad); i++) {
        struct body b;

        assert_int_equal(begin(&b, HTTP_BODY_CHUNKED, 0), 0);
        assert_true(feed(&b, slice_of(bad[i]), 100) < 0);
        body_finish(&b, &server);
    }
}

/* Bodies under way share a budget; small ones are not counted; at its end the answer is
 * ERR_BUSY. */
static void keeps_budget(void **state)
{
    struct body small;
    struct body one;
    struct body two;
    static char many[600 * KIB];

    (void)state;
    server.body_bytes_total_max = MIB + 1000;
    assert_int_equal(begin(&small, HTTP_BODY_LENGTH, 4096), 0);
    assert_int_equal(body_feed(&small, &server, NULL), 0);
    assert_int_equal(atomic_load(&server.body_bytes), 0);
    assert_int_equal(begin(&one, HTTP_BODY_LENGTH, 2 * MIB), 0);
    assert_int_equal(feed(&one, (struct slice){many, sizeof(many)}, 64 * KIB), 0);
    assert_int_equal(one.charged, MIB);
    assert_int_equal(begin(&two, HTTP_BODY_LENGTH, 5000), 0);
    assert_int_equal(feed(&two, (struct slice){many, 5000}, 5000), ERR_BUSY);
    body_finish(&two, &server);
    body_finish(&one, &server);
    assert_int_equal(begin(&two, HTTP_BODY_LENGTH, 5000), 0);
    assert_int_equal(feed(&two, (struct slice){many, 5000}, 5000), 0);
    body_finish(&two, &server);
    body_finish(&small, &server);
    assert_int_equal(atomic_load(&server.body_bytes), 0);
    server.body_bytes_total_max = 16 * MIB;
}

/* A body that is given up tells how much of it had come, and takes nothing more. */
static void stops(void **state)
{
    static char bytes[10000];
    struct body b;

    (void)state;
    assert_int_equal(begin(&b, HTTP_BODY_LENGTH, 2 * sizeof(bytes)), 0);
    assert_int_equal(feed(&b, (struct slice){bytes, sizeof(bytes)}, 3000), 0);
    assert_int_equal(body_received(&b, NULL), sizeof(bytes));
    body_stop(&b, NULL);
    assert_int_equal(wire.into_len, 0);
    assert_int_equal(body_received(&b, NULL), sizeof(bytes));
    assert_int_equal(body_unread(&b), sizeof(bytes));
    body_finish(&b, &server);
    assert_int_equal(begin(&b, HTTP_BODY_CHUNKED, 0), 0);
    assert_int_equal(feed(&b, SLICE("5\r\nhello\r\n9"), 3), 0);
    body_stop(&b, NULL);
    assert_int_equal(body_received(&b, NULL), 5);
    body_finish(&b, &server);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads_length),
        cmocka_unit_test(trusts_no_length),
        cmocka_unit_test(sizes_by_what_is_there),
        cmocka_unit_test(bears_idle_uploads),
        cmocka_unit_test(reads_chunks),
        cmocka_unit_test(reads_nothing),
        cmocka_unit_test(caps_bodies),
        cmocka_unit_test(lowers_the_cap),
        cmocka_unit_test(refuses_chunks),
        cmocka_unit_test(keeps_budget),
        cmocka_unit_test(stops),
    };

    return UNIT_RUN(tests);
}
