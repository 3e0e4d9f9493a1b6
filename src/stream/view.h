/* Staged and visible state of a stream: see the head of view.c. The caller holds the stream's
 * lock. */
#ifndef ARBE_STREAM_VIEW_H
#define ARBE_STREAM_VIEW_H

#include "stream/stream.h"

/* A change that begins as a copy of the staged state; the caller edits `after` and then pushes or
 * drops it. NULL when memory is out. */
struct stream_change *view_change(const struct stream *s);

/* The change was staged and is durable at `end`: the staged state is now its. Takes it over. */
void view_push(struct stream *s, struct stream_change *c, log_pos end);

/* The change was not staged. Accepts NULL. */
void view_drop(struct stream_change *c);

/* Brings `visible` up to what is durable and returns it; it lives until the lock is given back. */
const struct stream_state *view_now(struct stream *s);

/* Everything staged is known to be durable, as in recovery. */
void view_settle(struct stream *s);

/* Sets both states at once, for loading. Takes over `state`. */
void view_reset(struct stream *s, struct stream_state state, log_pos applied);

/* Replaces the Stream-Seq of a state by a copy of `seq`. ERR_NOMEM. */
int view_set_seq(struct stream_state *state, struct slice seq) MUST_USE;

#endif
