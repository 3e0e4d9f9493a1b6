/* Error answers: application/problem+json (RFC 9457) with a sentence that says what was wrong
 * and what would be accepted. Nothing in it tells about the inside of the server. Routes of the
 * control API answer in the form of PROTOCOL.md section 7 instead: {"error":{"code","message"}}. */
#ifndef ARBE_SERVE_PROBLEM_H
#define ARBE_SERVE_PROBLEM_H

#include "serve/reply.h"

/* Appends the document. Failure sticks to the buffer. */
void problem_format(struct buf *out, int status, struct slice detail);

/* Appends the same in the control API's form. */
void problem_format_control(struct buf *out, int status, struct slice message);

/* Counts the error that is about to be answered, and remembers what of it the headers depend on. */
void problem_note(struct exchange *x, int code);

/* Begins an error answer; headers may follow, then problem_send. */
void problem_begin(struct exchange *x, int status);

/* Ends the answer that problem_begin began and destroys the exchange. */
void problem_send(struct exchange *x, int status, struct slice detail);

/* Both in one. */
void problem_answer(struct exchange *x, int status, struct slice detail);

/* A whole answer to a request that was not read, after which the connection ends; empty when memory
 * is out. It stands in the worker's output buffer. */
struct slice problem_unasked(struct worker *w, int status, struct slice detail);

/* Answers with the status of an error code and the sentence in `msg`, or the code's own when
 * that is empty or would tell of the server's inside. */
void problem_answer_code(struct exchange *x, int code, const struct errmsg *msg);

#endif
