/* An answer of server-sent events, whatever they tell: its head, the framing of what is sent, signs
 * of life, and its end. What is sent is written to the worker's frame buffer as an HTTP chunk: a
 * size line of fixed width before it, CRLF behind it; HTTP/1.0 readers get the inside. State is in
 * x->live; x->live_ops are its owner's. On the exchange's worker. */
#ifndef ARBE_SERVE_EVENT_STREAM_H
#define ARBE_SERVE_EVENT_STREAM_H

#include "serve/exchange.h"

/* Above so many bytes queued a reader is not fed until its output has drained. */
#define EVENT_STREAM_OUTPUT_BYTES_MAX (64 * KIB)

/* Sends the head, with Stream-SSE-Data-Encoding unless `encoding` has ptr NULL; life and heartbeats
 * are those of the server's configuration. The request's head is given back. False: the session is
 * gone. */
bool event_stream_begin(struct exchange *x, struct slice encoding) MUST_USE;

/* Begins a chunk; events are then appended to the buffer, which is the worker's. */
struct buf *event_stream_chunk(struct exchange *x);

/* Sends the chunk. False: the session is gone. */
bool event_stream_send(struct exchange *x) MUST_USE;

/* The chunk as a block that many readers may be sent; NULL: no memory. */
struct block *event_stream_block(struct exchange *x);

/* Sends such a block, of which one reference is taken over. False: the session is gone. */
bool event_stream_send_block(struct exchange *x, struct block *chunk) MUST_USE;

/* The session's deadline has come: a sign of life, x->live_ops->stop at the end of its life, or a
 * reader that takes nothing is dropped. */
void event_stream_tick(struct exchange *x);

/* Ends the answer cleanly, and the connection with it. */
void event_stream_finish(struct exchange *x);

#endif
