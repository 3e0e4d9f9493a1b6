/* The URL of a T3 server, cut and checked, and what a connection needs of it. Pure but for the
 * memory it takes. */
#ifndef ARBE_T3_RPC_URL_H
#define ARBE_T3_RPC_URL_H

#include "arbe/t3_rpc.h"
#include "base/attr.h"
#include "base/slice.h"

#include <netinet/in.h>
#include <stdbool.h>

/* Borrowed from the text. */
struct rpc_url_parts {
    bool tls;
    struct slice authority;  /* host and port, as they stand */
    struct slice host;       /* a name or an address, that of IPv6 without its brackets */
    bool bracketed;          /* it had them */
    bool literal;            /* it is an address */
    struct in6_addr address; /* that, one of IPv4 as it is mapped; zero: it is a name */
    uint16_t port;           /* 80 or 443 where the URL says none */
    struct slice path;       /* with its slash, or empty */
    struct slice query;      /* without its '?' */
    bool has_query;          /* there is one, be it empty */
};

/* Cuts a URL. NULL, or a sentence (static storage) that says what is wrong with it and does not
 * repeat it, since it may hold a secret. How long it is, is the caller's business. */
const char *rpc_url_cut(struct slice text, struct rpc_url_parts *ret_parts) MUST_USE;

struct rpc_url {
    bool tls;
    char *host;    /* a name or an address, that of IPv6 without its brackets; owned */
    char *place;   /* "host:port", as sentences and the Host header have it; owned */
    char *target;  /* path and query of the request; owned */
    uint16_t port; /* 80 or 443 where the URL says none */
    bool literal;  /* the host is an address */
};

/* Cuts it, and keeps what is needed. ARGUMENT with a sentence that does not repeat it; MEMORY. */
int rpc_url_init(struct rpc_url *url, const char *text, struct t3_rpc_error *ret_error) MUST_USE;

/* Frees it; accepts a zeroed one. */
void rpc_url_finish(struct rpc_url *url);

#endif
