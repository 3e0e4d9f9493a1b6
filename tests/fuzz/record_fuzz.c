/* Log records from hostile bytes. The first byte is the type, the rest the payload; the same bytes
 * are also taken for a frame header, with its checksum put right so that the fields behind it are
 * reached. What decodes must encode to the very same bytes. */
#include <assert.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/crc32c.h"
#include "log/record.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void try_payload(enum record_type type, struct slice payload)
{
    struct record r;
    if (record_decode(type, type == RECORD_NOTE ? 0 : 1, payload, &r)) {
        return;
    }
    size_t head = record_head_bytes(&r);
    struct slice body = record_body(&r);
    assert(head + body.len == payload.len);
    char *again = malloc(head + 1);
    assert(again);
    record_encode_head(&r, again);
    assert(memcmp(again, payload.ptr, head) == 0);
    assert(body.len == 0 || body.ptr == payload.ptr + head);
    free(again);
}

static void try_frame(const uint8_t *data)
{
    uint8_t bytes[RECORD_FRAME_BYTES];
    struct record_frame f;
    memcpy(bytes, data, sizeof(bytes));
    bytes_put_u32(bytes, crc32c(0, bytes + 4, RECORD_FRAME_BYTES - 4));
    if (record_decode_frame(bytes, &f) || f.lsn % RECORD_ALIGN != 0) {
        return;
    }
    uint8_t again[RECORD_FRAME_BYTES];
    record_encode_frame(&f, again);
    assert(memcmp(again, bytes, sizeof(bytes)) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0) {
        return 0;
    }
    try_payload((enum record_type)data[0], (struct slice){(const char *)data + 1, size - 1});
    if (size > RECORD_FRAME_BYTES) {
        try_frame(data + 1);
    }
    return 0;
}
