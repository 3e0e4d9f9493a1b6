/* From a request's body to what the stream keeps: in JSON mode each message followed by a comma
 * (PROTOCOL.md 9.1), else the body as it came; with the marks that tell where messages end.
 * Pure. */
#ifndef ARBE_STREAM_MESSAGE_H
#define ARBE_STREAM_MESSAGE_H

#include "base/block.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/slice.h"

struct message_batch {
    struct slice body;   /* as stored; may be empty */
    struct block *block; /* holds `body`, referenced; NULL when the body is only borrowed */
    struct slice marks;  /* of the body, see log/marks.h */
    /* private */
    struct buf buf; /* of marks */
    char one[16];   /* the mark of a body that is one message */
};

/* Prepares `body`, which may be empty; `block`, when not NULL, holds it. `json` validates and
 * flattens: ERR_INVALID with the reason, also for what holds no message unless `empty_ok` (9.1.3).
 * ERR_NOMEM. The batch borrows from `body` and must not be moved. */
int message_prepare(struct message_batch *batch, bool json, struct slice body, struct block *block,
                    bool empty_ok, struct errmsg *msg) MUST_USE;

/* Accepts a zeroed batch. */
void message_finish(struct message_batch *batch);

#endif
