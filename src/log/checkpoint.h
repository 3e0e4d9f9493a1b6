/* One checkpoint: the bytes of all dirty streams go into packs, what else is known of them into the
 * catalog, in one transaction together with the log position that it covers. checkpoint.c opens
 * with the order of steps. checkpoint_add is in store.h, for the streams. One thread; all of it
 * blocks. */
#ifndef ARBE_LOG_CHECKPOINT_H
#define ARBE_LOG_CHECKPOINT_H

#include "log/output.h"
#include "log/store.h"

/* Begins. `target` outlives the checkpoint. Errors as catalog_begin. */
int checkpoint_create(const struct output_target *target,
                      struct checkpoint **ret_checkpoint) MUST_USE;

/* Makes the packs durable and commits, with `state` (its next_pack aside, which
 * the target counts). After an error nothing has changed, but see
 * catalog_commit for ERR_UNKNOWN. */
int checkpoint_commit(struct checkpoint *c, const struct catalog_state *state) MUST_USE;

/* Calls `each` for the extents that were added, in order; after checkpoint_commit. */
void checkpoint_each_added(const struct checkpoint *c,
                           void (*each)(void *context, stream_id id, const struct extent *e),
                           void *context);

/* Frees; what was not committed is undone. Accepts NULL. */
void checkpoint_destroy(struct checkpoint *c);

#endif
