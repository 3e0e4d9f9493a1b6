/* The bytes of the catalog, whole and damaged. */
#include "log/catalog_value.c"

#include <stdlib.h>

#include "unit/base/unit.h"

static const struct stream_meta full_meta = {
    .id = 12,
    .applied = 4096,
    .name = {"room/1", 6},
    .content_type = {"application/json", 16},
    .created_ms = 1,
    .ttl_seconds = 3600,
    .expires_at_ms = 5000000,
    .accessed_ms = 1000000,
    .tail = 500,
    .source_id = 3,
    .fork_offset = 100,
    .fork_anchor = 90,
    .fork_sub_offset = 10,
    .fork_explicit = true,
    .closed = true,
    .soft_deleted = true,
    .fork_refs = 2,
    .has_seq = true,
    .seq = {"9", 1},
    .closer = {.id = {"p", 1}, .epoch = 4, .seq = 5},
};

/* Every field of a stream comes back. */
static void test_stream(void **state)
{
    (void)state;
    uint8_t bytes[CATALOG_STREAM_BYTES_MAX];
    size_t len = catalog_encode_stream(&full_meta, bytes);
    struct stream_meta m;
    assert_int_equal(catalog_decode_stream((struct slice){(char *)bytes, len}, 12, &m), 0);
    assert_int_equal(m.id, 12);
    assert_int_equal(m.applied, 4096);
    assert_true(slice_equal(m.name, full_meta.name));
    assert_true(slice_equal(m.content_type, full_meta.content_type));
    assert_int_equal(m.created_ms, 1);
    assert_int_equal(m.ttl_seconds, 3600);
    assert_int_equal(m.expires_at_ms, 5000000);
    assert_int_equal(m.accessed_ms, 1000000);
    assert_int_equal(m.tail, 500);
    assert_int_equal(m.source_id, 3);
    assert_int_equal(m.fork_offset, 100);
    assert_int_equal(m.fork_anchor, 90);
    assert_int_equal(m.fork_sub_offset, 10);
    assert_true(m.fork_explicit && m.closed && m.soft_deleted && m.has_seq);
    assert_int_equal(m.fork_refs, 2);
    assert_true(slice_equal(m.seq, full_meta.seq));
    assert_true(slice_equal(m.closer.id, full_meta.closer.id));
    assert_int_equal(m.closer.epoch, 4);
    assert_int_equal(m.closer.seq, 5);
}

/* Any flipped bit and any other length of a stream's value is found. */
static void test_stream_damage(void **state)
{
    (void)state;
    uint8_t bytes[CATALOG_STREAM_BYTES_MAX + 1] = {0};
    size_t len = catalog_encode_stream(&full_meta, bytes);
    struct stream_meta m;
    for (size_t bit = 0; bit < 8 * len; bit++) {
        bytes[bit / 8] ^= (uint8_t)(1u << bit % 8);
        assert_int_equal(catalog_decode_stream((struct slice){(char *)bytes, len}, 12, &m),
                         ERR_CORRUPT);
        bytes[bit / 8] ^= (uint8_t)(1u << bit % 8);
    }
    for (size_t cut = 0; cut <= len + 1; cut++) {
        int rc = catalog_decode_stream((struct slice){(char *)bytes, cut}, 12, &m);
        assert_int_equal(rc, cut == len ? 0 : ERR_CORRUPT);
    }
}

/* The longest of everything fits into the promised size. */
static void test_longest_stream(void **state)
{
    (void)state;
    static char text[512];
    memset(text, 'x', sizeof(text));
    struct stream_meta m = full_meta;
    m.name = (struct slice){text, STREAM_NAME_BYTES_MAX};
    m.content_type = (struct slice){text, STREAM_CONTENT_TYPE_BYTES_MAX};
    m.seq = (struct slice){text, STREAM_SEQ_BYTES_MAX};
    m.closer.id = (struct slice){text, PRODUCER_ID_BYTES_MAX};
    uint8_t bytes[CATALOG_STREAM_BYTES_MAX];
    size_t len = catalog_encode_stream(&m, bytes);
    struct stream_meta out;
    assert_int_equal(catalog_decode_stream((struct slice){(char *)bytes, len}, 12, &out), 0);
}

/* The state comes back; a wrong length or a flipped bit is found. */
static void test_state(void **state)
{
    (void)state;
    struct catalog_state in = {.uuid = "uuid of 15 byte",
                               .format = 1,
                               .epoch = 7,
                               .durable = 1,
                               .log_made = 1,
                               .checkpoint = 800,
                               .next_stream = 9,
                               .next_pack = 4,
                               .counted = 1,
                               .own_bytes = 1ull << 40};
    uint8_t bytes[CATALOG_STATE_BYTES];
    struct catalog_state out;
    catalog_encode_state(&in, bytes);
    struct slice s = {(char *)bytes, sizeof(bytes)};
    assert_int_equal(catalog_decode_state(s, &out), 0);
    assert_memory_equal(out.uuid, in.uuid, 16);
    assert_int_equal(out.format, 1);
    assert_int_equal(out.epoch, 7);
    assert_int_equal(out.durable, 1);
    assert_int_equal(out.log_made, 1);
    assert_int_equal(out.checkpoint, 800);
    assert_int_equal(out.next_stream, 9);
    assert_int_equal(out.next_pack, 4);
    assert_int_equal(out.counted, 1);
    assert_int_equal(out.own_bytes, 1ull << 40);
    bytes[33] ^= 1;
    assert_int_equal(catalog_decode_state(s, &out), ERR_CORRUPT);
    s.len--;
    assert_int_equal(catalog_decode_state(s, &out), ERR_CORRUPT);
}

/* Extents, producers and pairs come back; values outside of their bounds are refused. */
static void test_small_values(void **state)
{
    (void)state;
    uint8_t bytes[CATALOG_EXTENT_BYTES];
    struct slice s = {(char *)bytes, sizeof(bytes)};
    struct extent e = {.start = 5, .len = 6, .marks_len = 2, .pack = 3, .at = 64, .crc = 9};
    struct extent out;
    catalog_encode_extent(&e, bytes);
    assert_int_equal(catalog_decode_extent(s, 5, &out), 0);
    assert_true(out.start == 5 && out.len == 6 && out.marks_len == 2);
    assert_true(out.pack == 3 && out.at == 64 && out.crc == 9);
    assert_int_equal(catalog_decode_extent(s, STREAM_OFFSET_MAX + 1, &out), ERR_CORRUPT);
    bytes_put_u32(bytes + 16, 0);
    assert_int_equal(catalog_decode_extent(s, 5, &out), ERR_CORRUPT);
    bytes_put_u32(bytes + 16, EXTENT_MESSAGE_BYTES_MAX + 1);
    assert_int_equal(catalog_decode_extent(s, 5, &out), ERR_CORRUPT);
    s.len--;
    assert_int_equal(catalog_decode_extent(s, 5, &out), ERR_CORRUPT);

    struct producer_meta p = {.id = SLICE("p"), .epoch = 1, .seq = 2, .used_ms = -3};
    struct producer_meta got;
    catalog_encode_producer(&p, bytes);
    s.len = CATALOG_PRODUCER_BYTES;
    assert_int_equal(catalog_decode_producer(s, SLICE("p"), &got), 0);
    assert_int_equal(got.used_ms, -3);
    assert_int_equal(catalog_decode_producer(s, SLICE(""), &got), ERR_CORRUPT);
    uint64_t a = 0;
    uint64_t b = 0;
    catalog_encode_pair(1, 2, bytes);
    assert_int_equal(catalog_decode_pair((struct slice){(char *)bytes, 16}, &a, &b), 0);
    assert_true(a == 1 && b == 2);
    assert_int_equal(catalog_decode_pair((struct slice){(char *)bytes, 15}, &a, &b), ERR_CORRUPT);
    catalog_encode_pair_key(3, 4, bytes);
    assert_int_equal(catalog_decode_pair_key((struct slice){(char *)bytes, 16}, &a, &b), 0);
    assert_true(a == 3 && b == 4);
    assert_int_equal(bytes[7], 3);
}

/* A deadline is the earlier of the two, with the slack of unlogged reads; never for a stream that
 * waits for its forks; and never in the past by overflow. */
static void test_deadline(void **state)
{
    (void)state;
    struct stream_meta m = {.id = 1, .ttl_seconds = UINT64_MAX, .expires_at_ms = INT64_MAX};
    assert_true(catalog_deadline(&m) == INT64_MAX);
    m.expires_at_ms = 77;
    assert_int_equal(catalog_deadline(&m), 77);
    m.ttl_seconds = 8;
    m.accessed_ms = 100000;
    assert_int_equal(catalog_deadline(&m), 77);
    m.expires_at_ms = INT64_MAX;
    assert_int_equal(catalog_deadline(&m), 100000 + 8000 + 1000);
    m.accessed_ms = INT64_MAX - 5;
    assert_true(catalog_deadline(&m) == INT64_MAX);
    m.soft_deleted = true;
    m.expires_at_ms = 77;
    assert_true(catalog_deadline(&m) == INT64_MAX);
}

/* The value of a note comes back for its own key alone; any single flipped bit is found. */
static void test_note(void **state)
{
    (void)state;
    uint8_t bytes[32];
    struct slice key = SLICE("sub/a");
    struct slice value = {0};
    size_t len = catalog_encode_note(key, SLICE("value"), bytes);
    struct slice entry = {(const char *)bytes, len};
    assert_int_equal(len, 10);
    assert_int_equal(catalog_decode_note(key, entry, &value), 0);
    assert_true(slice_equal(value, SLICE("value")));
    assert_int_equal(catalog_decode_note(SLICE("sub/b"), entry, &value), ERR_CORRUPT);
    for (size_t bit = 0; bit < 8 * len; bit++) {
        bytes[bit / 8] ^= (uint8_t)(1u << bit % 8);
        assert_int_equal(catalog_decode_note(key, entry, &value), ERR_CORRUPT);
        bytes[bit / 8] ^= (uint8_t)(1u << bit % 8);
    }
    for (size_t cut = 0; cut < len; cut++) {
        assert_int_equal(catalog_decode_note(key, (struct slice){entry.ptr, cut}, &value),
                         ERR_CORRUPT);
    }
    len = catalog_encode_note(key, (struct slice){0}, bytes);
    assert_int_equal(catalog_decode_note(key, (struct slice){entry.ptr, len}, &value), 0);
    assert_int_equal(value.len, 0);
}

/* The longest key and value fit, and one byte more is refused. */
static void test_longest_note(void **state)
{
    (void)state;
    static char key_bytes[NOTE_KEY_BYTES_MAX + 1];
    static uint8_t bytes[CATALOG_NOTE_BYTES_MAX + 1];
    char *long_value = calloc(1, NOTE_VALUE_BYTES_MAX);
    assert_non_null(long_value);
    struct slice key = {key_bytes, NOTE_KEY_BYTES_MAX};
    struct slice value = {0};
    size_t len = catalog_encode_note(key, (struct slice){long_value, NOTE_VALUE_BYTES_MAX}, bytes);
    assert_int_equal(len, CATALOG_NOTE_BYTES_MAX);
    assert_int_equal(catalog_decode_note(key, (struct slice){(char *)bytes, len}, &value), 0);
    assert_int_equal(value.len, NOTE_VALUE_BYTES_MAX);
    bytes_put_u32(bytes + len - 3, note_crc(key, bytes, len - 3));
    assert_int_equal(catalog_decode_note(key, (struct slice){(char *)bytes, len + 1}, &value),
                     ERR_CORRUPT);
    key.len++;
    len = catalog_encode_note(key, SLICE("v"), bytes);
    assert_int_equal(catalog_decode_note(key, (struct slice){(char *)bytes, len}, &value),
                     ERR_CORRUPT);
    free(long_value);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_stream),         cmocka_unit_test(test_stream_damage),
        cmocka_unit_test(test_longest_stream), cmocka_unit_test(test_state),
        cmocka_unit_test(test_small_values),   cmocka_unit_test(test_deadline),
        cmocka_unit_test(test_note),           cmocka_unit_test(test_longest_note),
    };
    return UNIT_RUN(tests);
}
