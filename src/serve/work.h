/* What an operation of a request takes: it and the name of its stream. That is most of what a
 * request costs, so a live reader that waits has given its back. A worker keeps a few, which saves
 * the next requests an allocation. On the worker's thread. */
#ifndef ARBE_SERVE_WORK_H
#define ARBE_SERVE_WORK_H

#include "stream/engine.h"

struct worker;

struct work {
    struct stream_op op; /* nothing is left behind in it: taken, it is all zeros */
    size_t name_len;
    char name[STREAM_NAME_BYTES_MAX]; /* canonical */
    struct work *next;                /* private */
};

/* NULL: no memory. */
struct work *work_take(struct worker *w) MUST_USE;

/* Gives it back, with the page of a read. Nothing of it is under way. Accepts NULL. */
void work_give(struct worker *w, struct work *work);

/* Frees what the worker keeps. */
void work_free_spare(struct worker *w);

#endif
