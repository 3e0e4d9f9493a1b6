/* A reader whose right ends before it is live, and one who wakes when memory is out. */
#include "unit/base/fault.h"

#include "serve/longpoll.c"
#include "serve/work.c"

#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "stream/stream.h"
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

/* Expects the beginning of an answer, and ends the connection. */
static void expect_answer(int fd, const char *first)
{
    char got[64] = "";

    while (recv(fd, got, strlen(first), 0) <= 0) {
        loop_turn(worker.loop, 1000);
    }
    assert_string_equal(got, first);
    (void)close(fd);
    while (worker.session_count > 0) {
        loop_turn(worker.loop, 1000);
    }
}

/* What let it read is taken away while its first read is under way: it never follows. */
static void rights_that_end_early(void **state)
{
    int fd;
    struct exchange *x = connect_one(&fd);

    (void)state;
    session_end_read(x->session);
    assert_false(live_begin(x, &live_ops));
    assert_int_equal(atomic_load(&server.waiters), 0);
    expect_answer(fd, "HTTP/1.1 403");
}

/* A reader that waits has given back what a read takes. When there is none for it later, it is told
 * to come again. */
static void no_memory_when_woken(void **state)
{
    struct stream *stream = calloc(1, sizeof(*stream) + 1);
    int fd;
    struct exchange *x = connect_one(&fd);

    (void)state;
    x->live.stream = stream;
    x->live.waiting = true;
    fault_countdown = 0;
    wake(&x->live.waiter);
    fault_countdown = -1;
    expect_answer(fd, "HTTP/1.1 503");
    free(stream);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(rights_that_end_early, begin, finish),
        cmocka_unit_test_setup_teardown(no_memory_when_woken, begin, finish),
    };

    return UNIT_RUN(tests);
}
