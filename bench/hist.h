/*
 * A log-linear histogram of microseconds for the load programs.
 *
 * Cost: one increment an entry and 14 KiB a histogram, whatever the number of entries. A
 * percentile is the lower edge of its bucket, at most 1.6 % under the true value; the largest
 * value is kept exactly. One thread at a time. Nothing here fails or allocates. The caller owns
 * the struct, and a zeroed one is empty and ready.
 */
#ifndef BENCH_HIST_H
#define BENCH_HIST_H

#include <stdint.h>

#define HIST_SUB_BITS 6 /* 64 steps between two powers of two */
#define HIST_BUCKETS  (28 << HIST_SUB_BITS)

struct hist {
    uint64_t count;                 /* entries so far */
    uint64_t max_us;                /* largest entry, exact */
    uint64_t buckets[HIST_BUCKETS]; /* entries by size; the last one also takes all larger */
};

/* Adds one entry of any size. */
void hist_entry_add(struct hist *hist, uint64_t value_us);

/* The value under which `percent` (0 to 100) of the entries lie; 0 when there are none. */
uint64_t hist_percentile_get(const struct hist *hist, double percent);

#endif
