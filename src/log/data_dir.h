/* The data directory as a whole: made, private, and locked by one process. What stands in it is the
 * business of local_store.c. May block on the disk; used when a store is opened. */
#ifndef ARBE_LOG_DATA_DIR_H
#define ARBE_LOG_DATA_DIR_H

#include "base/err.h"
#include "log/sys.h"

#define DATA_DIR_PATH_BYTES_MAX 1100u

/* Makes `path`, shorter than DATA_DIR_PATH_BYTES_MAX - 8, when it is not there, takes the rights of
 * group and others from it unless other things than ours stand in it, and locks it. ERR_MISMATCH,
 * and nothing is changed: it holds other things and was never a data directory; ERR_LOCKED:
 * another process has it. All with a sentence. *ret_fd holds the lock until it is closed. */
int data_dir_take(struct sys *sys, const char *path, int *ret_fd, struct errmsg *msg) MUST_USE;

/* Makes the directory's entry in its parent durable, where it may be new. */
int data_dir_sync_entry(struct sys *sys, const char *path) MUST_USE;

#endif
