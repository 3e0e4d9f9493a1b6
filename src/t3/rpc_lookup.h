/* The addresses of a host, asked for on a thread of its own: a name server that does not answer
 * must hold up neither the connection's thread nor its end. A lookup that nobody waits for any more
 * goes on for as long as the system lets it, and frees itself; how many there are is limited. */
#ifndef ARBE_T3_RPC_LOOKUP_H
#define ARBE_T3_RPC_LOOKUP_H

#include "base/attr.h"

#include <netdb.h>
#include <stdbool.h>

struct rpc_lookup;

/* Begins. `wake` is called once, from the other thread, when it has ended, unless it is forgotten
 * before. ERR_NOMEM; ERR_LIMIT: no thread can be started; ERR_AGAIN: T3_LOOKUPS_MAX are under
 * way. */
int rpc_lookup_start(const char *host, void (*wake)(void *context), void *context,
                     struct rpc_lookup **ret_lookup) MUST_USE;

/* Whether it has ended; then its code, as getaddrinfo says it, and the addresses: the caller's, for
 * freeaddrinfo. Once. */
bool rpc_lookup_take(struct rpc_lookup *lookup, int *ret_code, struct addrinfo **ret_addresses);

/* Frees it, now or when it has ended; `wake` is not called after. Accepts NULL. */
void rpc_lookup_forget(struct rpc_lookup *lookup);

#endif
