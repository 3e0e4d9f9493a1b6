/* Watches the boards of several hosts: a reader (arbe/t3_reader.h) for the shell of each, all
 * folded into one board (arbe/t3_board.h). What changed is told as it is folded.
 *
 * Rows of a host that is lost stay as they were: its state says how much to trust them. It is LOST,
 * for the reason that it was, until another connection stands: it is CONNECTING only before its
 * first one, and when one that was refused is tried again. Threads:
 * one at a time; the callbacks run in t3_watch_step. Memory goes with rows and hosts. */
#ifndef ARBE_T3_WATCH_H
#define ARBE_T3_WATCH_H

#include "arbe/t3_board.h"
#include "arbe/t3_reader.h"
#include "base/attr.h"
#include "base/err.h"

#include <stdbool.h>

/* A host and how it stands. Borrowed from the watch. */
struct t3_watch_host {
    size_t index;               /* t3_watch_host_at */
    const char *label;          /* what rows call it */
    const char *url;            /* as it was given */
    enum t3_reader_state state; /* of its connection, as above */
    struct t3_rpc_error error;  /* LOST, REFUSED: why */
    int delay_ms;               /* LOST: from when it broke last until the next try */
    size_t skipped;             /* items that were broken, in all */
    bool full;                  /* some of its threads were beyond the limit of rows */
};

struct t3_watch_options {
    struct t3_board_options board;
    t3_board_change_fn row; /* a row changed or went; may be NULL. It must not change the watch */
    /* The state of a host changed, or its error, or that it is full; may be NULL. */
    void (*host)(void *context, const struct t3_watch_host *host);
    void *context;
};

struct t3_watch;

/* Makes a watch without hosts. ERR_INVALID, ERR_NOMEM, ERR_IO, with a sentence. */
int t3_watch_create(const struct t3_watch_options *options, struct t3_watch **ret_watch,
                    struct errmsg *msg) MUST_USE;

/* Ends all connections and frees; nothing is told. Accepts NULL. */
void t3_watch_destroy(struct t3_watch *watch);

/* Adds a host, before the first step. `options` (NULL: the defaults) are copied but for `context`,
 * which with `token` says its token. ERR_INVALID for a label that is empty, too long or taken, a
 * URL that is none, or more than T3_HOSTS_MAX hosts; ERR_NOMEM, ERR_IO; with a sentence. */
int t3_watch_add(struct t3_watch *watch, const char *label, const char *url,
                 const struct t3_reader_options *options, struct errmsg *msg) MUST_USE;

/* Readable while t3_watch_step has something to do. The watch's; only to be polled. */
int t3_watch_fd(const struct t3_watch *watch);

/* Does what is due: at most a bounded number of events of each host, so that none starves the
 * others. Waits for at most `timeout_ms`, as t3_reader_next, or until a signal comes. */
void t3_watch_step(struct t3_watch *watch, int timeout_ms);

/* Connects at once: a host by its label, NULL: all that have no connection. */
void t3_watch_retry(struct t3_watch *watch, const char *label);

/* Connects to each host that is REFUSED. Those that are LOST keep their pauses, which spare them:
 * for those who ask without looking, and maybe often. */
void t3_watch_retry_refused(struct t3_watch *watch);

/* How many hosts, and the i-th in the order in which they were added. Lives as long as the
 * watch. */
size_t t3_watch_host_count(const struct t3_watch *watch);

/* See there. */
const struct t3_watch_host *t3_watch_host_at(const struct t3_watch *watch, size_t i);

/* The board, to be read. */
const struct t3_board *t3_watch_board(const struct t3_watch *watch);

#endif
