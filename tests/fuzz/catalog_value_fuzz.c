/* Values and keys of the catalog from hostile bytes. The first byte chooses the decoder. Streams,
 * states and notes get a right checksum, so that the fields are reached. What decodes must encode,
 * and decode to the same again. */
#include <assert.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/crc32c.h"
#include "log/catalog_value.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Makes the last four bytes the checksum of those before. */
static void seal(uint8_t *bytes, size_t len)
{
    if (len >= 4) {
        bytes_put_u32(bytes + len - 4, crc32c(0, bytes, len - 4));
    }
}

static void try_stream(struct slice value)
{
    struct stream_meta m;
    if (catalog_decode_stream(value, 1, &m)) {
        return;
    }
    uint8_t again[CATALOG_STREAM_BYTES_MAX];
    size_t len = catalog_encode_stream(&m, again);
    assert(len == value.len);
    assert(memcmp(again, value.ptr, len) == 0);
    (void)catalog_deadline(&m); /* must not overflow */
}

static void try_state(struct slice value)
{
    struct catalog_state s;
    if (catalog_decode_state(value, &s)) {
        return;
    }
    uint8_t again[CATALOG_STATE_BYTES];
    struct catalog_state t;
    catalog_encode_state(&s, again);
    int rc = catalog_decode_state((struct slice){(char *)again, sizeof(again)}, &t);
    assert(rc == 0);
    assert(s.checkpoint == t.checkpoint && s.epoch == t.epoch && s.durable == t.durable);
}

static void try_extent(struct slice value)
{
    struct extent e;
    if (catalog_decode_extent(value, 5, &e)) {
        return;
    }
    uint8_t again[CATALOG_EXTENT_BYTES];
    catalog_encode_extent(&e, again);
    assert(memcmp(again, value.ptr, sizeof(again)) == 0);
}

static void try_producer(struct slice value)
{
    struct producer_meta p;
    uint8_t again[CATALOG_PRODUCER_BYTES];
    if (catalog_decode_producer(value, SLICE("p"), &p) == 0) {
        catalog_encode_producer(&p, again);
        assert(memcmp(again, value.ptr, sizeof(again)) == 0);
    }
}

static void try_pairs(struct slice value)
{
    uint64_t a = 0;
    uint64_t b = 0;
    uint8_t again[CATALOG_PAIR_KEY_BYTES];
    if (catalog_decode_pair(value, &a, &b) == 0) {
        catalog_encode_pair(a, b, again);
        assert(memcmp(again, value.ptr, sizeof(again)) == 0);
    }
    if (catalog_decode_pair_key(value, &a, &b) == 0) {
        catalog_encode_pair_key(a, b, again);
        assert(memcmp(again, value.ptr, sizeof(again)) == 0);
    }
}

static void try_note(uint8_t *bytes, size_t len)
{
    struct slice key = SLICE("k");
    struct slice entry = {(const char *)bytes, len};
    struct slice value;
    if (len >= 4) {
        bytes_put_u32(bytes + len - 4, crc32c(crc32c(0, key.ptr, key.len), bytes, len - 4));
    }
    if (catalog_decode_note(key, entry, &value) == 0) {
        uint8_t *again = malloc(len);
        assert(again);
        assert(catalog_encode_note(key, value, again) == len);
        assert(memcmp(again, bytes, len) == 0);
        free(again);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0) {
        return 0;
    }
    uint8_t *copy = malloc(size);
    assert(copy);
    memcpy(copy, data + 1, size - 1);
    struct slice value = {(const char *)copy, size - 1};
    switch (data[0] % 6) {
    case 0:
        seal(copy, size - 1);
        try_stream(value);
        break;
    case 1:
        seal(copy, size - 1);
        try_state(value);
        break;
    case 2:
        try_extent(value);
        break;
    case 3:
        try_producer(value);
        break;
    case 5:
        try_note(copy, size - 1);
        break;
    default:
        try_pairs(value);
        break;
    }
    free(copy);
    return 0;
}
