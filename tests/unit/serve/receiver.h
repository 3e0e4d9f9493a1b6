/* A webhook receiver for tests: a socket on 127.0.0.1 and a thread that answers each request with
 * the same bytes, or never. One connection at a time unless it hangs: then they are all kept. */
#ifndef ARBE_TESTS_UNIT_SERVE_RECEIVER_H
#define ARBE_TESTS_UNIT_SERVE_RECEIVER_H

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <openssl/ssl.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/buf.h"
#include "unit/base/unit.h"

#define RECEIVER_HELD_MAX 64

struct receiver {
    struct slice answer; /* raw bytes, head and body; ptr NULL: it hangs */
    SSL_CTX *tls;        /* NULL: plain HTTP */
    uint16_t port;

    pthread_mutex_t mutex; /* guards what follows */
    pthread_cond_t changed;
    unsigned accepted; /* connections */
    unsigned requests; /* complete ones */
    struct buf last;   /* the latest request, head and body */

    /* the thread's */
    pthread_t thread;
    int fd;
    int stop;
    int held[RECEIVER_HELD_MAX];
    unsigned held_count;
};

/* A connection, plain or not. */
struct receiver_peer {
    int fd;
    SSL *tls;
};

static inline long receiver_get(struct receiver_peer *peer, char *bytes, size_t size)
{
    if (peer->tls != NULL) {
        return SSL_read(peer->tls, bytes, (int)size);
    }
    return read(peer->fd, bytes, size);
}

static inline void receiver_put(struct receiver_peer *peer, struct slice bytes)
{
    while (bytes.len > 0) {
        long n = peer->tls != NULL ? SSL_write(peer->tls, bytes.ptr, (int)bytes.len)
                                   : send(peer->fd, bytes.ptr, bytes.len, MSG_NOSIGNAL);

        if (n <= 0) {
            return; /* the sender has enough */
        }
        bytes = (struct slice){bytes.ptr + n, bytes.len - (size_t)n};
    }
}

/* Where the body of a request ends, 0 when its head has not come. */
static inline size_t receiver_request_len(struct slice text)
{
    const char *end = text.len == 0 ? NULL : memmem(text.ptr, text.len, "\r\n\r\n", 4);
    const char *length = end == NULL ? NULL : memmem(text.ptr, text.len, "Content-Length: ", 16);

    if (length == NULL) {
        return 0;
    }
    return (size_t)(end - text.ptr) + 4 + strtoul(length + 16, NULL, 10);
}

/* Reads a whole request into `text`; false when the connection ends first, or the test. */
static inline bool receiver_read(struct receiver *r, struct receiver_peer *peer, struct buf *text)
{
    for (;;) {
        struct pollfd polled[2] = {{.fd = peer->fd, .events = POLLIN},
                                   {.fd = r->stop, .events = POLLIN}};
        size_t len = receiver_request_len(buf_slice(text));

        if (len > 0 && text->len >= len) {
            return true;
        }
        bool pending = peer->tls != NULL && SSL_pending(peer->tls) > 0;

        if (!pending && (poll(polled, 2, -1) < 0 || polled[1].revents != 0)) {
            return false;
        }
        char *to = buf_reserve(text, 4096);
        long n = to == NULL ? -1 : receiver_get(peer, to, 4096);

        if (n <= 0) {
            return false;
        }
        buf_advance(text, (size_t)n);
    }
}

static inline void receiver_serve(struct receiver *r, int fd)
{
    struct receiver_peer peer = {.fd = fd};
    struct buf text;

    buf_init(&text, 16 << 20);
    if (r->tls != NULL) {
        peer.tls = SSL_new(r->tls);
        (void)SSL_set_fd(peer.tls, fd);
    }
    if (peer.tls == NULL || SSL_accept(peer.tls) == 1) {
        while (receiver_read(r, &peer, &text)) {
            (void)pthread_mutex_lock(&r->mutex);
            r->requests++;
            buf_clear(&r->last);
            buf_append(&r->last, buf_slice(&text));
            (void)pthread_cond_broadcast(&r->changed);
            (void)pthread_mutex_unlock(&r->mutex);
            buf_clear(&text);
            receiver_put(&peer, r->answer);
            if (memmem(r->answer.ptr, r->answer.len, "Connection: close", 17) != NULL) {
                break;
            }
        }
    }
    SSL_free(peer.tls);
    buf_finish(&text);
    (void)close(fd);
}

static inline void *receiver_run(void *context)
{
    struct receiver *r = context;

    for (;;) {
        struct pollfd polled[2] = {{.fd = r->fd, .events = POLLIN},
                                   {.fd = r->stop, .events = POLLIN}};

        if (poll(polled, 2, -1) < 0 || polled[1].revents != 0) {
            return NULL;
        }
        int fd = accept4(r->fd, NULL, NULL, SOCK_CLOEXEC);

        if (fd < 0) {
            continue;
        }
        (void)pthread_mutex_lock(&r->mutex);
        r->accepted++;
        (void)pthread_cond_broadcast(&r->changed);
        (void)pthread_mutex_unlock(&r->mutex);
        if (r->answer.ptr == NULL && r->held_count < RECEIVER_HELD_MAX) {
            r->held[r->held_count++] = fd;
        } else {
            receiver_serve(r, fd);
        }
    }
}

static inline void receiver_init(struct receiver *r, struct slice answer, SSL_CTX *tls)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
    socklen_t len = sizeof(address);

    *r = (struct receiver){.answer = answer, .tls = tls};
    buf_init(&r->last, 16 << 20);
    (void)pthread_mutex_init(&r->mutex, NULL);
    (void)pthread_cond_init(&r->changed, NULL);
    r->stop = eventfd(0, EFD_CLOEXEC);
    r->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(r->fd, (const struct sockaddr *)&address, len), 0);
    assert_int_equal(listen(r->fd, 128), 0);
    assert_int_equal(getsockname(r->fd, (struct sockaddr *)&address, &len), 0);
    r->port = ntohs(address.sin_port);
    assert_int_equal(pthread_create(&r->thread, NULL, receiver_run, r), 0);
}

static inline void receiver_finish(struct receiver *r)
{
    assert_int_equal(eventfd_write(r->stop, 1), 0);
    (void)pthread_join(r->thread, NULL);
    for (unsigned i = 0; i < r->held_count; i++) {
        (void)close(r->held[i]);
    }
    (void)close(r->fd);
    (void)close(r->stop);
    buf_finish(&r->last);
    (void)pthread_cond_destroy(&r->changed);
    (void)pthread_mutex_destroy(&r->mutex);
}

/* Waits until that many connections have come. */
static inline void receiver_await(struct receiver *r, unsigned accepted)
{
    (void)pthread_mutex_lock(&r->mutex);
    while (r->accepted < accepted) {
        (void)pthread_cond_wait(&r->changed, &r->mutex);
    }
    (void)pthread_mutex_unlock(&r->mutex);
}

#endif
