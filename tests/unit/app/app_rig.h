/* An application that serves: threads, API and streams in this process, on a port of its own. */
#ifndef ARBE_TESTS_UNIT_APP_APP_RIG_H
#define ARBE_TESTS_UNIT_APP_APP_RIG_H

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "app/app.h"
#include "unit/app/server_rig.h"

#define APP_RIG_SEGMENT (4 * MIB)
#define APP_RIG_ANSWER  (256 * KIB)

struct app_rig {
    char dir[SERVER_RIG_DIR_BYTES];
    struct logger logger;
    struct app *app;
    struct mount mount;
    struct serve_config config;
    struct director director; /* set before app_rig_open */
    unsigned thread_count;    /* likewise; 0: as usual */
    int log_fd;               /* likewise; 0: standard error */
    char key[128];            /* the first owner's */
    char house_id[40];        /* likewise, with its primary thread */
    char thread_id[40];
    uint16_t port;
    pthread_t thread;
    FILE *ready;
    int code; /* that server_run ended with */
};

/* What the test's thread and the server's have written is seen by the other, which neither a pipe
 * nor a signal tells a sanitizer. */
static pthread_mutex_t app_rig_mutex = PTHREAD_MUTEX_INITIALIZER;

static inline void app_rig_meet(void)
{
    (void)pthread_mutex_lock(&app_rig_mutex);
    (void)pthread_mutex_unlock(&app_rig_mutex);
}

/* An answer to a request. */
struct app_answer {
    int status;
    size_t len;
    char *body; /* in `text`, NUL-terminated */
    char text[APP_RIG_ANSWER];
};

static inline bool app_rig_told(void *context, const char *owner, const char *house,
                                const char *key)
{
    struct app_rig *rig = context;

    (void)owner;
    (void)house;
    (void)snprintf(rig->key, sizeof(rig->key), "%s", key);
    app_rig_meet();
    return true;
}

static inline void app_rig_stopped(void *context)
{
    struct app *app = context;

    app_rig_meet();
    app_mount(app)->stop(app);
}

static inline void *app_rig_run(void *context)
{
    struct app_rig *rig = context;

    rig->code = server_rig_run(&rig->config, rig->ready);
    return NULL;
}

/* -------------------------------------------------------------------------------- requests */

static inline int app_rig_connect(const struct app_rig *rig)
{
    return server_rig_connect(rig->port, 0);
}

/* Sends a request with the owner's key, unless that is empty, and does not wait. `more` are header
 * lines. */
static inline void app_rig_send(const struct app_rig *rig, int fd, const char *method,
                                const char *path, const char *more, const char *body)
{
    char head[4096];
    int len = snprintf(head, sizeof(head),
                       "%s %s HTTP/1.1\r\nHost: x\r\n%s%s%s%s"
                       "Content-Length: %zu\r\n\r\n",
                       method, path, rig->key[0] == '\0' ? "" : "Authorization: Bearer ", rig->key,
                       rig->key[0] == '\0' ? "" : "\r\n", more, strlen(body));

    assert_true(len > 0 && (size_t)len < sizeof(head));
    assert_int_equal(send(fd, head, (size_t)len, MSG_NOSIGNAL), len);
    if (body[0] != '\0') {
        assert_int_equal(send(fd, body, strlen(body), MSG_NOSIGNAL), strlen(body));
    }
}

/* Where the head ends, or NULL. */
static inline char *app_rig_head_end(const struct app_answer *a)
{
    return strstr(a->text, "\r\n\r\n");
}

/* Whether the answer is there: by its length, or since none has a body. */
static inline bool app_rig_whole(const struct app_answer *a)
{
    const char *end = app_rig_head_end(a);
    const char *length = strstr(a->text, "Content-Length: ");

    return end != NULL && (length == NULL || length > end ||
                           a->len >= (size_t)(end + 4 - a->text) + strtoul(length + 16, NULL, 10));
}

/* Reads an answer that has a length or no body; false when the connection ends before. */
static inline bool app_rig_receive(int fd, struct app_answer *a)
{
    a->len = 0;
    a->text[0] = '\0';
    while (!app_rig_whole(a)) {
        ssize_t part = recv(fd, a->text + a->len, sizeof(a->text) - 1 - a->len, 0);

        if (part <= 0) {
            return false;
        }
        a->len += (size_t)part;
        a->text[a->len] = '\0';
    }
    a->status = (int)strtol(a->text + strlen("HTTP/1.1 "), NULL, 10);
    a->body = app_rig_head_end(a) + 4;
    return true;
}

/* A request and its answer, on a connection of its own. */
static inline int app_rig_ask(const struct app_rig *rig, const char *method, const char *path,
                              const char *body, struct app_answer *a)
{
    int fd = app_rig_connect(rig);

    app_rig_send(rig, fd, method, path, "", body);
    assert_true(app_rig_receive(fd, a));
    (void)close(fd);
    return a->status;
}

/* The text of a member of a JSON answer, whose texts have no escapes. */
static inline void app_rig_member(const char *json, const char *name, char *out, size_t size)
{
    char pattern[64];

    (void)snprintf(pattern, sizeof(pattern), "\"%s\":\"", name);
    const char *at = strstr(json, pattern);

    if (at == NULL) {
        fail_msg("no %s in %s", name, json);
        return;
    }
    at += strlen(pattern);
    (void)snprintf(out, size, "%.*s", (int)strcspn(at, "\""), at);
}

/* A path below the thread of the first house. */
static inline const char *app_rig_path(const struct app_rig *rig, const char *below)
{
    static char path[256];

    (void)snprintf(path, sizeof(path), "/api/threads/%s%s", rig->thread_id, below);
    return path;
}

/* ---------------------------------------------------------------------------- start and end */

static inline void app_rig_configure(struct app_rig *rig)
{
    const struct app_config config = {
        .data_dir = rig->dir,
        .public_url = "",
        .logger = &rig->logger,
        .tell_key = app_rig_told,
        .tell_context = rig,
        .director = rig->director,
        .thread_count = rig->thread_count,
    };

    struct errmsg msg = {{0}};

    rig->logger = (struct logger){.fd = rig->log_fd > 0 ? rig->log_fd : STDERR_FILENO,
                                  .level = LOGGER_ERROR};
    assert_int_equal(app_create(&config, &rig->app, &msg), 0);
    rig->mount = *app_mount(rig->app);
    rig->mount.stop = app_rig_stopped;
    rig->config = server_rig_config(rig->dir, &rig->mount);
    rig->config.worker_count = 2;
    rig->config.long_poll_timeout_ms = 3600000;
    rig->config.sse_lifetime_ms = 3600000;
    rig->config.sse_heartbeat_ms = 3600000;
    rig->config.checkpoint_interval_ms = 60000;
    rig->config.checkpoint_bytes = APP_RIG_SEGMENT;
    rig->config.wal_segment_bytes = APP_RIG_SEGMENT;
    rig->config.logger = rig->logger;
    rig->config.tunables.connection_count_max = 1024;
}

/* The first house and its primary thread. */
static inline void app_rig_find_house(struct app_rig *rig)
{
    struct app_answer *a = calloc(1, sizeof(*a));

    assert_non_null(a);
    assert_int_equal(app_rig_ask(rig, "GET", "/api/houses", "", a), 200);
    app_rig_member(a->body, "id", rig->house_id, sizeof(rig->house_id));
    app_rig_member(a->body, "primaryThreadId", rig->thread_id, sizeof(rig->thread_id));
    free(a);
}

static inline void app_rig_open(struct app_rig *rig)
{
    int ready[2];
    sigset_t set;

    /* The server's thread alone takes the signal that ends it. */
    (void)sigemptyset(&set);
    (void)sigaddset(&set, SIGTERM);
    (void)pthread_sigmask(SIG_BLOCK, &set, NULL);
    server_rig_make_dir(rig->dir, "app");
    app_rig_configure(rig);
    assert_int_equal(pipe(ready), 0);
    rig->ready = fdopen(ready[1], "w");
    assert_non_null(rig->ready);
    assert_int_equal(pthread_create(&rig->thread, NULL, app_rig_run, rig), 0);
    rig->port = server_rig_port(ready[0]);
    app_rig_meet();
    app_rig_find_house(rig);
}

/* Asks the server to end, and does not wait. */
static inline void app_rig_stop(struct app_rig *rig)
{
    app_rig_meet();
    assert_int_equal(pthread_kill(rig->thread, SIGTERM), 0);
}

/* Waits until it has ended. */
static inline void app_rig_join(struct app_rig *rig)
{
    assert_int_equal(pthread_join(rig->thread, NULL), 0);
    assert_int_equal(rig->code, 0);
    app_destroy(rig->app);
    rig->app = NULL;
    server_rig_remove_dir(rig->dir);
}

static inline void app_rig_close(struct app_rig *rig)
{
    app_rig_stop(rig);
    app_rig_join(rig);
}

#endif
