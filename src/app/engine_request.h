/* From a call of the client to an operation of the engine: the same checks, and the same words,
 * that a request over HTTP meets on its way. */
#ifndef ARBE_APP_ENGINE_REQUEST_H
#define ARBE_APP_ENGINE_REQUEST_H

#include "client/call.h"
#include "stream/engine.h"

/* An operation with what it borrows: a call may be gone before its operation is. */
struct engine_request {
    struct stream_op op;
    struct engine_list_query list;      /* CALL_LIST, instead of `op` */
    struct block *body;                 /* referenced; NULL: none */
    char name[STREAM_NAME_BYTES_MAX];   /* CALL_LIST: the prefix */
    char source[STREAM_NAME_BYTES_MAX]; /* of a fork; CALL_LIST: the name behind which it goes on */
    char *texts;                        /* owned: content type, Stream-Seq, Producer-Id */
};

struct engine_request_limits {
    uint64_t body_bytes_max; /* 413 above */
    uint32_t page_bytes;     /* most bytes of one read */
};

/* Fills a zeroed request. False when the call is refused: then it has failed. In either case
 * engine_request_finish follows. */
bool engine_request_fill(struct engine_request *request, struct call *call,
                         const struct engine_request_limits *limits);

/* Frees what it holds, but for a page that was read. */
void engine_request_finish(struct engine_request *request);

#endif
