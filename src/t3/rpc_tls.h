/* What a connection trusts. libwebsockets would build this itself, but it names an IPv6 address
 * wrongly to the server and to the check of its certificate. */
#ifndef ARBE_T3_RPC_TLS_H
#define ARBE_T3_RPC_TLS_H

#include "t3/rpc_url.h"

#include <openssl/ssl.h>

/* A context for connections to the host of `url`, which must outlive it: certificates are those of
 * the system or, if it is not NULL, of the file. To be freed by SSL_CTX_free. TLS with a sentence
 * when the file cannot be read, MEMORY. */
int rpc_tls_create(const struct rpc_url *url, const char *ca_file, SSL_CTX **ret_ctx,
                   struct t3_rpc_error *ret_error) MUST_USE;

#endif
