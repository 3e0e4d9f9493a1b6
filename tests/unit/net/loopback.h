/* Connected TCP sockets over loopback for tests; all calls assert on failure. */
#ifndef ARBE_TESTS_UNIT_NET_LOOPBACK_H
#define ARBE_TESTS_UNIT_NET_LOOPBACK_H

#include "unit/base/unit.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

/* A blocking socket connected to `port` of 127.0.0.1. */
static inline int loopback_connect(uint16_t port)
{
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_port = htons(port)};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    assert_true(fd >= 0);
    a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    assert_int_equal(connect(fd, (const struct sockaddr *)&a, sizeof(a)), 0);
    return fd;
}

/* Two ends: the first non-blocking, the second blocking. */
static inline void loopback_pair(int *ret_server, int *ret_client)
{
    struct sockaddr_in a = {.sin_family = AF_INET};
    socklen_t len = sizeof(a);
    int listening = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    assert_int_equal(bind(listening, (const struct sockaddr *)&a, sizeof(a)), 0);
    assert_int_equal(listen(listening, 1), 0);
    assert_int_equal(getsockname(listening, (struct sockaddr *)&a, &len), 0);
    *ret_client = loopback_connect(ntohs(a.sin_port));
    *ret_server = accept4(listening, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
    assert_true(*ret_server >= 0);
    assert_int_equal(close(listening), 0);
}

#endif
