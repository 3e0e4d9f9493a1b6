/* What the streams give to a checkpoint, and what they hear of it; see the head of checkpoint.c. */
#ifndef ARBE_STREAM_CHECKPOINT_H
#define ARBE_STREAM_CHECKPOINT_H

#include "stream/core.h"

/* The stream is about to change, or did: the next checkpoint takes it. Under the stream's lock, and
 * before anything is staged. */
void checkpoint_mark(struct stream *s);

/* Asks the store for a checkpoint, once until it begins. Any thread, without locks. */
void checkpoint_ask(struct engine *e);

/* store_events.collect: gives every dirty stream to `c`. */
int checkpoint_collect(void *context, struct checkpoint *c);

/* store_events.collect_dropped: gives `c` at most `max` streams that are gone for good. */
int checkpoint_collect_dropped(void *context, struct checkpoint *c, size_t max, size_t *ret_count);

/* store_events.checkpointed; also called by collect when it fails. May be called twice. */
void checkpoint_done(void *context, int code);

/* store_events.extent_added and extent_replaced: streams not in memory do not care. */
void checkpoint_extent_added(void *context, stream_id id, const struct extent *e);
/* See above. */
void checkpoint_extent_replaced(void *context, stream_id id, const struct extent *e);

/* Drops bytes that are in packs too, until they are within the budget. Any thread, without
 * locks. */
void checkpoint_trim_cache(struct engine *e);

/* Under the lock: puts `x` in the place of the extents that exactly cover it, if some do. */
void checkpoint_replace_extent(struct stream *s, const struct extent *x);

#endif
