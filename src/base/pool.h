/* A few threads for work that may block on the disk, so that no event loop ever does. Tasks run in
 * the order they were submitted, several at a time. The queue is bounded by its users: a request
 * has at most one task in it, and connections are capped. */
#ifndef ARBE_BASE_POOL_H
#define ARBE_BASE_POOL_H

#include "base/task.h"

struct pool;

/* Starts `thread_count` threads. 0, ERR_NOMEM or ERR_AGAIN. With 0 threads, pool_submit runs the
 * task at once on the caller's thread, which is what simulations use. */
int pool_create(unsigned thread_count, struct pool **ret_pool) MUST_USE;

/* Runs what is queued, then joins the threads. Accepts NULL. */
void pool_destroy(struct pool *p);

/* Queues a task; any thread. */
void pool_submit(struct pool *p, struct task *task);

#endif
