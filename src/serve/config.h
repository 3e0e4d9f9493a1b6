/* What the operator chose, checked by the command before a server is started. Every pointer in it
 * outlives the server. */
#ifndef ARBE_SERVE_CONFIG_H
#define ARBE_SERVE_CONFIG_H

#include "base/err.h"
#include "base/logger.h"
#include "base/slice.h"
#include "log/wal.h"

struct mount;

/* What a server may be asked for, and hold; 0: any number. */
struct serve_limits {
    uint64_t streams_max;           /* 507 above */
    uint64_t bytes_max;             /* that the streams hold; 507 above */
    uint64_t requests_per_second;   /* 429 above */
    uint64_t body_bytes_per_second; /* 429 above */
    uint64_t waiters_max;           /* live readers; 503 above */
};

/* What a running server takes on SIGHUP; see tunables.h. */
struct serve_tunables {
    struct slice secret;           /* bearer secret; empty: none is asked for */
    uint32_t connection_count_max; /* 503 above */
    struct serve_limits limits;
};

struct serve_config {
    const char *listen;              /* HOST:PORT; port 0 picks one */
    const char *data_dir;            /* --data */
    enum durability durability;      /* --durability */
    unsigned worker_count;           /* threads, each with its own event loop; at least 1 */
    const char *public_url;          /* URLs begin so; empty: Host, or the address */
    bool webhooks_allow_loopback;    /* --webhooks-allow-loopback */
    const char *cors_origin;         /* Access-Control-Allow-Origin */
    uint64_t long_poll_timeout_ms;   /* 204 after this long without data */
    uint64_t sse_lifetime_ms;        /* a connection ends cleanly after about this long */
    uint64_t sse_heartbeat_ms;       /* a comment after this much silence */
    uint64_t checkpoint_interval_ms; /* --checkpoint-interval */
    uint64_t checkpoint_bytes;       /* --checkpoint-bytes */
    uint64_t wal_segment_bytes;      /* --wal-segment */
    uint64_t body_bytes_max;         /* 413 above */
    uint32_t read_page_bytes;        /* most bytes of one catch-up answer */
    const struct mount *mount;       /* routes beside the streams', see mount.h; NULL: none */
    struct logger logger;            /* for the few lines that a server has to say */
    struct serve_tunables tunables;  /* at start */
    /* On SIGHUP: reads the settings again and says what is wrong with them, or what of them takes a
     * restart, in `msg`. The secret lives until the next call. NULL: SIGHUP does nothing. */
    int (*reload)(void *context, struct serve_tunables *ret_tunables, struct errmsg *msg);
    void *reload_context;
};

#endif
