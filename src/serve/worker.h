/* A server and its workers: one thread each with an event loop, a listening socket and its
 * place in the engine. A worker's fields belong to its thread; the server's are constant once
 * the workers run, but for the atomic counters. */
#ifndef ARBE_SERVE_WORKER_H
#define ARBE_SERVE_WORKER_H

#include "base/date.h"
#include "http/request.h"
#include "net/conn.h"
#include "net/listener.h"
#include "serve/config.h"
#include "serve/mount.h"
#include "serve/rate.h"
#include "serve/tally.h"
#include "serve/tunables.h"
#include "stream/engine.h"

#include <pthread.h>
#include <stdatomic.h>

#define SERVER_CACHE_PRIVATE SLICE("private, max-age=60, stale-while-revalidate=300")
#define SERVER_CACHE_PUBLIC  SLICE("public, max-age=60, stale-while-revalidate=300")

struct keys;
struct subscriptions;
struct webhook;

struct server {
    const struct serve_config *config;
    struct tunables tunables;
    struct engine *engine;
    struct pool *pool;
    struct keys *keys;                   /* see control_service.h, as the next two */
    struct webhook *webhook;             /* sends them */
    struct subscriptions *subscriptions; /* owns all of them */
    struct buf common;                   /* the headers that every answer has, ready to be copied */
    struct slice cache_control;          /* of catch-up pages */
    uint64_t etag_salt;                  /* see etag_format */
    struct conn_config conn;             /* for every connection */
    atomic_uint_fast64_t body_bytes;     /* reserved for unfinished request bodies */
    uint64_t body_bytes_total_max;       /* above it 503 */
    atomic_uint connections;             /* open */
    atomic_uint_fast64_t waiters;        /* live readers, whether they sleep or are being fed */
    struct rate requests;                /* 429 above */
    struct rate body_bytes_in;           /* likewise */
    struct worker *workers;              /* config->worker_count of them */
    uint64_t started_ms;                 /* since 1970 UTC */
};

/* The settings that may change, as of now. */
static inline const struct serve_tunables *server_tunables(const struct server *server)
{
    return tunables_get(&server->tunables);
}

/* How names begin that are kept for the mount, since there is no secret that would let others in;
 * empty: none. */
static inline struct slice server_reserved(const struct server *server)
{
    const struct mount *mount = server->config->mount;

    return mount == NULL || server_tunables(server)->secret.len > 0 ? (struct slice){NULL, 0}
                                                                    : mount->reserved;
}

struct work;

struct worker {
    struct server *server;
    struct loop *loop;
    struct listener *listener;
    struct engine_worker *engine;
    pthread_t thread;
    struct list sessions;        /* every connection of this worker */
    size_t session_count;        /* those that are not freed yet */
    size_t warming;              /* file windows being read on the pool */
    struct work *spare;          /* see work.h */
    unsigned spare_count;        /* of them */
    struct buf out;              /* response being written */
    struct buf frame;            /* SSE frame being written */
    struct http_request request; /* request being parsed */
    int64_t date_second;         /* that `date` stands for */
    char date[DATE_HTTP_BYTES];  /* Date header, made once a second */
    uint64_t random;             /* state of worker_random */
    bool draining;               /* no new work */
    struct tally tally;          /* what it counts for /metrics */
    struct task drain_task;
    struct task hurry_task;
    struct task abort_task;
};

/* Makes loop, listening socket (the configured one, or a place at that of `first`, another
 * worker) and place in the engine; nothing runs yet. ERR_* with a sentence. */
int worker_init(struct worker *w, struct server *server, const struct worker *first,
                struct errmsg *msg) MUST_USE;

/* After the thread has ended, or was never started: leaves the engine and stops listening. Accepts
 * a worker whose init failed. */
void worker_detach(struct worker *w);

/* After the engine was closed and the pool has ended: their threads may post to the loop until
 * then. */
void worker_finish(struct worker *w);

/* The thread: runs until a drain has ended every connection. */
void *worker_run(void *worker);

/* Any thread: stop accepting, answer what is there, close. */
void worker_drain(struct worker *w);

/* Any thread, after worker_drain: refuse the requests that have not come whole by now. */
void worker_hurry(struct worker *w);

/* Any thread: drop every connection. */
void worker_abort(struct worker *w);

/* Called when a session was freed or a window was read: ends the loop once nothing is left to
 * drain. */
void worker_check_end(struct worker *w);

/* The Date header's value as of this turn; borrowed until the next call. */
const char *worker_date(struct worker *w);

/* A number that need not be secret, for jitter. */
uint64_t worker_random(struct worker *w);

#endif
