/* A library to preload (LD_PRELOAD): while there is a file of the name in STILLCLOCK the monotonic
 * clock stands still. */
#define _GNU_SOURCE
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static _Thread_local struct timespec last; /* as it was told */

int clock_gettime(clockid_t clock, struct timespec *ret_time)
{
    const char *path = getenv("STILLCLOCK");

    if (clock != CLOCK_MONOTONIC || path == NULL) {
        return (int)syscall(SYS_clock_gettime, clock, ret_time);
    }
    if (last.tv_sec == 0 || access(path, F_OK) != 0) {
        syscall(SYS_clock_gettime, clock, &last);
    }
    memcpy(ret_time, &last, sizeof(last));
    return 0;
}
