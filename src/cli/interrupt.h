/* Ctrl-C, SIGTERM and SIGHUP: the first one aborts what the clients that are watched have under
 * way, so that the command ends by itself with what it has printed being whole; the second one ends
 * the process at once. Threads: the main one calls; threads of ours are started with the signals
 * blocked. */
#ifndef ARBE_CLI_INTERRUPT_H
#define ARBE_CLI_INTERRUPT_H

#include <poll.h>
#include <stdbool.h>

#define INTERRUPT_CLIENTS_MAX 4u

/* Takes the three signals over, and ignores SIGPIPE: a closed pipe is then an error of a write.
 * Standard streams that are closed are taken up, lest a connection become one of them; using them
 * still fails. Before anything is opened. */
void interrupt_begin(void);

/* Ends what a client has under way; async-signal-safe. */
typedef void (*interrupt_abort_fn)(void *client);

/* Aborts `client` at the first signal, also one that has come before. At most
 * INTERRUPT_CLIENTS_MAX at a time. */
void interrupt_watch(interrupt_abort_fn abort, void *client);

/* No longer; before the client is freed. A client that is not watched, or NULL, is ignored. */
void interrupt_forget(void *client);

/* The signal that has come; 0: none. */
int interrupt_signal(void);

/* Waits for one of the descriptors like poll, for timeout_ms (-1: no limit), or for a signal, also
 * one that has come before: 0 then. */
int interrupt_poll(struct pollfd *fds, nfds_t count, int timeout_ms);

/* Ends the process as a writer to a closed pipe ends, without a word; returns only where the caller
 * of the program wanted SIGPIPE to be ignored. */
void interrupt_end_broken_pipe(void);

#endif
