/* A worker without an engine, and a connection to it with a request at work, for the handlers of
 * live readers. A test includes it behind the .c it tests and serve/work.c. */
#ifndef ARBE_TESTS_UNIT_SERVE_LIVE_RIG_H
#define ARBE_TESTS_UNIT_SERVE_LIVE_RIG_H

#include "serve/exchange.h"

#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "unit/base/unit.h"

static struct serve_config config;
static struct server server = {.config = &config, .conn = {.input_bytes_max = 64 * KIB}};
static struct worker worker = {.server = &server, .date_second = -1};

static int begin(void **state)
{
    const struct serve_tunables tunables = {.connection_count_max = 10};

    (void)state;
    assert_int_equal(tunables_set(&server.tunables, &tunables), 0);
    assert_int_equal(loop_create(&worker.loop), 0);
    list_init(&worker.sessions);
    buf_init(&worker.out, 64 * KIB);
    return 0;
}

static int finish(void **state)
{
    (void)state;
    loop_destroy(worker.loop);
    buf_finish(&worker.out);
    work_free_spare(&worker);
    tunables_finish(&server.tunables);
    return 0;
}

/* A connection with a request at work; `ret_fd` is its other end. */
static struct exchange *connect_one(int *ret_fd)
{
    struct exchange *x = calloc(1, sizeof(*x));
    int ends[2];

    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends), 0);
    session_accept(&worker, ends[1]);
    struct session *s = container_of(list_first(&worker.sessions), struct session, link);

    x->session = s;
    x->worker = &worker;
    x->method = HTTP_GET;
    x->body.whole = true;
    s->exchange = x;
    s->state = SESSION_BUSY;
    *ret_fd = ends[0];
    return x;
}

/* Waits until the worker has no connection any more. */
static void await_end(void)
{
    while (worker.session_count > 0) {
        loop_turn(worker.loop, 1000);
    }
}

#endif
