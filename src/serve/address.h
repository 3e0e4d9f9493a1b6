/* Whether an address that a webhook's host resolved to is anybody's on the internet, or one that
 * only this machine or its network reaches: a client must not make the server call those
 * (PROTOCOL.md 12.8). Pure: no look-up, no allocation. */
#ifndef ARBE_SERVE_ADDRESS_H
#define ARBE_SERVE_ADDRESS_H

#include "base/attr.h"

#include <stdbool.h>

struct sockaddr;

/* NULL when the address may be connected to, else what it is, for a sentence such as "10.0.0.1 is
 * <a private network>"; static storage. `allow_loopback` lets this machine itself pass and nothing
 * else. An IPv6 address that carries an IPv4 one is judged by that, or refused where nobody needs
 * it. A family other than the two is refused. */
const char *address_refusal(const struct sockaddr *address, bool allow_loopback) MUST_USE;

#endif
