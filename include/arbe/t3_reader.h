/* Follows a T3 Code server for as long as it takes: a connection (t3_rpc.h) that is made anew when
 * it breaks, with all subscriptions.
 *
 * On each connection every stream begins again, with a snapshot: nothing is kept of where one was,
 * and nothing needs to be. When the server breaks off, interrupts or ends the stream of one
 * subscription, however often, that one begins again, after pauses of its own that grow, and the
 * others go on. An error that the server declares (FAILED) ends the subscription for good.
 *
 * There is no thread here but that of the connection: the reader
 * works while it is asked for events.
 *
 * Threads: a reader is used by one thread at a time. */
#ifndef ARBE_T3_READER_H
#define ARBE_T3_READER_H

#include "arbe/t3_rpc.h"

#ifdef __cplusplus
extern "C" {
#endif

enum t3_reader_state {
    T3_READER_CONNECTING,  /* the first connection, or the next one, is being made */
    T3_READER_CATCHING_UP, /* it stands; not every subscription has had its first chunk, or has it
                            * again */
    T3_READER_LIVE,        /* every subscription's first chunk was acknowledged; also of none */
    T3_READER_LOST,        /* it broke; the next one is made after a pause */
    T3_READER_REFUSED, /* AUTH, VERSION, SCOPE, METHOD or t3_reader_refuse: until t3_reader_retry */
};

/* The name of a state, such as "catching up". Static storage. */
const char *t3_reader_state_name(enum t3_reader_state state);

#define T3_READER_TOKEN_BYTES 4096 /* with the NUL */

struct t3_reader_options {
    struct t3_rpc_options rpc; /* of each connection; its token is for `token` to say */
    /* Called before each connection: writes the token, or nothing where there is none. 0, or
     * another number and a sentence in `message`: there is no token to be had; REFUSED, as AUTH.
     * NULL: rpc.token is used each time. May block for a file. */
    int (*token)(void *context, char token[T3_READER_TOKEN_BYTES],
                 char message[T3_RPC_MESSAGE_BYTES]);
    void *context;
    int initial_delay_ms; /* the pause after a break; longer each time, until the connection was
                           * LIVE for max_delay_ms, or the subscription had been */
    int max_delay_ms;
    double multiplier; /* 1 or more */
};

/* Fills in the defaults: those of t3_rpc.h, and pauses from 0.5 s times 1.5 up to 5 s, each
 * shortened by a random part of up to a half. */
void t3_reader_options_init(struct t3_reader_options *options);

struct t3_reader;

/* Makes a reader of `url`, as t3_rpc_connect takes it. Nothing is sent before the first event is
 * asked for. `options` (NULL: the defaults) are copied but for `context`. ARGUMENT, MEMORY. */
int t3_reader_new(const char *url, const struct t3_reader_options *options,
                  struct t3_reader **ret_reader, struct t3_rpc_error *ret_error);

/* Ends the connection and frees. Does not wait for the server. Accepts NULL. */
void t3_reader_free(struct t3_reader *reader);

/* Subscribes, now and on every connection to come. An id is above 0, the reader's own and the same
 * on each connection. ARGUMENT, MEMORY; LIMIT: rpc.requests_max. */
int t3_reader_subscribe(struct t3_reader *reader, const char *method, const char *payload,
                        uint64_t *ret_id, struct t3_rpc_error *ret_error);

/* Ends that: no event of it is given any more. An id that is not known is ignored. */
void t3_reader_unsubscribe(struct t3_reader *reader, uint64_t id);

/* The chunk that was last given of that subscription is consumed. One that came from a connection
 * that is gone by now needs none; then nothing happens. */
void t3_reader_ack(struct t3_reader *reader, uint64_t id);

/* What came cannot be used, and asking again would not help: a server of the first orchestration
 * protocol, say. The connection ends, and the state is REFUSED with that error. `error` is
 * copied. */
void t3_reader_refuse(struct t3_reader *reader, const struct t3_rpc_error *error);

/* Connects at once, whatever the pause; also after REFUSED. Nothing while a connection stands. A
 * LOST or REFUSED that was not given as an event by then is not given any more. */
void t3_reader_retry(struct t3_reader *reader);

enum t3_reader_event_kind {
    T3_READER_EVENT_STATE,  /* it has changed */
    T3_READER_EVENT_CHUNK,  /* `json` is an array of items; to be acknowledged */
    T3_READER_EVENT_ERROR,  /* that subscription failed with an error of its own, such as an unknown
                            * thread, and is gone; the others go on */
    T3_READER_EVENT_BROKEN, /* that subscription was broken off, and begins again after a pause; the
                             * others go on */
};

/* `json` lives until the next call on the reader. */
struct t3_reader_event {
    enum t3_reader_event_kind kind;
    enum t3_reader_state state; /* in force */
    uint64_t id;                /* of the subscription */
    int fresh;                  /* CHUNK: the first since its subscription began, or began again */
    const char *json;
    size_t len;
    int delay_ms;              /* STATE, LOST: until the next connection is tried; BROKEN: until it
                                * is asked for again */
    struct t3_rpc_error error; /* STATE, LOST and REFUSED; ERROR; BROKEN: why */
};

/* Takes the next event and does what is due. Waits for at most `timeout_ms`; 0: does not wait; -1:
 * for as long as it takes. 1 and the event, or 0: there was none in time. */
int t3_reader_next(struct t3_reader *reader, int timeout_ms, struct t3_reader_event *ret_event);

/* A descriptor that is readable while t3_reader_next has something to do, also when a pause is
 * over. The reader's; only to be polled. */
int t3_reader_fd(const struct t3_reader *reader);

#ifdef __cplusplus
}
#endif

#endif
