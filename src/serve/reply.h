/* Writes an answer: status line, the headers that every answer has, its own, then the body. A
 * builder over the worker's buffer; failures stick and end the connection at reply_send. */
#ifndef ARBE_SERVE_REPLY_H
#define ARBE_SERVE_REPLY_H

#include "http/response.h"
#include "serve/exchange.h"

#define REPLY_NO_STORE SLICE("no-store")

/* The headers that are the same in every answer of a server, made once. */
void reply_format_common(struct buf *out, const struct serve_config *config);

/* Begins an answer. `cache_control` is never empty. */
void reply_begin(struct exchange *x, int status, struct slice cache_control);

/* Begins an answer whose status line and fields, `head`, were composed elsewhere; only what
 * concerns the connection is added. */
void reply_begin_as(struct exchange *x, int status, struct slice head);

/* A header whose value is the server's own. */
void reply_literal(struct exchange *x, struct slice name, struct slice literal);

/* A header whose value a client once sent: refused when it could end the line. */
void reply_field(struct exchange *x, struct slice name, struct slice value);

/* A header with a decimal number. */
void reply_u64(struct exchange *x, struct slice name, uint64_t value);

/* Stream-Next-Offset. */
void reply_next(struct exchange *x, uint64_t position);

/* Stream-Closed, when the stream is. */
void reply_closed(struct exchange *x, bool closed);

/* Ends a head that has no Content-Length (204 and 304, RFC 9110 section 8.6), queues the answer and
 * destroys the exchange. */
void reply_send_bare(struct exchange *x);

/* Ends the head with Content-Length, adds the body (not for HEAD), queues and destroys. */
void reply_send(struct exchange *x, struct slice body);

/* Ends the head with Content-Length and leaves the body to the caller, who appends it to the
 * worker's buffer or queues it after reply_queue_head. Then reply_done. */
void reply_end_head(struct exchange *x, uint64_t body_bytes);

/* Counts bytes of a body that has no length; reply_end_head counts the others. */
void reply_count(struct exchange *x, uint64_t body_bytes);

/* Queues what is in the worker's buffer. False when the connection is beyond use: it and the
 * exchange are gone then. */
bool reply_queue_head(struct exchange *x) MUST_USE;

/* The answer is queued whole: destroys the exchange and lets the connection go on. */
void reply_done(struct exchange *x);

#endif
