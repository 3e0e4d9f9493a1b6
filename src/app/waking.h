/* Wakes the director after something was posted, on a thread of the application and after the
 * answer: a wake that fails is told to the thread, and undoes nothing. */
#ifndef ARBE_APP_WAKING_H
#define ARBE_APP_WAKING_H

#include "base/slice.h"

struct app;

/* Starts it; costs nothing where there is no director. Any thread. */
void waking_start(struct app *app, struct slice thread_id, struct slice entry_id);

#endif
