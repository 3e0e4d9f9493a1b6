/* The first context for TLS takes numbers from OpenSSL for the whole process, and a later one would
 * change them under the feet of connections. So it is made and thrown away once, and those that
 * follow do not ask for it. Each sets SIGPIPE to be ignored; that is the program's, so it is put
 * back. */
#include "t3/rpc_context.h"

#include "base/limits.h"

#include <pthread.h>
#include <signal.h>
#include <stdbool.h>

#define FDS_MAX 8u /* of its tables: a socket, its pipe, and what it adds; not RLIMIT_NOFILE */

static pthread_mutex_t process_mutex = PTHREAD_MUTEX_INITIALIZER;
static bool process_ready; /* under the mutex */

static bool prepare_process(void)
{
    const struct lws_context_creation_info info = {
        .port = CONTEXT_PORT_NO_LISTEN,
        .options = LWS_SERVER_OPTION_EXPLICIT_VHOSTS | LWS_SERVER_OPTION_DO_SSL_GLOBAL_INIT,
        .fd_limit_per_thread = FDS_MAX,
    };

    if (!process_ready) {
        lws_set_log_level(0, NULL);
        struct lws_context *first = lws_create_context(&info);

        process_ready = first != NULL;
        lws_context_destroy(first);
    }
    return process_ready;
}

struct lws_context *rpc_context_create(const struct rpc_context_options *o)
{
    struct lws_context_creation_info info = {
        .port = CONTEXT_PORT_NO_LISTEN,
        .options = LWS_SERVER_OPTION_EXPLICIT_VHOSTS,
        .protocols = o->protocols,
        .user = o->user,
        .fd_limit_per_thread = FDS_MAX,
        .max_http_header_pool = 2,
        .max_http_header_data = T3_HEAD_BYTES_MAX,
        .pt_serv_buf_size = o->read_bytes,
        .timeout_secs = o->timeout_s,
        .connect_timeout_secs = o->timeout_s,
        .http_proxy_address = "", /* or that of the environment is taken */
        .vhost_name = "arbe",
    };
    struct sigaction before;
    struct lws_context *context = NULL;

    (void)pthread_mutex_lock(&process_mutex);
    (void)sigaction(SIGPIPE, NULL, &before);
    if (prepare_process()) {
        context = lws_create_context(&info);
    }
    (void)sigaction(SIGPIPE, &before, NULL);
    (void)pthread_mutex_unlock(&process_mutex);
    if (context == NULL) {
        return NULL;
    }
    if (o->tls != NULL) {
        info.options |= LWS_SERVER_OPTION_DO_SSL_GLOBAL_INIT; /* here it only means: with TLS */
        info.provided_client_ssl_ctx = o->tls;
    }
    if (lws_create_vhost(context, &info) == NULL) {
        lws_context_destroy(context);
        return NULL;
    }
    return context;
}
