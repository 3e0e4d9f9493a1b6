/* The operator's door to a running server: a socket DIR/control, mode 0600, at which tools on the
 * same machine ask it to hold its files still while they read them (log/hold.h). A line in, a line
 * out:
 *
 *   hold          -> held POSITION     the log is durable up to there; asked again, it is by now
 *   log done      -> ok                the log was read
 *   catalog done  -> ok                the catalog was read
 *   keep          -> ok                still there; due every minute
 *   anything      -> a sentence        refused, or the hold was broken
 *
 * The end of the connection ends the hold. It has a thread of its own. */
#ifndef ARBE_SERVE_DOOR_H
#define ARBE_SERVE_DOOR_H

#include "base/err.h"
#include "base/logger.h"

struct holds;
struct door;

/* Listens in `dir`, whose lock this process has; `holds` and `logger` outlive it. Without it a
 * server works all the same. Errors have a sentence. */
int door_open(const char *dir, struct holds *holds, const struct logger *logger,
              struct door **ret_door, struct errmsg *msg) MUST_USE;

/* Ends all holds and the thread; blocks until then. Accepts NULL. */
void door_close(struct door *o);

#endif
