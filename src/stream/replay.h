/* Recovery: the records of the log, from the last checkpoint on, change the streams again as they
 * did before. While the engine opens, on one thread; see the head of replay.c. */
#ifndef ARBE_STREAM_REPLAY_H
#define ARBE_STREAM_REPLAY_H

#include "stream/core.h"

struct replay;

/* What recovery has to remember from record to record. NULL when memory is out. */
struct replay *replay_create(void);

/* Recovery is over. Accepts NULL. */
void replay_destroy(struct replay *r);

/* Applies one record that ends at `end`. ERR_CORRUPT when it cannot follow from what came before,
 * ERR_NOMEM, ERR_IO. */
int replay_record(struct engine *e, const struct record *r, log_pos end) MUST_USE;

#endif
