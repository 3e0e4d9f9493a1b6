/* A call whose result comes from another thread sooner than its handler has said that it will. */
#include "app/api_call.c"

#include <sys/socket.h>
#include <unistd.h>

#include "serve/worker.h"
#include "unit/base/unit.h"

static struct serve_config config;
static struct server server = {.config = &config, .conn = {.input_bytes_max = 64 * KIB}};
static struct worker worker = {.server = &server, .date_second = -1};
static struct app app;

/* The other thread is as quick as can be. */
static int run_and_finish(struct api_call *c)
{
    api_finish(c, api_answer(c, 204));
    return API_PENDING;
}

static struct exchange *make_exchange(struct session *s)
{
    static const struct mount mount = {.leave = api_leave};
    static const struct route route = {.run = run_and_finish};
    struct exchange *x = calloc(1, sizeof(*x));
    struct api_call *c = calloc(1, sizeof(*c) + 1);

    assert_non_null(x);
    assert_non_null(c);
    c->app = &app;
    c->x = x;
    c->route = &route;
    list_init(&c->task.link);
    arena_init(&c->memory, MEMORY_BYTES_MAX);
    buf_init(&c->answer, 1024);
    buf_init(&c->cookie, 512);
    x->session = s;
    x->worker = &worker;
    x->mount = &mount;
    x->guest = c;
    x->method = HTTP_GET;
    x->keep = false;
    x->chunked_ok = true;
    x->body.whole = true;
    x->finish = api_answer_now;
    s->exchange = x;
    s->state = SESSION_BUSY;
    return x;
}

static void results_that_come_at_once(void **state)
{
    const struct serve_tunables tunables = {.connection_count_max = 10};
    char got[64] = "";
    int ends[2];

    (void)state;
    assert_int_equal(tunables_set(&server.tunables, &tunables), 0);
    assert_int_equal(loop_create(&worker.loop), 0);
    list_init(&worker.sessions);
    buf_init(&worker.out, 64 * KIB);
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends), 0);
    session_accept(&worker, ends[1]);
    run_here(
        make_exchange(container_of(list_first(&worker.sessions), struct session, link))->guest);
    while (recv(ends[0], got, strlen("HTTP/1.1 204"), 0) <= 0) {
        loop_turn(worker.loop, 1000);
    }
    assert_string_equal(got, "HTTP/1.1 204");
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
        cmocka_unit_test(results_that_come_at_once),
    };

    return UNIT_RUN(tests);
}
