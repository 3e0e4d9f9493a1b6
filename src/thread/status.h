/* The status of a thread and its legal moves: a chat stays open; a run goes from idle to running
 * and to one of the three ends, from which it may be resumed. Pure. */
#ifndef ARBE_THREAD_STATUS_H
#define ARBE_THREAD_STATUS_H

#include "base/attr.h"
#include "base/slice.h"

#define THREAD_STATUS_LIST(X) \
    X(OPEN, "open")           \
    X(IDLE, "idle")           \
    X(RUNNING, "running")     \
    X(COMPLETED, "completed") \
    X(FAILED, "failed")       \
    X(CANCELLED, "cancelled")

enum thread_status {
#define X(name, text) THREAD_##name,
    THREAD_STATUS_LIST(X)
#undef X
    THREAD_STATUS_COUNT
};

/* All names, for sentences. */
#define THREAD_STATUS_TEXTS "open, idle, running, completed, failed or cancelled"

/* Its name. Static storage. */
const char *status_text(enum thread_status status);

/* The status of that name, in lower case. False for any other text. */
bool status_parse(struct slice text, enum thread_status *ret_status) MUST_USE;

/* Whether a thread may go from one to the other. The same again is legal and changes nothing. */
bool status_may_move(enum thread_status from, enum thread_status to);

/* Whether a run has ended with it: completed, failed, cancelled. */
bool status_is_terminal(enum thread_status status);

#endif
