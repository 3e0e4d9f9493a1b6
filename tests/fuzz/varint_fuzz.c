/* Varints and the checked reader over any bytes: one encoding for each number, no read past the
 * end. */
#include "base/bytes.h"

#include "base/err.h"

#include <assert.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_varint(const uint8_t *data, size_t size)
{
    uint8_t again[VARINT_BYTES_MAX];
    uint64_t value = 7;
    int used = bytes_get_varint(data, size, &value);

    if (used > 0) {
        assert((size_t)used <= size);
        assert(bytes_put_varint(again, value) == (size_t)used);
        assert(memcmp(again, data, (size_t)used) == 0);
    } else {
        assert(value == 7);
        assert(used == ERR_CORRUPT || (used == 0 && size < VARINT_BYTES_MAX));
    }
}

/* The first half of the input says what to read from the second. */
static void check_reader(const uint8_t *data, size_t size)
{
    struct bytes_reader r = {.at = data + size / 2, .end = data + size};

    for (size_t i = 0; i < size / 2; i++) {
        const uint8_t *before = r.at;
        int failed = r.failed;
        uint64_t value = 0;
        struct slice part;

        switch (data[i] % 6) {
        case 0:
            value = bytes_read_u8(&r);
            break;
        case 1:
            value = bytes_read_u16(&r);
            break;
        case 2:
            value = bytes_read_u32(&r);
            break;
        case 3:
            value = bytes_read_u64(&r);
            break;
        case 4:
            value = bytes_read_varint(&r);
            break;
        default:
            part = bytes_read_slice(&r, data[i] / 6);
            value = part.len > 0 ? (uint8_t)part.ptr[part.len - 1] : 0;
            break;
        }
        assert(r.at >= before);
        assert(r.at <= r.end);
        assert(!failed || r.failed);
        assert(!r.failed || value == 0);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    check_varint(data, size);
    if (size > 0) {
        check_reader(data, size);
    }
    return 0;
}
