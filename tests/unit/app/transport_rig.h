/* Streams to be reached in two ways: a server of this program's own in a child process, or an
 * engine in this one. What a test does with a client must come out alike over both. */
#ifndef ARBE_TESTS_UNIT_APP_TRANSPORT_RIG_H
#define ARBE_TESTS_UNIT_APP_TRANSPORT_RIG_H

#include <fcntl.h>
#include <ftw.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "app/engine_client.h"
#include "arbe/producer.h"
#include "base/pool.h"
#include "log/sys.h"
#include "serve/server.h"
#include "unit/base/unit.h"

#define RIG_BODY_MAX     MIB
#define RIG_PAGE_BYTES   (64 * KIB)
#define RIG_LONG_POLL_MS 300
#define RIG_SEGMENT      (4 * MIB)

struct rig {
    bool http;
    char dir[64];

    /* over HTTP */
    pid_t server;
    char url[160];

    /* within the process */
    struct sys sys;
    struct pool *pool;
    struct engine *engine;
    struct engine_client_config config;
};

static int rig_remove(const char *path, const struct stat *st, int kind, struct FTW *ftw)
{
    (void)st;
    (void)kind;
    (void)ftw;
    return remove(path);
}

static void rig_make_dir(struct rig *rig)
{
    (void)snprintf(rig->dir, sizeof(rig->dir), "/tmp/arbe-transport-XXXXXX");
    assert_non_null(mkdtemp(rig->dir));
}

static void rig_remove_dir(struct rig *rig)
{
    assert_int_equal(nftw(rig->dir, rig_remove, 8, FTW_DEPTH | FTW_PHYS), 0);
}

/* The child: serves until SIGTERM. */
static inline void rig_serve(const struct rig *rig, int ready_fd)
{
    struct serve_config config = {
        .listen = "127.0.0.1:0",
        .data_dir = rig->dir,
        .durability = DURABILITY_OS,
        .worker_count = 2,
        .public_url = "",
        .cors_origin = "*",
        .long_poll_timeout_ms = RIG_LONG_POLL_MS,
        .sse_lifetime_ms = 1000,
        .sse_heartbeat_ms = 200,
        .checkpoint_interval_ms = 1000,
        .checkpoint_bytes = RIG_SEGMENT,
        .wal_segment_bytes = RIG_SEGMENT,
        .body_bytes_max = RIG_BODY_MAX,
        .read_page_bytes = RIG_PAGE_BYTES,
        .logger = {.fd = STDERR_FILENO, .level = LOGGER_ERROR},
        .tunables = {.connection_count_max = 256},
    };
    struct errmsg msg = {{0}};
    FILE *ready = fdopen(ready_fd, "w");
    int code = server_run(&config, ready, &msg);

    if (code != 0) {
        (void)fprintf(stderr, "the server ended: %s\n", msg.text);
    }
    (void)fclose(ready);
    _exit(code == 0 ? 0 : 1);
}

/* Before this program has any threads. */
static inline void rig_open_http(struct rig *rig)
{
    char line[256];
    int ready[2];
    FILE *in;

    *rig = (struct rig){.http = true};
    rig_make_dir(rig);
    assert_int_equal(pipe(ready), 0);
    rig->server = fork();
    assert_true(rig->server >= 0);
    if (rig->server == 0) {
        (void)prctl(PR_SET_PDEATHSIG, SIGKILL); /* a test that is killed leaves nothing behind */
        (void)close(ready[0]);
        rig_serve(rig, ready[1]);
    }
    (void)close(ready[1]);
    in = fdopen(ready[0], "r");
    assert_non_null(fgets(line, sizeof(line), in));
    const char *url = strstr(line, "http://");

    assert_non_null(url);
    (void)snprintf(rig->url, sizeof(rig->url), "%.*s", (int)strcspn(url, "\n"), url);
    (void)fclose(in);
}

static inline void rig_close_http(struct rig *rig)
{
    int status = 0;

    assert_int_equal(kill(rig->server, SIGTERM), 0);
    assert_int_equal(waitpid(rig->server, &status, 0), rig->server);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    rig_remove_dir(rig);
}

/* `tune` may change what the engine is to be opened with; NULL: nothing. */
static void rig_open_engine_tuned(struct rig *rig,
                                  void (*tune)(struct rig *rig, struct engine_config *config))
{
    struct errmsg msg = {{0}};
    struct store_report report;

    *rig = (struct rig){.http = false};
    rig_make_dir(rig);
    sys_posix_init(&rig->sys);
    assert_int_equal(pool_create(2, &rig->pool), 0);
    struct engine_config config = {
        .store = {.dir = rig->dir,
                  .durability = DURABILITY_OS,
                  .segment_bytes = RIG_SEGMENT,
                  .checkpoint_bytes = RIG_SEGMENT,
                  .checkpoint_interval_ms = 1000,
                  .log_bytes_max = 16 * RIG_SEGMENT,
                  .staged_bytes_max = 64 * MIB,
                  .sys = &rig->sys,
                  .threads = true},
        .pool = rig->pool,
        .read_page_bytes = RIG_PAGE_BYTES,
        .hot_bytes_max = 64 * MIB,
        .cache_bytes_max = 1 * MIB,
        .idle_ms = 1000,
        .sweep_interval_ms = 1000,
    };

    if (tune != NULL) {
        tune(rig, &config);
    }
    if (engine_open(&config, &rig->engine, &report, &msg) != 0) {
        fail_msg("engine_open: %s", msg.text);
    }
    rig->config = (struct engine_client_config){
        .engine = rig->engine,
        .pool = rig->pool,
        .body_bytes_max = RIG_BODY_MAX,
        .long_poll_timeout_ms = RIG_LONG_POLL_MS,
        .page_bytes = RIG_PAGE_BYTES,
    };
}

static inline void rig_open_engine(struct rig *rig)
{
    rig_open_engine_tuned(rig, NULL);
}

static void rig_close_engine(struct rig *rig)
{
    (void)engine_close(rig->engine, true); /* after a failure of the log it says so again */
    pool_destroy(rig->pool);
    rig_remove_dir(rig);
}

/* Options that are quick to try again, and patient: calls that wait for their turn, too, have that
 * time. */
static inline struct stream_client_options rig_options(void)
{
    struct stream_client_options options;

    stream_client_options_init(&options);
    options.retry.initial_delay_ms = 10;
    options.retry.max_delay_ms = 100;
    options.request_timeout_ms = 600000;
    return options;
}

/* A client of the streams; `options` NULL: those above. */
static inline struct stream_client *rig_client(const struct rig *rig,
                                               const struct stream_client_options *options)
{
    struct stream_client_options quick = rig_options();
    struct stream_client *client = NULL;
    struct stream_error error;
    int code;

    options = options != NULL ? options : &quick;
    code = rig->http ? stream_client_new(rig->url, options, &client, &error)
                     : engine_client_new(&rig->config, options, &client, &error);
    if (code != STREAM_OK) {
        fail_msg("no client: %s", error.message);
    }
    return client;
}

/* Fails with the error's words when `expression` does not give `code`; `error` is its error. */
#define EXPECT(wanted, expression)                                                             \
    do {                                                                                       \
        memset(&error, 0, sizeof(error));                                                      \
        int got_ = (expression);                                                               \
        if (got_ != (wanted)) {                                                                \
            fail_msg("%s: %s, not %s: %s", #expression,                                        \
                     stream_error_name((enum stream_error_code)got_), #wanted, error.message); \
        }                                                                                      \
    } while (0)

/* The error's words have those among them. */
#define EXPECT_WORDS(words)                                         \
    do {                                                            \
        if (strstr(error.message, (words)) == NULL) {               \
            fail_msg("\"%s\" has no \"%s\"", error.message, words); \
        }                                                           \
    } while (0)

/* Creates a stream of that type with nothing in it. */
static inline void rig_create(struct stream_client *client, const char *name, const char *type)
{
    struct stream_create_options options = {.content_type = type};
    struct stream_error error;

    EXPECT(STREAM_OK, stream_client_create(client, name, &options, NULL, &error));
}

static inline void rig_append(struct stream_client *client, const char *name, const char *text)
{
    struct stream_error error;

    EXPECT(STREAM_OK, stream_client_append(client, name, text, strlen(text), NULL, NULL, &error));
}

/* What a stream holds from `offset` on. */
static inline void rig_expect(struct stream_client *client, const char *name, const char *offset,
                              const char *text)
{
    struct stream_error error;
    char *data = NULL;
    size_t len = 0;

    EXPECT(STREAM_OK, stream_client_read_all(client, name, offset, MIB, &data, &len, NULL, &error));
    if (len != strlen(text) || memcmp(data, text, len) != 0) {
        fail_msg("\"%.*s\", not \"%s\"", (int)len, data, text);
    }
    free(data);
}

#endif
