/* The transport of a client that leads straight into the streams engine of the same process: no
 * HTTP, no socket, the same answers. The client's thread is a worker of the engine, and its loop.
 *
 * What is said over HTTP for the sake of proxies and caches is not said here: no ETag, no cursor.
 * Options for a connection (token, user agent, callbacks, compression, time-outs of connecting and
 * of silence) have no meaning. Live reads are long-polls. */
#ifndef ARBE_APP_ENGINE_TRANSPORT_H
#define ARBE_APP_ENGINE_TRANSPORT_H

#include "client/transport.h"
#include "stream/engine.h"

struct engine_client_config {
    struct engine *engine;         /* outlives the client */
    struct pool *pool;             /* for listings; outlives the client */
    uint64_t body_bytes_max;       /* of an append or a creation, 413 above; 0: 64 MiB */
    uint64_t long_poll_timeout_ms; /* how long one waits; 0: 30 s */
    uint32_t page_bytes;           /* most bytes of one page; 0: 256 KiB */
};

/* Makes one; the config is copied. MEMORY. Any thread. */
int engine_transport_new(const struct engine_client_config *config,
                         const struct stream_client_options *options,
                         struct transport **ret_transport, struct stream_error *ret_error);

#endif
