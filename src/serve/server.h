/* The server as a whole: opens the data directory, starts the workers, waits for SIGTERM or
 * SIGINT, and drains. Logs to the configured logger; prints one line with its address to
 * `ready`. */
#ifndef ARBE_SERVE_SERVER_H
#define ARBE_SERVE_SERVER_H

#include "base/err.h"
#include "serve/config.h"

#include <stdio.h>

/* Blocks SIGTERM, SIGINT and SIGHUP for the process, takes new settings at SIGHUP, serves until the
 * first of the former two, and returns 0 when everything was drained and closed well. Errors of
 * starting come with a sentence; an error without one was logged. Ends the process by itself when
 * draining takes over ten seconds. */
int server_run(const struct serve_config *config, FILE *ready, struct errmsg *msg) MUST_USE;

#endif
