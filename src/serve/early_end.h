/* SIGTERM and SIGINT while a mount opens. They are blocked until the server waits for its end, but
 * what is opened may wait for others who never answer: a thread of its own takes such a signal,
 * tells the mount to hurry, and hands it on once the mount is open. */
#ifndef ARBE_SERVE_EARLY_END_H
#define ARBE_SERVE_EARLY_END_H

#include "serve/mount.h"

#include <pthread.h>
#include <stdbool.h>

struct early_end {
    /* private */
    const struct mount *mount;
    pthread_t thread;
    bool watches;
};

/* Begins; every thread has SIGTERM, SIGINT and SIGALRM blocked. Without a thread to be had the
 * signals come later, as they would otherwise. */
void early_end_watch(struct early_end *e, const struct mount *mount);

/* The mount is open, or failed. A signal that came is pending again, for the whole process. */
void early_end_leave(struct early_end *e);

#endif
