/* How long things took: counts by size, exact to about 3 %, from which percentiles and a picture
 * are drawn. 15 KiB; never fails. One thread; sums of several threads' are made at the end. */
#ifndef ARBE_CLI_LATENCY_H
#define ARBE_CLI_LATENCY_H

#include "cli/out.h"

#include <stdint.h>

#define LATENCY_STEPS 32u /* of each doubling */
#define LATENCY_BINS  (60u * LATENCY_STEPS)

/* Zeroed is empty. */
struct latency {
    uint64_t counts[LATENCY_BINS]; /* by bin: see latency.c */
    uint64_t count;
    uint64_t min; /* nanoseconds; of nothing: 0 */
    uint64_t max;
};

/* Counts one of `ns` nanoseconds. */
void latency_add(struct latency *l, uint64_t ns);

/* Adds all that `more` has counted. */
void latency_merge(struct latency *l, const struct latency *more);

/* Nanoseconds that `part` (0 to 1) of all stayed below or reached; 0 when there are none. */
uint64_t latency_quantile(const struct latency *l, double part);

/* Writes nanoseconds for people: "340 us". */
void latency_format(char *out, size_t size, uint64_t ns);

/* Adds a line of percentiles and a bar for each size that occurred: many lines. */
void latency_print(const struct latency *l, struct out *o);

/* Adds an object of percentiles, in microseconds. */
void latency_print_json(const struct latency *l, struct out *o);

#endif
