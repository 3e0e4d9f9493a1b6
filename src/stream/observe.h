/* Telling the engine's observer of what became visible: see engine_observe. */
#ifndef ARBE_STREAM_OBSERVE_H
#define ARBE_STREAM_OBSERVE_H

#include "stream/core.h"

/* Nobody observes. */
void observe_init(struct engine *e);

/* No callback runs any more. */
void observe_finish(struct engine *e);

/* Tells what is new of the stream, whose lock the caller holds and whose visible state is up to
 * date. For a stream that the observer does not want this is one comparison. */
static inline void observe_told(struct stream *s);

/* The part of observe_told for streams that have news. */
void observe_news(struct stream *s, uint64_t generation);

static inline void observe_told(struct stream *s)
{
    uint64_t generation = atomic_load(&s->engine->observer_generation);
    if (s->news != 0 && generation != 0) {
        observe_news(s, generation);
    }
    s->news = 0;
}

#endif
