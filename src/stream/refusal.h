/* How a refusal is put to a client: status and sentence, whatever carries them. Pure. */
#ifndef ARBE_STREAM_REFUSAL_H
#define ARBE_STREAM_REFUSAL_H

#include "stream/engine.h"

/* What a client is told of `code`: the sentence in `msg` if there is one and it is not about the
 * inside of the server, else the default one. Lives as long as `msg`. */
struct slice refusal_detail(int code, const struct errmsg *msg);

/* The status of an operation that failed. */
int refusal_status(const struct stream_op *op);

/* Its sentence; lives as long as the operation. */
struct slice refusal_of_op(const struct stream_op *op);

/* The status of a name that name_parse refused with `code`. */
int refusal_name_status(int code);

/* A body is longer than `bytes_max`. Sets `msg` and returns ERR_TOOBIG. */
int refusal_of_body(struct errmsg *msg, uint64_t bytes_max);

/* `whose` ("a stream", "this server") live readers are too many. Sets `msg`, and returns
 * the status. */
int refusal_of_reader(struct errmsg *msg, const char *whose);

#endif
