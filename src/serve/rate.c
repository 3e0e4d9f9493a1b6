/* The bucket is one number: the time at which it is full again. What is taken moves that on by the
 * time that bringing it takes, and it may lie a second ahead at most, the size of the bucket. */
#include "serve/rate.h"

#include <assert.h>
#include <stdbool.h>

#define SECOND_NS 1000000000ull

void rate_set(struct rate *r, uint64_t per_second)
{
    if (atomic_exchange(&r->per_second, per_second) != per_second) {
        /* What is owed was counted in the time of the old limit, so that a large body taken under a
         * small one would keep everybody out long after it was raised. */
        atomic_store(&r->full_from_ns, 0);
    }
}

uint64_t rate_get(const struct rate *r)
{
    return atomic_load_explicit(&r->per_second, memory_order_relaxed);
}

/* How long bringing `amount` takes, rounded up. */
static uint64_t cost_ns(uint64_t amount, uint64_t per_second)
{
    uint64_t whole = amount / per_second;
    uint64_t rest = amount % per_second;
    uint64_t cost = 0;

    if (__builtin_mul_overflow(whole, SECOND_NS, &cost)) {
        return UINT64_MAX;
    }
    /* `rest` is below `per_second`, so this is at most a second. */
    uint64_t part = rest <= UINT64_MAX / SECOND_NS - 1
                        ? (rest * SECOND_NS + per_second - 1) / per_second
                        : SECOND_NS;

    return __builtin_add_overflow(cost, part, &cost) ? UINT64_MAX : cost;
}

static uint64_t add_ns(uint64_t a, uint64_t b)
{
    uint64_t sum = 0;

    return __builtin_add_overflow(a, b, &sum) ? UINT64_MAX : sum;
}

static uint64_t max_ns(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

uint64_t rate_take(struct rate *r, uint64_t now_us, uint64_t amount)
{
    uint64_t per_second = rate_get(r);

    assert(amount > 0);
    if (per_second == 0) {
        return 0;
    }
    uint64_t now = now_us * 1000;
    uint64_t cost = cost_ns(amount, per_second);
    uint64_t needed = cost < SECOND_NS ? cost : SECOND_NS;
    uint64_t full = atomic_load(&r->full_from_ns);
    uint64_t next = 0;

    do {
        uint64_t from = max_ns(full, now);
        uint64_t missing = add_ns(from - now, needed);

        if (missing > SECOND_NS) {
            return (missing - 1) / SECOND_NS; /* less a second, in whole ones, rounded up */
        }
        next = add_ns(from, cost);
    } while (!atomic_compare_exchange_weak(&r->full_from_ns, &full, next));
    return 0;
}

void rate_charge(struct rate *r, uint64_t now_us, uint64_t amount)
{
    uint64_t per_second = rate_get(r);

    if (per_second == 0 || amount == 0) {
        return;
    }
    uint64_t cost = cost_ns(amount, per_second);
    uint64_t full = atomic_load(&r->full_from_ns);

    while (!atomic_compare_exchange_weak(&r->full_from_ns, &full,
                                         add_ns(max_ns(full, now_us * 1000), cost))) {
    }
}

void rate_return(struct rate *r, uint64_t amount)
{
    uint64_t per_second = rate_get(r);

    if (per_second == 0 || amount == 0) {
        return;
    }
    uint64_t cost = cost_ns(amount, per_second);
    uint64_t full = atomic_load(&r->full_from_ns);

    /* A time in the past stands for a full bucket, however long ago it is. */
    while (!atomic_compare_exchange_weak(&r->full_from_ns, &full, full > cost ? full - cost : 0)) {
    }
}
