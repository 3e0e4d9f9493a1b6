/* Buckets for the histogram: exact below 64, then 64 steps to each power of two. */
#include "hist.h"

static unsigned bucket_of(uint64_t value)
{
    const uint64_t steps = 1u << HIST_SUB_BITS;
    if (value < steps) {
        return (unsigned)value;
    }
    unsigned shift = 63u - (unsigned)__builtin_clzll(value) - HIST_SUB_BITS;
    uint64_t bucket = ((uint64_t)(shift + 1) << HIST_SUB_BITS) + (value >> shift) - steps;
    return bucket < HIST_BUCKETS ? (unsigned)bucket : HIST_BUCKETS - 1u;
}

static uint64_t bucket_edge(unsigned bucket)
{
    const unsigned steps = 1u << HIST_SUB_BITS;
    if (bucket < steps) {
        return bucket;
    }
    unsigned shift = (bucket >> HIST_SUB_BITS) - 1;
    return (uint64_t)(steps + (bucket & (steps - 1))) << shift;
}

void hist_entry_add(struct hist *hist, uint64_t value_us)
{
    hist->buckets[bucket_of(value_us)]++;
    hist->count++;
    if (value_us > hist->max_us) {
        hist->max_us = value_us;
    }
}

uint64_t hist_percentile_get(const struct hist *hist, double percent)
{
    uint64_t wanted = (uint64_t)((double)hist->count * percent / 100.0);
    uint64_t seen = 0;
    for (unsigned i = 0; i < HIST_BUCKETS; i++) {
        seen += hist->buckets[i];
        if (seen > wanted) {
            return bucket_edge(i);
        }
    }
    return hist->max_us;
}
