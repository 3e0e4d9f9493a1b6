/* Where bytes of a stream lie, and where its messages end. A position of a fork below its fork
 * offset lies in its source, up the chain: positions are the same numbers in all of them. Bytes
 * below a visible tail never change, only move (from memory to a pack, from pack to pack), so a
 * run that was found stays good for as long as its block or its pack is held. */
#ifndef ARBE_STREAM_LOCATE_H
#define ARBE_STREAM_LOCATE_H

#include "base/block.h"
#include "base/err.h"
#include "stream/stream.h"

#define LOCATE_TRIES_MAX 3 /* compactions that may move bytes under a reader's hands */

struct locate_run {
    uint64_t start;            /* position of the first byte that is stored here */
    uint64_t end;              /* behind the last one that belongs to the stream that asked */
    uint64_t stored_end;       /* behind the last one that is stored here */
    struct block *block;       /* memory; referenced; NULL: in a pack */
    const char *ptr;           /* for memory: the byte at `start` */
    struct extent extent;      /* for a pack */
    struct slice marks;        /* of the whole run from `start`; empty when not asked for */
    struct block *marks_block; /* holds `marks`; referenced */
};

/* Finds the run that holds `position`, which is below a visible tail of `s`. Takes a lock or more,
 * does not block. `marks`: with the marks, if they are in memory. ERR_GONE when the bytes are not
 * there, as the stream went meanwhile. */
int locate_run(struct stream *s, uint64_t position, bool marks,
               struct locate_run *ret_run) MUST_USE;

/* Whether so many bytes from `position` to at most `limit` are in a pack, although in memory too,
 * that the kernel had better send them from there, without a copy. The run has no marks; `whole`:
 * it ends between messages. */
bool locate_packed(struct stream *s, uint64_t position, uint64_t limit, bool whole,
                   struct locate_run *ret_run) MUST_USE;

/* Reads the marks of a run that lies in a pack. Blocks. Errors as store_ops.read_marks. */
int locate_marks(struct engine *e, struct locate_run *run) MUST_USE;

/* After ERR_NOTFOUND from a pack: the run that holds `position` is looked up anew in the catalog,
 * so that the next locate_run tells where it lies now. Blocks. Errors as load_extents. */
int locate_again(struct stream *s, uint64_t position) MUST_USE;

/* Accepts a zeroed run. */
void locate_finish(struct locate_run *run);

/* Where a fork of `s` begins (PROTOCOL.md 4.2): `sub` messages (JSON mode) or bytes behind
 * `anchor`, which is at most `tail`, a visible tail; not beyond the end of the append that
 * follows. In JSON mode the anchor must lie between messages. Blocks. ERR_INVALID with a
 * sentence. */
int locate_fork(struct stream *s, uint64_t anchor, uint64_t sub, uint64_t tail,
                uint64_t *ret_offset, struct errmsg *msg) MUST_USE;

#endif
