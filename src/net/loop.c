/* The mailbox is a list under a mutex. The loop says under the same mutex that it is about to
 * sleep, and a poster writes to the eventfd only then, so that a busy loop costs its posters no
 * system call and a wake-up cannot be lost: either the loop sees the task before it sleeps, or
 * the poster sees that it sleeps.
 *
 * The events of one wait are dispatched from an array. Removing a watch clears its entries that
 * are still to come, so an owner may free itself or its neighbours from a callback.
 *
 * Timers are a binary heap of (key, timer). A key may be earlier than the timer's due time,
 * never later: moving a timer to a later time, which every request does, only writes to the
 * timer, and the heap is put right when the key comes up. */
#include "net/loop.h"

#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#define EVENTS_PER_TURN 256
#define TIMERS_MIN      64
#define TIMERS_SPARE    32 /* for the few timers that belong to no watch */
#define WAIT_MS_MAX     60000

struct heap_entry {
    uint64_t key_ms;          /* at most the timer's due time */
    struct loop_timer *timer; /* its heap_slot is this entry's index and 1 */
};

struct loop {
    int epoll_fd;
    int wake_fd;                                /* eventfd, edge-triggered: never read */
    uint64_t now_us;                            /* monotonic, of this turn */
    uint64_t now_ms;                            /* the same */
    int64_t wall_ms;                            /* of this turn */
    struct list deferred;                       /* tasks for the end of the turn */
    struct heap_entry *heap;                    /* timers, earliest key first */
    uint32_t heap_len;                          /* entries in use */
    uint32_t heap_cap;                          /* entries allocated */
    uint32_t watch_count;                       /* watches added */
    int event_next;                             /* next of `events` to dispatch */
    int event_count;                            /* of the current wait */
    struct epoll_event events[EVENTS_PER_TURN]; /* of the current wait; data.ptr NULL: removed */
    bool stop;                                  /* atomic */
    pthread_mutex_t lock;                       /* guards what follows */
    struct list mailbox;                        /* posted tasks */
    bool asleep;                                /* a poster must write to wake_fd */
};

static void read_clocks(struct loop *l)
{
    struct timespec t;

    (void)clock_gettime(CLOCK_MONOTONIC, &t); /* cannot fail with these clocks */
    l->now_us = (uint64_t)t.tv_sec * 1000000 + (uint64_t)t.tv_nsec / 1000;
    l->now_ms = l->now_us / 1000;
    (void)clock_gettime(CLOCK_REALTIME, &t);
    l->wall_ms = (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

static int open_descriptors(struct loop *l)
{
    struct epoll_event event = {.events = EPOLLIN | EPOLLET};

    l->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    if (l->epoll_fd < 0) {
        return err_from_errno(errno);
    }
    l->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (l->wake_fd < 0) {
        return err_from_errno(errno);
    }
    /* Its data.ptr is NULL, like a removed watch's: there is nothing to call, waking is all. */
    return epoll_ctl(l->epoll_fd, EPOLL_CTL_ADD, l->wake_fd, &event) == 0 ? 0
                                                                          : err_from_errno(errno);
}

static void close_descriptor(int fd)
{
    if (fd >= 0) {
        (void)close(fd); /* nothing was written through it */
    }
}

int loop_create(struct loop **ret_loop)
{
    struct loop *l = calloc(1, sizeof(*l));
    int rc;

    if (l == NULL) {
        return ERR_NOMEM;
    }
    l->epoll_fd = -1;
    l->wake_fd = -1;
    list_init(&l->deferred);
    list_init(&l->mailbox);
    (void)pthread_mutex_init(&l->lock, NULL); /* does not fail on Linux */
    rc = open_descriptors(l);
    if (rc < 0) {
        loop_destroy(l);
        return rc;
    }
    read_clocks(l);
    *ret_loop = l;
    return 0;
}

void loop_destroy(struct loop *l)
{
    if (l == NULL) {
        return;
    }
    assert(l->watch_count == 0);
    assert(l->heap_len == 0);
    close_descriptor(l->wake_fd);
    close_descriptor(l->epoll_fd);
    (void)pthread_mutex_destroy(&l->lock);
    free(l->heap);
    free(l);
}

uint64_t loop_now_ms(const struct loop *l)
{
    return l->now_ms;
}

uint64_t loop_now_us(const struct loop *l)
{
    return l->now_us;
}

int64_t loop_wall_ms(const struct loop *l)
{
    return l->wall_ms;
}

static void wake(struct loop *l)
{
    uint64_t one = 1;
    ssize_t written = write(l->wake_fd, &one, sizeof(one));

    (void)written; /* fails only when the counter is full, and then the loop is being woken */
}

void loop_post(void *loop, struct task *task)
{
    struct loop *l = loop;
    bool was_asleep;

    (void)pthread_mutex_lock(&l->lock);
    list_append(&l->mailbox, &task->link);
    was_asleep = l->asleep;
    l->asleep = false;
    (void)pthread_mutex_unlock(&l->lock);
    if (was_asleep) {
        wake(l);
    }
}

void loop_unpost(struct loop *l, struct task *task)
{
    (void)pthread_mutex_lock(&l->lock);
    list_remove(&task->link);
    (void)pthread_mutex_unlock(&l->lock);
}

void loop_defer(struct loop *l, struct task *task)
{
    list_append(&l->deferred, &task->link);
}

void loop_cancel(struct loop *l, struct task *task)
{
    (void)l;
    list_remove(&task->link);
}

void loop_stop(struct loop *l)
{
    __atomic_store_n(&l->stop, true, __ATOMIC_RELEASE);
    wake(l);
}

/* ------------------------------------------------------------------------------------- timers */

static void heap_place(struct loop *l, uint32_t at, struct heap_entry entry)
{
    l->heap[at] = entry;
    entry.timer->heap_slot = at + 1;
}

static void sift_up(struct loop *l, uint32_t at, struct heap_entry entry)
{
    while (at > 0 && l->heap[(at - 1) / 2].key_ms > entry.key_ms) {
        heap_place(l, at, l->heap[(at - 1) / 2]);
        at = (at - 1) / 2;
    }
    heap_place(l, at, entry);
}

static void sift_down(struct loop *l, uint32_t at, struct heap_entry entry)
{
    for (;;) {
        uint32_t child = 2 * at + 1;

        if (child + 1 < l->heap_len && l->heap[child + 1].key_ms < l->heap[child].key_ms) {
            child++;
        }
        if (child >= l->heap_len || l->heap[child].key_ms >= entry.key_ms) {
            break;
        }
        heap_place(l, at, l->heap[child]);
        at = child;
    }
    heap_place(l, at, entry);
}

/* Makes room for `count` timers. */
static int heap_reserve(struct loop *l, uint32_t count)
{
    uint32_t cap = l->heap_cap < TIMERS_MIN ? TIMERS_MIN : l->heap_cap;
    struct heap_entry *heap;

    if (count <= l->heap_cap) {
        return 0;
    }
    while (cap < count) {
        cap *= 2;
    }
    heap = realloc(l->heap, cap * sizeof(*heap));
    if (heap == NULL) {
        return ERR_NOMEM;
    }
    l->heap = heap;
    l->heap_cap = cap;
    return 0;
}

int loop_timer_set(struct loop *l, struct loop_timer *timer, uint64_t delay_ms)
{
    uint64_t due = delay_ms < LOOP_NEVER_MS - 1 - l->now_ms ? l->now_ms + delay_ms
                                                            : LOOP_NEVER_MS - 1;
    struct heap_entry entry = {due, timer};
    int rc;

    if (timer->heap_slot == 0) {
        rc = heap_reserve(l, l->heap_len + 1);
        if (rc < 0) {
            return rc;
        }
        sift_up(l, l->heap_len++, entry);
    } else if (due < l->heap[timer->heap_slot - 1].key_ms) {
        sift_up(l, timer->heap_slot - 1, entry);
    }
    timer->due_ms = due;
    return 0;
}

void loop_timer_disarm(struct loop *l, struct loop_timer *timer)
{
    (void)l;
    timer->due_ms = LOOP_NEVER_MS;
}

void loop_timer_cancel(struct loop *l, struct loop_timer *timer)
{
    uint32_t at;
    struct heap_entry last;

    if (timer->heap_slot == 0) {
        return;
    }
    at = timer->heap_slot - 1;
    assert(at < l->heap_len);
    assert(l->heap[at].timer == timer);
    timer->heap_slot = 0;
    last = l->heap[--l->heap_len];
    if (at == l->heap_len) {
        return;
    }
    if (at > 0 && l->heap[(at - 1) / 2].key_ms > last.key_ms) {
        sift_up(l, at, last);
    } else {
        sift_down(l, at, last);
    }
}

/* Fires what is due. At most as many keys are looked at as there were timers to begin with, so that
 * timers which set themselves to 0 cannot hold up the turn. */
static void fire_timers(struct loop *l)
{
    for (uint32_t left = l->heap_len; left > 0 && l->heap_len > 0; left--) {
        struct heap_entry first = l->heap[0];

        if (first.key_ms > l->now_ms) {
            return;
        }
        if (first.timer->due_ms > l->now_ms && first.timer->due_ms != LOOP_NEVER_MS) {
            first.key_ms = first.timer->due_ms;
            sift_down(l, 0, first);
            continue;
        }
        loop_timer_cancel(l, first.timer);
        if (first.timer->due_ms != LOOP_NEVER_MS) {
            first.timer->fire(first.timer);
        }
    }
}

/* ------------------------------------------------------------------------------------ watches */

int loop_watch_add(struct loop *l, struct loop_watch *watch)
{
    struct epoll_event event = {.events = watch->events, .data.ptr = watch};
    int rc = heap_reserve(l, TIMERS_SPARE + 2 * (l->watch_count + 1));

    if (rc < 0) {
        return rc;
    }
    if (epoll_ctl(l->epoll_fd, EPOLL_CTL_ADD, watch->fd, &event) != 0) {
        return errno == ENOMEM || errno == ENOSPC ? ERR_NOMEM : ERR_IO;
    }
    l->watch_count++;
    return 0;
}

void loop_watch_set(struct loop *l, struct loop_watch *watch, uint32_t events)
{
    struct epoll_event event = {.events = events, .data.ptr = watch};
    int rc;

    if (events == watch->events) {
        return;
    }
    watch->events = events;
    rc = epoll_ctl(l->epoll_fd, EPOLL_CTL_MOD, watch->fd, &event);
    assert(rc == 0); /* it allocates nothing, so only a wrong descriptor can make it fail */
}

void loop_watch_remove(struct loop *l, struct loop_watch *watch)
{
    int rc = epoll_ctl(l->epoll_fd, EPOLL_CTL_DEL, watch->fd, NULL);

    assert(rc == 0);
    assert(l->watch_count > 0);
    l->watch_count--;
    for (int i = l->event_next; i < l->event_count; i++) {
        if (l->events[i].data.ptr == watch) {
            l->events[i].data.ptr = NULL;
        }
    }
}

static void dispatch_events(struct loop *l)
{
    while (l->event_next < l->event_count) {
        struct epoll_event *event = &l->events[l->event_next++];
        struct loop_watch *watch = event->data.ptr;

        if (watch != NULL) {
            watch->ready(watch, event->events);
        }
    }
}

/* -------------------------------------------------------------------------------------- turns */

/* How long the wait may be: not at all when there is work, else until the next timer. */
static int wait_ms(const struct loop *l, int wait_ms_max)
{
    uint64_t ms = wait_ms_max < 0 ? 0 : (uint64_t)wait_ms_max;

    if (!list_empty(&l->deferred) || __atomic_load_n(&l->stop, __ATOMIC_ACQUIRE)) {
        return 0;
    }
    if (l->heap_len > 0 && l->heap[0].key_ms < l->now_ms + ms) {
        ms = l->heap[0].key_ms > l->now_ms ? l->heap[0].key_ms - l->now_ms : 0;
    }
    return (int)ms;
}

static void wait_events(struct loop *l, int wait_ms_max)
{
    int timeout_ms = wait_ms(l, wait_ms_max);
    int count;

    if (timeout_ms > 0) {
        (void)pthread_mutex_lock(&l->lock);
        l->asleep = list_empty(&l->mailbox);
        timeout_ms = l->asleep ? timeout_ms : 0;
        (void)pthread_mutex_unlock(&l->lock);
    }
    count = epoll_wait(l->epoll_fd, l->events, EVENTS_PER_TURN, timeout_ms);
    assert(count >= 0 || errno == EINTR);
    l->event_next = 0;
    l->event_count = count < 0 ? 0 : count;
    read_clocks(l);
}

/* Runs the tasks of `batch`; they may take others off it. */
static void run_tasks(struct list *batch)
{
    struct list *first;

    while ((first = list_first(batch)) != NULL) {
        struct task *task = container_of(first, struct task, link);

        list_remove(first);
        task->run(task);
    }
}

static void run_mailbox(struct loop *l)
{
    struct list batch;

    list_init(&batch);
    (void)pthread_mutex_lock(&l->lock);
    l->asleep = false;
    list_append_all(&batch, &l->mailbox);
    (void)pthread_mutex_unlock(&l->lock);
    run_tasks(&batch);
}

static void run_deferred(struct loop *l)
{
    struct list batch;

    list_init(&batch);
    list_append_all(&batch, &l->deferred);
    run_tasks(&batch);
}

void loop_turn(struct loop *l, int wait_ms_max)
{
    wait_events(l, wait_ms_max);
    run_mailbox(l);
    fire_timers(l);
    dispatch_events(l);
    run_deferred(l);
}

void loop_run(struct loop *l)
{
    sigset_t pipe_signal;

    (void)sigemptyset(&pipe_signal);
    (void)sigaddset(&pipe_signal, SIGPIPE);
    (void)pthread_sigmask(SIG_BLOCK, &pipe_signal, NULL); /* valid arguments cannot fail */
    do {
        loop_turn(l, WAIT_MS_MAX);
    } while (!__atomic_exchange_n(&l->stop, false, __ATOMIC_ACQ_REL));
}
