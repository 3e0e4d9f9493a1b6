/* A listening TCP socket on one loop; each worker has its own, bound with SO_REUSEPORT, so the kernel
 * spreads connections. When the process runs out of descriptors, accepting pauses for 100 ms and
 * resumes: no busy loop, and it recovers. */
#ifndef ARBE_NET_LISTENER_H
#define ARBE_NET_LISTENER_H

#include "net/loop.h"

struct listener;

/* Called for each new connection, non-blocking, TCP_NODELAY set; the callee owns `fd`. */
typedef void (*listener_accept_fn)(void *context, int fd);

/* Binds "HOST:PORT" (numeric address, "localhost", or "[::1]:4437"; port 0 picks one). ERR_INVALID for a
 * malformed address, ERR_LOCKED when the port is in use, ERR_PERM, ERR_IO, with a sentence. */
int listener_create(struct loop *l, const char *address, listener_accept_fn accept, void *context,
                    struct listener **ret_listener, struct errmsg *msg) MUST_USE;

/* Stops accepting and closes. Accepts NULL. */
void listener_destroy(struct listener *listener);

/* The bound address as "127.0.0.1:4437", for other workers and for the operator. */
void listener_address(const struct listener *listener, char *out, size_t out_bytes);

/* Whether `address` is a loopback address. False for malformed ones. */
bool listener_is_loopback(const char *address);

/* Pauses and resumes accepting, for the cap on connections. */
void listener_pause(struct listener *listener, bool paused);

#endif
