/* Housekeeping of the records, on a thread of its own: sessions and invites past their time, and
 * what deleted threads have left, go in small pieces, at the start and from time to time. */
#ifndef ARBE_APP_SWEEPER_H
#define ARBE_APP_SWEEPER_H

#include "base/err.h"

#include <stdint.h>

struct sweeper;
struct thread_store;

#define SWEEPER_INTERVAL_MS (10u * 60 * 1000)

struct sweeper_config {
    struct thread_store *store; /* outlives it */
    uint64_t interval_ms;       /* 0: SWEEPER_INTERVAL_MS; shorter for tests */
    /* A piece could not be swept: the next one comes with the next interval. On its thread. */
    void (*trouble)(void *context, const char *sentence);
    void *context;
};

/* Starts it. ERR_NOMEM, ERR_AGAIN. */
int sweeper_start(const struct sweeper_config *config, struct sweeper **ret_sweeper) MUST_USE;

/* Ends it, after the piece at hand. Blocks for as long as that takes. Accepts NULL. */
void sweeper_stop(struct sweeper *s);

#endif
