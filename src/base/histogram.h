/* How often values of each size occurred. The bounds are powers of two, 1 to 2^31, so that finding
 * the right one is one instruction and all histograms share them; what the values count (records,
 * microseconds) is the owner's business.
 *
 * One thread observes, any thread reads: see counter.h. 272 bytes. Never fails. */
#ifndef ARBE_BASE_HISTOGRAM_H
#define ARBE_BASE_HISTOGRAM_H

#include "base/counter.h"

#define HISTOGRAM_BOUNDS 32u

/* Zeroed is empty. */
struct histogram {
    struct counter counts[HISTOGRAM_BOUNDS + 1]; /* [i]: over 2^(i-1), up to 2^i; [0]: up to 1; the
                                                    last: over 2^31 */
    struct counter sum;                          /* of the values; wraps at 2^64 */
};

/* A reader's copy, or the sum of several threads' histograms. Zeroed is empty. */
struct histogram_totals {
    uint64_t counts[HISTOGRAM_BOUNDS + 1]; /* as in struct histogram */
    uint64_t sum;                          /* likewise */
};

/* Counts `value`. The one thread that observes. */
void histogram_observe(struct histogram *h, uint64_t value);

/* Adds what was observed up to some moment of the call to *totals. Any thread. */
void histogram_add_to(const struct histogram *h, struct histogram_totals *totals);

/* Values counted that are at most 2^bound; those above HISTOGRAM_BOUNDS - 1: all of them. */
uint64_t histogram_count_to(const struct histogram_totals *totals, unsigned bound);

#endif
