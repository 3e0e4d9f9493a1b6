/* What a reader is subscribed to, and how far each of it has come on the connection that it has.
 * Found by walking: a reader has hundreds at most, and each has much more to do. The caller's
 * memory; one thread. */
#ifndef ARBE_T3_SUBSCRIPTIONS_H
#define ARBE_T3_SUBSCRIPTIONS_H

#include "base/attr.h"
#include "base/list.h"
#include "base/slice.h"
#include "t3/backoff.h"

#include <stdbool.h>
#include <stdint.h>

struct t3_subscription {
    struct list in_all; /* of t3_subscriptions.all */
    uint64_t id;        /* the reader's; never used again */
    uint64_t request;   /* the connection's; 0: not asked for on it */
    bool unacked;       /* the chunk that was given last waits to be acknowledged */
    uint64_t live_ms;   /* when its first chunk was acknowledged; 0: not yet */
    uint64_t due_ms;    /* it broke off, and is asked for again then; 0: at once */
    struct t3_backoff backoff;
    const char *payload; /* a JSON object; behind the method */
    char method[];       /* NUL-terminated */
};

struct t3_subscriptions {
    struct list all; /* in the order in which they were made */
    int count;
    uint64_t ids; /* given out so far */
};

/* The subscription that a node of `all` is. */
static inline struct t3_subscription *t3_subscription_of(struct list *node)
{
    return container_of(node, struct t3_subscription, in_all);
}

/* Its stream has ended, and is yet to be asked for again. */
void t3_subscription_restart(struct t3_subscription *subscription);

/* None yet. */
void t3_subscriptions_init(struct t3_subscriptions *subscriptions);

/* Frees them all. */
void t3_subscriptions_finish(struct t3_subscriptions *subscriptions);

/* Adds one with an id of its own; all is copied. NULL: out of memory. */
struct t3_subscription *t3_subscriptions_add(struct t3_subscriptions *subscriptions,
                                             struct slice method, struct slice payload,
                                             const struct t3_backoff *backoff);

/* Frees one of them. */
void t3_subscriptions_remove(struct t3_subscriptions *subscriptions,
                             struct t3_subscription *subscription);

/* By the reader's id, or by the connection's, which is not 0. NULL: there is none; lives until it
 * is removed. */
struct t3_subscription *t3_subscriptions_find(const struct t3_subscriptions *subscriptions,
                                              uint64_t id);
struct t3_subscription *t3_subscriptions_find_request(const struct t3_subscriptions *subscriptions,
                                                      uint64_t request);

/* The connection has ended: all are to be asked for on the next one, at once. */
void t3_subscriptions_restart(struct t3_subscriptions *subscriptions);

/* Whether all are live; so they are where there is none. */
bool t3_subscriptions_live(const struct t3_subscriptions *subscriptions);

/* When the first of them is to be asked for again. 0: none waits for that. */
uint64_t t3_subscriptions_due_ms(const struct t3_subscriptions *subscriptions);

#endif
