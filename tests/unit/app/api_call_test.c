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

/* What the store answers is told by its kind; of the inside of the server nothing is told. */
static void store_errors_are_told_by_kind(void **state)
{
    static const struct logger nowhere = {.fd = -1, .level = LOGGER_ERROR};
    static const struct route route = {.pattern = "/api/test"};
    const struct errmsg msg = {.text = "app.db: page 7 is damaged"};
    const struct {
        int code;
        int status;
        bool is_told; /* the sentence */
    } cases[] = {
        {ERR_NOTFOUND, 404, false}, {ERR_CONFLICT, 409, true}, {ERR_INVALID, 400, true},
        {ERR_LIMIT, 409, true},     {ERR_IO, 500, false},      {ERR_CORRUPT, 500, false},
        {ERR_NOSPC, 507, false},    {ERR_BUSY, 503, true},     {ERR_NOMEM, 503, true},
        {ERR_UNKNOWN, 503, true},
    };

    (void)state;
    app.config.logger = &nowhere;
    for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
        struct api_call c = {.app = &app, .route = &route};

        assert_int_equal(api_fail(&c, cases[i].code, &msg, "thread"), API_FAILED);
        assert_int_equal(api_error_status(c.error.code), cases[i].status);
        assert_int_equal(strstr(c.error.message, "page 7") != NULL, cases[i].is_told);
        assert_true(c.error.message[0] != '\0');
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(results_that_come_at_once),
        cmocka_unit_test(store_errors_are_told_by_kind),
    };

    return UNIT_RUN(tests);
}
