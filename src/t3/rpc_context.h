/* A context of libwebsockets for one connection, and what making one does to the process. Proxies
 * of the environment, extensions and libwebsockets' log are off. */
#ifndef ARBE_T3_RPC_CONTEXT_H
#define ARBE_T3_RPC_CONTEXT_H

#include <libwebsockets.h>
#include <openssl/ssl.h>

struct rpc_context_options {
    const struct lws_protocols *protocols; /* ours first; constant */
    void *user;                            /* lws_context_user */
    SSL_CTX *tls;                          /* NULL: none; borrowed, as long as the context lives */
    unsigned timeout_s;                    /* of each step to a connection */
    unsigned read_bytes;                   /* that are read at once */
};

/* Makes one; the thread that calls then runs it. NULL when memory or descriptors are out. To be
 * destroyed by lws_context_destroy. */
struct lws_context *rpc_context_create(const struct rpc_context_options *options);

#endif
