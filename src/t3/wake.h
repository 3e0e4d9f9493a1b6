/* What a reader waits for, behind one descriptor that stays the same: its connection, the end of a
 * pause, or that it has something to do at once. The caller's memory; one thread. */
#ifndef ARBE_T3_WAKE_H
#define ARBE_T3_WAKE_H

#include "base/attr.h"

#include <stdbool.h>
#include <stdint.h>

struct t3_wake {
    int epoll_fd; /* of the three below */
    int timer_fd;
    int event_fd;
    int watched_fd; /* somebody else's; -1: none */
    bool ringing;   /* event_fd is readable */
    bool armed;     /* timer_fd was set */
};

/* Milliseconds on the monotonic clock. */
uint64_t t3_now_ms(void);

/* Opens the descriptors. 0, or the code of what stood in the way; nothing is open then. */
int t3_wake_init(struct t3_wake *wake) MUST_USE;

/* Closes them. Accepts one whose init has failed. */
void t3_wake_finish(struct t3_wake *wake);

/* Watches a descriptor for as long as it is readable, instead of none. 0, or the code of what stood
 * in the way. */
int t3_wake_watch(struct t3_wake *wake, int fd) MUST_USE;

/* Before that one is closed. */
void t3_wake_unwatch(struct t3_wake *wake);

/* Whether there is something to do at once. */
void t3_wake_ring(struct t3_wake *wake, bool now);

/* From that time on there is something to do; 0: at no time. */
void t3_wake_at(struct t3_wake *wake, uint64_t due_ms);

/* Waits until there is something to do, for at most `timeout_ms`; -1: for as long as it takes. May
 * return early. */
void t3_wake_wait(const struct t3_wake *wake, int timeout_ms);

#endif
