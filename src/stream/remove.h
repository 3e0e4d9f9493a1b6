/* Deleting a stream, on request or because it expired (PROTOCOL.md 5.4 and 4.2). */
#ifndef ARBE_STREAM_REMOVE_H
#define ARBE_STREAM_REMOVE_H

#include "stream/stream.h"

/* Stages the deletion of a stream that is alive and whose lock the caller holds: soft when it has
 * forks, else for good, with every soft-deleted ancestor that only waited for it. An error of
 * staging, or ERR_NOMEM, leaves no trace. */
int remove_locked(struct stream *s, bool expired) MUST_USE;

#endif
