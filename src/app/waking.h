/* Wakes the director after something was posted, on a thread of the application and after the
 * answer: a wake that fails is told to the thread, and undoes nothing. A thread that waits for a
 * wake waits for one only, however much is posted meanwhile. */
#ifndef ARBE_APP_WAKING_H
#define ARBE_APP_WAKING_H

#include "base/attr.h"
#include "base/slice.h"

struct app;
struct wakings;

/* ERR_NOMEM. */
int wakings_create(struct wakings **ret_wakings) MUST_USE;

/* Waits for those that wait or run. Nothing is posted any more, pool and outbox are still there.
 * Accepts NULL. */
void wakings_destroy(struct wakings *w);

/* Starts one; costs nothing where there is no director. Any thread. */
void waking_start(struct app *app, struct slice thread_id, struct slice entry_id);

#endif
