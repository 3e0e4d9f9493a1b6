/* Payloads and frames, whole and damaged. */
#include "log/record.c"

#include <stdlib.h>

#include "unit/base/unit.h"

#define MARK_6 "\x0d" /* one message of 6 bytes that ends its append */

static const struct record create_record = {
    .type = RECORD_CREATE,
    .id = 5,
    .create = {.name = {"a/b", 3},
               .content_type = {"text/plain", 10},
               .created_ms = 1767225600000,
               .ttl_seconds = 60,
               .expires_at_ms = INT64_MAX,
               .source_id = 4,
               .fork_offset = 100,
               .fork_anchor = 90,
               .fork_sub_offset = 10,
               .fork_explicit = true,
               .closed = true,
               .marks = {MARK_6, 1},
               .body = {"hello,", 6}},
};

static const struct record append_record = {
    .type = RECORD_APPEND,
    .id = 6,
    .append = {.offset = 77,
               .now_ms = -1,
               .close = true,
               .producer = {.id = {"p", 1}, .epoch = 2, .seq = 3},
               .has_seq = true,
               .seq = {"s-9", 3},
               .marks = {MARK_6, 1},
               .body = {"hello,", 6}},
};

static const struct record delete_record = {
    .type = RECORD_DELETE,
    .id = 7,
    .del = {.soft = true,
            .expired = true,
            .cascade_count = 2,
            .cascade = {"\1\0\0\0\0\0\0\0\2\0\0\0\0\0\0\0", 16},
            .released = 9},
};

static const struct record touch_record = {.type = RECORD_TOUCH, .id = 8, .touch = {.now_ms = 123}};

static const struct record note_record = {
    .type = RECORD_NOTE,
    .note = {.changes = {"\1\1\0k\2\0\0\0vw\2\1\0g", 14}},
};

/* The payload of `r`, to be freed. */
static char *encode(const struct record *r, size_t *ret_len)
{
    size_t head = record_head_bytes(r);
    struct slice body = record_body(r);
    char *payload = malloc(head + body.len + 1);
    assert_non_null(payload);
    record_encode_head(r, payload);
    if (body.len > 0) {
        memcpy(payload + head, body.ptr, body.len);
    }
    *ret_len = head + body.len;
    return payload;
}

static void assert_slice(struct slice a, struct slice b)
{
    assert_int_equal(a.len, b.len);
    assert_true(slice_equal(a, b));
}

/* Every field of every type comes back. */
static void test_round_trip(void **state)
{
    (void)state;
    size_t len = 0;
    struct record r;
    char *payload = encode(&create_record, &len);
    assert_int_equal(record_decode(RECORD_CREATE, 5, (struct slice){payload, len}, &r), 0);
    const struct record_create *c = &create_record.create;
    assert_int_equal(r.id, 5);
    assert_slice(r.create.name, c->name);
    assert_slice(r.create.content_type, c->content_type);
    assert_int_equal(r.create.created_ms, c->created_ms);
    assert_int_equal(r.create.ttl_seconds, c->ttl_seconds);
    assert_int_equal(r.create.expires_at_ms, c->expires_at_ms);
    assert_int_equal(r.create.source_id, c->source_id);
    assert_int_equal(r.create.fork_offset, c->fork_offset);
    assert_int_equal(r.create.fork_anchor, c->fork_anchor);
    assert_int_equal(r.create.fork_sub_offset, c->fork_sub_offset);
    assert_true(r.create.fork_explicit && r.create.closed);
    assert_slice(r.create.marks, c->marks);
    assert_slice(r.create.body, c->body);
    free(payload);

    payload = encode(&append_record, &len);
    assert_int_equal(record_decode(RECORD_APPEND, 6, (struct slice){payload, len}, &r), 0);
    const struct record_append *a = &append_record.append;
    assert_int_equal(r.append.offset, a->offset);
    assert_int_equal(r.append.now_ms, a->now_ms);
    assert_true(r.append.close && r.append.has_seq);
    assert_slice(r.append.producer.id, a->producer.id);
    assert_int_equal(r.append.producer.epoch, 2);
    assert_int_equal(r.append.producer.seq, 3);
    assert_slice(r.append.seq, a->seq);
    assert_slice(r.append.marks, a->marks);
    assert_slice(r.append.body, a->body);
    free(payload);

    payload = encode(&delete_record, &len);
    assert_int_equal(record_decode(RECORD_DELETE, 7, (struct slice){payload, len}, &r), 0);
    assert_true(r.del.soft && r.del.expired);
    assert_int_equal(r.del.cascade_count, 2);
    assert_slice(r.del.cascade, delete_record.del.cascade);
    assert_int_equal(r.del.released, 9);
    free(payload);

    payload = encode(&touch_record, &len);
    assert_int_equal(record_decode(RECORD_TOUCH, 8, (struct slice){payload, len}, &r), 0);
    assert_int_equal(r.touch.now_ms, 123);
    free(payload);

    payload = encode(&note_record, &len);
    assert_int_equal(record_decode(RECORD_NOTE, 0, (struct slice){payload, len}, &r), 0);
    assert_slice(r.note.changes, note_record.note.changes);
    assert_int_equal(r.id, 0);
    free(payload);
}

/* Absent parts come back absent. */
static void test_minimal_append(void **state)
{
    (void)state;
    struct record in = {.type = RECORD_APPEND, .id = 1};
    size_t len = 0;
    char *payload = encode(&in, &len);
    struct record r;
    assert_int_equal(record_decode(RECORD_APPEND, 1, (struct slice){payload, len}, &r), 0);
    assert_false(r.append.close || r.append.has_seq);
    assert_int_equal(r.append.producer.id.len, 0);
    assert_int_equal(r.append.body.len, 0);
    free(payload);
}

/* A payload that ends early or late is refused, at every length. */
static void test_wrong_length(void **state)
{
    (void)state;
    const struct record *all[] = {&create_record, &append_record, &delete_record, &touch_record};
    for (size_t i = 0; i < ARRAY_COUNT(all); i++) {
        size_t len = 0;
        char *payload = encode(all[i], &len);
        struct record r;
        for (size_t cut = 0; cut < len; cut++) {
            assert_int_equal(record_decode(all[i]->type, 1, (struct slice){payload, cut}, &r),
                             ERR_CORRUPT);
        }
        payload[len] = 'x';
        assert_int_equal(record_decode(all[i]->type, 1, (struct slice){payload, len + 1}, &r),
                         ERR_CORRUPT);
        free(payload);
    }
}

/* Each rule of validity is checked on decoding. */
static void test_invalid_fields(void **state)
{
    (void)state;
    struct record r;
    size_t len = 0;
    char *payload = encode(&append_record, &len);
    struct slice s = {payload, len};
    assert_int_equal(record_decode(RECORD_APPEND, 0, s, &r), ERR_CORRUPT);
    assert_int_equal(record_decode((enum record_type)9, 1, s, &r), ERR_CORRUPT);
    payload[0] |= 8; /* an unknown flag */
    assert_int_equal(record_decode(RECORD_APPEND, 1, s, &r), ERR_CORRUPT);
    payload[0] &= ~8;
    assert_int_equal(record_decode(RECORD_APPEND, 1, s, &r), 0);
    bytes_put_u64(payload + 1, STREAM_OFFSET_MAX);
    assert_int_equal(record_decode(RECORD_APPEND, 1, s, &r), ERR_CORRUPT);
    free(payload);

    payload = encode(&create_record, &len);
    s = (struct slice){payload, len};
    bytes_put_u64(payload + 9, STREAM_TTL_SECONDS_MAX + 1);
    assert_int_equal(record_decode(RECORD_CREATE, 1, s, &r), ERR_CORRUPT);
    bytes_put_u64(payload + 9, UINT64_MAX);
    assert_int_equal(record_decode(RECORD_CREATE, 1, s, &r), 0);
    bytes_put_u64(payload + 25, 0); /* fork fields without a source */
    assert_int_equal(record_decode(RECORD_CREATE, 1, s, &r), ERR_CORRUPT);
    free(payload);

    payload = encode(&delete_record, &len);
    bytes_put_u32(payload + 9, 3); /* more ancestors than there are */
    assert_int_equal(record_decode(RECORD_DELETE, 1, (struct slice){payload, len}, &r),
                     ERR_CORRUPT);
    free(payload);
}

/* Notes belong to no stream, have no flags yet, and are a sound batch of at least one change. */
static void test_notes(void **state)
{
    (void)state;
    struct record r;
    size_t len = 0;
    char *payload = encode(&note_record, &len);
    struct slice s = {payload, len};
    assert_int_equal(record_decode(RECORD_NOTE, 1, s, &r), ERR_CORRUPT);
    for (size_t cut = 0; cut < len; cut++) {
        int want = cut == 11 ? 0 : ERR_CORRUPT; /* behind the first change */
        assert_int_equal(record_decode(RECORD_NOTE, 0, (struct slice){payload, cut}, &r), want);
    }
    payload[len] = 'x';
    assert_int_equal(record_decode(RECORD_NOTE, 0, (struct slice){payload, len + 1}, &r),
                     ERR_CORRUPT);
    payload[0] = 1;
    assert_int_equal(record_decode(RECORD_NOTE, 0, s, &r), ERR_CORRUPT);
    free(payload);
}

/* What a full log still takes. */
static void test_what_frees(void **state)
{
    (void)state;
    struct record r = {.type = RECORD_NOTE, .note = {.changes = SLICE("\2\1\0g")}};
    assert_true(record_frees(&r));
    assert_true(record_frees(&delete_record));
    r.note.changes = SLICE("\1\1\0k\0\0\0\0");
    assert_false(record_frees(&r));
    assert_false(record_frees(&create_record));
    assert_false(record_frees(&append_record));
    assert_false(record_frees(&touch_record));
}

/* Marks that do not sum to the body are refused. */
static void test_marks_must_sum(void **state)
{
    (void)state;
    struct record r;
    size_t len = 0;
    char *payload = encode(&append_record, &len);
    payload[len - 7] = 11; /* the one mark: 5 bytes */
    assert_int_equal(record_decode(RECORD_APPEND, 1, (struct slice){payload, len}, &r),
                     ERR_CORRUPT);
    free(payload);
}

/* A frame comes back, and any single flipped bit in it is found. */
static void test_frame(void **state)
{
    (void)state;
    const struct record_frame in = {.payload_len = 100,
                                    .payload_crc = 0xdeadbeef,
                                    .epoch = 3,
                                    .lsn = 4096,
                                    .id = 77,
                                    .type = RECORD_TOUCH};
    uint8_t bytes[RECORD_FRAME_BYTES];
    struct record_frame out;
    record_encode_frame(&in, bytes);
    assert_int_equal(record_decode_frame(bytes, &out), 0);
    assert_int_equal(out.payload_len, 100);
    assert_int_equal(out.payload_crc, 0xdeadbeef);
    assert_int_equal(out.epoch, 3);
    assert_int_equal(out.lsn, 4096);
    assert_int_equal(out.id, 77);
    assert_int_equal(out.type, RECORD_TOUCH);
    for (size_t bit = 0; bit < 8 * sizeof(bytes); bit++) {
        bytes[bit / 8] ^= (uint8_t)(1u << bit % 8);
        assert_int_equal(record_decode_frame(bytes, &out), ERR_CORRUPT);
        bytes[bit / 8] ^= (uint8_t)(1u << bit % 8);
    }
    static const uint8_t zeros[RECORD_FRAME_BYTES];
    assert_int_equal(record_decode_frame(zeros, &out), ERR_CORRUPT);
}

/* A frame with a right checksum but an unknown type or flag is refused. */
static void test_frame_of_the_future(void **state)
{
    (void)state;
    const struct record_frame in = {.id = 1, .type = RECORD_TOUCH};
    for (size_t at = 32; at < 36; at++) {
        uint8_t bytes[RECORD_FRAME_BYTES];
        struct record_frame out;
        record_encode_frame(&in, bytes);
        bytes[at] = 99;
        bytes_put_u32(bytes, crc32c(0, bytes + 4, RECORD_FRAME_BYTES - 4));
        assert_int_equal(record_decode_frame(bytes, &out), ERR_CORRUPT);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_round_trip),          cmocka_unit_test(test_minimal_append),
        cmocka_unit_test(test_wrong_length),        cmocka_unit_test(test_invalid_fields),
        cmocka_unit_test(test_marks_must_sum),      cmocka_unit_test(test_frame),
        cmocka_unit_test(test_frame_of_the_future), cmocka_unit_test(test_notes),
        cmocka_unit_test(test_what_frees),
    };
    return UNIT_RUN(tests);
}
