/* Calls on files that fail on demand, with ENOSPC. A test includes this before the .c it tests,
 * whose calls then are these. What puts things in order again (unlink) stays what it is; close
 * fails after it has closed, write when half was written. Not thread-safe. */
#ifndef ARBE_TESTS_UNIT_CLI_FILE_FAULT_H
#define ARBE_TESTS_UNIT_CLI_FILE_FAULT_H

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

static long file_fault_countdown = -1;
static bool file_fault_ever;
static bool file_fault_lstat; /* each lstat fails, whatever the countdown */

/* After so many more calls one fails, or `ever` those behind it, too; below 0: none. */
static inline void file_fault_after(long calls, bool ever)
{
    file_fault_countdown = calls;
    file_fault_ever = ever;
}

static inline bool file_fault_due(void)
{
    bool due = file_fault_countdown == 0;

    if (file_fault_countdown > 0 || (due && !file_fault_ever)) {
        file_fault_countdown--;
    }
    errno = due ? ENOSPC : errno;
    return due;
}

#define OR_FAULT(call) (file_fault_due() ? -1 : (call))

static inline int file_fault_close(int fd)
{
    bool due = file_fault_due();

    return close(fd) != 0 || due ? -1 : 0;
}

/* Half of it is written before it fails. */
static inline ssize_t file_fault_write(int fd, const void *bytes, size_t len)
{
    return file_fault_due() ? -1 : write(fd, bytes, len > 1 ? len / 2 : len);
}

#define mkostemp(path, flags) OR_FAULT(mkostemp(path, flags))
#define open(...)             OR_FAULT(open(__VA_ARGS__))
#define write                 file_fault_write
#define fsync(fd)             OR_FAULT(fsync(fd))
#define close                 file_fault_close
#define rename(from, to)      OR_FAULT(rename(from, to))
#define flock(fd, how)        OR_FAULT(flock(fd, how))
#define fstat(fd, info)       OR_FAULT(fstat(fd, info))
#define lstat(path, info)     (file_fault_lstat ? -1 : OR_FAULT(lstat(path, info)))

#endif
