/* Keeps the board of the T3 hosts that a server watches, and tells who reads it live. One thread
 * does the watching (t3/watch.h) and every change of the state (board_state.h), whose lock is never
 * held while anything is waited for, written as JSON or told to the log: for as long as it takes
 * to put a change in place, to copy a page of the API, or to wake who waits. Without hosts there is
 * no thread, and the board stays empty.
 *
 * Life: created; hosts are added to its watch; started; ended, after which nothing changes any
 * more; destroyed. */
#ifndef ARBE_APP_BOARD_KEEPER_H
#define ARBE_APP_BOARD_KEEPER_H

#include "app/board_state.h"
#include "base/err.h"
#include "base/logger.h"
#include "base/task.h"
#include "net/loop.h"
#include "t3/watch.h"

#include <stdatomic.h>

struct board_keeper;

struct board_keeper_config {
    const struct logger *logger; /* told when a host is live, lost or refused; outlives it */
    size_t tombs_max;            /* of board_state_create; 0: BOARD_TOMBS_MAX */
};

/* Makes one; nothing is connected to. ERR_NOMEM, ERR_IO, with a sentence. */
int board_keeper_create(const struct board_keeper_config *config, struct board_keeper **ret_keeper,
                        struct errmsg *msg) MUST_USE;

/* Where hosts are added, before the start, by the thread that starts it. */
struct t3_watch *board_keeper_watch(struct board_keeper *k);

/* Begins to connect, without waiting for any host. ERR_AGAIN, ERR_NOMEM, with a sentence. */
int board_keeper_start(struct board_keeper *k, struct errmsg *msg) MUST_USE;

/* Connects at once to each host that refused; those that are lost are tried again by themselves.
 * Any thread; does not wait. */
void board_keeper_retry(struct board_keeper *k);

/* The server is to end: the thread is told to. Any thread; does not wait. */
void board_keeper_stop(struct board_keeper *k);

/* The same, and waits for the thread, which waits for no host. */
void board_keeper_end(struct board_keeper *k);

/* No reader is left. Accepts NULL. */
void board_keeper_destroy(struct board_keeper *k);

/* What /metrics tells. */
struct board_stats {
    uint64_t rows;
    uint64_t hosts[T3_READER_REFUSED + 1]; /* by state */
};

/* Any thread. */
void board_keeper_get_stats(struct board_keeper *k, struct board_stats *ret_stats);

/* The number of this life of the board, drawn at random. Any thread. */
uint64_t board_keeper_epoch(const struct board_keeper *k);

/* Takes the lock: the state may be read until it is given back. Any thread, for
 * no more than a page. */
const struct board_state *board_keeper_lock(struct board_keeper *k);

/* See there. */
void board_keeper_unlock(struct board_keeper *k);

/* Somebody who waits for a change, on the thread of a loop. */
struct board_reader {
    struct task task;  /* its `run`, set by the reader, is called on the loop when there is one */
    struct loop *loop; /* set by the reader */
    /* private */
    struct list link;   /* on keeper.waiting */
    atomic_bool posted; /* the task is on its way */
};

/* Prepares a reader whose `task.run` and `loop` are set. */
void board_reader_init(struct board_reader *r);

/* Under the lock, on the loop's thread: the task runs once after the next change. */
void board_keeper_wait(struct board_keeper *k, struct board_reader *r);

/* The task has begun: the first thing that it does, on the loop's thread. */
void board_reader_woken(struct board_reader *r);

/* It waits no more, and its task does not run. On the loop's thread. */
void board_keeper_leave(struct board_keeper *k, struct board_reader *r);

#endif
