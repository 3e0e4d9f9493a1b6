/* The segments that make up the log at this moment, as one run of positions without gaps, and
 * reading and writing across their borders.
 *
 * Adding at the end, taking from the front and finding are locked inside. A segment that holds
 * positions a caller still needs is not taken away, so the pointers it found stay good. */
#ifndef ARBE_LOG_CHAIN_H
#define ARBE_LOG_CHAIN_H

#include <pthread.h>

#include "log/segment.h"

#define CHAIN_IOV_MAX 1024

struct chain {
    const struct segment_dir *dir; /* borrowed */
    pthread_mutex_t lock;          /* guards segments */
    struct list segments;          /* struct segment, ascending and contiguous; owned */
};

/* An empty chain. */
void chain_init(struct chain *c, const struct segment_dir *dir);

/* Closes all segments. */
void chain_finish(struct chain *c);

/* Takes over `s`, which begins where the chain ends, or anywhere when it is empty. */
void chain_append(struct chain *c, struct segment *s);

/* The segment that holds `pos`, or NULL. */
struct segment *chain_find(struct chain *c, log_pos pos);

/* One past the last position, or 0 for an empty chain. */
log_pos chain_end(struct chain *c);

/* What the files take on the disk. */
uint64_t chain_file_bytes(struct chain *c);

/* Takes the first segment out if it ends at or before `pos` and is not the last; else NULL. */
struct segment *chain_take_before(struct chain *c, log_pos pos);

/* Reads up to `len` bytes from `pos`; what a file lacks of its size reads as zeros. Bytes read,
 * fewer only at the end of the chain; ERR_IO. */
int64_t chain_read(struct chain *c, log_pos pos, void *out, size_t len);

/* Gathers bytes for one position after the other and writes them, split at segment borders. */
struct chain_writer {
    struct chain *chain;
    log_pos pos;                     /* where the next byte goes */
    struct segment *segment;         /* that holds the gathered bytes; NULL at first */
    uint64_t offset;                 /* in its file, of the gathered bytes */
    int count;                       /* pieces gathered */
    int error;                       /* sticky */
    struct iovec iov[CHAIN_IOV_MAX]; /* the pieces; borrowed bytes */
};

/* Starts at `pos`. */
void chain_writer_init(struct chain_writer *w, struct chain *c, log_pos pos);

/* Adds bytes, which must stay until chain_writer_flush. The chain has room for them. */
void chain_writer_put(struct chain_writer *w, const void *bytes, size_t len);

/* Writes what is gathered; returns the first error of all. */
int chain_writer_flush(struct chain_writer *w) MUST_USE;

/* Syncs each segment that holds positions of from..to and was written since its last sync. */
int chain_sync(struct chain *c, log_pos from, log_pos to) MUST_USE;

#endif
