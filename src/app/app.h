/* The application: threads, their records and the API, beside the streams of one server. Mount it
 * with app_mount, run the server, destroy it.
 *
 * Requests that need the records run on the application's own threads, so that a slow query never
 * stalls a worker; those that wait for streams on others still, so that a server of streams that
 * hangs never stalls who asks for records. What is known by heart (grants.h) is answered on the
 * worker. */
#ifndef ARBE_APP_APP_H
#define ARBE_APP_APP_H

#include "serve/mount.h"

#include "base/logger.h"
#include "base/pool.h"
#include "base/uuid.h"
#include "thread/api_error.h"
#include "thread/director.h"
#include "thread/sandbox_token.h"

#include <pthread.h>
#include <stdatomic.h>

struct api_call;
struct board_keeper;
struct grants;
struct poster;
struct outbox;
struct recency;
struct stream_client;
struct attempts;
struct sweeper;
struct t3_watch;
struct thread_store;
struct upstream;
struct wakings;

struct app_config {
    const char *data_dir;        /* app.db and keys/ stand in it */
    const char *public_url;      /* URLs begin so, without a slash at the end; empty: Host */
    const char *streams_url;     /* of a server that has the threads' streams; NULL: this one */
    struct slice streams_secret; /* its secret; empty: none */
    const struct logger *logger;
    /* Tells the operator the first owner's key, once. False: it was not told, so there is none. */
    bool (*tell_key)(void *context, const char *owner, const char *house, const char *key);
    void *tell_context;
    struct director director; /* who is woken; all zeros: nobody */
    unsigned thread_count;    /* of each of the two pools; 0: APP_THREADS */
};

struct app {
    struct app_config config;
    struct mount mount;
    struct server *server;
    struct thread_store *store;
    struct pool *pool;             /* the application's threads */
    atomic_uint pool_calls;        /* waiting there or running */
    struct pool *stream_pool;      /* as many others, for what waits for streams */
    atomic_uint stream_calls;      /* waiting there or running */
    atomic_uint_fast64_t told_ms;  /* see app_tell_streams: no line before */
    struct grants *grants;         /* what is known by heart */
    struct attempts *attempts;     /* to sign in, by address */
    struct recency *recency;       /* when threads were last written to */
    struct stream_client *streams; /* by which all streams are written, see recency.h */
    struct poster *poster;         /* appends entries, once each */
    atomic_uint_fast64_t appended; /* entries that went into the log without it */
    atomic_uint_fast64_t posts_refused[API_CODE_COUNT];
    struct outbox *outbox;      /* what records still owe to streams */
    struct wakings *wakings;    /* of the director */
    struct upstream *upstream;  /* reads of another server's streams; NULL: they are ours */
    struct sweeper *sweeper;    /* housekeeping of the records */
    struct board_keeper *board; /* what T3 hosts tell */
    struct uuid_source ids;
    unsigned char sandbox_key[SANDBOX_KEY_BYTES];
    bool secure;           /* cookies are for https only */
    pthread_mutex_t mutex; /* of what follows, and of `streams` until the app is open */
    bool hurried;          /* the server is to end before it has begun */
    struct list errands;   /* revocations on their way to workers */
};

/* Makes one; nothing is opened yet. ERR_NOMEM, ERR_IO, with a sentence. */
int app_create(const struct app_config *config, struct app **ret_app, struct errmsg *msg) MUST_USE;

/* Where T3 hosts are added before the server runs. */
struct t3_watch *app_board(struct app *app);

/* The server has ended. Accepts NULL. */
void app_destroy(struct app *app);

/* Tells the operator why streams fail, in a line a second at most. Any thread. */
void app_tell_streams(struct app *app, const char *sentence);

/* What to put into struct serve_config; lives as long as the app. */
const struct mount *app_mount(struct app *app);

/* What was taken away: all that is set must fit. */
struct revocation {
    struct slice agent_id;     /* of the caller */
    struct slice key_id;       /* that it showed, or opened its session with */
    struct slice session_hash; /* of the session that it has */
    struct slice house_id;     /* of the thread */
    struct slice thread_id;
};

/* Something was taken away, and the records say so: what is known by heart is forgotten, and live
 * reads to which it applies end, cleanly, so that who comes again is judged anew. Any thread. */
void app_revoke(struct app *app, const struct revocation *revocation);

#endif
