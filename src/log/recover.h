/* Recovery of the write-ahead log: finds the segments, walks the records from the checkpoint on,
 * cuts the log behind the last good one. recover.c opens with the rules and why they hold. Used
 * once, by wal_open. */
#ifndef ARBE_LOG_RECOVER_H
#define ARBE_LOG_RECOVER_H

#include "log/chain.h"
#include "log/wal.h"

struct recovery {
    const struct wal_config *config;
    const struct segment_dir *dir; /* of the log */
    struct chain *chain;      /* empty before; filled with the segments that hold `start` and on */
    struct list *spares;      /* takes the segments that end before it */
    struct wal_report report; /* what was found */
    log_pos end;              /* behind the last good record */
};

/* Scans the directory and fills chain and spares. ERR_MISMATCH, ERR_IO, ... with a sentence. What
 * it leaves in chain and spares, also after an error, is the caller's to close. */
int recovery_scan(struct recovery *r, struct errmsg *msg) MUST_USE;

/* Walks the records, sets `end`, makes what was read durable, and cuts the log at `end`. */
int recovery_replay(struct recovery *r, wal_replay_fn replay, void *context,
                    struct errmsg *msg) MUST_USE;

#endif
