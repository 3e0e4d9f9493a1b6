/* When to try again: exponential back-off with jitter, and what the server asked for. Pure: the
 * caller has the clock and the dice. */
#ifndef ARBE_CLIENT_RETRY_H
#define ARBE_CLIENT_RETRY_H

#include "arbe/stream_client.h"

#include <stdbool.h>
#include <stdint.h>

struct retry {
    const struct stream_retry *rules; /* borrowed */
    int tries;                        /* that failed since the last success */
    double delay_ms;                  /* of the next pause, before jitter */
};

/* STREAM_OK, or ARGUMENT with a sentence that names the option which makes no sense. */
int retry_check(const struct stream_retry *rules, struct stream_error *ret_error);

/* Begins anew, as after a success; also to initialise. */
void retry_reset(struct retry *retry, const struct stream_retry *rules);

/* A try has failed: false when it was the last one, else how long to pause. `retry_after_ms`: what
 * the server asked for, -1 for nothing; `dice`: 64 random bits. */
bool retry_next(struct retry *retry, long retry_after_ms, uint64_t dice, uint64_t *ret_pause_ms);

#endif
