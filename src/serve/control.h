/* The control API: all that lies under the reserved /v1/stream/__ds (PROTOCOL.md section 6), and
 * the listing of streams, which is ours. Errors have the form {"error":{"code","message"}}. Called
 * on the worker's thread. */
#ifndef ARBE_SERVE_CONTROL_H
#define ARBE_SERVE_CONTROL_H

#include "serve/control_route.h"
#include "serve/exchange.h"
#include "stream/subscriptions.h"

struct control_listing; /* private to control_list.c */

/* What a request is about, beside its exchange. */
struct control {
    struct control_route route;
    struct subscription_op op;       /* on one subscription */
    struct control_listing *listing; /* owned; NULL but for the listing */
    char memory[];                   /* the route's */
};

/* Begins to serve a request whose path, without its query, control_is_path knows. */
void control_begin(struct exchange *x, struct slice path, struct slice query);

/* Accepts NULL. */
void control_destroy(struct control *c);

/* The public keys of webhooks. */
void control_jwks_answer(struct exchange *x);

/* Requests for one subscription. */
void control_subscription_begin(struct exchange *x);

/* The listing of streams. */
void control_list_begin(struct exchange *x, struct slice query);

/* Accepts NULL. */
void control_listing_destroy(struct control_listing *l);

/* Answers with a document of any length, `type` being its content type, and destroys the
 * exchange. */
void control_answer(struct exchange *x, int status, struct slice type, struct slice cache_control,
                    struct slice document);

#endif
