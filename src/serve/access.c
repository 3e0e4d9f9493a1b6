/* The time is that of the clock itself, not of the loop's turn: who looks at single requests wants
 * to see what happened within a turn. */
#include "serve/access.h"

#include "serve/mount.h"

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

/* The path as it may be told. */
static struct slice visible(const struct exchange *x, struct slice path)
{
    struct slice behind = x->mount == NULL ? (struct slice){NULL, 0} : x->mount->secret_behind;

    return behind.len > 0 && slice_starts_with(path, behind) ? behind : path;
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
