/* A limit of so much per second, shared by all workers: a bucket that holds what one second brings.
 * It costs a read of a line that nobody writes while there is no limit, and a compare-and-swap
 * otherwise. Any thread. The time is the caller's, monotonic; workers may be a little apart. */
#ifndef ARBE_SERVE_RATE_H
#define ARBE_SERVE_RATE_H

#include "base/attr.h"

#include <stdatomic.h>
#include <stdint.h>

#define RATE_LINE_BYTES 64 /* of the processor's cache */

struct rate {
    _Alignas(RATE_LINE_BYTES) atomic_uint_fast64_t per_second;   /* 0: no limit */
    _Alignas(RATE_LINE_BYTES) atomic_uint_fast64_t full_from_ns; /* then the bucket is full */
};

/* Sets the limit; 0: none. Another one than before begins with a full bucket, and so does a zeroed
 * struct; of the same one, what was taken stays taken. */
void rate_set(struct rate *r, uint64_t per_second);

/* The limit that rate_set set. */
uint64_t rate_get(const struct rate *r);

/* Takes `amount`, which is at least 1, and returns 0; or takes nothing and returns in how many
 * seconds to ask again, at least 1. More than the bucket holds is given when it is full, and the
 * next ones wait the longer. */
uint64_t rate_take(struct rate *r, uint64_t now_us, uint64_t amount) MUST_USE;

/* Takes what has been used already. */
void rate_charge(struct rate *r, uint64_t now_us, uint64_t amount);

/* Gives back what was taken and not used. Taken under another limit it may be worth more or less
 * than it was, but never more than a full bucket. */
void rate_return(struct rate *r, uint64_t amount);

#endif
