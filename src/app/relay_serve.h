/* A relay's side of the client: head, body, and its end, as fast as the client takes them. On the
 * worker of the exchange. */
#ifndef ARBE_APP_RELAY_SERVE_H
#define ARBE_APP_RELAY_SERVE_H

#include "app/relay.h"

/* Makes the exchange wait for the relay, which is about to be started. */
void relay_serve_begin(struct relay *r, struct exchange *x);

/* The relay was not started after all: the exchange is as before. */
void relay_serve_cancel(struct exchange *x);

#endif
