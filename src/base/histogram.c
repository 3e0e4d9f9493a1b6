/* The bucket of a value is the number of bits of the value less one: 5 to 8 all have three bits
 * when one is taken away, and belong under 2^3. */
#include "base/histogram.h"

static unsigned bucket_of(uint64_t value)
{
    if (value <= 1) {
        return 0;
    }
    unsigned bits = 64 - (unsigned)__builtin_clzll(value - 1);

    return bits < HISTOGRAM_BOUNDS ? bits : HISTOGRAM_BOUNDS;
}

void histogram_observe(struct histogram *h, uint64_t value)
{
    counter_add(&h->counts[bucket_of(value)], 1);
    counter_add(&h->sum, value);
}

void histogram_add_to(const struct histogram *h, struct histogram_totals *totals)
{
    for (unsigned i = 0; i <= HISTOGRAM_BOUNDS; i++) {
        totals->counts[i] += counter_get(&h->counts[i]);
    }
    totals->sum += counter_get(&h->sum);
}

uint64_t histogram_count_to(const struct histogram_totals *totals, unsigned bound)
{
    uint64_t count = 0;

    for (unsigned i = 0; i <= bound && i <= HISTOGRAM_BOUNDS; i++) {
        count += totals->counts[i];
    }
    return count;
}
