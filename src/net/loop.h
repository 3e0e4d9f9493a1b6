/* One event loop per worker thread: epoll, timers, and a mailbox through which other threads hand it
 * tasks. Everything here is called on the loop's own thread, but for loop_post and loop_stop. Nothing
 * blocks but the wait itself. */
#ifndef ARBE_NET_LOOP_H
#define ARBE_NET_LOOP_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "base/task.h"

struct loop;

int loop_create(struct loop **ret_loop) MUST_USE;
void loop_destroy(struct loop *l); /* accepts NULL; no watch or timer is left on it */

/* Runs until loop_stop. Events of one descriptor are dispatched at most once per turn, so that no peer
 * starves the others. */
void loop_run(struct loop *l);

/* Makes loop_run return after this turn; any thread. */
void loop_stop(struct loop *l);

/* A task_post_fn: runs `task` on the loop's thread; any thread, wakes the loop at most once per batch. */
void loop_post(void *loop, struct task *task);

/* Monotonic milliseconds and wall-clock milliseconds as of this turn: no system call. */
uint64_t loop_now_ms(const struct loop *l);
int64_t loop_wall_ms(const struct loop *l);

/* Interest in a descriptor; embedded in what owns it. */
struct loop_watch {
    int fd;
    uint32_t events;                                          /* EPOLLIN, EPOLLOUT, ... */
    void (*ready)(struct loop_watch *watch, uint32_t events); /* may remove and free its owner */
};

int loop_watch_add(struct loop *l, struct loop_watch *watch) MUST_USE;
void loop_watch_set(struct loop *l, struct loop_watch *watch, uint32_t events);
void loop_watch_remove(struct loop *l,
                       struct loop_watch *watch); /* no event follows, even of this turn */

/* A one-shot timer; embedded. Set and cancel cost O(log n). Zeroed is cancelled. */
struct loop_timer {
    void (*fire)(struct loop_timer *timer);
    uint64_t due_ms;    /* private */
    uint32_t heap_slot; /* private; 1 + index in the heap, 0: not set */
};

/* (Re)arms the timer `delay_ms` from now. Never fails: the heap's memory is grown when a watch is
 * added and each owner has at most two timers; ERR_NOMEM otherwise. */
int loop_timer_set(struct loop *l, struct loop_timer *timer, uint64_t delay_ms) MUST_USE;
void loop_timer_cancel(struct loop *l, struct loop_timer *timer);

#endif
