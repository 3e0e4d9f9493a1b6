/* A relay's side of the other server: libcurl's handle, what comes of the answer, the limits of
 * time, and how it ends. On the upstream's thread. */
#ifndef ARBE_APP_RELAY_FETCH_H
#define ARBE_APP_RELAY_FETCH_H

#include "app/relay.h"

/* Monotonic milliseconds. */
uint64_t relay_now_ms(void);

/* Makes the handle; it stays the relay's until relay_fetch_stop. False when memory is out. */
bool relay_fetch_begin(struct relay *r, const struct upstream_bounds *bounds) MUST_USE;

/* When its time is up; UINT64_MAX: never, as things stand. */
uint64_t relay_fetch_limit(const struct relay *r, const struct upstream_bounds *bounds);

/* What the end of a transfer, by `code`, means for the client. `why` gets, for the operator, why it
 * is not whole; empty when it is. */
enum relay_end relay_fetch_judge(const struct relay *r, CURLcode code, char *why, size_t size);

/* Goes on after a pause, perhaps with the next piece right away. What it returns, if not CURLE_OK,
 * is how the transfer has ended. */
CURLcode relay_fetch_resume(struct relay *r);

/* Ends the transfer, if there is one. */
void relay_fetch_stop(struct relay *r, CURLM *multi);

#endif
