/* The JSON that the subscription API answers and sends (PROTOCOL.md 6.3, 7.1, 7.2), from plain
 * values: this file knows names and order of members, and nothing of how subscriptions are kept.
 * All of it appends to a buffer and fails by the buffer's sticky failure. */
#ifndef ARBE_STREAM_SUBSCRIPTION_VIEW_H
#define ARBE_STREAM_SUBSCRIPTION_VIEW_H

#include "base/buf.h"
#include "base/slice.h"
#include "stream/subscription_request.h"

/* One stream of a subscription. */
struct subscription_link_view {
    struct slice path;
    bool is_explicit; /* shown as explicit although the pattern matches too */
    bool acked_start; /* acked_offset is "-1" */
    uint64_t acked;   /* unless acked_start */
    uint64_t tail;    /* in wakes and claims only */
    bool has_pending; /* likewise */
};

/* Hands out the links one by one; false at the end. */
struct subscription_link_source {
    bool (*next)(void *context, struct subscription_link_view *ret_link);
    void *context;
};

/* What GET and PUT answer. */
struct subscription_view {
    struct slice id; /* decoded */
    enum subscription_kind kind;
    struct slice pattern;     /* empty: left out */
    struct slice url;         /* webhook */
    struct slice wake_stream; /* pull-wake */
    uint64_t lease_ttl_ms;
    int64_t created_ms; /* wall clock */
    bool failed;        /* the last delivery failed, a retry is scheduled */
    bool has_description;
    struct slice description;
    struct slice kid;      /* of the active key; webhook */
    struct slice base_url; /* public URL and "/v1/stream/__ds", no slash at the end */
    struct subscription_link_source links;
};

/* What a webhook is sent and a claim answers. */
struct subscription_wake_view {
    struct slice id;
    struct slice wake_id;
    uint64_t generation;
    struct slice token;
    uint64_t lease_ttl_ms; /* claim */
    struct slice base_url; /* webhook, as above */
    struct subscription_link_source links;
};

/* The body of GET, and of PUT's 200 and 201. */
void subscription_view_append(struct buf *out, const struct subscription_view *view);

/* The body of a webhook. */
void subscription_view_webhook(struct buf *out, const struct subscription_wake_view *wake);

/* The answer to a claim. */
void subscription_view_claim(struct buf *out, const struct subscription_wake_view *wake);

/* The event on a wake stream; `stream` is one that is pending. */
void subscription_view_event(struct buf *out, struct slice id, struct slice stream,
                             uint64_t generation, int64_t now_ms);

/* The answer to callback and ack. */
void subscription_view_ok(struct buf *out, bool next_wake);

/* Codes of errors, with the HTTP status each is answered with. */
#define SUBSCRIPTION_ERROR_LIST(X)      \
    X(INVALID_REQUEST, 400)             \
    X(WEBHOOK_URL_REJECTED, 400)        \
    X(TOKEN_INVALID, 401)               \
    X(TOKEN_EXPIRED, 401)               \
    X(SUBSCRIPTION_NOT_FOUND, 404)      \
    X(SUBSCRIPTION_ALREADY_EXISTS, 409) \
    X(FENCED, 409)                      \
    X(ALREADY_CLAIMED, 409)             \
    X(NO_PENDING_WORK, 409)             \
    X(INVALID_OFFSET, 409)              \
    X(REQUEST_TOO_LARGE, 413)           \
    X(LIMIT_REACHED, 429)               \
    X(UNAVAILABLE, 503)                 \
    X(OUT_OF_SPACE, 507)

enum subscription_error {
#define X(name, status) SUBSCRIPTION_ERROR_##name,
    SUBSCRIPTION_ERROR_LIST(X)
#undef X
};

/* Appends the body of an error with a sentence, and returns its HTTP status. */
int subscription_view_error(struct buf *out, enum subscription_error error, struct slice message);

/* The same for ALREADY_CLAIMED, with who holds the lease. */
int subscription_view_claimed(struct buf *out, struct slice holder, uint64_t generation);

#endif
