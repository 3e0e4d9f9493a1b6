/* Sends webhooks, by libcurl on a thread of its own (PROTOCOL.md 7.1). Each delivery is signed when
 * its turn comes, sent once, and given back with the answer; trying again is its owner's business.
 *
 * What a receiver can do is bounded: WEBHOOK_TIMEOUT_MS in all, WEBHOOK_REPLY_BYTES_MAX of a reply,
 * WEBHOOKS_PER_HOST_MAX at a time. No redirect and no proxy is followed, certificates are verified,
 * and nothing is connected to that the internet does not reach (address.h). Neither bodies nor
 * paths of URLs are logged, which may hold secrets.
 *
 * Any thread may call what is declared here. */
#ifndef ARBE_SERVE_WEBHOOK_H
#define ARBE_SERVE_WEBHOOK_H

#include "base/err.h"
#include "base/logger.h"
#include "base/slice.h"

#include <netdb.h>

struct keys;
struct subscription_delivery;
struct webhook;

struct webhook_config {
    struct keys *keys;           /* outlives the sender, which also refreshes them */
    const struct logger *logger; /* outlives the sender */
    bool allow_loopback;         /* --webhooks-allow-loopback */

    /* The answer: HTTP status, or 0 when there was none that counts, and the reply, borrowed for
     * the call. Once for each delivery; on the sender's thread, or within webhook_deliver. */
    void (*delivered)(void *context, struct subscription_delivery *d, int http_status,
                      struct slice reply);
    /* Its turn has come; likewise, before that. May be NULL. */
    void (*sending)(void *context, struct subscription_delivery *d);
    void *context;

    /* For tests; zero and NULL are the real thing. */
    uint64_t timeout_ms;    /* WEBHOOK_TIMEOUT_MS */
    const char *ca_file;    /* certificates to trust instead of the system's */
    uint32_t under_way_max; /* WEBHOOKS_MAX */
    uint32_t per_host_max;  /* WEBHOOKS_PER_HOST_MAX */
    uint32_t lookups_max;   /* WEBHOOK_LOOKUPS_MAX */
    int (*resolve)(const char *host, const char *port, const struct addrinfo *hints,
                   struct addrinfo **ret_answers); /* getaddrinfo, also in what it allocates */
};

/* Counts for /metrics. */
struct webhook_stats {
    uint64_t queued;    /* waiting for their turn at present */
    uint64_t under_way; /* at present */
    uint64_t answered;  /* with any status */
    uint64_t refused;   /* not sent: the host leads to an address that is not public */
    uint64_t timed_out;
    uint64_t failed;  /* otherwise: no address, no connection, bad certificate, reply too long */
    uint64_t aborted; /* given back unsent or unanswered since the server stops */
};

/* Starts the thread. ERR_NOMEM, ERR_AGAIN; with a sentence. */
int webhook_open(const struct webhook_config *config, struct webhook **ret_webhook,
                 struct errmsg *msg) MUST_USE;

/* Sends `d`, which is given back through `delivered`. Does not block. */
void webhook_deliver(struct webhook *w, struct subscription_delivery *d);

/* Gives back at once what waits for its turn, and after `grace_ms` what is under way. Does not
 * block. What is delivered from now on is given back at once. */
void webhook_stop(struct webhook *w, uint64_t grace_ms);

/* Stops without grace, unless webhook_stop gave some, waits until all is given back, joins the
 * thread, frees. Blocks for as long as the grace lasts. Accepts NULL. */
void webhook_close(struct webhook *w);

/* Does not block. */
void webhook_get_stats(struct webhook *w, struct webhook_stats *ret_stats);

#endif
