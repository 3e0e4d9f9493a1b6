/* A server for tests of the client: a socket on 127.0.0.1 and a thread that gives one prepared
 * answer after the other, whatever is asked and on whichever connection; the last one again and
 * again. It can break off in every way a connection can. What was asked is kept. */
#ifndef ARBE_TESTS_UNIT_CLIENT_SCRIPTED_H
#define ARBE_TESTS_UNIT_CLIENT_SCRIPTED_H

#include <arpa/inet.h>
#include <netinet/in.h>
#include <openssl/ssl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/buf.h"
#include "unit/base/unit.h"

#define SCRIPTED_CONNECTIONS 32
#define SCRIPTED_REQUESTS    256

/* What becomes of the connection once the answer is sent. */
enum scripted_end {
    SCRIPTED_KEEP,
    SCRIPTED_CLOSE,
    SCRIPTED_RESET, /* with what is unsent lost */
    SCRIPTED_HALF,  /* the server's direction ends; it goes on reading */
};

struct scripted_turn {
    const char *answer; /* raw bytes, head and body; NULL: none, which hangs with SCRIPTED_KEEP */
    enum scripted_end end;
    size_t len; /* 0: up to the NUL */
    /* Writes what goes before `answer`, from what was asked; NULL: nothing does. */
    void (*compose)(const char *request, char *out, size_t size);
};

struct scripted_connection {
    int fd; /* -1: free */
    SSL *tls;
    struct buf text; /* of the request that comes in */
};

struct scripted {
    const struct scripted_turn *turns;
    size_t turn_count;
    SSL_CTX *tls; /* NULL: plain HTTP */
    uint16_t port;
    char url[64]; /* base URL */

    pthread_mutex_t mutex; /* guards what follows */
    pthread_cond_t changed;
    unsigned accepted;                 /* connections */
    unsigned count;                    /* requests */
    char *requests[SCRIPTED_REQUESTS]; /* head and body, NUL-terminated */
    int latest;                        /* connection of the latest request */

    pthread_t thread;
    int fd;
    int stop;
    struct scripted_connection connections[SCRIPTED_CONNECTIONS]; /* the thread's */
};

static inline void scripted_put(int fd, SSL *tls, const char *bytes, size_t len)
{
    while (len > 0) {
        long n = tls != NULL ? SSL_write(tls, bytes, (int)len) : send(fd, bytes, len, MSG_NOSIGNAL);

        if (n <= 0) {
            return; /* the client has enough */
        }
        bytes += n;
        len -= (size_t)n;
    }
}

static inline void scripted_end_connection(struct scripted_connection *c, enum scripted_end end)
{
    struct linger none = {.l_onoff = 1};

    if (end == SCRIPTED_HALF) {
        (void)shutdown(c->fd, SHUT_WR);
        return;
    }
    if (end == SCRIPTED_RESET) {
        (void)setsockopt(c->fd, SOL_SOCKET, SO_LINGER, &none, sizeof(none));
    }
    SSL_free(c->tls);
    buf_finish(&c->text);
    (void)close(c->fd);
    *c = (struct scripted_connection){.fd = -1};
}

/* Where the first request in `text` ends; 0: not there yet. */
static inline size_t scripted_request_len(struct slice text)
{
    const char *end = text.len == 0 ? NULL : memmem(text.ptr, text.len, "\r\n\r\n", 4);
    const char *length = end == NULL ? NULL : memmem(text.ptr, text.len, "Content-Length: ", 16);
    size_t head = end == NULL ? 0 : (size_t)(end - text.ptr) + 4;
    size_t body = length == NULL || length > end ? 0 : strtoul(length + 16, NULL, 10);

    return end == NULL || text.len < head + body ? 0 : head + body;
}

/* Takes note of a request, and gives its answer. */
static inline void scripted_answer(struct scripted *s, struct scripted_connection *c, size_t len)
{
    (void)pthread_mutex_lock(&s->mutex);
    unsigned at = s->count;
    const struct scripted_turn *turn = &s->turns[at < s->turn_count ? at : s->turn_count - 1];

    if (at < SCRIPTED_REQUESTS) {
        s->requests[at] = strndup(c->text.ptr, len);
    }
    s->count++;
    s->latest = c->fd;
    (void)pthread_cond_broadcast(&s->changed);
    (void)pthread_mutex_unlock(&s->mutex);
    buf_consume(&c->text, len);
    if (turn->compose != NULL && at < SCRIPTED_REQUESTS) {
        char composed[4096];

        turn->compose(s->requests[at], composed, sizeof(composed));
        scripted_put(c->fd, c->tls, composed, strlen(composed));
    }
    if (turn->answer != NULL) {
        scripted_put(c->fd, c->tls, turn->answer, turn->len > 0 ? turn->len : strlen(turn->answer));
    }
    if (turn->end != SCRIPTED_KEEP) {
        scripted_end_connection(c, turn->end);
    }
}

static inline void scripted_read(struct scripted *s, struct scripted_connection *c)
{
    char *to = buf_reserve(&c->text, 65536);
    long n = to == NULL       ? -1
             : c->tls != NULL ? SSL_read(c->tls, to, 65536)
                              : read(c->fd, to, 65536);

    if (n <= 0) {
        scripted_end_connection(c, SCRIPTED_CLOSE);
        return;
    }
    buf_advance(&c->text, (size_t)n);
    for (size_t len; c->fd >= 0 && (len = scripted_request_len(buf_slice(&c->text))) > 0;) {
        scripted_answer(s, c, len);
    }
}

static inline void scripted_accept(struct scripted *s)
{
    int fd = accept4(s->fd, NULL, NULL, SOCK_CLOEXEC);
    struct scripted_connection *c = s->connections;

    if (fd < 0) {
        return;
    }
    (void)pthread_mutex_lock(&s->mutex);
    s->accepted++;
    (void)pthread_cond_broadcast(&s->changed);
    (void)pthread_mutex_unlock(&s->mutex);
    while (c->fd >= 0) {
        c++;
        assert_true(c < s->connections + SCRIPTED_CONNECTIONS);
    }
    c->fd = fd;
    buf_init(&c->text, 64 << 20);
    if (s->tls != NULL) {
        c->tls = SSL_new(s->tls);
        (void)SSL_set_fd(c->tls, fd);
        if (SSL_accept(c->tls) != 1) {
            scripted_end_connection(c, SCRIPTED_CLOSE);
        }
    }
}

static inline void *scripted_run(void *context)
{
    struct scripted *s = context;
    sigset_t broken_pipe;

    (void)sigemptyset(&broken_pipe); /* OpenSSL writes without MSG_NOSIGNAL */
    (void)sigaddset(&broken_pipe, SIGPIPE);
    (void)pthread_sigmask(SIG_BLOCK, &broken_pipe, NULL);
    for (;;) {
        struct pollfd polled[SCRIPTED_CONNECTIONS + 2];

        for (int i = 0; i < SCRIPTED_CONNECTIONS; i++) {
            polled[i] = (struct pollfd){.fd = s->connections[i].fd, .events = POLLIN};
        }
        polled[SCRIPTED_CONNECTIONS] = (struct pollfd){.fd = s->fd, .events = POLLIN};
        polled[SCRIPTED_CONNECTIONS + 1] = (struct pollfd){.fd = s->stop, .events = POLLIN};
        if (poll(polled, SCRIPTED_CONNECTIONS + 2, -1) < 0 ||
            polled[SCRIPTED_CONNECTIONS + 1].revents != 0) {
            return NULL;
        }
        for (int i = 0; i < SCRIPTED_CONNECTIONS; i++) {
            if (polled[i].revents != 0) {
                scripted_read(s, &s->connections[i]);
            }
        }
        if (polled[SCRIPTED_CONNECTIONS].revents != 0) {
            scripted_accept(s);
        }
    }
}

/* Starts it; the turns are borrowed. `port` 0: any that is free; else one that another server of
 * the test has given up. */
static inline void scripted_init_at(struct scripted *s, const struct scripted_turn *turns,
                                    size_t turn_count, SSL_CTX *tls, uint16_t port)
{
    struct sockaddr_in address = {
        .sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}, .sin_port = htons(port)};
    socklen_t len = sizeof(address);
    int reuse = 1;

    *s = (struct scripted){.turns = turns, .turn_count = turn_count, .tls = tls};
    for (int i = 0; i < SCRIPTED_CONNECTIONS; i++) {
        s->connections[i].fd = -1;
    }
    (void)pthread_mutex_init(&s->mutex, NULL);
    (void)pthread_cond_init(&s->changed, NULL);
    s->stop = eventfd(0, EFD_CLOEXEC);
    s->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    (void)setsockopt(s->fd, SOL_SOCKET, SO_REUSEADDR, &reuse, sizeof(reuse));
    assert_int_equal(bind(s->fd, (const struct sockaddr *)&address, len), 0);
    assert_int_equal(listen(s->fd, 128), 0);
    assert_int_equal(getsockname(s->fd, (struct sockaddr *)&address, &len), 0);
    s->port = ntohs(address.sin_port);
    (void)snprintf(s->url, sizeof(s->url), "%s://127.0.0.1:%u/v1/stream/",
                   tls != NULL ? "https" : "http", s->port);
    assert_int_equal(pthread_create(&s->thread, NULL, scripted_run, s), 0);
}

static inline void scripted_init(struct scripted *s, const struct scripted_turn *turns,
                                 size_t turn_count, SSL_CTX *tls)
{
    scripted_init_at(s, turns, turn_count, tls, 0);
}

static inline void scripted_finish(struct scripted *s)
{
    assert_int_equal(eventfd_write(s->stop, 1), 0);
    (void)pthread_join(s->thread, NULL);
    for (int i = 0; i < SCRIPTED_CONNECTIONS; i++) {
        if (s->connections[i].fd >= 0) {
            scripted_end_connection(&s->connections[i], SCRIPTED_CLOSE);
        }
    }
    for (unsigned i = 0; i < s->count && i < SCRIPTED_REQUESTS; i++) {
        free(s->requests[i]);
    }
    (void)close(s->fd);
    (void)close(s->stop);
    (void)pthread_cond_destroy(&s->changed);
    (void)pthread_mutex_destroy(&s->mutex);
}

/* Waits until so many requests have come in all. */
static inline void scripted_await(struct scripted *s, unsigned count)
{
    (void)pthread_mutex_lock(&s->mutex);
    while (s->count < count) {
        (void)pthread_cond_wait(&s->changed, &s->mutex);
    }
    (void)pthread_mutex_unlock(&s->mutex);
}

/* How many requests have come. */
static inline unsigned scripted_count(struct scripted *s)
{
    (void)pthread_mutex_lock(&s->mutex);
    unsigned count = s->count;

    (void)pthread_mutex_unlock(&s->mutex);
    return count;
}

/* Whether the request at `index`, which has come, holds `text`. */
static inline bool scripted_asked(struct scripted *s, unsigned index, const char *text)
{
    (void)pthread_mutex_lock(&s->mutex);
    assert_true(index < s->count);
    bool found = strstr(s->requests[index], text) != NULL;

    (void)pthread_mutex_unlock(&s->mutex);
    return found;
}

/* Sends more on the connection of the latest request, from the thread of the test. Plain only. */
static inline void scripted_send(struct scripted *s, const char *text)
{
    (void)pthread_mutex_lock(&s->mutex);
    int fd = s->latest;

    (void)pthread_mutex_unlock(&s->mutex);
    scripted_put(fd, NULL, text, strlen(text));
}

#endif
