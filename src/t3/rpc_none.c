/* Stands in for connections until src/t3/rpc.c is there, so that what is built on them links: each
 * of these gives way to the one of the same name. */
#include "arbe/t3_rpc.h"

#include <stddef.h>

#define GIVES_WAY __attribute__((weak))

GIVES_WAY const char *t3_rpc_code_name(enum t3_rpc_code code)
{
    (void)code;
    return "NONE";
}

GIVES_WAY void t3_rpc_options_init(struct t3_rpc_options *options)
{
    *options = (struct t3_rpc_options){.requests_max = 256};
}

GIVES_WAY int t3_rpc_connect(const char *url, const struct t3_rpc_options *options,
                             struct t3_rpc **ret_rpc, struct t3_rpc_error *ret_error)
{
    (void)url;
    (void)options;
    (void)ret_rpc;
    if (ret_error != NULL) {
        *ret_error = (struct t3_rpc_error){.code = T3_RPC_ERROR_NETWORK, .message = "none yet"};
    }
    return T3_RPC_ERROR_NETWORK;
}

GIVES_WAY void t3_rpc_free(struct t3_rpc *rpc)
{
    (void)rpc;
}

GIVES_WAY int t3_rpc_subscribe(struct t3_rpc *rpc, const char *method, const char *payload,
                               uint64_t *ret_id, struct t3_rpc_error *ret_error)
{
    (void)rpc;
    (void)method;
    (void)payload;
    (void)ret_id;
    (void)ret_error;
    return T3_RPC_ERROR_CLOSED;
}

GIVES_WAY int t3_rpc_call(struct t3_rpc *rpc, const char *method, const char *payload,
                          uint64_t *ret_id, struct t3_rpc_error *ret_error)
{
    return t3_rpc_subscribe(rpc, method, payload, ret_id, ret_error);
}

GIVES_WAY int t3_rpc_ack(struct t3_rpc *rpc, uint64_t id, struct t3_rpc_error *ret_error)
{
    (void)rpc;
    (void)id;
    (void)ret_error;
    return T3_RPC_ERROR_CLOSED;
}

GIVES_WAY void t3_rpc_interrupt(struct t3_rpc *rpc, uint64_t id)
{
    (void)rpc;
    (void)id;
}

GIVES_WAY void t3_rpc_close(struct t3_rpc *rpc)
{
    (void)rpc;
}

GIVES_WAY int t3_rpc_next(struct t3_rpc *rpc, int timeout_ms, struct t3_rpc_event *ret_event)
{
    (void)rpc;
    (void)timeout_ms;
    (void)ret_event;
    return 0;
}

GIVES_WAY int t3_rpc_fd(const struct t3_rpc *rpc)
{
    (void)rpc;
    return -1;
}
