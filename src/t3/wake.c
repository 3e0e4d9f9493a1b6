/* All three are level-triggered: what was not done leaves the descriptor readable. The timer is set
 * to a point of the clock that t3_now_ms reads, so that when it has rung the pause is over. */
#include "t3/wake.h"

#include "base/err.h"

#include <errno.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

uint64_t t3_now_ms(void)
{
    struct timespec now;

    (void)clock_gettime(CLOCK_MONOTONIC, &now); /* cannot fail for this clock */
    return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

static int watch(const struct t3_wake *wake, int fd)
{
    struct epoll_event event = {.events = EPOLLIN};

    return epoll_ctl(wake->epoll_fd, EPOLL_CTL_ADD, fd, &event) == 0 ? 0 : err_from_errno(errno);
}

static int open_all(struct t3_wake *wake)
{
    int code;

    wake->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    if (wake->epoll_fd < 0) {
        return err_from_errno(errno);
    }
    wake->timer_fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
    if (wake->timer_fd < 0) {
        return err_from_errno(errno);
    }
    wake->event_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (wake->event_fd < 0) {
        return err_from_errno(errno);
    }
    code = watch(wake, wake->timer_fd);
    return code != 0 ? code : watch(wake, wake->event_fd);
}

int t3_wake_init(struct t3_wake *wake)
{
    int code;

    *wake = (struct t3_wake){.epoll_fd = -1, .timer_fd = -1, .event_fd = -1, .watched_fd = -1};
    code = open_all(wake);
    if (code != 0) {
        t3_wake_finish(wake);
    }
    return code;
}

void t3_wake_finish(struct t3_wake *wake)
{
    int *const fds[] = {&wake->epoll_fd, &wake->timer_fd, &wake->event_fd};

    for (size_t i = 0; i < ARRAY_COUNT(fds); i++) {
        if (*fds[i] >= 0) {
            (void)close(*fds[i]); /* nothing is lost with it */
            *fds[i] = -1;
        }
    }
}

int t3_wake_watch(struct t3_wake *wake, int fd)
{
    int code = watch(wake, fd);

    wake->watched_fd = code == 0 ? fd : -1;
    return code;
}

void t3_wake_unwatch(struct t3_wake *wake)
{
    if (wake->watched_fd >= 0) {
        (void)epoll_ctl(wake->epoll_fd, EPOLL_CTL_DEL, wake->watched_fd, NULL); /* it is there */
        wake->watched_fd = -1;
    }
}

void t3_wake_ring(struct t3_wake *wake, bool now)
{
    uint64_t count = 1;
    ssize_t done;

    if (now != wake->ringing) {
        done = now ? write(wake->event_fd, &count, sizeof(count))
                   : read(wake->event_fd, &count, sizeof(count));
        (void)done; /* neither would block: the counter is 0 or 1, as `ringing` says */
        wake->ringing = now;
    }
}

void t3_wake_at(struct t3_wake *wake, uint64_t due_ms)
{
    struct itimerspec when = {
        .it_value = {.tv_sec = (time_t)(due_ms / 1000), .tv_nsec = (long)(due_ms % 1000) * 1000000},
    };

    if (due_ms != 0 || wake->armed) {
        /* Cannot fail with these values; that it had rung is forgotten. */
        (void)timerfd_settime(wake->timer_fd, TFD_TIMER_ABSTIME, &when, NULL);
        wake->armed = due_ms != 0;
    }
}

void t3_wake_wait(const struct t3_wake *wake, int timeout_ms)
{
    struct epoll_event event;

    (void)epoll_wait(wake->epoll_fd, &event, 1, timeout_ms); /* a signal: the caller waits again */
}
