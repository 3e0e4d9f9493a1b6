/* A number for the operator that one thread changes and any thread reads. Without a lock and
 * without a locked instruction: changing it costs what changing a plain number costs, so it may
 * stand where every request passes. A reader sees each number as of some moment, and never goes
 * back; two numbers read one after the other need not fit together. */
#ifndef ARBE_BASE_COUNTER_H
#define ARBE_BASE_COUNTER_H

#include <stdatomic.h>
#include <stdint.h>

/* Zeroed is 0. */
struct counter {
    _Atomic uint64_t value;
};

/* As of some moment. Any thread. */
static inline uint64_t counter_get(const struct counter *c)
{
    return atomic_load_explicit(&c->value, memory_order_relaxed);
}

/* For what goes down too. The one thread that changes it, or several that hold one lock. */
static inline void counter_set(struct counter *c, uint64_t value)
{
    atomic_store_explicit(&c->value, value, memory_order_relaxed);
}

/* Wraps at 2^64, so adding UINT64_MAX takes one away. Threads as counter_set. */
static inline void counter_add(struct counter *c, uint64_t count)
{
    counter_set(c, counter_get(c) + count);
}

#endif
