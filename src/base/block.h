/* A reference-counted run of bytes that many holders share without copying: the newest bytes of a
 * stream, an encoded SSE frame, a request body. Counts are atomic; the bytes are written by one
 * owner and are never changed once another holder may read them. */
#ifndef ARBE_BASE_BLOCK_H
#define ARBE_BASE_BLOCK_H

#include <stddef.h>
#include <stdint.h>

#include "base/attr.h"
#include "base/slice.h"

struct block {
    uint32_t refs; /* private, atomic */
    uint32_t cap;  /* bytes that fit in data */
    uint32_t len;  /* bytes in use; only the owner who fills it may read or write this field */
    char data[];   /* the bytes */
};

/* A block of capacity `cap` (at most 1 GiB) with one reference, or NULL. */
struct block *block_try_create(size_t cap) MUST_USE;

/* Makes a block with one reference hold `cap` bytes, at least as many as before; the bytes stay.
 * The block, perhaps elsewhere, or NULL, and then it is as it was. Large ones move without a
 * copy. */
struct block *block_try_grow(struct block *b, size_t cap) MUST_USE;

/* One more reference; any thread. */
struct block *block_ref(struct block *b);

/* One reference less; the last frees it. Any thread. Accepts NULL. */
void block_unref(struct block *b);

#endif
