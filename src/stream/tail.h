/* The newest bytes of a stream in memory, as chunks of whole appends, each with the marks of its
 * messages (log/marks.h). A chunk is either a block of the tail's own, which small appends are
 * copied into, or the block of one large append, kept by reference. Blocks grow with the stream,
 * to 64 KiB.
 *
 * The caller holds the stream's lock. Bytes that a reader was shown never change: appends only
 * fill the unused rest of a block, so readers use the blocks they refer to without the lock.
 * Adding is in two steps, so that whatever can fail fails before anything is staged. */
#ifndef ARBE_STREAM_TAIL_H
#define ARBE_STREAM_TAIL_H

#include "base/attr.h"
#include "base/block.h"
#include "base/slice.h"

struct tail_chunk {
    uint64_t start;      /* position in the stream of the first byte */
    struct block *block; /* holds the bytes; referenced */
    const char *ptr;     /* the first byte */
    uint32_t len;        /* bytes */
    uint32_t marks_len;  /* bytes of marks */
    uint32_t marks_cap;  /* bytes allocated for marks */
    bool adopted;        /* the block is not the tail's own */
    char *marks;         /* owned */
};

struct tail {
    struct tail_chunk *chunks; /* owned; ascending, without gaps */
    uint32_t first;            /* index of the first chunk in use */
    uint32_t count;            /* chunks in use */
    uint32_t cap;              /* chunks allocated */
};

/* What an addition will need, made before it. */
struct tail_room {
    struct tail_chunk chunk; /* a new one, or unused */
    bool fresh;              /* whether chunk is used */
};

/* Frees everything; the tail is then empty. Accepts a zeroed tail. */
void tail_clear(struct tail *t);

/* Prepares for adding `body_len` > 0 bytes with `marks_len` bytes of marks. `adopt`, when not NULL,
 * is kept by reference instead of copying. The tail shows nothing of it. ERR_NOMEM. */
int tail_prepare(struct tail *t, size_t body_len, size_t marks_len, struct block *adopt,
                 struct tail_room *ret_room) MUST_USE;

/* Gives up what was prepared. */
void tail_forgo(struct tail_room *room);

/* Adds the bytes at position `start`, the end of the tail, using up what was prepared for them
 * right before. Cannot fail. */
void tail_add(struct tail *t, struct tail_room *room, uint64_t start, struct slice body,
              struct slice marks);

/* The chunk that holds `position`, or NULL when it is not in memory. Lives until the next
 * change. */
const struct tail_chunk *tail_find(const struct tail *t, uint64_t position);

/* Drops chunks that lie wholly before `position`; returns the bytes dropped. */
uint64_t tail_drop(struct tail *t, uint64_t position);

/* Bytes of chunks that lie wholly before `position`. */
uint64_t tail_bytes_before(const struct tail *t, uint64_t position);

#endif
