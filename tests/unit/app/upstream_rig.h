/* A server in a child process whose one mount reads from another server, and that other server,
 * which is the test itself: it accepts, reads and writes by hand, so that a script is a few lines
 * in order. Nothing waits for ever: each read has a limit that only a hang meets. */
#ifndef ARBE_TESTS_UNIT_APP_UPSTREAM_RIG_H
#define ARBE_TESTS_UNIT_APP_UPSTREAM_RIG_H

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include "app/upstream.h"
#include "base/buf.h"
#include "serve/mount.h"
#include "serve/reply.h"
#include "unit/app/server_rig.h"

#define RIG_SECRET "hush-hush-0123456789"

struct rig {
    int listener; /* the other server's */
    uint16_t other_port;
    uint16_t port;
    pid_t server;
    char dir[SERVER_RIG_DIR_BYTES];
    struct upstream_bounds bounds;
    struct upstream *upstream; /* the child's */
    FILE *log;                 /* what the server logs */
};

/* ------------------------------------------------------------------------------------ the child */

static inline bool rig_takes(void *context, struct slice path)
{
    (void)context;
    return slice_starts_with(path, SLICE("/api/"));
}

static inline void rig_refuse(struct exchange *x, enum api_code code, const char *sentence)
{
    struct api_error error;
    char memory[1024];
    struct buf document;

    buf_init_fixed(&document, memory, sizeof(memory));
    (void)api_error_set(&error, code, "%s", sentence);
    api_error_format(&document, &error);
    reply_begin(x, api_error_status(code), REPLY_NO_STORE);
    reply_send(x, buf_slice(&document));
}

/* /api/NAME is read from the other server; POST to anything ends all reads that can be ended. */
static inline void rig_begin(struct exchange *x, struct slice path, struct slice query)
{
    struct rig *rig = x->mount->context;
    struct worker *w = x->worker;

    if (x->method != HTTP_POST) {
        upstream_read(rig->upstream, x, (struct slice){path.ptr + 5, path.len - 5}, query);
        return;
    }
    reply_begin(x, 204, REPLY_NO_STORE);
    reply_send_bare(x);
    LIST_FOR_EACH(node, &w->sessions)
    {
        session_end_read(container_of(node, struct session, link));
    }
}

static inline int rig_mount_open(void *context, struct server *server, struct errmsg *msg)
{
    struct rig *rig = context;
    char url[64];
    const struct upstream_config config = {
        .url = url,
        .secret = SLICE(RIG_SECRET),
        .logger = &server->config->logger,
        .refuse = rig_refuse,
        .bounds = rig->bounds,
    };

    (void)snprintf(url, sizeof(url), "http://127.0.0.1:%u/streams", rig->other_port);
    return upstream_open(&config, &rig->upstream, msg);
}

static inline void rig_mount_stop(void *context)
{
    (void)context;
}

static inline void rig_mount_close(void *context)
{
    struct rig *rig = context;

    upstream_close(rig->upstream);
}

static inline void rig_leave(struct exchange *x)
{
    (void)x;
}

static inline void rig_problem(struct buf *out, int status, bool stopping, struct slice detail)
{
    (void)status;
    (void)stopping;
    buf_append(out, detail);
}

static inline void rig_serve(struct rig *rig, int ready_fd, int log_fd)
{
    const struct mount mount = {
        .context = rig,
        .program = "rig",
        .open = rig_mount_open,
        .stop = rig_mount_stop,
        .close = rig_mount_close,
        .takes = rig_takes,
        .begin = rig_begin,
        .leave = rig_leave,
        .format_problem = rig_problem,
    };
    struct serve_config config = server_rig_config(rig->dir, &mount);

    config.logger = (struct logger){.fd = log_fd, .level = LOGGER_INFO};
    int code = server_rig_run(&config, fdopen(ready_fd, "w"));

    exit(code == 0 ? 0 : 1); /* not _exit: leaks are looked for */
}

/* ----------------------------------------------------------------------------------- the parent */

static inline void rig_listen(struct rig *rig)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof(address);

    rig->listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(rig->listener, (struct sockaddr *)&address, len), 0);
    assert_int_equal(listen(rig->listener, 64), 0);
    assert_int_equal(getsockname(rig->listener, (struct sockaddr *)&address, &len), 0);
    rig->other_port = ntohs(address.sin_port);
}

/* `bounds` NULL: those that only a hang meets. */
static inline void rig_open(struct rig *rig, const struct upstream_bounds *bounds)
{
    const struct upstream_bounds patient = {.head_ms = SERVER_RIG_HANG_S * 1000,
                                            .drain_ms = SERVER_RIG_HANG_S * 1000};
    int ready[2];
    int log[2];

    *rig = (struct rig){.listener = -1};
    rig->bounds = bounds != NULL ? *bounds : patient;
    rig_listen(rig);
    server_rig_make_dir(rig->dir, "upstream");
    assert_int_equal(pipe(ready), 0);
    assert_int_equal(pipe(log), 0);
    rig->server = fork();
    assert_true(rig->server >= 0);
    if (rig->server == 0) {
        (void)prctl(PR_SET_PDEATHSIG, SIGKILL); /* a test that is killed leaves nothing behind */
        (void)close(ready[0]);
        (void)close(log[0]);
        (void)close(rig->listener);
        rig_serve(rig, ready[1], log[1]);
    }
    (void)close(ready[1]);
    (void)close(log[1]);
    rig->log = fdopen(log[0], "r");
    rig->port = server_rig_port(ready[0]);
}

/* Waits for the server's end, which must be a clean one. */
static inline void rig_wait(struct rig *rig)
{
    int status = 0;

    assert_int_equal(waitpid(rig->server, &status, 0), rig->server);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
    (void)fclose(rig->log);
    if (rig->listener >= 0) {
        (void)close(rig->listener);
    }
    server_rig_remove_dir(rig->dir);
}

static inline void rig_close(struct rig *rig)
{
    assert_int_equal(kill(rig->server, SIGTERM), 0);
    rig_wait(rig);
}

/* A line of the log that has `text` in it comes next but for those that have not. */
static inline void rig_expect_log(struct rig *rig, const char *text)
{
    char line[1024];

    do {
        assert_non_null(fgets(line, sizeof(line), rig->log));
        assert_null(strstr(line, RIG_SECRET));
    } while (strstr(line, text) == NULL);
}

static inline void say(int fd, const char *text)
{
    assert_int_equal(send(fd, text, strlen(text), MSG_NOSIGNAL), (ssize_t)strlen(text));
}

/* A client's connection, with a small window when it is to be slow. */
static inline int rig_connect(const struct rig *rig, bool slow)
{
    return server_rig_connect(rig->port, slow ? 32 * 1024 : 0);
}

/* A client that has sent `request`. */
static inline int rig_ask(const struct rig *rig, const char *request)
{
    int fd = rig_connect(rig, false);

    say(fd, request);
    return fd;
}

/* Reads a head from a connection, byte by byte, so that nothing more is taken; NUL-terminated. */
static inline void read_head(int fd, char *out, size_t size)
{
    size_t len = 0;

    do {
        assert_true(len + 1 < size);
        if (recv(fd, out + len, 1, 0) != 1) {
            out[len] = '\0';
            fail_msg("the connection ended within a head: %s", out);
        }
        out[++len] = '\0';
    } while (len < 4 || memcmp(out + len - 4, "\r\n\r\n", 4) != 0);
}

/* The other server's next connection. */
static inline int rig_accept(const struct rig *rig)
{
    int fd = accept4(rig->listener, NULL, NULL, SOCK_CLOEXEC);

    assert_true(fd >= 0);
    server_rig_limit(fd);
    return fd;
}

/* The same, and the request that comes on it. */
static inline int rig_take(const struct rig *rig, char *request, size_t size)
{
    int fd = rig_accept(rig);

    read_head(fd, request, size);
    return fd;
}

/* The next bytes are those. */
static inline void expect(int fd, const char *text)
{
    size_t len = strlen(text);
    char *got = calloc(1, len + 1);
    ssize_t count = len == 0 ? 0 : recv(fd, got, len, MSG_WAITALL);

    got[count < 0 ? 0 : count] = '\0';
    assert_string_equal(got, text);
    free(got);
}

/* The connection ends, having sent nothing more. Whether by a reset is no matter. */
static inline void expect_end(int fd)
{
    char byte = 0;
    ssize_t count = recv(fd, &byte, 1, 0);

    if (count > 0 || (count < 0 && errno != ECONNRESET)) {
        fail_msg("no end but %zd, '%c', errno %d", count, byte, errno);
    }
    (void)close(fd);
}

static inline void reset(int fd)
{
    const struct linger none = {.l_onoff = 1};

    assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_LINGER, &none, sizeof(none)), 0);
    (void)close(fd);
}

#endif
