/* The part of a server behind the control API: the secrets (keys.h), what sends webhooks
 * (webhook.h), and the service that owns all subscriptions (stream/subscriptions.h), which needs
 * both. Called on the main thread. */
#ifndef ARBE_SERVE_CONTROL_SERVICE_H
#define ARBE_SERVE_CONTROL_SERVICE_H

#include "serve/worker.h"

/* Opens all three for a server whose engine is open and whose `first` worker listens, so that the
 * address is known; from here on webhooks may leave. Blocks. Errors of each, with a sentence;
 * nothing stays open then. */
int control_service_open(struct server *server, struct sys *sys, const struct worker *first,
                         struct errmsg *msg) MUST_USE;

/* The server is to end: no new wakes, and what was sent has a little time to be answered. Does not
 * block. */
void control_service_stop(struct server *server);

/* After the workers have ended, or were never started. Blocks for as long as that time lasts.
 * Accepts a server without a service. */
void control_service_close(struct server *server);

#endif
