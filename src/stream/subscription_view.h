/* The JSON that the subscription API answers and sends (PROTOCOL.md 6.3, 7.1, 7.2). All of it
 * appends to a buffer and fails by the buffer's sticky failure. Links that are dropped are not
 * shown. Pure. */
#ifndef ARBE_STREAM_SUBSCRIPTION_VIEW_H
#define ARBE_STREAM_SUBSCRIPTION_VIEW_H

#include "base/buf.h"
#include "stream/subscription.h"

/* The body of GET, and of PUT's 200 and 201. `base_url` is the public URL and "/v1/stream/__ds",
 * without a slash at the end; `kid` the active key's, for webhooks. */
void subscription_view_append(struct buf *out, const struct subscription *s, struct slice base_url,
                              struct slice kid);

/* The body of a webhook about the wake of `state`, which is that of `s` or will be. */
void subscription_view_webhook(struct buf *out, const struct subscription *s,
                               const struct subscription_state *state, struct slice base_url,
                               struct slice token);

/* The answer to a claim of the wake of `state`, likewise. */
void subscription_view_claim(struct buf *out, const struct subscription *s,
                             const struct subscription_state *state, struct slice token);

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
    X(FORBIDDEN, 403)                   \
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
