/* The moves are one row of bits for each status that a thread may be in. */
#include "thread/status.h"

#include <assert.h>

#define TO(name) (1u << THREAD_##name)
#define ENDS     (TO(COMPLETED) | TO(FAILED) | TO(CANCELLED))

static const unsigned moves[THREAD_STATUS_COUNT] = {
    [THREAD_OPEN] = TO(OPEN) | TO(IDLE) | TO(RUNNING) | ENDS,
    [THREAD_IDLE] = TO(IDLE) | TO(RUNNING) | ENDS | TO(OPEN),
    [THREAD_RUNNING] = TO(RUNNING) | TO(IDLE) | ENDS,
    /* A run may be resumed. */
    [THREAD_COMPLETED] = TO(COMPLETED) | TO(RUNNING) | TO(OPEN),
    [THREAD_FAILED] = TO(FAILED) | TO(RUNNING) | TO(OPEN),
    [THREAD_CANCELLED] = TO(CANCELLED) | TO(RUNNING) | TO(OPEN),
};

static const char *const texts[THREAD_STATUS_COUNT] = {
#define X(name, text) [THREAD_##name] = text,
    THREAD_STATUS_LIST(X)
#undef X
};

const char *status_text(enum thread_status status)
{
    assert(status < THREAD_STATUS_COUNT);
    return texts[status];
}

bool status_parse(struct slice text, enum thread_status *ret_status)
{
    for (enum thread_status i = 0; i < THREAD_STATUS_COUNT; i++) {
        if (slice_equal(text, slice_of(texts[i]))) {
            *ret_status = i;
            return true;
        }
    }
    return false;
}

bool status_may_move(enum thread_status from, enum thread_status to)
{
    assert(from < THREAD_STATUS_COUNT);
    assert(to < THREAD_STATUS_COUNT);
    return (moves[from] >> to & 1) != 0;
}

bool status_is_terminal(enum thread_status status)
{
    assert(status < THREAD_STATUS_COUNT);
    return (ENDS >> status & 1) != 0;
}
