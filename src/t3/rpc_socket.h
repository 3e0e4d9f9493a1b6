/* A WebSocket to a T3 server: a thread that looks up, connects, sends and receives whole messages,
 * pings, and closes. It, rpc_link.h and rpc_context.h alone know libwebsockets. It knows nothing of
 * requests. */
#ifndef ARBE_T3_RPC_SOCKET_H
#define ARBE_T3_RPC_SOCKET_H

#include "base/buf.h"
#include "t3/rpc_url.h"

/* Borrowed for as long as the socket lives. */
struct rpc_socket_options {
    const struct rpc_url *url;
    const char *authorization; /* value of the header field; NULL: none */
    const char *user_agent;    /* likewise, never NULL */
    const char *ca_file;       /* NULL: the system's certificates */
    int connect_timeout_ms;
    int ping_interval_ms; /* 0: no pings */
    int pings_missed_max;
    size_t message_bytes_max;
};

/* Who uses it. The functions are called on the socket's thread, with `context`. */
struct rpc_socket_user {
    void *context;
    /* The connection stands. */
    void (*opened)(void *context);
    /* A whole message; the buffer may be taken, and left empty. Anything but T3_RPC_OK ends the
     * connection: then the user knows, and `closed` is not called. */
    int (*message)(void *context, struct buf *message);
    /* Appends the next message to be sent: false when there is none. */
    bool (*send)(void *context, struct buf *out);
    /* Whether no more messages are to be read for now. */
    bool (*full)(void *context);
    /* It has ended, or never stood. Once; not after rpc_socket_destroy has returned. */
    void (*closed)(void *context, const struct t3_rpc_error *error);
};

struct rpc_socket;

/* Starts the thread. MEMORY. */
int rpc_socket_create(const struct rpc_socket_options *options, const struct rpc_socket_user *user,
                      struct rpc_socket **ret_socket, struct t3_rpc_error *ret_error) MUST_USE;

/* There may be something to send, or room again. Any thread. */
void rpc_socket_wake(struct rpc_socket *s);

/* Begins to close; then `closed` is called with CLOSED. Any thread. */
void rpc_socket_close(struct rpc_socket *s);

/* Ends the connection, waits for the thread, which waits for nobody, and frees. Accepts NULL. */
void rpc_socket_destroy(struct rpc_socket *s);

#endif
