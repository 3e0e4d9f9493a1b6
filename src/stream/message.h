/* From a request's body to what the stream keeps: in JSON mode each message followed by a comma
 * (PROTOCOL.md 9.1), else the body as it came; with the marks that tell where messages end.
 * Pure; linear in the body, so large JSON bodies belong on the pool. */
#ifndef ARBE_STREAM_MESSAGE_H
#define ARBE_STREAM_MESSAGE_H

#include "base/block.h"
#include "base/err.h"
#include "base/slice.h"
#include "stream/tail.h"

struct message_batch {
    struct slice body;         /* as stored; may be empty */
    struct block *block;       /* holds `body`, referenced; NULL when the body is only borrowed */
    struct slice marks;        /* of the body, see log/marks.h */
    struct block *marks_block; /* holds `marks`, referenced; NULL: the batch itself does */
    struct marks_run *runs;    /* owned; what the body is cut into */
    size_t run_count;          /* 0: it is short enough as it is */
    char few[64];              /* private; marks of a short body */
};

/* Prepares `body`, which may be empty; `block`, when not NULL, holds it. `json` validates and
 * flattens: ERR_INVALID with the reason, also for what holds no message unless `empty_ok` (9.1.3).
 * ERR_NOMEM. The batch borrows from `body` and must not be moved. */
int message_prepare(struct message_batch *batch, bool json, struct slice body, struct block *block,
                    bool empty_ok, struct errmsg *msg) MUST_USE;

/* Whether preparing such a body takes long enough to be done on the pool. */
bool message_heavy(bool json, size_t body_len);

/* The body as the tail takes it: a large one with its blocks, a small one to be copied. Borrowed
 * from the batch. */
struct tail_body message_body(const struct message_batch *batch);

/* Cuts a body with these marks into runs (marks_first_run); none when it is short enough as it is.
 * The caller frees. ERR_NOMEM. */
int message_split(size_t body_len, struct slice marks, struct marks_run **ret_runs,
                  size_t *ret_count) MUST_USE;

/* Accepts a zeroed batch. */
void message_finish(struct message_batch *batch);

#endif
