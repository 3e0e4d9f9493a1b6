/* The seam to who decides which agents act on a thread: it is woken when there is something new to
 * read, after that has been stored. */
#ifndef ARBE_THREAD_DIRECTOR_H
#define ARBE_THREAD_DIRECTOR_H

#include "base/err.h"
#include "base/slice.h"

struct director {
    void *context;
    /* Something was posted, the newest of it with that id: what comes while a wake waits is told by
     * that same wake. On a thread of the application; it may block for a little. An error, with a
     * sentence, is told to the thread as signal.thread_director.failed, and undoes nothing. NULL:
     * nobody is woken. */
    int (*wake)(void *context, struct slice thread_id, struct slice entry_id, struct errmsg *msg);
};

#endif
