/* One stream as a checkpoint takes it: its visible state, the bytes that are not in extents yet,
 * cut into ranges between messages, and the producers that changed. See checkpoint.c for the
 * argument. */
#ifndef ARBE_STREAM_SNAPSHOT_H
#define ARBE_STREAM_SNAPSHOT_H

#include "stream/core.h"

/* Bytes and marks of one chunk, or a part of it. */
struct snapshot_piece {
    struct block *block;       /* holds the bytes; referenced */
    struct slice marks;        /* of the bytes */
    struct block *marks_block; /* holds the marks; referenced */
};

struct snapshot_range {
    uint64_t start;
    uint64_t len;     /* bytes */
    size_t marks_len; /* bytes of marks */
    size_t piece_count;
    struct slice *pieces;         /* the bytes; owned */
    struct snapshot_piece *holds; /* as many: what belongs to the pieces; owned */
    char *marks;                  /* of all pieces; owned; NULL when there is one */
};

struct snapshot {
    struct checkpoint_item item;
    bool empty;        /* no durable record yet: nothing to take */
    size_t gone_count; /* forgotten producers that it covers */
    /* private */
    struct block *seq; /* that item.meta.seq borrows from; referenced */
    struct snapshot_range *ranges;
    size_t range_count;
    struct checkpoint_range *given; /* what item.ranges points to */
    struct producer_meta *producers;
    struct slice *gone;
};

/* Under the stream's lock, and copies neither bytes nor marks. Slices of the item live until the
 * end of the snapshot, for as long as the caller refers to the stream. Marks what it takes as
 * taken. ERR_NOMEM. */
int snapshot_take(struct stream *s, struct snapshot *ret_snapshot) MUST_USE;

/* Without the lock: fills in the ranges of the item. ERR_NOMEM. */
int snapshot_join(struct snapshot *snap) MUST_USE;

/* Without the lock. Accepts a zeroed snapshot. */
void snapshot_finish(struct snapshot *snap);

#endif
