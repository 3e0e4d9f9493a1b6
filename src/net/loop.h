/* One event loop per worker thread: epoll, timers, and a mailbox through which other threads
 * hand it tasks. Everything here is called on the loop's own thread (or before it runs), but for
 * loop_post and loop_stop. Nothing blocks but the wait itself. A turn is: wait, tasks, timers,
 * events, deferred. */
#ifndef ARBE_NET_LOOP_H
#define ARBE_NET_LOOP_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "base/task.h"

struct loop;

/* A loop that no thread runs yet. ERR_NOMEM, ERR_LIMIT (descriptors), ERR_IO. */
int loop_create(struct loop **ret_loop) MUST_USE;

/* No watch or timer may be left on it; tasks that are still queued never run. Accepts NULL. */
void loop_destroy(struct loop *l);

/* Runs until loop_stop. Events of one descriptor are dispatched at most once per turn, so that
 * no peer starves the others. Blocks SIGPIPE on this thread: sendfile has no flag against it. */
void loop_run(struct loop *l);

/* One turn, waiting at most `wait_ms_max`: for tests, and to run what is left after loop_run. */
void loop_turn(struct loop *l, int wait_ms_max);

/* Makes loop_run return after this turn, or after its first if it does not run yet; any thread,
 * also from a signal handler. */
void loop_stop(struct loop *l);

/* A task_post_fn: runs `task` on the loop's thread; any thread, wakes the loop at most once per
 * batch. */
void loop_post(void *loop, struct task *task);

/* Takes back a task that was posted and has not run; without effect on one that is not queued,
 * whose link must then be initialised. On the loop's thread. */
void loop_unpost(struct loop *l, struct task *task);

/* Runs `task` at the end of this turn, or of the next when called by a deferred task; cheap, no
 * system call. */
void loop_defer(struct loop *l, struct task *task);

/* Takes back a deferred task; nothing happens to one that is not. */
void loop_cancel(struct loop *l, struct task *task);

/* Monotonic milliseconds as of this turn: no system call. */
uint64_t loop_now_ms(const struct loop *l);

/* The same in microseconds: when the events of this turn were there to be seen. */
uint64_t loop_now_us(const struct loop *l);

/* Unix time in milliseconds as of this turn: no system call. */
int64_t loop_wall_ms(const struct loop *l);

/* Interest in a descriptor; embedded in what owns it. */
struct loop_watch {
    int fd;
    uint32_t events;                                          /* EPOLLIN, EPOLLOUT, ... */
    void (*ready)(struct loop_watch *watch, uint32_t events); /* may remove and free its owner */
};

/* Adds a watch; its fields are set. ERR_NOMEM, ERR_IO. */
int loop_watch_add(struct loop *l, struct loop_watch *watch) MUST_USE;

/* Changes the events; not for EPOLLEXCLUSIVE, which cannot be changed. */
void loop_watch_set(struct loop *l, struct loop_watch *watch, uint32_t events);

/* No event follows, not even one of this turn; the descriptor is still open. */
void loop_watch_remove(struct loop *l, struct loop_watch *watch);

#define LOOP_NEVER_MS UINT64_MAX

/* A one-shot timer; embedded. Set and cancel cost O(log n), setting it to a later time and
 * disarming O(1). Zeroed is cancelled. */
struct loop_timer {
    void (*fire)(struct loop_timer *timer);
    uint64_t due_ms;    /* private; LOOP_NEVER_MS: disarmed but still in the heap */
    uint32_t heap_slot; /* private; 1 + index in the heap, 0: not set */
};

/* (Re)arms the timer `delay_ms` from now. ERR_NOMEM, but not for owners of a watch that have at
 * most two timers: the heap's memory is grown when a watch is added. */
int loop_timer_set(struct loop *l, struct loop_timer *timer, uint64_t delay_ms) MUST_USE;

/* Keeps the timer from firing. The loop may go on pointing to it: for timers that are set again and
 * again. Before its memory goes, loop_timer_cancel is called. */
void loop_timer_disarm(struct loop *l, struct loop_timer *timer);

/* Whether the timer is going to fire. */
static inline bool loop_timer_is_armed(const struct loop_timer *timer)
{
    return timer->heap_slot != 0 && timer->due_ms != LOOP_NEVER_MS;
}

/* Keeps the timer from firing and forgets it. */
void loop_timer_cancel(struct loop *l, struct loop_timer *timer);

#endif
