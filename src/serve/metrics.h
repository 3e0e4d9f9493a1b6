/* /metrics: the server's numbers in the Prometheus text format. docs/operations.md has the table of
 * them, and 62_metrics.test.mjs holds it against the answer. Labels are few and bounded; no name of
 * a stream or a subscription is ever told. */
#ifndef ARBE_SERVE_METRICS_H
#define ARBE_SERVE_METRICS_H

#include "serve/exposition.h"
#include "serve/process.h"
#include "serve/tally.h"
#include "serve/webhook.h"
#include "stream/engine.h"
#include "stream/subscriptions.h"

/* All that is told, as of one scrape. */
struct metrics {
    struct tally tally; /* of all workers */
    struct engine_stats engine;
    struct store_health health;
    struct subscriptions_stats subscriptions;
    struct webhook_stats webhooks;
    struct process_stats process;
    uint64_t connections;     /* open */
    uint64_t connections_max; /* above it they are refused */
    uint64_t waiters_max;     /* above it live readers are refused; 0: any number */
    uint64_t body_bytes;      /* reserved for request bodies */
    uint64_t body_bytes_max;
    uint64_t started_ms; /* since 1970 UTC */
};

/* Appends the whole exposition. Failure sticks to the buffer. */
void metrics_format(struct buf *out, const struct metrics *m);

#endif
