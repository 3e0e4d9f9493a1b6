/* Workers whose loops are turned by hand accept what the test connects. */
#include "net/listener.c"

#include "unit/net/loopback.h"

#include <sys/resource.h>

/* What one worker has accepted. */
struct worker {
    struct loop *loop;
    struct listener *listener;
    int fds[64];
    unsigned accepted;
    unsigned pause_after; /* pauses itself at so many; 0: never */
};

static void on_accept(void *context, int fd)
{
    struct worker *w = context;

    w->fds[w->accepted++] = fd;
    if (w->accepted == w->pause_after) {
        listener_pause(w->listener, true);
    }
}

static void worker_start(struct worker *w, struct worker *first)
{
    struct errmsg msg = {""};

    *w = (struct worker){.accepted = 0};
    assert_int_equal(loop_create(&w->loop), 0);
    if (first == NULL) {
        assert_int_equal(listener_create(w->loop, "127.0.0.1:0", on_accept, w, &w->listener, &msg),
                         0);
    } else {
        assert_int_equal(
            listener_create_shared(w->loop, first->listener, on_accept, w, &w->listener), 0);
    }
}

static void worker_stop(struct worker *w)
{
    listener_destroy(w->listener);
    for (unsigned i = 0; i < w->accepted; i++) {
        assert_int_equal(close(w->fds[i]), 0);
    }
    loop_turn(w->loop, 0);
    loop_destroy(w->loop);
}

static uint16_t port_of(const struct worker *w)
{
    char text[64];
    uint64_t port;

    listener_address(w->listener, text, sizeof(text));
    assert_memory_equal(text, "127.0.0.1:", 10);
    assert_true(number_parse_u64(slice_of(text + 10), UINT16_MAX, false, &port));
    assert_true(port > 0);
    return (uint16_t)port;
}

static int option_of(int fd, int level, int name)
{
    int value = -1;
    socklen_t len = sizeof(value);

    assert_int_equal(getsockopt(fd, level, name, &value, &len), 0);
    return value;
}

/* An accepted socket is non-blocking, sends at once and notices a peer that has vanished. */
static void test_accepted_sockets_are_set_up(void **state)
{
    struct worker w;
    int client;

    (void)state;
    worker_start(&w, NULL);
    client = loopback_connect(port_of(&w));
    loop_turn(w.loop, 1000);
    assert_int_equal(w.accepted, 1);
    assert_true((fcntl(w.fds[0], F_GETFL) & O_NONBLOCK) != 0);
    assert_true((fcntl(w.fds[0], F_GETFD) & FD_CLOEXEC) != 0);
    assert_true(option_of(w.fds[0], IPPROTO_TCP, TCP_NODELAY) != 0);
    assert_true(option_of(w.fds[0], SOL_SOCKET, SO_KEEPALIVE) != 0);
    assert_int_equal(option_of(w.fds[0], IPPROTO_TCP, TCP_KEEPIDLE), 60);
    assert_int_equal(close(client), 0);
    worker_stop(&w);
}

/* A port that is in use is an error with a sentence, also for a second server of the same user. */
static void test_port_in_use(void **state)
{
    struct worker w;
    struct listener *second = NULL;
    struct errmsg msg = {""};
    char address[64];

    (void)state;
    worker_start(&w, NULL);
    listener_address(w.listener, address, sizeof(address));
    assert_int_equal(listener_create(w.loop, address, on_accept, &w, &second, &msg), ERR_LOCKED);
    assert_null(second);
    assert_non_null(strstr(msg.text, address));
    assert_non_null(strstr(msg.text, "in use"));
    worker_stop(&w);
}

/* Connections are dealt out in turn, whoever accepts them. */
static void test_workers_get_equal_shares(void **state)
{
    struct worker w[3];
    int clients[30];

    (void)state;
    worker_start(&w[0], NULL);
    worker_start(&w[1], &w[0]);
    worker_start(&w[2], &w[0]);
    for (int i = 0; i < 30; i++) {
        clients[i] = loopback_connect(port_of(&w[0]));
    }
    /* The second worker accepts; the others find their shares in the inbox. */
    loop_turn(w[1].loop, 1000);
    loop_turn(w[0].loop, 1000);
    loop_turn(w[2].loop, 1000);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(w[i].accepted, 10);
    }
    for (int i = 0; i < 30; i++) {
        assert_int_equal(close(clients[i]), 0);
    }
    worker_stop(&w[0]);
    worker_stop(&w[1]);
    worker_stop(&w[2]);
}

/* A paused worker gets nothing, not even from others; when all are paused, clients wait. */
static void test_pause(void **state)
{
    struct worker w[2];
    int clients[5];

    (void)state;
    worker_start(&w[0], NULL);
    worker_start(&w[1], &w[0]);
    listener_pause(w[0].listener, true);
    w[1].pause_after = 3;
    for (int i = 0; i < 5; i++) {
        clients[i] = loopback_connect(port_of(&w[0]));
    }
    loop_turn(w[1].loop, 1000);
    loop_turn(w[0].loop, 0);
    loop_turn(w[1].loop, 0);
    assert_int_equal(w[0].accepted, 0);
    assert_int_equal(w[1].accepted, 3);
    listener_pause(w[0].listener, false);
    loop_turn(w[0].loop, 1000);
    assert_int_equal(w[0].accepted, 2);
    for (int i = 0; i < 5; i++) {
        assert_int_equal(close(clients[i]), 0);
    }
    worker_stop(&w[0]);
    worker_stop(&w[1]);
}

/* Connections that wait in the inbox of a worker that ends are closed, not leaked. */
static void test_end_with_a_full_inbox(void **state)
{
    struct worker w[2];
    int clients[4];
    char byte;
    unsigned closed = 0;

    (void)state;
    worker_start(&w[0], NULL);
    worker_start(&w[1], &w[0]);
    for (int i = 0; i < 4; i++) {
        clients[i] = loopback_connect(port_of(&w[0]));
    }
    loop_turn(w[0].loop, 1000);
    assert_int_equal(w[0].accepted, 2);
    worker_stop(&w[1]);
    for (int i = 0; i < 4; i++) {
        closed += recv(clients[i], &byte, 1, MSG_DONTWAIT) == 0 ? 1 : 0;
    }
    assert_int_equal(closed, 2);
    for (int i = 0; i < 4; i++) {
        assert_int_equal(close(clients[i]), 0);
    }
    worker_stop(&w[0]);
}

/* Before the last place is given up, what waits in the inbox and in the kernel is accepted. */
static void test_accept_waiting(void **state)
{
    struct worker w[2];
    int clients[7];
    char byte;

    (void)state;
    worker_start(&w[0], NULL);
    worker_start(&w[1], &w[0]);
    for (int i = 0; i < 4; i++) {
        clients[i] = loopback_connect(port_of(&w[0]));
    }
    loop_turn(w[0].loop, 1000);
    for (int i = 4; i < 7; i++) {
        clients[i] = loopback_connect(port_of(&w[0]));
    }
    assert_int_equal(w[0].accepted, 2);
    assert_int_equal(w[1].accepted, 0);
    listener_accept_waiting(w[1].listener);
    assert_int_equal(w[1].accepted, 5);
    listener_accept_waiting(w[0].listener);
    assert_int_equal(w[0].accepted, 2);
    worker_stop(&w[1]);
    worker_stop(&w[0]);
    for (int i = 0; i < 7; i++) {
        assert_int_equal(recv(clients[i], &byte, 1, 0), 0); /* an end, not a reset */
        assert_int_equal(close(clients[i]), 0);
    }
}

/* Out of descriptors, accepting pauses without spinning, and goes on once there are some. */
static void test_descriptors_run_out(void **state)
{
    struct worker w;
    struct rlimit old;
    struct rlimit none;
    int client;
    int turns = 0;

    (void)state;
    worker_start(&w, NULL);
    client = loopback_connect(port_of(&w));
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &old), 0);
    none = (struct rlimit){.rlim_cur = 0, .rlim_max = old.rlim_max};
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
    loop_turn(w.loop, 1000);
    assert_int_equal(w.accepted, 0);
    assert_false(w.listener->watching);
    assert_true(loop_timer_is_armed(&w.listener->retry));
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &old), 0);
    for (; w.accepted == 0; turns++) {
        loop_turn(w.loop, 1000);
    }
    assert_true(turns < 20);
    assert_int_equal(close(client), 0);
    worker_stop(&w);
}

/* Malformed addresses are refused with a sentence that says what is expected. */
static void test_malformed_addresses(void **state)
{
    static const char *const bad[] = {
        "",
        ":",
        "4437",
        ":4437",
        "127.0.0.1",
        "127.0.0.1:",
        "127.0.0.1:x",
        "127.0.0.1:+80",
        "127.0.0.1: 80",
        "127.0.0.1:65536",
        "::1:4437",
        "[::1:4437",
        "[]:80",
        "[::1]",
        "example.org:80",
        "[1.2.3.4]:80",
        "127.0.0.1:080",
        "300.0.0.1:80",
        "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa:80",
    };
    struct listener *none = NULL;
    struct loop *l;

    (void)state;
    assert_int_equal(loop_create(&l), 0);
    for (size_t i = 0; i < ARRAY_COUNT(bad); i++) {
        struct errmsg msg = {""};

        assert_int_equal(listener_create(l, bad[i], on_accept, NULL, &none, &msg), ERR_INVALID);
        assert_non_null(strstr(msg.text, "expected HOST:PORT"));
        assert_false(listener_is_loopback(bad[i]));
    }
    assert_null(none);
    loop_destroy(l);
    listener_destroy(NULL);
}

/* Only addresses that other machines cannot reach are loopback. */
static void test_loopback(void **state)
{
    (void)state;
    assert_true(listener_is_loopback("127.0.0.1:80"));
    assert_true(listener_is_loopback("127.1.2.3:80"));
    assert_true(listener_is_loopback("localhost:80"));
    assert_true(listener_is_loopback("[::1]:80"));
    assert_true(listener_is_loopback("[::ffff:127.0.0.1]:80"));
    assert_false(listener_is_loopback("0.0.0.0:80"));
    assert_false(listener_is_loopback("[::]:80"));
    assert_false(listener_is_loopback("128.0.0.1:80"));
    assert_false(listener_is_loopback("[::ffff:10.0.0.1]:80"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_accepted_sockets_are_set_up),
        cmocka_unit_test(test_port_in_use),
        cmocka_unit_test(test_workers_get_equal_shares),
        cmocka_unit_test(test_pause),
        cmocka_unit_test(test_end_with_a_full_inbox),
        cmocka_unit_test(test_accept_waiting),
        cmocka_unit_test(test_descriptors_run_out),
        cmocka_unit_test(test_malformed_addresses),
        cmocka_unit_test(test_loopback),
    };

    return UNIT_RUN(tests);
}
