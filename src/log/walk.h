/* Walking over the log's records: a window on the bytes, and the proof of the record at a position.
 * Shared by recovery, which replays, and by the tools, which only look. Blocks. One thread. */
#ifndef ARBE_LOG_WALK_H
#define ARBE_LOG_WALK_H

#include "log/chain.h"
#include "log/record.h"

/* What the walk carries from record to record. */
struct walk {
    struct chain *chain;  /* borrowed */
    log_pos limit;        /* end of the chain */
    uint32_t epoch;       /* of the record before; the next one's is not below */
    uint32_t epoch_below; /* and is below this one */
    /* private */
    char *bytes;      /* owned; the window */
    size_t cap;       /* of bytes */
    log_pos start;    /* position of bytes[0] */
    size_t len;       /* bytes read */
    int window_error; /* what ended the last read */
};

/* Begins a walk over the whole of `chain`. ERR_NOMEM. */
int walk_init(struct walk *k, struct chain *chain, uint32_t epoch_below) MUST_USE;

/* Frees the window. Accepts a zeroed struct. */
void walk_finish(struct walk *k);

/* The `len` bytes at `pos`, borrowed until the next call; NULL when the log has not so many or a
 * read failed (walk_error). */
const char *walk_bytes(struct walk *k, log_pos pos, size_t len);

/* The error of the read that walk_bytes made, 0 when the log ended. */
int walk_error(const struct walk *k);

/* Proves the record at `pos`, as wal.c says. 0 and the record, which borrows from the window, with
 * its end; ERR_CORRUPT when there is none; or the error of a read. */
int walk_prove(struct walk *k, log_pos pos, struct record *ret_record, log_pos *ret_end) MUST_USE;

/* Counts whole records within WALK_SEARCH_BYTES behind `pos`, where there is none, and behind each
 * other: the log is damaged there, or the last batch was torn. 0 or the error of a read. */
int walk_count_stranded(struct walk *k, log_pos pos, uint64_t *ret_count) MUST_USE;

/* `bytes` with the zeros that are written behind them. */
uint64_t walk_padded(uint64_t bytes);

/* Bytes of the log that are read at once. */
#define WALK_READ_BYTES (1024u * 1024)

/* How far behind damage whole records are looked for. */
#define WALK_SEARCH_BYTES (16u * 1024 * 1024)

#endif
