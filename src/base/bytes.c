/* Varints and the checked reader; plain loads and stores are inline in the header. */
#include "base/bytes.h"

#include "base/err.h"

size_t bytes_put_varint(void *at, uint64_t value)
{
    uint8_t *to = at;
    size_t len = 0;

    while (value >= 0x80) {
        to[len++] = (uint8_t)(value | 0x80);
        value >>= 7;
    }
    to[len++] = (uint8_t)value;
    return len;
}

int bytes_get_varint(const void *at, size_t len, uint64_t *ret_value)
{
    const uint8_t *from = at;
    uint64_t value = 0;

    for (unsigned i = 0; i < VARINT_BYTES_MAX; i++) {
        uint8_t byte;

        if (i == len) {
            return 0;
        }
        byte = from[i];
        value |= (uint64_t)(byte & 0x7f) << (7 * i);
        if (byte >= 0x80) {
            continue;
        }
        /* One number, one encoding: a last byte of zero says the same as leaving it out; and of the
         * tenth byte only the lowest bit fits into 64. */
        if ((byte == 0 && i > 0) || (i == VARINT_BYTES_MAX - 1 && byte > 1)) {
            return ERR_CORRUPT;
        }
        *ret_value = value;
        return (int)i + 1;
    }
    return ERR_CORRUPT;
}

/* The next `len` bytes, or NULL: then failed, and used up so that no later read succeeds. */
static const uint8_t *take(struct bytes_reader *r, size_t len)
{
    const uint8_t *at = r->at;

    if ((size_t)(r->end - r->at) < len) {
        r->failed = 1;
        r->at = r->end;
        return NULL;
    }
    r->at = len == 0 ? at : at + len; /* an empty input may be NULL, to which nothing is added */
    return at;
}

uint8_t bytes_read_u8(struct bytes_reader *r)
{
    const uint8_t *at = take(r, 1);

    return at == NULL ? 0 : *at;
}

uint16_t bytes_read_u16(struct bytes_reader *r)
{
    const uint8_t *at = take(r, 2);

    return at == NULL ? 0 : bytes_get_u16(at);
}

uint32_t bytes_read_u32(struct bytes_reader *r)
{
    const uint8_t *at = take(r, 4);

    return at == NULL ? 0 : bytes_get_u32(at);
}

uint64_t bytes_read_u64(struct bytes_reader *r)
{
    const uint8_t *at = take(r, 8);

    return at == NULL ? 0 : bytes_get_u64(at);
}

uint64_t bytes_read_varint(struct bytes_reader *r)
{
    uint64_t value = 0;
    int used = bytes_get_varint(r->at, (size_t)(r->end - r->at), &value);

    if (used <= 0) {
        r->failed = 1;
        r->at = r->end;
        return 0;
    }
    r->at += used;
    return value;
}

struct slice bytes_read_slice(struct bytes_reader *r, size_t len)
{
    const uint8_t *at = take(r, len);

    if (at == NULL) {
        return (struct slice){NULL, 0};
    }
    return (struct slice){(const char *)at, len};
}
