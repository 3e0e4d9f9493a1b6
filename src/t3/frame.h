/* The messages of Effect's RPC as JSON: what a server says, taken apart, and what a client says,
 * put together. One WebSocket message is one of them. Pure: no fd, no clock, no allocation but that
 * of the buffer given. */
#ifndef ARBE_T3_FRAME_H
#define ARBE_T3_FRAME_H

#include "arbe/t3_rpc.h"
#include "base/attr.h"
#include "base/buf.h"

enum t3_frame_kind {
    T3_FRAME_OTHER,  /* of a kind that nobody here knows: to be ignored */
    T3_FRAME_PONG,   /* the answer to a Ping */
    T3_FRAME_CHUNK,  /* items of a stream, at least one */
    T3_FRAME_EXIT,   /* the end of a request */
    T3_FRAME_DEFECT, /* the server broke, and tells no request by it */
};

struct t3_frame {
    enum t3_frame_kind kind;
    uint64_t id;               /* CHUNK, EXIT: of the request; not 0 */
    struct slice json;         /* CHUNK: the items; EXIT: the value or the cause; DEFECT: it */
    struct t3_rpc_error error; /* EXIT: OK, or how it failed; DEFECT: DEFECT; with a sentence */
};

/* Reads a message of the server. ret_frame->json borrows from `text`. LIMIT when it is nested
 * deeper than `depth_max`; PROTOCOL with a sentence. */
int t3_frame_read(struct slice text, unsigned depth_max, struct t3_frame *ret_frame,
                  struct t3_rpc_error *ret_error) MUST_USE;

/* Whether `text` is one JSON object, as the payload of a request must be: T3_RPC_OK and the object
 * without white space around it, or ARGUMENT with a sentence. */
int t3_frame_payload(struct slice text, struct slice *ret_payload,
                     struct t3_rpc_error *ret_error) MUST_USE;

/* Appends a request; `payload` is a JSON object. Failure sticks to the buffer. */
void t3_frame_request(struct buf *out, uint64_t id, struct slice method, struct slice payload);

/* Appends the acknowledgement of a chunk, or the wish that a request end; likewise. */
void t3_frame_ack(struct buf *out, uint64_t id);
void t3_frame_interrupt(struct buf *out, uint64_t id);

/* Appends the question whether the server is there; likewise. */
void t3_frame_ping(struct buf *out);

#endif
