/* A piece of work handed from one thread to another: a function and a link, embedded in what it is
 * about, so that handing it over allocates nothing. It belongs to the queue from posting until its
 * function runs; it must not be posted twice meanwhile. */
#ifndef ARBE_BASE_TASK_H
#define ARBE_BASE_TASK_H

#include "base/list.h"

struct task {
    struct list link;               /* on the queue it was posted to */
    void (*run)(struct task *task); /* called on the receiving thread, once */
};

/* Posts a task to a thread; safe from any thread, never blocks for long, never fails. */
typedef void (*task_post_fn)(void *context, struct task *task);

#endif
