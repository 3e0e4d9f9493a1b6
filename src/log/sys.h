/* The seam to the outside world: every file, clock and randomness call of the log and stream layers
 * goes through this struct of function pointers, so that a test can make any single call fail, tear
 * or stall, once or for ever. The real one is in sys_posix.c and is the only file of these layers
 * that makes system calls; LMDB's own calls are guarded by `catalog_commit`.
 *
 * Functions return 0 or more when good, and a negative code of base/err.h. They are called from
 * several threads at once. */
#ifndef ARBE_LOG_SYS_H
#define ARBE_LOG_SYS_H

#include <stdint.h>
#include <sys/types.h>
#include <sys/uio.h>

#include "base/attr.h"
#include "base/slice.h"

/* Called for each entry of a directory; a result other than 0 ends the walk and is returned. */
typedef int (*sys_entry_fn)(void *context, const char *name);

struct sys {
    void *context; /* the implementation's own, first argument of every function */

    /* Opens for reading and writing. `create` makes the file (mode 0600) and fails with ERR_EXISTS
     * when it is there. Returns a descriptor. */
    int (*open)(void *context, const char *path, bool create);
    /* Opens for reading alone, as tools do that must not change a thing. Returns a descriptor. */
    int (*open_read)(void *context, const char *path);
    void (*close)(void *context, int fd);

    /* All of the bytes or an error: short writes are continued inside. `count` at most 1024. */
    int (*pwritev)(void *context, int fd, const struct iovec *iov, int count, uint64_t offset);
    /* Bytes read, short only at the end of the file. */
    int64_t (*pread)(void *context, int fd, void *buf, size_t len, uint64_t offset);
    int (*fdatasync)(void *context, int fd);
    /* Reserves space so that later writes within it cannot run out. ERR_NOSPC when there is
     * none. */
    int (*allocate)(void *context, int fd, uint64_t size_bytes);
    int (*truncate)(void *context, int fd, uint64_t size_bytes);
    int64_t (*size)(void *context, int fd);
    /* Bytes that may still be written to the file system of `path`. */
    int64_t (*free_bytes)(void *context, const char *path);

    int (*rename)(void *context, const char *from, const char *to);
    int (*unlink)(void *context, const char *path);
    /* Mode 0700; good when it exists, ERR_FILEKIND when something else does. */
    int (*mkdir)(void *context, const char *path);
    /* Takes the rights of group and others from a directory that this user owns; NULL where there
     * are none. */
    int (*make_private)(void *context, const char *path);
    int (*sync_dir)(void *context, const char *path);
    int (*list_dir)(void *context, const char *path, sys_entry_fn each, void *each_context);
    /* An exclusive lock that dies with the process; the descriptor, or ERR_LOCKED. */
    int (*lock)(void *context, const char *path);
    /* The same for readers, who may be several: keeps an exclusive lock away. Makes no file. */
    int (*lock_shared)(void *context, const char *path);

    /* Asked just before a catalog transaction commits; an error makes the commit fail. */
    int (*catalog_commit)(void *context);

    int64_t (*now_ms)(void *context);   /* wall clock, since 1970 UTC */
    uint64_t (*mono_ms)(void *context); /* never goes back */
    uint64_t (*mono_us)(void *context); /* the same clock in microseconds, for measuring */
    void (*random)(void *context, void *buf, size_t len);
};

/* The real system. The struct is filled and valid for ever. */
void sys_posix_init(struct sys *sys);

#endif
