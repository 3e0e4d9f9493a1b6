/* The addresses of a host, asked for on a thread of its own: a name server that does not answer
 * must hold up neither the connection's thread nor its end. Whoever asks for a name that is being
 * looked up waits for that. A look-up that nobody waits for any more goes on for as long as the
 * system lets it, and frees itself; how many there are is limited. */
#ifndef ARBE_T3_RPC_LOOKUP_H
#define ARBE_T3_RPC_LOOKUP_H

#include "base/attr.h"
#include "base/list.h"

#include <netdb.h>
#include <stdbool.h>

struct rpc_query;

/* Whoever waits for one. The caller's memory; zeroed: nobody. */
struct rpc_lookup {
    struct list waiting; /* on the query's list */
    struct rpc_query *query;
    void (*wake)(void *context);
    void *context;
};

/* Begins. `wake` is called once, from the other thread, when it has ended, unless it is forgotten
 * before; it calls nothing of these. ERR_NOMEM; ERR_LIMIT: no thread can be started; ERR_AGAIN:
 * T3_LOOKUPS_MAX names are under way. */
int rpc_lookup_start(struct rpc_lookup *lookup, const char *host, void (*wake)(void *context),
                     void *context) MUST_USE;

/* Whether it has ended; then its code, as getaddrinfo says it, and the addresses, which live until
 * it is forgotten. */
bool rpc_lookup_ended(const struct rpc_lookup *lookup, int *ret_code,
                      const struct addrinfo **ret_addresses);

/* Waits for it no more: `wake` is not called after. Accepts a zeroed one. */
void rpc_lookup_forget(struct rpc_lookup *lookup);

#endif
