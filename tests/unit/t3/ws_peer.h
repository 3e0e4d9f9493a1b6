/* A WebSocket server for tests, byte by byte: the test thread is the server, and says what it likes
 * when it likes. Calls block until the client has done its part, and assert. */
#ifndef ARBE_TESTS_UNIT_T3_WS_PEER_H
#define ARBE_TESTS_UNIT_T3_WS_PEER_H

#include <arpa/inet.h>
#include <netinet/in.h>
#include <openssl/evp.h>
#include <openssl/ssl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/buf.h"
#include "unit/base/unit.h"

struct ws_peer {
    int listening;
    uint16_t port;
    SSL_CTX *tls;     /* NULL: plain; borrowed */
    int fd;           /* of the connection; -1: none */
    SSL *ssl;         /* NULL: plain */
    char head[8192];  /* of the client's request, with a NUL */
    char accept[64];  /* the right answer to its key */
    unsigned char op; /* of the last frame that was read */
    struct buf frame; /* its payload, unmasked, with a NUL behind it */
};

static inline void ws_peer_init(struct ws_peer *p, SSL_CTX *tls)
{
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
    socklen_t len = sizeof(a);

    *p = (struct ws_peer){.tls = tls, .fd = -1};
    buf_init(&p->frame, 64 << 20);
    p->listening = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(p->listening, (const struct sockaddr *)&a, len), 0);
    assert_int_equal(listen(p->listening, 8), 0);
    assert_int_equal(getsockname(p->listening, (struct sockaddr *)&a, &len), 0);
    p->port = ntohs(a.sin_port);
}

/* The same on ::1; false on a machine that has none. */
static inline bool ws_peer_init_v6(struct ws_peer *p, SSL_CTX *tls)
{
    struct sockaddr_in6 a = {.sin6_family = AF_INET6, .sin6_addr = in6addr_loopback};
    socklen_t len = sizeof(a);

    *p = (struct ws_peer){.tls = tls, .fd = -1};
    buf_init(&p->frame, 64 << 20);
    p->listening = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (p->listening < 0 || bind(p->listening, (const struct sockaddr *)&a, len) != 0) {
        return false;
    }
    assert_int_equal(listen(p->listening, 8), 0);
    assert_int_equal(getsockname(p->listening, (struct sockaddr *)&a, &len), 0);
    p->port = ntohs(a.sin6_port);
    return true;
}

/* Ends the connection, if there is one. */
static inline void ws_peer_drop(struct ws_peer *p)
{
    SSL_free(p->ssl);
    p->ssl = NULL;
    if (p->fd >= 0) {
        (void)close(p->fd);
    }
    p->fd = -1;
}

/* The same with a reset. */
static inline void ws_peer_reset(struct ws_peer *p)
{
    struct linger hard = {.l_onoff = 1};

    assert_int_equal(setsockopt(p->fd, SOL_SOCKET, SO_LINGER, &hard, sizeof(hard)), 0);
    ws_peer_drop(p);
}

static inline void ws_peer_finish(struct ws_peer *p)
{
    ws_peer_drop(p);
    if (p->listening >= 0) {
        (void)close(p->listening);
    }
    buf_finish(&p->frame);
}

static inline const char *ws_peer_url(const struct ws_peer *p, char text[static 64])
{
    (void)snprintf(text, 64, "%s://127.0.0.1:%u", p->tls != NULL ? "wss" : "ws", p->port);
    return text;
}

/* Sends what it can: false when the client has gone. */
static inline bool ws_peer_try(struct ws_peer *p, const void *bytes, size_t len)
{
    const char *at = bytes;

    while (len > 0) {
        long n = p->ssl != NULL ? SSL_write(p->ssl, at, (int)(len < (1 << 20) ? len : 1 << 20))
                                : send(p->fd, at, len, MSG_NOSIGNAL);

        if (n <= 0) {
            return false;
        }
        at += n;
        len -= (size_t)n;
    }
    return true;
}

static inline void ws_peer_put(struct ws_peer *p, const void *bytes, size_t len)
{
    assert_true(ws_peer_try(p, bytes, len));
}

static inline void ws_peer_say(struct ws_peer *p, const char *text)
{
    ws_peer_put(p, text, strlen(text));
}

/* Exactly so many bytes; false at the end of the connection. */
static inline bool ws_peer_get(struct ws_peer *p, void *bytes, size_t len)
{
    char *at = bytes;

    while (len > 0) {
        long n = p->ssl != NULL ? SSL_read(p->ssl, at, (int)len) : recv(p->fd, at, len, 0);

        if (n <= 0) {
            return false;
        }
        at += n;
        len -= (size_t)n;
    }
    return true;
}

/* Takes a connection, without a word. False when TLS failed. */
static inline bool ws_peer_take(struct ws_peer *p)
{
    p->fd = accept4(p->listening, NULL, NULL, SOCK_CLOEXEC);
    assert_true(p->fd >= 0);
    if (p->tls == NULL) {
        return true;
    }
    p->ssl = SSL_new(p->tls);
    assert_non_null(p->ssl);
    assert_int_equal(SSL_set_fd(p->ssl, p->fd), 1);
    return SSL_accept(p->ssl) == 1;
}

static inline void ws_peer_answer_key(struct ws_peer *p)
{
    static const char name[] = "Sec-WebSocket-Key: ";
    char text[128];
    unsigned char hash[EVP_MAX_MD_SIZE];
    unsigned len = 0;
    const char *key = strcasestr(p->head, name);

    assert_non_null(key);
    (void)snprintf(text, sizeof(text), "%.24s258EAFA5-E914-47DA-95CA-C5AB0DC85B11",
                   key + strlen(name));
    assert_int_equal(EVP_Digest(text, strlen(text), hash, &len, EVP_sha1(), NULL), 1);
    (void)EVP_EncodeBlock((unsigned char *)p->accept, hash, (int)len);
}

/* Takes a connection and the request on it. */
static inline void ws_peer_request(struct ws_peer *p)
{
    size_t len = 0;

    assert_true(ws_peer_take(p));
    do {
        assert_true(len + 1 < sizeof(p->head));
        assert_true(ws_peer_get(p, p->head + len, 1));
        p->head[++len] = '\0';
    } while (len < 4 || memcmp(p->head + len - 4, "\r\n\r\n", 4) != 0);
    ws_peer_answer_key(p);
}

/* The head of a good answer, and `more` header lines in it. */
static inline void ws_peer_upgrade(struct ws_peer *p, const char *more)
{
    char text[512];

    (void)snprintf(text, sizeof(text),
                   "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\n"
                   "Connection: Upgrade\r\n%sSec-WebSocket-Accept: %s\r\n\r\n",
                   more, p->accept);
    ws_peer_say(p, text);
}

static inline void ws_peer_open(struct ws_peer *p)
{
    ws_peer_request(p);
    ws_peer_upgrade(p, "");
}

/* A frame with that first byte: FIN is 0x80, text 1, binary 2, close 8, ping 9. */
static inline void ws_peer_frame(struct ws_peer *p, unsigned char first, const void *bytes,
                                 size_t len)
{
    unsigned char head[10] = {first};
    size_t head_len = len < 126 ? 2 : len < 65536 ? 4 : 10;

    head[1] = len < 126 ? (unsigned char)len : len < 65536 ? 126 : 127;
    for (size_t i = 2; i < head_len; i++) {
        head[i] = (unsigned char)((uint64_t)len >> (8 * (head_len - 1 - i)));
    }
    (void)ws_peer_try(p, head, head_len); /* a client that has gone shows in what is awaited */
    (void)ws_peer_try(p, bytes, len);
}

static inline void ws_peer_text(struct ws_peer *p, const char *text)
{
    ws_peer_frame(p, 0x81, text, strlen(text));
}

/* The next frame of the client, which must be masked: false when the connection ends. */
static inline bool ws_peer_read(struct ws_peer *p)
{
    unsigned char head[2];
    unsigned char more[8] = {0};
    unsigned char mask[4];

    if (!ws_peer_get(p, head, 2)) {
        return false;
    }
    assert_true((head[1] & 0x80) != 0);
    assert_int_equal(head[0] & 0x70, 0);
    uint64_t len = head[1] & 0x7f;
    size_t count = len == 126 ? 2 : len == 127 ? 8 : 0;

    if (count > 0) {
        len = 0;
        assert_true(ws_peer_get(p, more, count));
        for (size_t i = 0; i < count; i++) {
            len = len << 8 | more[i];
        }
    }
    assert_true(ws_peer_get(p, mask, 4));
    p->op = head[0] & 0x0f;
    buf_clear(&p->frame);
    char *to = buf_reserve(&p->frame, (size_t)len + 1);

    assert_non_null(to);
    assert_true(ws_peer_get(p, to, (size_t)len));
    for (uint64_t i = 0; i < len; i++) {
        to[i] = (char)(to[i] ^ mask[i & 3]);
    }
    to[len] = '\0';
    buf_advance(&p->frame, (size_t)len);
    return true;
}

/* The client's next message must be this. */
static inline void ws_peer_expect(struct ws_peer *p, const char *text)
{
    assert_true(ws_peer_read(p));
    assert_int_equal(p->op, 1);
    assert_string_equal(p->frame.ptr, text);
}

/* The client must close, with that code, or end the connection without one where it is 0. */
static inline void ws_peer_expect_close(struct ws_peer *p, unsigned code)
{
    bool more = ws_peer_read(p);

    if (code == 0) {
        assert_false(more);
        return;
    }
    assert_true(more);
    assert_int_equal(p->op, 8);
    assert_true(p->frame.len >= 2);
    assert_int_equal((unsigned char)p->frame.ptr[0] << 8 | (unsigned char)p->frame.ptr[1], code);
}

#endif
