/* One connection to a T3 Code server: its RPC over a WebSocket, as Effect's RpcServer speaks it.
 *
 * A connection is made once and does not come back: t3_reader.h does that. It has a thread of its
 * own, which does the network and nothing else; what it brings is asked for as events, by blocking
 * or from a loop of the program's own that watches t3_rpc_fd.
 *
 * Threads: every call may be made by any thread. Events are asked for by one thread at a time. */
#ifndef ARBE_T3_RPC_H
#define ARBE_T3_RPC_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Errors: calls return T3_RPC_OK (0) or a code, and then fill `ret_error`, which may be NULL. What
 * ends a request or the connection comes as an event with the same codes. */
enum t3_rpc_code {
    T3_RPC_OK = 0,
    T3_RPC_ERROR_ARGUMENT, /* the call itself makes no sense; nothing was sent */
    T3_RPC_ERROR_MEMORY,   /* out of memory, threads or descriptors */
    T3_RPC_ERROR_LIMIT,    /* more requests, or a longer or deeper message, than the options say */
    T3_RPC_ERROR_NETWORK,  /* no connection, or it broke */
    T3_RPC_ERROR_TLS,      /* the server's certificate or the handshake is not good */
    T3_RPC_ERROR_AUTH,     /* 401, 403: the token is missing, wrong or revoked */
    T3_RPC_ERROR_VERSION,  /* 426: the server wants another orchestration protocol */
    T3_RPC_ERROR_HTTP,     /* any other answer than an upgrade */
    T3_RPC_ERROR_PROTOCOL, /* the server sent what the protocol does not allow */
    T3_RPC_ERROR_SCOPE,    /* of a request: the token may not do this */
    T3_RPC_ERROR_METHOD,   /* of a request: the server does not know the method */
    T3_RPC_ERROR_FAILED,   /* of a request: it failed with an error that it declares */
    T3_RPC_ERROR_DIED,     /* of a request: the server broke while it ran, or found it malformed */
    T3_RPC_ERROR_INTERRUPTED, /* of a request: the server interrupted it */
    T3_RPC_ERROR_DEFECT,      /* the server broke; whatever was under way is lost */
    T3_RPC_ERROR_TIMEOUT,     /* no connection in time, or the server no longer answers pings */
    T3_RPC_ERROR_CLOSED,      /* the server closed the connection, or t3_rpc_close did */
};

#define T3_RPC_MESSAGE_BYTES 512

/* Filled by a call that fails; as it was otherwise. The caller's; plain memory. */
struct t3_rpc_error {
    enum t3_rpc_code code;
    int status;                         /* HTTP status; 0: there was none */
    char message[T3_RPC_MESSAGE_BYTES]; /* one line: what was wrong. What it quotes of the
                                         * server has "***" for the token and parts of it */
};

/* The name of a code, such as "AUTH". Static storage. */
const char *t3_rpc_code_name(enum t3_rpc_code code);

struct t3_rpc_options {
    const char *token;        /* Authorization: Bearer; copied; NULL: none */
    const char *ca_file;      /* certificates to trust instead of the system's; NULL: those */
    const char *user_agent;   /* NULL: "arbe/" and the version */
    int connect_timeout_ms;   /* until the WebSocket stands */
    int ping_interval_ms;     /* between pings; 0: none, and a server that stalls is not noticed */
    int pings_missed_max;     /* pings without an answer, then the connection ends: TIMEOUT */
    size_t message_bytes_max; /* of one message from the server; longer ends it: LIMIT. Below 2 GiB;
                               * nothing is read while the program has yet to take as much */
    int depth_max;            /* of nested arrays and objects in one; deeper ends it: LIMIT */
    int requests_max;         /* under way at once, subscriptions too; at most 65,536 */
};

/* Fills in the defaults: 10 s to connect, a ping every 10 s of which 3 may be missed, 256 MiB,
 * as deep as a JSON text may be, 256 requests. */
void t3_rpc_options_init(struct t3_rpc_options *options);

struct t3_rpc;

/* Begins to connect to `url`: http, https, ws or wss, where no path means /ws;
 * `orchestrationProtocol=2` is added to its query. Does not block. `options` (NULL: the defaults)
 * are copied. ARGUMENT with a sentence, MEMORY. */
int t3_rpc_connect(const char *url, const struct t3_rpc_options *options, struct t3_rpc **ret_rpc,
                   struct t3_rpc_error *ret_error);

/* Ends the connection if it stands, and frees. Does not wait for the server. No other thread is in
 * a call. Accepts NULL. */
void t3_rpc_free(struct t3_rpc *rpc);

/* Requests. They may be made before the connection stands, and are sent when it does. `payload` is
 * a JSON object, copied; NULL: {}. An id is above 0 and never used again. ARGUMENT; LIMIT:
 * requests_max; CLOSED: the connection has ended; MEMORY. */

/* Asks for a stream: chunks come until it is done, fails, or is unsubscribed. */
int t3_rpc_subscribe(struct t3_rpc *rpc, const char *method, const char *payload, uint64_t *ret_id,
                     struct t3_rpc_error *ret_error);

/* Asks for one answer. */
int t3_rpc_call(struct t3_rpc *rpc, const char *method, const char *payload, uint64_t *ret_id,
                struct t3_rpc_error *ret_error);

/* The chunk that was last given of that subscription is consumed: once for each; the server sends
 * no more of it before. ARGUMENT: none is to be acknowledged. CLOSED. */
int t3_rpc_ack(struct t3_rpc *rpc, uint64_t id, struct t3_rpc_error *ret_error);

/* Ends a request: no event of it is given any more, also of what has come already. An id that is
 * not under way is ignored. */
void t3_rpc_interrupt(struct t3_rpc *rpc, uint64_t id);

/* Begins to close: the server is told, of what was interrupted before as well, and
 * T3_RPC_EVENT_CLOSED comes when it has answered or a second later. */
void t3_rpc_close(struct t3_rpc *rpc);

enum t3_rpc_event_kind {
    T3_RPC_EVENT_OPEN,   /* the connection stands */
    T3_RPC_EVENT_CHUNK,  /* `json` is an array of items, at least one; to be acknowledged */
    T3_RPC_EVENT_DONE,   /* the request ended well; `json` is its value, null of a stream */
    T3_RPC_EVENT_ERROR,  /* the request failed: `error`, and `json` is its cause, an array */
    T3_RPC_EVENT_CLOSED, /* the connection has ended, and with it all requests: `error`; `json` is
                          * the defect, if that was it. Nothing follows */
};

/* `json` and what it points to live until the next event is asked for. It has a NUL behind it, and
 * is what the server said, be that the token. */
struct t3_rpc_event {
    enum t3_rpc_event_kind kind;
    uint64_t id;      /* of the request; 0: of the connection */
    const char *json; /* NULL: none */
    size_t len;       /* bytes, without the NUL */
    struct t3_rpc_error error;
};

/* Takes the next event, in the order in which they came. Waits for at most `timeout_ms`; 0: does
 * not wait; -1: for as long as it takes. 1 and the event, or 0: there was none in time, or nothing
 * follows any more. */
int t3_rpc_next(struct t3_rpc *rpc, int timeout_ms, struct t3_rpc_event *ret_event);

/* A descriptor that is readable while there is an event to take. The connection's; only to be
 * polled. */
int t3_rpc_fd(const struct t3_rpc *rpc);

#ifdef __cplusplus
}
#endif

#endif
