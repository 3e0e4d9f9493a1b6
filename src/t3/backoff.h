/* How long to pause before a server is asked again: longer each time, and shortened at random, so
 * that a crowd that lost its server at once does not come back at once. Pure: the caller has the
 * clock and the dice. The caller's memory; one thread. */
#ifndef ARBE_T3_BACKOFF_H
#define ARBE_T3_BACKOFF_H

#include <stdint.h>

struct t3_backoff {
    int initial_ms;
    int max_ms;
    double multiplier;
    double delay_ms; /* of the next pause, before it is shortened */
};

/* NULL, or a sentence that says which of these makes no sense. Static storage. */
const char *t3_backoff_check(int initial_ms, int max_ms, double multiplier);

/* Begins with the shortest pause; the numbers are good. */
void t3_backoff_init(struct t3_backoff *backoff, int initial_ms, int max_ms, double multiplier);

/* Begins anew with the shortest pause. */
void t3_backoff_reset(struct t3_backoff *backoff);

/* Goes straight to the longest pause. */
void t3_backoff_jump(struct t3_backoff *backoff);

/* The next pause in milliseconds, above 0: its length less a part of up to a half, as `dice`, 64
 * random bits, say. Those after it are longer, up to the maximum. */
int t3_backoff_next(struct t3_backoff *backoff, uint64_t dice);

#endif
