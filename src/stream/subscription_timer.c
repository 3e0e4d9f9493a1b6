/* When subscriptions are due: a binary heap, the earliest first. */
#include <assert.h>
#include <stdlib.h>

#include "stream/subscription_core.h"

#define TIMERS_MIN 16u

int timer_reserve(struct subscriptions *s)
{
    if (s->by_id.count < s->timer_cap) {
        return 0;
    }
    size_t cap = s->timer_cap ? 2 * s->timer_cap : TIMERS_MIN;
    struct subscription **timers = realloc(s->timers, cap * sizeof(struct subscription *));
    if (!timers) {
        return ERR_NOMEM;
    }
    s->timers = timers;
    s->timer_cap = cap;
    return 0;
}

static void put(struct subscriptions *s, size_t at, struct subscription *sub)
{
    s->timers[at] = sub;
    sub->timer = at + 1;
}

static void sift_up(struct subscriptions *s, size_t at, struct subscription *sub)
{
    while (at > 0 && s->timers[(at - 1) / 2]->due_ms > sub->due_ms) {
        put(s, at, s->timers[(at - 1) / 2]);
        at = (at - 1) / 2;
    }
    put(s, at, sub);
}

static void sift_down(struct subscriptions *s, size_t at, struct subscription *sub)
{
    for (;;) {
        size_t child = 2 * at + 1;
        if (child + 1 < s->timer_count && s->timers[child + 1]->due_ms < s->timers[child]->due_ms) {
            child++;
        }
        if (child >= s->timer_count || s->timers[child]->due_ms >= sub->due_ms) {
            break;
        }
        put(s, at, s->timers[child]);
        at = child;
    }
    put(s, at, sub);
}

static void take_out(struct subscriptions *s, struct subscription *sub)
{
    size_t at = sub->timer - 1;
    struct subscription *last = s->timers[--s->timer_count];
    sub->timer = 0;
    if (last == sub) {
        return;
    }
    sift_up(s, at, last);
    sift_down(s, last->timer - 1, last);
}

void timer_set(struct subscriptions *s, struct subscription *sub, uint64_t due_ms)
{
    if (sub->timer > 0) {
        if (sub->due_ms == due_ms) {
            return;
        }
        take_out(s, sub);
    }
    sub->due_ms = due_ms;
    if (due_ms != UINT64_MAX) {
        assert(s->timer_count < s->timer_cap);
        sift_up(s, s->timer_count++, sub);
    }
}

struct subscription *timer_first(const struct subscriptions *s)
{
    return s->timer_count > 0 ? s->timers[0] : NULL;
}
