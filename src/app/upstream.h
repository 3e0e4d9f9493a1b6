/* Reads of streams that another server has: a GET or HEAD is asked there, and what comes back goes
 * to the client as if it had asked there itself, but that it needs no secret and sees none. Bytes
 * go through as they come; who takes none holds up its own answer only, and memory for it is
 * bounded.
 *
 * One thread does all of it. The files: upstream_request.h is what is asked, upstream_head.h what
 * of the answer's head is told, relay.h one answer on its way, relay_fetch.h its side of the other
 * server, relay_serve.h its side of the client. */
#ifndef ARBE_APP_UPSTREAM_H
#define ARBE_APP_UPSTREAM_H

#include "base/err.h"
#include "base/logger.h"
#include "serve/exchange.h"
#include "thread/api_error.h"

struct upstream;

/* Times in milliseconds and numbers; 0: as in base/limits.h. */
struct upstream_bounds {
    unsigned relays_max;
    uint64_t connect_ms;
    uint64_t head_ms;
    uint64_t long_poll_ms;
    uint64_t drain_ms;
    uint64_t silence_ms;
};

struct upstream_config {
    const char *url;     /* what comes before the names of streams */
    struct slice secret; /* empty: none is shown */
    const struct logger *logger;
    /* Answers an exchange with a refusal, on its worker. */
    void (*refuse)(struct exchange *x, enum api_code code, const char *sentence);
    /* Called once, drain_ms after upstream_stop, on the thread; may be NULL. Must not block. */
    void (*late)(void *context);
    void *late_context;
    struct upstream_bounds bounds;
};

/* Starts the thread. Logs when the other server cannot be read from, and when it can again. ERR_*
 * with a sentence. */
int upstream_open(const struct upstream_config *config, struct upstream **ret_upstream,
                  struct errmsg *msg) MUST_USE;

/* The server is to end: what the other server has not begun to say after drain_ms, or falls silent
 * in for so long, is given up. Any thread; does not block. Accepts NULL. */
void upstream_stop(struct upstream *u);

/* The workers have ended. Accepts NULL. */
void upstream_close(struct upstream *u);

/* Reads under way, for metrics. Any thread. */
uint64_t upstream_relays(struct upstream *u);

/* Answers a GET or HEAD, whose head is in place, with what the other server says of the stream
 * `name`, now or later. `query` is the client's own, ptr NULL: none. On the exchange's worker. */
void upstream_read(struct upstream *u, struct exchange *x, struct slice name, struct slice query);

#endif
