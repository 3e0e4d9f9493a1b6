/* Files that hold secrets, or say where secrets go: mode 0600, in directories that are made with
 * mode 0700 where there are none. A file is written beside itself and renamed, so that a crash or a
 * full disk leaves the old one, and a reader sees one or the other. */
#ifndef ARBE_CLI_PRIVATE_FILE_H
#define ARBE_CLI_PRIVATE_FILE_H

#include "base/err.h"
#include "base/slice.h"

#include <stdbool.h>

#define PRIVATE_PATH_BYTES 4096u /* of a path, with the NUL */

/* Replaces the file at `path`, which names a directory; `what` is its name in sentences ("the
 * login"). ERR_IO with a sentence; ERR_INVALID when the path is too long. Blocks on the disk. */
int private_file_write(const char *path, const char *what, struct slice text,
                       struct errmsg *msg) MUST_USE;

/* Keeps others who do so from changing the file at `path` until private_file_unlock, by a file
 * beside it. ERR_AGAIN: somebody does at the time; ERR_IO, ERR_INVALID; with a sentence. Does not
 * wait. */
int private_file_lock(const char *path, const char *what, int *ret_fd, struct errmsg *msg) MUST_USE;

/* Lets others. */
void private_file_unlock(const char *path, int fd);

/* 0 for a directory where nobody else can put or swap files, and for none. Else ERR_PERM with a
 * sentence: it may be written by others, is another user's, is none, or is a link and `link` is
 * false; ERR_IO. */
int private_dir_check(const char *dir, const char *what, bool link, struct errmsg *msg) MUST_USE;

/* Removes it; false in ret_there: there was none. ERR_IO with a sentence. */
int private_file_remove(const char *path, const char *what, bool *ret_there,
                        struct errmsg *msg) MUST_USE;

#endif
