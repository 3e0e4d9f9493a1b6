/* Live readers of a stream: one watch per worker that has any, each with its waiters; and the one
 * encoded frame that those who follow the stream share. See the head of watch.c. */
#ifndef ARBE_STREAM_WATCH_H
#define ARBE_STREAM_WATCH_H

#include "stream/core.h"

struct stream_live {
    struct list watches; /* struct stream_watch */
    uint32_t waiters;    /* of all watches */
    struct block *frame; /* the newest; referenced; NULL: none */
    uint64_t frame_from; /* position of its first byte */
    uint64_t frame_to;   /* position behind its last */
    bool frame_closed;   /* it tells that the stream is closed */
};

/* Has every watch look at the stream again, and tells the engine's observer what is new. Any
 * thread, without the stream's lock. */
void watch_publish(struct stream *s);

/* Whether somebody reads the stream live. Under its lock. */
static inline bool watch_any(const struct stream *s)
{
    return s->live && s->live->waiters > 0;
}

/* Frees the watches of a worker that is detached and whose tasks run no more. */
void watch_finish_worker(struct engine_worker *w);

#endif
