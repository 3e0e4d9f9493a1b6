/* A listening TCP socket, shared by the loops of all workers. Whichever loop is awake accepts,
 * and the new connection goes to the workers in turn, through a bounded inbox, so that each gets
 * its share. The port is the process's alone: SO_REUSEPORT is not used, since with it a second
 * server would take half of the connections without a word. When the process runs out of
 * descriptors, accepting pauses for 100 ms and resumes: no busy loop, and it recovers. Called on
 * the loop's thread or before it runs. */
#ifndef ARBE_NET_LISTENER_H
#define ARBE_NET_LISTENER_H

#include "net/loop.h"

struct listener;

/* Called on the listener's loop for each new connection: non-blocking, TCP_NODELAY set, keep-alive
 * probes after 60 s of silence. The callee owns `fd`. */
typedef void (*listener_accept_fn)(void *context, int fd);

/* Binds "HOST:PORT" (numeric address, "localhost", or "[::1]:4437"; port 0 picks one).
 * ERR_INVALID for a malformed address, ERR_LOCKED when the port is in use, ERR_PERM, ERR_IO,
 * with a sentence. */
int listener_create(struct loop *l, const char *address, listener_accept_fn accept, void *context,
                    struct listener **ret_listener, struct errmsg *msg) MUST_USE;

/* Another worker's place at the socket of `first`, which must not be destroyed meanwhile.
 * ERR_NOMEM, ERR_IO. */
int listener_create_shared(struct loop *l, struct listener *first, listener_accept_fn accept,
                           void *context, struct listener **ret_listener) MUST_USE;

/* Accepts what waits at this moment, for a listener that is about to be destroyed: the kernel
 * resets what nobody accepted. All of it comes to this loop. */
void listener_accept_waiting(struct listener *listener);

/* Stops accepting on this loop; the last of those that share the socket closes it. The loop does
 * not run, or this is its thread. Accepts NULL. */
void listener_destroy(struct listener *listener);

/* The bound address as "127.0.0.1:4437" or "[::1]:4437", cut at the size; port 0 is shown as
 * chosen. */
void listener_address(const struct listener *listener, char *out, size_t out_bytes);

/* Whether `address` is a loopback address. False for malformed ones. */
bool listener_is_loopback(const char *address);

/* Pauses and resumes accepting on this loop, and its share of what others accept. When all are
 * paused, connections wait in the socket's backlog. */
void listener_pause(struct listener *listener, bool paused);

#endif
