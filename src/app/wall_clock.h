/* The wall clock, for threads of the application: workers have that of their loop's turn. */
#ifndef ARBE_APP_WALL_CLOCK_H
#define ARBE_APP_WALL_CLOCK_H

#include <stdint.h>
#include <time.h>

/* Milliseconds since 1970 UTC. */
static inline int64_t wall_clock_ms(void)
{
    struct timespec now;

    (void)clock_gettime(CLOCK_REALTIME, &now); /* cannot fail for this clock */
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

#endif
