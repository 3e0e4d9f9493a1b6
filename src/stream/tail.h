/* The newest bytes of a stream in memory, as chunks of whole messages, each with their marks
 * (log/marks.h). A chunk is either a block of the tail's own, which small appends are copied into,
 * or a part of the block of one large append, kept by reference. Blocks grow with the stream, to
 * 64 KiB.
 *
 * The caller holds the stream's lock. Bytes and marks that a reader was shown never change: appends
 * only fill the unused rest of a block, so readers use the blocks they refer to without the lock.
 * Adding is in two steps, so that whatever can fail fails before anything is staged. */
#ifndef ARBE_STREAM_TAIL_H
#define ARBE_STREAM_TAIL_H

#include "base/attr.h"
#include "base/block.h"
#include "base/slice.h"
#include "log/marks.h"

struct tail_chunk {
    uint64_t start;      /* position in the stream of the first byte */
    struct block *block; /* holds the bytes; referenced */
    const char *ptr;     /* the first byte */
    uint32_t len;        /* bytes */
    uint32_t marks_at;   /* where in their block the marks begin */
    uint32_t marks_len;  /* bytes of marks; at most RUN_MARKS_BYTES_MAX */
    bool adopted;        /* the block is not the tail's own */
    struct block *marks; /* holds the marks; referenced */
};

/* What is to be added. */
struct tail_body {
    struct slice bytes;
    struct slice marks;
    struct block *block;          /* holds the bytes, kept by reference; NULL: copy them */
    struct block *marks_block;    /* the same for the marks */
    const struct marks_run *runs; /* of a body kept by reference: the chunks to make of it */
    size_t run_count;             /* 0: one */
};

struct tail {
    struct tail_chunk *chunks; /* owned; ascending, without gaps */
    uint32_t first;            /* index of the first chunk in use */
    uint32_t count;            /* chunks in use */
    uint32_t cap;              /* chunks allocated */
};

/* What an addition will need, made before it. */
struct tail_room {
    struct tail_chunk chunk; /* a new one, or unused; of a body kept by reference the first one */
    bool fresh;              /* whether chunk is used */
};

/* Frees everything; the tail is then empty. Accepts a zeroed tail. */
void tail_clear(struct tail *t);

/* Prepares for adding the body, which is not empty. The tail shows nothing of it. ERR_NOMEM. */
int tail_prepare(struct tail *t, const struct tail_body *body, struct tail_room *ret_room) MUST_USE;

/* Gives up what was prepared. */
void tail_forgo(struct tail_room *room);

/* Adds the body at position `start`, the end of the tail, using up what was prepared for it right
 * before. Cannot fail. */
void tail_add(struct tail *t, struct tail_room *room, uint64_t start, const struct tail_body *body);

/* The chunk that holds `position`, or NULL when it is not in memory. Lives until the next
 * change. */
const struct tail_chunk *tail_find(const struct tail *t, uint64_t position);

/* The marks of a chunk, borrowed from its block. */
static inline struct slice tail_chunk_marks(const struct tail_chunk *c)
{
    return (struct slice){c->marks->data + c->marks_at, c->marks_len};
}

/* Drops chunks that lie wholly before `position`; returns the bytes dropped. */
uint64_t tail_drop(struct tail *t, uint64_t position);

/* Bytes of chunks that lie wholly before `position`. */
uint64_t tail_bytes_before(const struct tail *t, uint64_t position);

#endif
