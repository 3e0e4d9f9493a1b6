/* What becomes of one WebSocket: a look-up, then a try of each address, then an open connection,
 * then its end. It is driven by the thread of rpc_socket.c, which calls rpc_link_step between two
 * turns of libwebsockets, and by libwebsockets, which calls rpc_link_event within them. The
 * thread's, all of it; the caller's memory. */
#ifndef ARBE_T3_RPC_LINK_H
#define ARBE_T3_RPC_LINK_H

#include "t3/rpc_attempt.h"
#include "t3/rpc_pings.h"
#include "t3/rpc_socket.h"

#include <libwebsockets.h>

enum rpc_link_state {
    RPC_LINK_LOOKING_UP,  /* asks for addresses */
    RPC_LINK_CONNECTING,  /* tries one */
    RPC_LINK_OPEN,        /* the connection stands */
    RPC_LINK_CLOSING,     /* it is to be closed, when what is to be said before has been sent */
    RPC_LINK_CLOSE_BEGUN, /* libwebsockets closes it, and waits for the server */
    RPC_LINK_ENDED,       /* there is nothing more to do */
};

struct rpc_link {
    struct rpc_socket_options options; /* constant */
    struct rpc_socket_user user;       /* constant */
    struct lws_context *context;       /* borrowed; NULL before rpc_link_begin */
    enum rpc_link_state state;
    bool told;  /* of the end */
    bool wakes; /* lws_cancel_service has been seen to end a turn */
    struct rpc_attempt attempt;
    struct lws *wsi;      /* NULL: none */
    uint64_t deadline_ms; /* for a connection, or for the end of one */
    struct rpc_pings pings;
    bool paused;                      /* nothing is read, since the user is full */
    enum lws_close_status close_code; /* CLOSING: what the server is told */
    struct buf message;               /* as far as it has come */
    struct buf out;                   /* LWS_PRE bytes, then what is sent */
    unsigned char *head;              /* the token is in there, in libwebsockets' memory; NULL */
    size_t head_len;
};

/* Nothing happens yet. `options` and `user` are copied, as rpc_socket.h says for how long what they
 * point to lives. */
void rpc_link_init(struct rpc_link *link, const struct rpc_socket_options *options,
                   const struct rpc_socket_user *user);

/* Frees what is left when the context is gone. */
void rpc_link_finish(struct rpc_link *link);

/* Begins to look up and connect. `wake`, which any thread may call, has rpc_link_step called. */
void rpc_link_begin(struct rpc_link *link, struct lws_context *context, void (*wake)(void *context),
                    void *wake_context);

/* Does what is due by now, and reads on where it had paused and the user has room again. */
void rpc_link_step(struct rpc_link *link);

/* In how many milliseconds that must be called though nothing happens; -1: never. Not in ENDED. */
int64_t rpc_link_left_ms(const struct rpc_link *link);

/* There may be something to send. */
void rpc_link_wake(struct rpc_link *link);

/* Begins to close, or gives up connecting; nothing if it ends already. */
void rpc_link_close(struct rpc_link *link);

/* It ends, with that error. */
void rpc_link_fail(struct rpc_link *link, const struct t3_rpc_error *error);

/* It ends since a context had no memory, or no descriptors. */
void rpc_link_fail_memory(struct rpc_link *link);

/* Ends it without waiting for the server, which hears a last word of it, and without telling; wipes
 * the token. To be called before the context is destroyed. */
void rpc_link_leave(struct rpc_link *link);

/* The callback for libwebsockets, in a context whose user is the link. */
int rpc_link_event(struct lws *wsi, enum lws_callback_reasons reason, void *user, void *in,
                   size_t len);

#endif
