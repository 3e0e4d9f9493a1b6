/* Name and certificate are checked by OpenSSL; each connection inherits what is set here. */
#include "t3/rpc_tls.h"

#include "t3/rpc_error.h"
#include "t3/rpc_scarce.h"

#include <openssl/err.h>
#include <openssl/x509v3.h>

/* Corrects the name that libwebsockets told, just before it is sent: addresses are no names (RFC
 * 6066 section 3). */
static void correct_name(const SSL *ssl, int where, int code)
{
    SSL *own = (SSL *)(uintptr_t)ssl; /* the callback's type is older than this use of it */
    const struct rpc_url *url = SSL_CTX_get_app_data(SSL_get_SSL_CTX(ssl));

    (void)code;
    if ((where & SSL_CB_HANDSHAKE_START) != 0) {
        (void)SSL_set_tlsext_host_name(own,
                                       url->literal ? NULL : url->host); /* then none is told */
    }
}

static bool expect_host(SSL_CTX *ctx, const struct rpc_url *url)
{
    X509_VERIFY_PARAM *param = SSL_CTX_get0_param(ctx);

    X509_VERIFY_PARAM_set_hostflags(param, X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS);
    return url->literal ? X509_VERIFY_PARAM_set1_ip_asc(param, url->host) == 1
                        : X509_VERIFY_PARAM_set1_host(param, url->host, 0) == 1;
}

static bool load_trust(SSL_CTX *ctx, const char *ca_file)
{
    return ca_file != NULL ? SSL_CTX_load_verify_file(ctx, ca_file) == 1
                           : SSL_CTX_set_default_verify_paths(ctx) == 1;
}

int rpc_tls_create(const struct rpc_url *url, const char *ca_file, SSL_CTX **ret_ctx,
                   struct t3_rpc_error *ret_error)
{
    SSL_CTX *ctx = SSL_CTX_new(TLS_client_method());
    int code = T3_RPC_OK;

    if (ctx == NULL || !expect_host(ctx, url) ||
        SSL_CTX_set_min_proto_version(ctx, TLS1_2_VERSION) != 1) {
        code = rpc_error_set(ret_error, T3_RPC_ERROR_MEMORY, "out of memory");
    } else if (!load_trust(ctx, ca_file)) {
        code = rpc_scarce_descriptors(1)
                   ? rpc_error_set(ret_error, T3_RPC_ERROR_MEMORY, RPC_NO_DESCRIPTOR)
                   : rpc_error_set(ret_error, T3_RPC_ERROR_TLS,
                                   "no certificates can be read from %.300s",
                                   ca_file != NULL ? ca_file : "where the system keeps them");
    }
    ERR_clear_error(); /* the thread's queue, which the next use would find */
    if (code != T3_RPC_OK) {
        SSL_CTX_free(ctx);
        return code;
    }
    SSL_CTX_set_verify(ctx, SSL_VERIFY_PEER, NULL);
    (void)SSL_CTX_set_app_data(ctx, (void *)(uintptr_t)url); /* read only */
    SSL_CTX_set_info_callback(ctx, correct_name);
    *ret_ctx = ctx;
    return T3_RPC_OK;
}
