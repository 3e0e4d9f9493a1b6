/* Marks: where the messages of a run of bytes end. One varint per message, (length << 1) + 1 for
 * the last message of its append and (length << 1) + 0 for the others; in JSON mode a message's
 * length counts its comma. A run of bytes and its marks travel together from the log record to the
 * pack.
 *
 * Whoever needs a boundary walks the marks from the start of the run: a page is cut only between
 * messages, and a sub-offset fork ends at the next append (PROTOCOL.md 4.2). That is cheap since
 * runs are short: RUN_MARKS_BYTES_MAX bytes of marks at most. Pure. */
#ifndef ARBE_LOG_MARKS_H
#define ARBE_LOG_MARKS_H

#include "base/bytes.h"

/* Writes one mark at `at`, at most VARINT_BYTES_MAX bytes; returns how many. */
size_t marks_put(void *at, uint64_t len, bool append_end);

/* Reads the next mark: false at the end or at damage (then r->failed). */
bool marks_next(struct bytes_reader *r, uint64_t *ret_len, bool *ret_append_end);

/* Whether `marks` are whole, without empty messages, and their lengths sum to `total` bytes. */
bool marks_valid(struct slice marks, uint64_t total);

/* Where a position inside a run stands among the boundaries of its messages. */
struct marks_cut {
    uint64_t floor;       /* last boundary at or below it, bytes from the start of the run */
    uint64_t ceiling;     /* first boundary above it; the run's end when there is none */
    size_t floor_marks;   /* bytes of marks up to floor */
    size_t ceiling_marks; /* bytes of marks up to ceiling */
};

/* Finds the cut for `limit` bytes into the run; floor equals limit exactly when limit is itself a
 * boundary. Linear in the marks before it. */
struct marks_cut marks_cut_at(struct slice marks, uint64_t limit);

/* How much of a long run a short one may take: the most messages with at most RUN_MARKS_BYTES_MAX
 * bytes of marks and EXTENT_BYTES_MAX bytes of data, but at least one message. */
struct marks_run {
    uint64_t len;     /* bytes of data */
    size_t marks_len; /* bytes of marks */
};

/* The short run that `marks`, which are valid and not empty, begin with. Linear in that. */
struct marks_run marks_first_run(struct slice marks);

/* The same, but none when the first message exceeds `bytes_max` or `marks_max`. */
struct marks_run marks_fit(struct slice marks, uint64_t bytes_max, size_t marks_max);

#endif
