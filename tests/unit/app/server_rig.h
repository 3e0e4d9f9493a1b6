/* What rigs that run a server share: its directory, how it is set, where it listens. */
#ifndef ARBE_TESTS_UNIT_APP_SERVER_RIG_H
#define ARBE_TESTS_UNIT_APP_SERVER_RIG_H

#include <arpa/inet.h>
#include <ftw.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "serve/server.h"
#include "unit/base/unit.h"

#define SERVER_RIG_DIR_BYTES 64
#define SERVER_RIG_HANG_S    60

/* Makes a directory; `name` is to be seen in a listing. */
static inline void server_rig_make_dir(char dir[static SERVER_RIG_DIR_BYTES], const char *name)
{
    (void)snprintf(dir, SERVER_RIG_DIR_BYTES, "/tmp/arbe-%s-XXXXXX", name);
    assert_non_null(mkdtemp(dir));
}

static inline int server_rig_remove(const char *path, const struct stat *st, int kind,
                                    struct FTW *ftw)
{
    (void)st;
    (void)kind;
    (void)ftw;
    return remove(path);
}

static inline void server_rig_remove_dir(const char *dir)
{
    assert_int_equal(nftw(dir, server_rig_remove, 8, FTW_DEPTH | FTW_PHYS), 0);
}

/* A server of few resources on a port of its own. `dir` and `mount` must outlive it. */
static inline struct serve_config server_rig_config(const char *dir, const struct mount *mount)
{
    return (struct serve_config){
        .listen = "127.0.0.1:0",
        .data_dir = dir,
        .durability = DURABILITY_OS,
        .worker_count = 1,
        .public_url = "",
        .cors_origin = "*",
        .long_poll_timeout_ms = 1000,
        .sse_lifetime_ms = 1000,
        .sse_heartbeat_ms = 200,
        .checkpoint_interval_ms = 1000,
        .checkpoint_bytes = MIB,
        .wal_segment_bytes = MIB,
        .body_bytes_max = MIB,
        .read_page_bytes = 64 * KIB,
        .mount = mount,
        .tunables = {.connection_count_max = 256},
    };
}

/* Runs it to its end; says why on stderr if that is a bad one. Closes `ready`. */
static inline int server_rig_run(const struct serve_config *config, FILE *ready)
{
    struct errmsg msg = {{0}};
    int code = server_run(config, ready, &msg);

    if (code != 0) {
        (void)fprintf(stderr, "the server ended: %s\n", msg.text);
    }
    (void)fclose(ready);
    return code;
}

/* Waits until it tells its port through the pipe, whose end it closes. */
static inline uint16_t server_rig_port(int ready_fd)
{
    const char *before = "listening on http://127.0.0.1:";
    FILE *in = fdopen(ready_fd, "r");
    uint16_t port = 0;
    char line[256];

    assert_non_null(in);
    while (port == 0 && fgets(line, sizeof(line), in) != NULL) {
        const char *url = strstr(line, before);

        port = url == NULL ? 0 : (uint16_t)strtoul(url + strlen(before), NULL, 10);
    }
    (void)fclose(in);
    assert_true(port > 0);
    return port;
}

/* Nothing waits for ever: a read or write has a limit that only a hang meets. */
static inline void server_rig_limit(int fd)
{
    const struct timeval hang = {.tv_sec = SERVER_RIG_HANG_S};

    assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &hang, sizeof(hang)), 0);
    assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &hang, sizeof(hang)), 0);
}

/* A connection to a port, with a small window (in bytes) when it is to be slow; 0: as usual. */
static inline int server_rig_connect(uint16_t port, int window)
{
    struct sockaddr_in to = {
        .sin_family = AF_INET, .sin_port = htons(port), .sin_addr = {htonl(INADDR_LOOPBACK)}};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    assert_true(fd >= 0);
    server_rig_limit(fd);
    if (window > 0) {
        assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &window, sizeof(window)), 0);
    }
    assert_int_equal(connect(fd, (struct sockaddr *)&to, sizeof(to)), 0);
    return fd;
}

#endif
