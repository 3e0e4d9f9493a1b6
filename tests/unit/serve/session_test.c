/* What the end of a server means for its connections, over real sockets, their loop turned by hand.
 * What serves requests is stood in for here. */
#include "serve/session.c"

#include <errno.h>
#include <stdio.h>

#include "unit/base/unit.h"

static struct {
    unsigned begun;  /* requests that went to be served */
    unsigned checks; /* of whether all sessions are gone */
} seen;

static struct serve_config config;
static struct server server = {.config = &config, .conn = {.input_bytes_max = 64 * KIB}};
static struct worker worker = {.server = &server};
static int client; /* the other end of the connection */

/* A whole answer: the status alone. */
static void answer(struct exchange *x, int status, bool keep)
{
    struct session *s = x->session;
    char text[16];

    (void)snprintf(text, sizeof(text), "%d;", status);
    assert_int_equal(conn_send_copy(&s->conn, slice_of(text)), 0);
    free(x);
    session_answered(s, keep, 0);
}

void problem_answer(struct exchange *x, int status, struct slice detail)
{
    assert_true(detail.len > 0);
    answer(x, status, x->keep);
}

void exchange_begin(struct session *s, struct slice input, size_t head_bytes)
{
    struct exchange *x = calloc(1, sizeof(*x));

    (void)input;
    assert_non_null(x);
    seen.begun++;
    conn_consume(&s->conn, head_bytes);
    x->session = s;
    s->exchange = x;
    answer(x, 200, true);
}

void worker_check_end(struct worker *w)
{
    (void)w;
    seen.checks++;
}

void access_begin(struct exchange *x)
{
    (void)x;
}

void exchange_find_owner(struct exchange *x, const struct http_request *request)
{
    (void)x;
    (void)request;
}

struct slice problem_unasked(struct worker *w, int status, struct slice detail)
{
    (void)w;
    (void)status;
    return detail;
}

bool exchange_abandon(struct exchange *x)
{
    free(x);
    return true;
}

/* No body comes here, and nothing is live. */
void exchange_feed(struct exchange *x)
{
    fail_msg("a body is fed to %p", (void *)x);
}

uint64_t body_received(const struct body *b, const struct conn *conn)
{
    fail_msg("%p %p", (const void *)b, (const void *)conn);
    return 0;
}

void body_stop(struct body *b, struct conn *conn)
{
    fail_msg("%p %p", (void *)b, (void *)conn);
}

static int set_up(void **state)
{
    const struct serve_tunables tunables = {.connection_count_max = 10};
    int ends[2];

    (void)state;
    memset(&seen, 0, sizeof(seen));
    assert_int_equal(tunables_set(&server.tunables, &tunables), 0);
    assert_int_equal(loop_create(&worker.loop), 0);
    list_init(&worker.sessions);
    worker.draining = false;
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends), 0);
    client = ends[0];
    session_accept(&worker, ends[1]);
    assert_int_equal(worker.session_count, 1);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    (void)close(client);
    while (worker.session_count > 0) {
        loop_turn(worker.loop, 1000);
    }
    assert_int_equal(seen.checks, 1);
    assert_int_equal(atomic_load(&server.connections), 0);
    loop_destroy(worker.loop);
    tunables_finish(&server.tunables);
    server.tunables = (struct tunables){.newest = NULL};
    return 0;
}

static void ask(const char *text)
{
    assert_int_equal(send(client, text, strlen(text), MSG_NOSIGNAL), (ssize_t)strlen(text));
}

/* What worker.c does first when the server is told to end. */
static void drain(void)
{
    worker.draining = true;
    LIST_FOR_EACH(node, &worker.sessions)
    {
        session_drain(container_of(node, struct session, link));
    }
}

/* Everything that comes until the server closes for writing. */
static void expect(const char *wanted)
{
    char got[64];
    size_t len = 0;

    for (;;) {
        ssize_t count = recv(client, got + len, sizeof(got) - 1 - len, 0);

        if (count == 0) {
            break;
        }
        if (count < 0) {
            assert_int_equal(errno, EAGAIN);
            loop_turn(worker.loop, 1000);
            continue;
        }
        len += (size_t)count;
    }
    got[len] = '\0';
    assert_string_equal(got, wanted);
}

#define REQUEST "GET /v1/stream/a HTTP/1.1\r\nHost: a\r\n\r\n"

/* An idle connection ends without a word. */
static void idle_ones_end(void **state)
{
    (void)state;
    drain();
    expect("");
    assert_int_equal(seen.begun, 0);
}

/* A request that has come and was not read yet, as on a connection that was accepted a moment ago,
 * is refused: its client has a right to know. */
static void unread_requests_are_refused(void **state)
{
    (void)state;
    ask(REQUEST);
    drain();
    expect("503;");
    assert_int_equal(seen.begun, 0);
}

/* So is the one behind a request that was answered, and one whose end comes later. */
static void later_requests_are_refused(void **state)
{
    (void)state;
    ask(REQUEST);
    while (seen.begun == 0) {
        loop_turn(worker.loop, 1000);
    }
    ask("GET /");
    drain();
    loop_turn(worker.loop, 0);
    ask(" HTTP/1.1\r\nHost: a\r\n\r\n");
    expect("200;503;");
    assert_int_equal(seen.begun, 1);
}

/* How the server is, is told to the last. */
static void health_is_told(void **state)
{
    (void)state;
    ask("GET /health HTTP/1.1\r\nHost: a\r\n\r\n");
    drain();
    while (seen.begun == 0) {
        loop_turn(worker.loop, 1000);
    }
    drain();
    expect("200;");
}

/* A client that has gone is no request. */
static void ends_are_no_requests(void **state)
{
    (void)state;
    assert_int_equal(shutdown(client, SHUT_WR), 0);
    drain();
    expect("");
    assert_int_equal(seen.begun, 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(idle_ones_end),  TEST(unread_requests_are_refused), TEST(later_requests_are_refused),
        TEST(health_is_told), TEST(ends_are_no_requests),
    };

    return UNIT_RUN(tests);
}
