/* A relay's side of the client: head, body, and its end, as fast as the client takes them. On the
 * worker of the exchange. */
#ifndef ARBE_APP_RELAY_SERVE_H
#define ARBE_APP_RELAY_SERVE_H

#include "app/relay.h"

/* Makes the exchange wait for the relay, which is about to be started. False when it follows, and
 * may not: there are as many live readers as the server may have, or its right has ended; then it
 * has been answered. */
bool relay_serve_begin(struct relay *r, struct exchange *x) MUST_USE;

/* The relay was not started after all: the exchange is as before. */
void relay_serve_cancel(struct exchange *x);

#endif
