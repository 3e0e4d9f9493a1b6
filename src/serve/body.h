/* A request body on its way into one block: by its length straight from the socket, or decoded
 * from chunks. Memory grows with what has come, not with what was announced, and everything
 * above a few KiB counts against the server's budget for unfinished bodies. */
#ifndef ARBE_SERVE_BODY_H
#define ARBE_SERVE_BODY_H

#include "http/chunk.h"
#include "serve/worker.h"

struct body {
    struct block *block;      /* owned; NULL while empty; `len` is set when the body is whole */
    size_t len;               /* bytes received */
    uint64_t charged;         /* counted against the budget */
    uint64_t declared;        /* Content-Length */
    uint64_t max;             /* most bytes it may have */
    enum http_body_kind kind; /* how its end is found */
    bool whole;               /* all of it is there */
    bool pulling;             /* the connection was told to fill the block */
    struct chunk_decoder chunks;
};

/* Prepares for the body that `request` announces. ERR_TOOBIG: over --max-body. */
int body_begin(struct body *b, struct server *server, const struct http_request *request) MUST_USE;

/* Lowers the most bytes that the body may have. ERR_TOOBIG: more are announced. Before the first
 * call of body_feed. */
int body_limit(struct body *b, uint64_t bytes_max) MUST_USE;

/* Takes what has come on `conn`. 0 (look at b->whole), ERR_TOOBIG, ERR_INVALID for malformed
 * chunks, ERR_BUSY: the budget is used up, ERR_NOMEM. */
int body_feed(struct body *b, struct server *server, struct conn *conn) MUST_USE;

/* Bytes received so far, also those of a block that is being filled. */
uint64_t body_received(const struct body *b, const struct conn *conn);

/* The rest is not wanted: the connection no longer writes to the block. */
void body_stop(struct body *b, struct conn *conn);

/* Bytes of the body that are still to come, or UINT64_MAX when nobody knows. */
uint64_t body_unread(const struct body *b);

/* Frees the block and the budget. Accepts a zeroed body. */
void body_finish(struct body *b, struct server *server);

#endif
