/* From an operation's result to the result of a call, and from a page to the bytes of a body: what
 * an answer over HTTP would say. */
#ifndef ARBE_APP_ENGINE_ANSWER_H
#define ARBE_APP_ENGINE_ANSWER_H

#include "client/call.h"
#include "stream/engine.h"

/* Fills the result of an operation that ended well, or fails the call as its refusal. */
void engine_answer(struct call *call, const struct stream_op *op);

/* Fails the call with a refusal that no operation has made. */
void engine_answer_refusal(struct call *call, int status, struct slice sentence);

/* The answer to a long-poll that found nothing, or only the end. */
void engine_answer_nothing(struct call *call, const struct stream_page *page);

/* Fills what a listing says of a stream. */
void engine_answer_listed(struct stream_info *info, uint64_t next, struct slice content_type,
                          bool closed, const struct stream_expiry *expiry);

/* A page as a body: its bytes, which for JSON stand in brackets without the last comma. Walks over
 * pieces in memory. */
struct engine_body {
    const struct stream_page *page;
    size_t at;       /* bytes of the body that are behind */
    size_t piece;    /* where the next one stands */
    size_t piece_at; /* bytes of that piece that are behind */
};

/* Begins at the first byte. */
void engine_body_begin(struct engine_body *body, const struct stream_page *page);

/* Copies the next bytes to `out` and steps behind them; how many, 0 at the end. */
size_t engine_body_next(struct engine_body *body, char *out, size_t size);

#endif
