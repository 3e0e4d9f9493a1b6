/* The URL of a T3 server, checked once, and what a connection needs of it. Pure but for the memory
 * it takes. */
#ifndef ARBE_T3_RPC_URL_H
#define ARBE_T3_RPC_URL_H

#include "arbe/t3_rpc.h"
#include "base/attr.h"

#include <stdbool.h>

struct rpc_url {
    bool tls;
    char *host;    /* a name or an address, that of IPv6 without its brackets; owned */
    char *place;   /* "host:port", as sentences and the Host header have it; owned */
    char *target;  /* path and query of the request; owned */
    uint16_t port; /* 80 or 443 where the URL says none */
    bool literal;  /* the host is an address */
};

/* Checks and takes apart. ARGUMENT with a sentence that does not repeat the URL, which may hold a
 * secret; MEMORY. */
int rpc_url_init(struct rpc_url *url, const char *text, struct t3_rpc_error *ret_error) MUST_USE;

/* Frees it; accepts a zeroed one. */
void rpc_url_finish(struct rpc_url *url);

#endif
