/* How many streams a data directory has and how many bytes they hold, and how many both may be:
 * --max-streams and --max-bytes. Any thread; nothing blocks.
 *
 * What is counted: a stream from its creation until it is gone for good, so also one that was
 * deleted and is kept for its forks; its bytes as they are stored, those that a fork inherits only
 * at their source. The counts are those of the staged states: a creation or an append takes its
 * share before its record is staged and gives it back if that is refused, and a deletion gives
 * back when its record is staged. So what the log has never is above a limit, since it has the
 * deletion before whatever took its place. */
#ifndef ARBE_STREAM_QUOTA_H
#define ARBE_STREAM_QUOTA_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>

#include "base/err.h"

struct stream;
struct stream_state;

struct quota {
    _Atomic uint64_t streams;     /* counted now */
    _Atomic uint64_t bytes;       /* likewise */
    _Atomic uint64_t streams_max; /* 0: any number */
    _Atomic uint64_t bytes_max;   /* 0: any number */
    pthread_mutex_t lock;         /* held by those that take of both */
};

/* A share of both counts. */
struct quota_share {
    uint64_t streams;
    uint64_t bytes;
};

/* No streams, no limits. */
void quota_init(struct quota *q);

/* Nobody takes or gives any more. */
void quota_finish(struct quota *q);

/* Sets the limits; 0: none. What is above a new one stays. */
void quota_limit(struct quota *q, uint64_t streams_max, uint64_t bytes_max);

/* Takes all of the share, or nothing: ERR_NOSPC with a sentence. A share of no streams and no bytes
 * is always there. */
int quota_take(struct quota *q, struct quota_share share, struct errmsg *msg) MUST_USE;

/* Gives back what was taken or counted. */
void quota_give(struct quota *q, struct quota_share share);

/* Counts what is there, whatever the limits: for recovery. */
void quota_count(struct quota *q, struct quota_share share);

/* What a stream in `state` has of the counts. Under the stream's lock. */
struct quota_share quota_share_of(const struct stream *s, const struct stream_state *state);

#endif
