/* Order of opening: records, then what stands on them, then what crashes left undone, and only then
 * the workers run. Closing is the reverse: the poster has nothing under way once the workers have
 * ended, since every post has an exchange that waits for it. */
#include "app/app.h"

#include "app/api_call.h"
#include "app/attempts.h"
#include "app/board_keeper.h"
#include "app/expose.h"
#include "app/first_owner.h"
#include "app/grants.h"
#include "app/sandbox_key.h"
#include "app/spend.h"
#include "app/streams.h"
#include "app/sweeper.h"
#include "app/upstream.h"
#include "app/waking.h"
#include "client/client.h"
#include "serve/session.h"
#include "thread/outbox.h"
#include "thread/poster.h"
#include "thread/recency.h"

#include <stdio.h>
#include <stdlib.h>

#define APP_THREADS     4u
#define PATH_BYTES_MAX  1200u
#define READERS_PER_APP 4u
#define TOLD_MS         1000u /* lines on streams come no closer */

static void trouble(void *context, const char *sentence)
{
    const struct app *app = context;

    logger_line(app->config.logger, LOGGER_WARN, "%s", sentence);
}

void app_tell_streams(struct app *app, const char *sentence)
{
    uint64_t now = client_now_ms();
    uint_fast64_t next = atomic_load(&app->told_ms);

    if (now >= next && atomic_compare_exchange_strong(&app->told_ms, &next, now + TOLD_MS)) {
        trouble(app, sentence);
    }
}

static void stream_trouble(void *context, const char *sentence)
{
    app_tell_streams(context, sentence);
}

/* An entry that a crash kept from being counted. */
static void seen(void *context, struct slice thread_id, const struct entry *entry,
                 struct slice json)
{
    spend_catch_up(context, thread_id, &(struct post_entry){.id = entry->id, .json = json});
}

/* The records met something that will not pass by itself. */
static void store_failed(void *context, const char *sentence)
{
    const struct app *app = context;

    logger_line(app->config.logger, LOGGER_ERROR,
                "the records of threads have failed: %s; /health says so until a restart",
                sentence);
}

static int open_store(struct app *app, struct errmsg *msg)
{
    char path[PATH_BYTES_MAX];
    const struct thread_store_config config = {
        .path = path, .reader_count = READERS_PER_APP, .failed = store_failed, .context = app};

    if ((size_t)snprintf(path, sizeof(path), "%s/app.db", app->config.data_dir) >= sizeof(path)) {
        return err_set(msg, ERR_INVALID, "the path of the data directory is too long");
    }
    return store_open(&config, &app->store, msg);
}

/* What needs no record: tables and threads. */
static int open_parts(struct app *app, struct errmsg *msg)
{
    const struct recency_config recency = {
        .store = app->store, .trouble = trouble, .seen = seen, .context = app};
    unsigned threads = app->config.thread_count > 0 ? app->config.thread_count : APP_THREADS;
    int code = pool_create(threads, &app->pool);

    code = code == 0 ? pool_create(threads, &app->stream_pool) : code;
    code = code == 0 ? grants_create(&app->grants) : code;
    code = code == 0 ? attempts_create(&app->attempts) : code;
    code = code == 0 ? wakings_create(&app->wakings) : code;
    code = code == 0 ? recency_open(&recency, &app->recency) : code;
    return code == 0 ? 0 : err_set(msg, code, "cannot start threads: %s", err_text(code));
}

/* Who waits for another server's streams is told that they will not come; what is owed to them is
 * kept in the records. The engine's are here, and what is asked of them is done. */
static void give_up_streams(const struct app *app)
{
    if (app->config.streams_url != NULL && app->streams != NULL) {
        stream_client_abort(app->streams);
    }
}

static void set_streams(struct app *app, struct stream_client *streams)
{
    (void)pthread_mutex_lock(&app->mutex);
    app->streams = streams;
    if (app->hurried) {
        give_up_streams(app);
    }
    (void)pthread_mutex_unlock(&app->mutex);
}

/* The server is to end before it has begun. */
static void on_hurry(void *context)
{
    struct app *app = context;

    (void)pthread_mutex_lock(&app->mutex);
    app->hurried = true;
    give_up_streams(app);
    (void)pthread_mutex_unlock(&app->mutex);
}

static int open_writers(struct app *app, struct errmsg *msg)
{
    struct stream_client *streams = NULL;
    int code = streams_open(app, &streams, msg);

    if (code != 0) {
        return code;
    }
    set_streams(app, streams);
    const struct poster_config poster = {.store = app->store,
                                         .client = app->streams,
                                         .pool = app->stream_pool,
                                         .teller = {.tell = stream_trouble, .context = app}};

    code = poster_create(&poster, &app->poster);
    if (code != 0) {
        return err_set(msg, code, "cannot start threads: %s", err_text(code));
    }
    const struct outbox_config outbox = {.store = app->store,
                                         .client = app->streams,
                                         .poster = app->poster,
                                         .trouble = trouble,
                                         .context = app};

    code = outbox_create(&outbox, &app->outbox);
    return code == 0 ? 0 : err_set(msg, code, "cannot start threads: %s", err_text(code));
}

/* What a crash, or a failing append, left undone. */
static int reconcile(struct app *app, struct errmsg *msg)
{
    /* What the streams have first: the outbox appends behind it. */
    int code = recency_reconcile(app->recency, app->streams, msg);

    code = code == 0 ? outbox_reconcile(app->outbox, msg) : code;
    if (code != 0 && app->config.streams_url != NULL) {
        /* The other server may come later, and is given then what it is owed; lists are a little
         * behind until the next start. */
        logger_line(app->config.logger, LOGGER_WARN, "%s", msg->text);
        outbox_wake(app->outbox);
        code = 0;
    }
    return code;
}

/* The server is to end, and the other one has had its time. */
static void on_late(void *context)
{
    give_up_streams(context);
}

/* Where the threads' streams are another server's. */
static int open_upstream(struct app *app, struct errmsg *msg)
{
    const struct upstream_config config = {
        .url = app->config.streams_url,
        .secret = app->config.streams_secret,
        .logger = app->config.logger,
        .refuse = api_refuse_now,
        .late = on_late,
        .late_context = app,
    };

    return config.url == NULL ? 0 : upstream_open(&config, &app->upstream, msg);
}

static void close_all(struct app *app)
{
    struct stream_client *streams = app->streams;
    struct errmsg msg = {{0}};

    give_up_streams(app); /* nobody asks for anything any more */
    board_keeper_end(app->board);
    sweeper_stop(app->sweeper);
    /* Wakes may still owe the outbox something, which in turn needs the pool for what it posts. */
    wakings_destroy(app->wakings);
    outbox_destroy(app->outbox);
    pool_destroy(app->pool);
    pool_destroy(app->stream_pool);
    poster_destroy(app->poster);
    upstream_close(app->upstream);
    set_streams(app, NULL);
    stream_client_free(streams);
    if (recency_close(app->recency, &msg) != 0) {
        logger_line(app->config.logger, LOGGER_WARN, "recency was not written: %s", msg.text);
    }
    attempts_destroy(app->attempts);
    grants_destroy(app->grants);
    store_close(app->store);
    app->sweeper = NULL;
    app->upstream = NULL;
    app->wakings = NULL;
    app->outbox = NULL;
    app->pool = NULL;
    app->stream_pool = NULL;
    app->poster = NULL;
    app->recency = NULL;
    app->attempts = NULL;
    app->grants = NULL;
    app->store = NULL;
}

static int start_sweeper(struct app *app, struct errmsg *msg)
{
    const struct sweeper_config config = {.store = app->store, .trouble = trouble, .context = app};
    int code = sweeper_start(&config, &app->sweeper);

    return code == 0 ? 0 : err_set(msg, code, "cannot start threads: %s", err_text(code));
}

static int on_open(void *context, struct server *server, struct errmsg *msg)
{
    struct app *app = context;

    app->server = server;
    int code = sandbox_key_load(app->config.data_dir, app->sandbox_key, msg);

    code = code == 0 ? open_store(app, msg) : code;
    code = code == 0 ? open_parts(app, msg) : code;
    code = code == 0 ? open_writers(app, msg) : code;
    code = code == 0 ? open_upstream(app, msg) : code;
    code = code == 0 ? first_owner_make(app, msg) : code;
    code = code == 0 ? reconcile(app, msg) : code;
    code = code == 0 ? start_sweeper(app, msg) : code;
    code = code == 0 ? board_keeper_start(app->board, msg) : code;
    if (code != 0) {
        close_all(app);
    }
    return code;
}

static void on_stop(void *context)
{
    const struct app *app = context;

    board_keeper_stop(app->board);
    upstream_stop(app->upstream); /* requests that are there are answered, in bounds */
}

/* SIGHUP: what refused this server may have been told better, or have another token for it. */
static void on_reloaded(void *context)
{
    const struct app *app = context;

    board_keeper_retry(app->board);
}

static const char *on_ails(void *context, const char **ret_detail)
{
    const struct app *app = context;

    switch (store_failure(app->store)) {
    case 0:
        return NULL;
    case ERR_CORRUPT:
    case ERR_MISMATCH:
        *ret_detail = "the records of threads are damaged: stop the server, let arbe streams "
                      "verify look at its directory, and restore a backup";
        break;
    default:
        *ret_detail = "the disk of the records of threads failed: look at the disk, then restart";
    }
    return "records_failed";
}

static void on_expose(void *context, struct exposition *e)
{
    app_expose(context, e);
}

static void on_close(void *context)
{
    close_all(context);
}

static bool on_takes(void *context, struct slice path)
{
    (void)context;
    return route_takes(path);
}

/* The code for a status that the server answers by itself. */
static enum api_code code_of_status(int status, bool stopping)
{
    switch (status) {
    case 408:
        return API_REQUEST_TIMEOUT;
    case 413:
    case 414:
    case 431:
        return API_TOO_LARGE;
    case 429:
        return API_RATE_LIMITED;
    case 503:
        return stopping ? API_DRAINING : API_BUSY;
    case 507:
        return API_STORAGE_FULL;
    default:
        return status >= 500 ? API_INTERNAL : API_INVALID_INPUT;
    }
}

static void on_problem(struct buf *out, int status, bool stopping, struct slice detail)
{
    struct api_error error;

    (void)api_error_set(&error, code_of_status(status, stopping), "%.*s", (int)detail.len,
                        detail.ptr);
    api_error_format(out, &error);
    buf_append_char(out, '\n');
}

int app_create(const struct app_config *config, struct app **ret_app, struct errmsg *msg)
{
    const struct board_keeper_config board = {.logger = config->logger};
    struct app *app = calloc(1, sizeof(*app));

    if (app == NULL) {
        return err_set(msg, ERR_NOMEM, "%s", err_text(ERR_NOMEM));
    }
    int code = board_keeper_create(&board, &app->board, msg);

    if (code != 0) {
        free(app);
        return code;
    }
    app->config = *config;
    list_init(&app->errands);
    (void)pthread_mutex_init(&app->mutex, NULL); /* does not fail on Linux */
    app->secure = slice_starts_with(slice_of(config->public_url), SLICE("https://"));
    app->mount = (struct mount){
        .context = app,
        .program = "arbe serve",
        .reserved = SLICE(THREAD_STREAM),
        .reserved_why = "names that begin with " THREAD_STREAM " are the threads' own: they are "
                        "read and written through /api, or with the secret of a server that has "
                        "one (--secret-file)",
        .secret_behind = SLICE("invite") /* the route and the page */,
        .open = on_open,
        .hurry = on_hurry,
        .stop = on_stop,
        .reloaded = on_reloaded,
        .ails = on_ails,
        .expose = on_expose,
        .close = on_close,
        .takes = on_takes,
        .begin = api_begin,
        .leave = api_leave,
        .format_problem = on_problem,
    };
    *ret_app = app;
    return 0;
}

struct t3_watch *app_board(struct app *app)
{
    return board_keeper_watch(app->board);
}

const struct mount *app_mount(struct app *app)
{
    return &app->mount;
}

/* A revocation on its way to one worker. */
struct errand {
    struct list link; /* on the app's list, until it is done */
    struct task task;
    struct app *app;
    struct worker *worker;
    char agent_id[STORE_ID_BYTES]; /* empty: any; likewise the others */
    char key_id[STORE_ID_BYTES];
    char session_hash[API_KEY_HASH_BYTES];
    char house_id[STORE_ID_BYTES];
    char thread_id[STORE_ID_BYTES];
};

static bool fits(const char *wanted, struct slice is)
{
    return wanted[0] == '\0' || slice_equal(slice_of(wanted), is);
}

static bool applies(const struct errand *e, const struct exchange *x)
{
    const struct api_call *c = x == NULL || x->mount == NULL ? NULL : x->guest;
    /* Before that a thread of the application may be at work on the call, and the worker will see
     * that something was taken away. */
    bool reads = c != NULL && (x->as_stream || x->live_ops != NULL);

    return reads && fits(e->agent_id, slice_of(c->caller.agent_id)) &&
           fits(e->key_id, slice_of(c->caller.key_id)) &&
           fits(e->session_hash, slice_of(c->caller.hash)) &&
           fits(e->house_id, slice_of(c->access.house_id)) && fits(e->thread_id, c->params[0]);
}

static void end_reads(struct task *task)
{
    struct errand *e = container_of(task, struct errand, task);

    /* A session whose read ends may go on to its next request, but leaves the list in a later turn
     * only. */
    LIST_FOR_EACH(node, &e->worker->sessions)
    {
        struct session *s = container_of(node, struct session, link);

        if (applies(e, s->exchange)) {
            session_end_read(s);
        }
    }
    (void)pthread_mutex_lock(&e->app->mutex);
    list_remove(&e->link);
    (void)pthread_mutex_unlock(&e->app->mutex);
    free(e);
}

static void take(char *out, size_t size, struct slice text)
{
    (void)snprintf(out, size, "%.*s", (int)text.len, text.len == 0 ? "" : text.ptr);
}

void app_revoke(struct app *app, const struct revocation *revocation)
{
    grants_forget(app->grants);
    for (unsigned i = 0; i < app->server->config->worker_count; i++) {
        struct errand *e = calloc(1, sizeof(*e));

        if (e == NULL) {
            abort(); /* a reader that was to be let go must not stay */
        }
        e->app = app;
        list_init(&e->link);
        list_init(&e->task.link);
        e->task.run = end_reads;
        e->worker = &app->server->workers[i];
        take(e->agent_id, sizeof(e->agent_id), revocation->agent_id);
        take(e->key_id, sizeof(e->key_id), revocation->key_id);
        take(e->session_hash, sizeof(e->session_hash), revocation->session_hash);
        take(e->house_id, sizeof(e->house_id), revocation->house_id);
        take(e->thread_id, sizeof(e->thread_id), revocation->thread_id);
        (void)pthread_mutex_lock(&app->mutex);
        list_append(&app->errands, &e->link);
        (void)pthread_mutex_unlock(&app->mutex);
        loop_post(e->worker->loop, &e->task);
    }
}

void app_destroy(struct app *app)
{
    if (app == NULL) {
        return;
    }
    /* Those for workers that had ended by then. */
    LIST_FOR_EACH(node, &app->errands)
    {
        free(container_of(node, struct errand, link));
    }
    board_keeper_destroy(app->board);
    (void)pthread_mutex_destroy(&app->mutex);
    explicit_bzero(app->sandbox_key, sizeof(app->sandbox_key));
    free(app);
}
