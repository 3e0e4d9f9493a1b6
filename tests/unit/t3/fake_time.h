/* A clock that stands still until a test moves it, timers that go by it, and dice that fall as a
 * test says. It stands before src/t3/wake.c and reader.c, which then use these. */
#ifndef ARBE_TESTS_UNIT_T3_FAKE_TIME_H
#define ARBE_TESTS_UNIT_T3_FAKE_TIME_H

#include <poll.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/random.h>
#include <sys/timerfd.h>
#include <time.h>

static uint64_t fake_now_ms = 1000;
static uint64_t fake_due_ms; /* of the one timer that is set; 0: none */
static int fake_timer_fd;
static bool fake_time_off;     /* the real clock, instead */
static uint64_t fake_dice;     /* what dice show */
static bool fake_without_dice; /* the system has no random numbers */

static inline int fake_clock_gettime(clockid_t clock, struct timespec *ret_time)
{
    if (fake_time_off) {
        return clock_gettime(clock, ret_time);
    }
    *ret_time = (struct timespec){.tv_sec = (time_t)(fake_now_ms / 1000),
                                  .tv_nsec = (long)(fake_now_ms % 1000) * 1000000 + 999999};
    return 0;
}

static inline int fake_timerfd_settime(int fd, int flags, const struct itimerspec *when,
                                       struct itimerspec *ret_old)
{
    static const struct itimerspec never;

    if (fake_time_off) {
        return timerfd_settime(fd, flags, when, ret_old);
    }
    fake_timer_fd = fd;
    fake_due_ms = (uint64_t)when->it_value.tv_sec * 1000 +
                  (uint64_t)when->it_value.tv_nsec / 1000000;
    return timerfd_settime(fd, 0, &never, NULL);
}

/* Time goes by; the timer rings when it is due. */
static inline void fake_sleep(uint64_t ms)
{
    static const struct itimerspec at_once = {.it_value = {.tv_nsec = 1}};

    fake_now_ms += ms;
    if (fake_due_ms != 0 && fake_now_ms >= fake_due_ms) {
        struct pollfd timer = {.fd = fake_timer_fd, .events = POLLIN};

        (void)timerfd_settime(fake_timer_fd, 0, &at_once, NULL);
        (void)poll(&timer, 1, -1);
        fake_due_ms = 0;
    }
}

static inline ssize_t fake_getrandom(void *bytes, size_t size, unsigned flags)
{
    (void)flags;
    memcpy(bytes, &fake_dice, size);
    return fake_without_dice ? -1 : (ssize_t)size;
}

#define clock_gettime   fake_clock_gettime
#define timerfd_settime fake_timerfd_settime
#define getrandom       fake_getrandom

#endif
