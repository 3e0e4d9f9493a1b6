/* What a connection holds: requests under way, what is to be sent of them, and the events that the
 * program has not taken. Bounded: of a request there is at most one chunk, since the server must
 * not send another before the acknowledgement, and one end.
 *
 * No I/O, no clock. Not thread-safe: rpc.c holds its mutex around every call. */
#ifndef ARBE_T3_RPC_SESSION_H
#define ARBE_T3_RPC_SESSION_H

#include "base/buf.h"
#include "base/list.h"
#include "base/map.h"
#include "t3/frame.h"

/* What the program is to be given. Belongs to a request, or to the session. */
struct rpc_event {
    struct list link; /* on the session's list of events */
    enum t3_rpc_event_kind kind;
    uint64_t id;
    struct buf memory; /* the message from which it is; may be empty */
    struct slice json; /* in that */
    struct t3_rpc_error error;
};

struct rpc_session {
    size_t requests_max;  /* under way at once */
    struct map requests;  /* by id */
    size_t interrupted;   /* of them, those that wait for their exit */
    struct list sendable; /* requests that have something to send, in order */
    struct list events;   /* in order */
    size_t event_bytes;   /* what their messages hold */
    uint64_t id_last;     /* the latest that was given out */
    bool closing;         /* only interrupts are to be sent any more */
    bool ended;           /* the last event is on the list, or was taken */
    struct rpc_event open;
    struct rpc_event closed;
    struct buf given; /* the message of the event that the program has */
};

/* An empty session; the limit is above 0. */
void rpc_session_init(struct rpc_session *s, size_t requests_max);

/* Frees everything; accepts a zeroed one. */
void rpc_session_finish(struct rpc_session *s);

/* A request, as t3_rpc_subscribe and t3_rpc_call say; `method` and `payload` are checked. LIMIT,
 * CLOSED, MEMORY. */
int rpc_session_request(struct rpc_session *s, bool stream, struct slice method,
                        struct slice payload, uint64_t *ret_id, struct t3_rpc_error *ret_error);

/* As t3_rpc_ack. ARGUMENT, CLOSED. */
int rpc_session_ack(struct rpc_session *s, uint64_t id, struct t3_rpc_error *ret_error);

/* As t3_rpc_interrupt. */
void rpc_session_interrupt(struct rpc_session *s, uint64_t id);

/* From now on nothing is sent but of what was interrupted before, and what comes is ignored. */
void rpc_session_close(struct rpc_session *s);

/* The connection stands. */
void rpc_session_open(struct rpc_session *s);

/* Takes what the server sent, read from `message`; takes that, too, and leaves it empty, where it
 * becomes an event. PROTOCOL or DEFECT, which end the connection: the caller calls rpc_session_end
 * with `message` as it is. */
int rpc_session_take(struct rpc_session *s, const struct t3_frame *frame, struct buf *message,
                     struct t3_rpc_error *ret_error) MUST_USE;

/* The connection has ended with `error`, and with it all requests: the last event. `defect` borrows
 * from `message`, which is taken; both may be NULL or empty. Only the first call counts. */
void rpc_session_end(struct rpc_session *s, const struct t3_rpc_error *error, struct slice defect,
                     struct buf *message);

/* Appends the next message for the server: false when there is none. Failure sticks to `out`. */
bool rpc_session_send(struct rpc_session *s, struct buf *out);

/* Takes the next event: false when there is none. Its text lives until the next call. */
bool rpc_session_next(struct rpc_session *s, struct t3_rpc_event *ret_event);

/* Whether there is an event to take. */
static inline bool rpc_session_has_event(const struct rpc_session *s)
{
    return !list_empty(&s->events);
}

#endif
