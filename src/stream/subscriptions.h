/* The subscriptions of one engine (PROTOCOL.md 6 and 7): a service with a thread of its own, which
 * owns all their state; nobody else reads or writes it. Requests, appends and answers of webhooks
 * reach it through queues, and everything it decides is in the log before anybody learns of it:
 * see subscription_store.h for what is kept and subscription.h for the states.
 *
 * It sends nothing itself: a webhook goes out through `deliver`, a wake event through the engine.
 * Any thread may call what is declared here, unless it says otherwise. */
#ifndef ARBE_STREAM_SUBSCRIPTIONS_H
#define ARBE_STREAM_SUBSCRIPTIONS_H

#include "base/buf.h"
#include "base/err.h"
#include "base/task.h"
#include "stream/engine.h"

/* Bytes of a key id, with its NUL. */
#define SUBSCRIPTION_KID_BYTES_MAX 64u

/* Bytes of the key that tokens are signed with. */
#define SUBSCRIPTION_TOKEN_KEY_BYTES 32u

struct subscriptions;

/* One webhook request to be sent, made by the service and given back to it. */
struct subscription_delivery {
    struct slice url;  /* where to; both live until subscriptions_delivered */
    struct slice body; /* JSON: the exact bytes to sign and to send */
    void *sender;      /* the sender's own */

    /* private */
    struct task sending;         /* brings the news that it is being sent */
    struct task task;            /* brings the answer back */
    struct subscriptions *owner; /* whom it is given back to */
    struct subscription *about;  /* whose wake; it stays until then */
    uint64_t number;             /* of the subscription */
    uint64_t generation;         /* of the wake */
    struct buf url_bytes;        /* owned */
    struct buf body_bytes;       /* owned */
    int http_status;             /* the answer; 0: none */
    bool done;                   /* the answer said so */
};

struct subscriptions_config {
    struct engine *engine; /* outlives the service */
    struct pool *pool;     /* for listings, which block; outlives the service */
    struct sys *sys;       /* clocks and randomness */
    const char *base_url;  /* public URL + "/v1/stream/__ds", no slash at the end; copied */
    uint8_t token_key[SUBSCRIPTION_TOKEN_KEY_BYTES];
    bool webhooks_off; /* refuse those of type webhook */

    /* Streams whose names begin so are as if they were not: no pattern matches them, no link leads
     * to them, no event is written there, and who names one is refused with the sentence. What was
     * stored of them earlier stays, for when there is no such prefix. Empty: none. Both outlive the
     * service. */
    struct slice reserved;
    const char *reserved_why;

    void *context; /* first argument of the functions below */

    /* Whether a webhook may have that URL: pure, no look-ups. ERR_INVALID with a sentence. */
    int (*check_url)(void *context, struct slice url, struct errmsg *msg);
    /* The id of the key that signs at present, NUL-terminated. Must not block. */
    void (*get_kid)(void *context, char out[static SUBSCRIPTION_KID_BYTES_MAX]);
    /* Sends it; must not block. It is the sender's until subscriptions_delivered, which follows
     * once, whatever happens. On the service's thread. */
    void (*deliver)(void *context, struct subscription_delivery *d);
    /* A sentence for the operator. On the service's thread. May be NULL. */
    void (*trouble)(void *context, const char *sentence);
};

/* Reads what the engine keeps, starts the thread. Blocks. ERR_NOMEM, ERR_AGAIN (no thread), or an
 * error of the catalog. ERR_CORRUPT: a note that does not prove itself; `msg` says which. */
int subscriptions_open(const struct subscriptions_config *config, struct subscriptions **ret_s,
                       struct errmsg *msg) MUST_USE;

/* From here on no new operation is taken (503), no wake is made and nothing is sent; what is under
 * way ends. May be called twice. Does not block. */
void subscriptions_stop(struct subscriptions *s);

/* Whether nothing is under way any more: after subscriptions_stop that comes in bounded time, for
 * webhooks once the sender has given them back. */
bool subscriptions_stopped(const struct subscriptions *s);

/* Stops, waits for what is under way, joins the thread, frees. The sender has given back, or is
 * about to give back, every delivery. Blocks. Accepts NULL. */
void subscriptions_close(struct subscriptions *s);

/* The sender begins to send it, after it may have waited for its turn: the lease runs from here on.
 * Any thread, once at most for each, before subscriptions_delivered. */
void subscriptions_sending(struct subscriptions *s, struct subscription_delivery *d);

/* The answer to a delivery: HTTP status, 0 when there was none, and the body of the reply, borrowed
 * for the call. `d` is gone afterwards. Any thread, once for each, also while stopping. */
void subscriptions_delivered(struct subscriptions *s, struct subscription_delivery *d,
                             int http_status, struct slice reply);

enum subscription_verb {
    SUBSCRIPTION_PUT,      /* create or re-confirm: PROTOCOL.md 6.2 */
    SUBSCRIPTION_GET,      /* 6.3 */
    SUBSCRIPTION_DELETE,   /* 6.3 */
    SUBSCRIPTION_LINK,     /* POST .../streams: 6.4 */
    SUBSCRIPTION_UNLINK,   /* DELETE .../streams/:path: 6.4 */
    SUBSCRIPTION_CALLBACK, /* 7.1 */
    SUBSCRIPTION_CLAIM,    /* 7.2 */
    SUBSCRIPTION_ACK,      /* 7.2 */
    SUBSCRIPTION_RELEASE,  /* 7.2 */
};

/* One request. Fill in the first part, call subscription_start, and `done` brings the answer. The
 * operation and all that it borrows must live until then; it always comes, in bounded time. */
struct subscription_op {
    enum subscription_verb verb;
    struct slice id;    /* decoded; empty or too long is answered here */
    struct slice path;  /* unlink: what follows "streams/" in the URL, still escaped */
    struct slice body;  /* raw JSON; empty is {}; over SUBSCRIPTION_BODY_BYTES_MAX is 413 */
    struct slice token; /* what follows "Bearer "; ptr NULL: no Authorization, or an odd one */
    task_post_fn post;  /* to where `done` runs */
    void *post_context;
    void (*done)(struct subscription_op *op); /* never before subscription_start returns, if the
                                                 poster is the same thread's queue */
    void *context;                            /* the caller's */

    int status;        /* HTTP status */
    int code;          /* ERR_* of log, catalog or memory behind it; 0: none, as the API refuses */
    struct buf answer; /* JSON; empty for 204; the caller finishes it */

    /* private */
    struct task task; /* to the service, and back */
    struct list link; /* waits for its turn on its subscription */
    struct subscriptions *owner;
    struct subscription_request *request; /* what it says; owned */
};

/* Begins the operation; `done` follows. Any thread; does not block. When too many wait it is
 * answered 503. */
void subscription_start(struct subscriptions *s, struct subscription_op *op);

/* Counts for /metrics, each right at some moment of the call. */
struct subscriptions_stats {
    uint64_t subscriptions;      /* that exist */
    uint64_t tombstones;         /* deleted, whose generation is kept */
    uint64_t links;              /* streams linked, over all of them */
    uint64_t leases;             /* held by a worker at present */
    uint64_t queue;              /* operations that wait for their answers */
    uint64_t deliveries_active;  /* webhooks at the sender */
    uint64_t deliveries_waiting; /* for a place at the sender */
    uint64_t wakes;              /* made since the start */
    uint64_t deliveries_ok;      /* answered 2xx */
    uint64_t deliveries_failed;  /* answered otherwise */
    uint64_t deliveries_lost;    /* not answered */
    uint64_t events_written;     /* wake events of pull-wake */
    uint64_t events_failed;      /* attempts to write one that failed */
    uint64_t leases_expired;
    uint64_t links_refused; /* streams that matched when the subscription was full */
};

/* Any thread; does not block. */
void subscriptions_get_stats(const struct subscriptions *s, struct subscriptions_stats *ret_stats);

#endif
