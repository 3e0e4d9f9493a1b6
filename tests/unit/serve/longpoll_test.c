/* A reader whose right ends before it is live. */
#include "serve/longpoll.c"

#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "unit/base/unit.h"

static struct serve_config config;
static struct server server = {.config = &config, .conn = {.input_bytes_max = 64 * KIB}};
static struct worker worker = {.server = &server, .date_second = -1};

/* What let it read is taken away while its first read is under way: it never follows. */
static void rights_that_end_early(void **state)
{
    const struct serve_tunables tunables = {.connection_count_max = 10};
    struct exchange *x = calloc(1, sizeof(*x));
    char got[64] = "";
    int ends[2];

    (void)state;
    assert_int_equal(tunables_set(&server.tunables, &tunables), 0);
    assert_int_equal(loop_create(&worker.loop), 0);
    list_init(&worker.sessions);
    buf_init(&worker.out, 64 * KIB);
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends), 0);
    session_accept(&worker, ends[1]);
    struct session *s = container_of(list_first(&worker.sessions), struct session, link);

    x->session = s;
    x->worker = &worker;
    x->method = HTTP_GET;
    x->body.whole = true;
    s->exchange = x;
    s->state = SESSION_BUSY;
    session_end_read(s);
    assert_false(live_begin(x, &live_ops));
    assert_int_equal(atomic_load(&server.waiters), 0);
    while (recv(ends[0], got, strlen("HTTP/1.1 403"), 0) <= 0) {
        loop_turn(worker.loop, 1000);
    }
    assert_string_equal(got, "HTTP/1.1 403");
    (void)close(ends[0]);
    while (worker.session_count > 0) {
        loop_turn(worker.loop, 1000);
    }
    loop_destroy(worker.loop);
    buf_finish(&worker.out);
    tunables_finish(&server.tunables);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rights_that_end_early),
    };

    return UNIT_RUN(tests);
}
