/* The loader brings streams from the catalog into memory. Its work blocks, so it runs on the pool,
 * but one piece after the other: whoever is in the loader knows that no other stream is being
 * loaded, which is what makes it simple to load a fork together with its sources. */
#ifndef ARBE_STREAM_LOAD_H
#define ARBE_STREAM_LOAD_H

#include <pthread.h>

#include "base/task.h"
#include "log/store.h"

struct engine;
struct stream;

struct loader {
    pthread_mutex_t lock; /* guards the fields below */
    pthread_cond_t idle;  /* signalled when `running` becomes false */
    struct list streams;  /* struct stream by load_link: placeholders to be filled; referenced */
    struct list tasks;    /* struct task: other work for the loader */
    bool running;         /* `task` is on the pool */
    struct task task;
};

/* The pool is told of by loader_add's engine. */
void loader_init(struct loader *l);

/* Waits until it has nothing to do. */
void loader_wait(struct loader *l);

/* It has nothing to do, see loader_wait. */
void loader_finish(struct loader *l);

/* Queues a placeholder that was just put into the table; takes over a reference. Any thread. */
void loader_add(struct engine *e, struct stream *s);

/* Queues other work, whose function may call load_id. Any thread. */
void loader_run(struct engine *e, struct task *task);

/* In the loader, or while nothing else runs yet: the stream, referenced, loaded if need be with its
 * sources. ERR_NOTFOUND, ERR_NOMEM, ERR_CORRUPT, ERR_IO. Blocks. */
int load_id(struct engine *e, stream_id id, struct stream **ret_stream) MUST_USE;

/* Where the stream's bytes lie, asked of the catalog once more: for one whose pack is not there.
 * Not only in the loader, but it blocks. 0 also when nothing is new; ERR_NOMEM, ERR_CORRUPT,
 * ERR_IO. */
int load_extents(struct stream *s) MUST_USE;

#endif
