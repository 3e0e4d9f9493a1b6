/* The time is that of the clock itself, not of the loop's turn: who looks at single requests wants
 * to see what happened within a turn. */
#include "serve/access.h"

#include "http/request.h"
#include "serve/mount.h"
#include "stream/name.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <time.h>

static uint64_t now_us(void)
{
    struct timespec now;

    (void)clock_gettime(CLOCK_MONOTONIC, &now); /* cannot fail for this clock */
    return (uint64_t)now.tv_sec * 1000000 + (uint64_t)now.tv_nsec / 1000;
}

static void format_remote(const struct conn *c, char out[static 64])
{
    struct sockaddr_storage storage = {0};
    socklen_t len = sizeof(storage);
    char host[INET6_ADDRSTRLEN] = "";

    (void)snprintf(out, 64, "-");
    if (getpeername(c->watch.fd, (struct sockaddr *)&storage, &len) != 0) {
        return; /* it has gone again */
    }
    if (storage.ss_family == AF_INET) {
        const struct sockaddr_in *v4 = (const struct sockaddr_in *)&storage;

        if (inet_ntop(AF_INET, &v4->sin_addr, host, sizeof(host)) != NULL) {
            (void)snprintf(out, 64, "%s:%u", host, ntohs(v4->sin_port));
        }
    } else if (storage.ss_family == AF_INET6) {
        const struct sockaddr_in6 *v6 = (const struct sockaddr_in6 *)&storage;

        if (inet_ntop(AF_INET6, &v6->sin6_addr, host, sizeof(host)) != NULL) {
            (void)snprintf(out, 64, "[%s]:%u", host, ntohs(v6->sin6_port));
        }
    }
}

static char lower(char c)
{
    return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
}

/* The character that the path has at *at, decoded, in lower case; *at moves behind it. */
static char take_char(struct slice path, size_t *at)
{
    char c = path.ptr[*at];

    if (c != '%' || path.len - *at < 3 ||
        http_percent_decode((struct slice){path.ptr + *at, 3}, &c) != 1) {
        *at += 1;
        return lower(path.ptr[*at - 1]);
    }
    *at += 3;
    return lower(c);
}

static bool begins_with(struct slice path, size_t at, struct slice word)
{
    for (size_t i = 0; i < word.len; i++) {
        if (at == path.len || take_char(path, &at) != word.ptr[i]) {
            return false;
        }
    }
    return true;
}

/* The path as it may be told: cut behind the segment that a secret may follow. */
static struct slice visible(const struct exchange *x, struct slice path)
{
    const struct mount *mount = x->worker->server->config->mount;
    bool behind = false;

    if (mount == NULL || mount->secret_behind.len == 0 ||
        slice_starts_with(path, SLICE(NAME_ROOT))) {
        return path;
    }
    for (size_t at = 0; at < path.len;) {
        if (take_char(path, &at) != '/') {
            continue;
        }
        if (behind) {
            return (struct slice){path.ptr, at};
        }
        behind = begins_with(path, at, mount->secret_behind);
    }
    return path;
}

void access_begin(struct exchange *x)
{
    struct slice path = {"", 0};
    struct slice query;

    if (!logger_wants(&x->worker->server->config->logger, LOGGER_DEBUG)) {
        return;
    }
    struct access *a = malloc(sizeof(*a));

    if (a == NULL) {
        return;
    }
    a->begun_us = now_us();
    a->bytes = 0;
    format_remote(&x->session->conn, a->remote);
    if (x->head != NULL) {
        http_target_split(exchange_request(x)->target, &path, &query);
    }
    path = visible(x, path);
    a->path_len = path.len < sizeof(a->path) ? path.len : sizeof(a->path);
    memcpy(a->path, path.ptr, a->path_len);
    x->access = a;
}

void access_end(struct exchange *x)
{
    struct access *a = x->access;

    if (a == NULL) {
        return;
    }
    const struct logger_field fields[] = {
        {.key = "method", .text = slice_of(http_method_name(x->method))},
        {.key = "path", .text = {a->path, a->path_len}},
        {.key = "status", .number = (uint64_t)x->status},
        {.key = "bytes", .number = a->bytes},
        {.key = "duration_ms", .number = now_us() - a->begun_us, .decimals = 3},
        {.key = "remote", .text = slice_of(a->remote)},
    };

    logger_fields(&x->worker->server->config->logger, LOGGER_DEBUG,
                  x->status == 0 ? "request that was not answered" : "request", fields,
                  ARRAY_COUNT(fields));
    free(a);
    x->access = NULL;
}
