/* A growing byte buffer with a hard maximum. A builder: the first failed append marks the buffer
 * failed, later ones do nothing, and the caller checks once, at the end.
 *
 * Memory doubles; nothing is allocated before the first append. Not thread-safe. */
#ifndef ARBE_BASE_BUF_H
#define ARBE_BASE_BUF_H

#include "base/attr.h"
#include "base/slice.h"

struct buf {
    char *ptr;   /* owned; NULL while nothing is allocated */
    size_t len;  /* bytes in use */
    size_t cap;  /* bytes allocated */
    size_t max;  /* bytes it may grow to */
    bool failed; /* sticky: out of memory or over max */
};

/* An empty buffer that may grow to `max` bytes. */
static inline void buf_init(struct buf *b, size_t max)
{
    *b = (struct buf){.max = max};
}

/* An empty buffer in `size` bytes that stay the caller's, above 0: it never allocates, holds one
 * byte less (for the NUL of a format), and must not be finished. */
static inline void buf_init_fixed(struct buf *b, char *memory, size_t size)
{
    *b = (struct buf){.ptr = memory, .cap = size - 1, .max = size - 1};
}

/* Frees the memory; the buffer is then as after buf_init. Accepts a zeroed buffer. */
void buf_finish(struct buf *b);

/* Forgets the bytes and the failure, keeps the memory. */
void buf_clear(struct buf *b);

/* Makes room for `count` more bytes and returns where they go, or NULL (then failed). The caller
 * writes and then calls buf_advance. The pointer lives until the next call that may grow. */
char *buf_reserve(struct buf *b, size_t count);

/* Counts `count` bytes, written at buf_reserve's pointer, as used. */
void buf_advance(struct buf *b, size_t count);

/* Appends bytes, one byte, a formatted text, a decimal number. Failures stick. */
void buf_append(struct buf *b, struct slice bytes);
void buf_append_char(struct buf *b, char c);
void buf_append_format(struct buf *b, const char *format, ...) PRINTF_LIKE(2, 3);
void buf_append_u64(struct buf *b, uint64_t value);

/* Drops `count` bytes from the front by moving the rest. */
void buf_consume(struct buf *b, size_t count);

/* The bytes in use; borrowed until the buffer next changes. */
static inline struct slice buf_slice(const struct buf *b)
{
    return (struct slice){b->ptr, b->len};
}

#endif
