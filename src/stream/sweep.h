/* Housekeeping: deletes streams whose time is over though nobody asks for them, keeps the TTL of
 * those that are read live, and takes idle ones out of memory. A bounded amount of work a round. */
#ifndef ARBE_STREAM_SWEEP_H
#define ARBE_STREAM_SWEEP_H

#include "stream/core.h"

/* Starts the thread that calls engine_housekeep every sweep_interval_ms. ERR_AGAIN. */
int sweep_start(struct engine *e) MUST_USE;

/* Ends the thread, if there is one, and waits for it. */
void sweep_stop(struct engine *e);

#endif
