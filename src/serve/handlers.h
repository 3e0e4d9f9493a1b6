/* One handler for each thing that a request may ask for; exchange.c chooses. Each checks the
 * request's headers and either answers at once or sets x->ready (called when the body is there)
 * and x->finish. */
#ifndef ARBE_SERVE_HANDLERS_H
#define ARBE_SERVE_HANDLERS_H

#include "serve/exchange.h"

/* PUT (PROTOCOL.md 5.1 and 4.2). A refusal is answered by the caller: an error code and a
 * sentence. */
int create_prepare(struct exchange *x, struct errmsg *msg) MUST_USE;

/* POST (PROTOCOL.md 5.2 and 5.3). */
int append_prepare(struct exchange *x, struct errmsg *msg) MUST_USE;

/* DELETE (PROTOCOL.md 5.4). */
int remove_prepare(struct exchange *x, struct errmsg *msg) MUST_USE;

/* HEAD (PROTOCOL.md 5.5). */
int head_prepare(struct exchange *x, struct errmsg *msg) MUST_USE;

/* GET in all modes (PROTOCOL.md 5.6 to 5.8). */
int catchup_prepare(struct exchange *x, struct errmsg *msg) MUST_USE;

/* Answers OPTIONS of anything (CORS preflight). */
void options_answer(struct exchange *x);

/* Answers /health: 200, or 503 with what is wrong when the log has failed, the last checkpoint
 * failed, or the server drains. */
void health_answer(struct exchange *x);

/* Answers /metrics; asks for the secret. */
void metrics_answer(struct exchange *x);

/* A read answered with a page: 200 or 304. `cursor`: with a Stream-Cursor, as live answers have. */
void catchup_answer(struct exchange *x, bool cursor);

/* A long-poll's first read has its result. */
void longpoll_begin(struct exchange *x);

/* The first read of an SSE request has its result. */
void sse_begin(struct exchange *x);

/* Most stream bytes of one SSE event; a JSON message may exceed it. */
uint32_t sse_page_bytes(const struct exchange *x);

/* From now on the request is a live reader, of the kind that x->query.live says, told of what
 * happens by `ops`. False when the server has as many as it may, or the reader's right has ended:
 * then it has been answered. */
bool live_enter(struct exchange *x, const struct exchange_live *ops) MUST_USE;

/* It is one no more. */
void live_leave(struct exchange *x);

/* The same for a reader of the stream that the first read, which has its result, has found;
 * x->ended takes it off. */
bool live_begin(struct exchange *x, const struct exchange_live *ops) MUST_USE;

#endif
