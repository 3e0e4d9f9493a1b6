/* Fixed-width integers and varints in byte arrays, for everything that goes to disk. Little-endian,
 * but for the `be` forms, which are for keys that must sort as numbers. Field by field, never a
 * struct cast onto a page. Pure. */
#ifndef ARBE_BASE_BYTES_H
#define ARBE_BASE_BYTES_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/slice.h"

/* The longest varint of a 64-bit number. */
#define VARINT_BYTES_MAX 10

#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "stored numbers are little-endian, and no big-endian machine runs the tests"
#endif

/* Stores; `at` need not be aligned. */
static inline void bytes_put_u16(void *at, uint16_t value)
{
    memcpy(at, &value, sizeof(value));
}
static inline void bytes_put_u32(void *at, uint32_t value)
{
    memcpy(at, &value, sizeof(value));
}
static inline void bytes_put_u64(void *at, uint64_t value)
{
    memcpy(at, &value, sizeof(value));
}
static inline void bytes_put_u64_be(void *at, uint64_t value)
{
    value = __builtin_bswap64(value);
    memcpy(at, &value, sizeof(value));
}

/* Loads; `at` need not be aligned. */
static inline uint16_t bytes_get_u16(const void *at)
{
    uint16_t value;
    memcpy(&value, at, sizeof(value));
    return value;
}
static inline uint32_t bytes_get_u32(const void *at)
{
    uint32_t value;
    memcpy(&value, at, sizeof(value));
    return value;
}
static inline uint64_t bytes_get_u64(const void *at)
{
    uint64_t value;
    memcpy(&value, at, sizeof(value));
    return value;
}
static inline uint64_t bytes_get_u64_be(const void *at)
{
    return __builtin_bswap64(bytes_get_u64(at));
}

/* LEB128: writes 1 to VARINT_BYTES_MAX bytes, returns how many. */
size_t bytes_put_varint(void *at, uint64_t value);

/* Reads a varint: bytes consumed, 0 when `len` bytes do not hold a whole one, below 0 (ERR_CORRUPT)
 * when it is longer than a 64-bit number or not in its shortest form. */
int bytes_get_varint(const void *at, size_t len, uint64_t *ret_value);

/* A reading position in untrusted bytes: a read past the end marks it failed and yields zeros, so
 * that a decoder checks once, at the end. */
struct bytes_reader {
    const uint8_t *at;  /* next byte */
    const uint8_t *end; /* one past the last */
    int failed;         /* sticky */
};

/* Reads one value and moves on. */
uint8_t bytes_read_u8(struct bytes_reader *r);
uint16_t bytes_read_u16(struct bytes_reader *r);
uint32_t bytes_read_u32(struct bytes_reader *r);
uint64_t bytes_read_u64(struct bytes_reader *r);
uint64_t bytes_read_varint(struct bytes_reader *r);

/* Borrows `len` bytes from the input; empty when fewer are left (then failed). */
struct slice bytes_read_slice(struct bytes_reader *r, size_t len);

#endif
