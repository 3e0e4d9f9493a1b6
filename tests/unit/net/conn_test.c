/* Connections over loopback, their loop turned by hand, so that every order of events is chosen. */
#include "unit/base/fault.h"

#include <sys/socket.h>

static size_t fast_peer_bytes; /* a peer that takes so much of each send at once; 0: the real one */
static unsigned fast_peer_sends;

static ssize_t send_fast(int fd, const void *bytes, size_t len, int flags)
{
    if (fast_peer_bytes == 0) {
        return send(fd, bytes, len, flags);
    }
    fast_peer_sends++;
    return (ssize_t)(len < fast_peer_bytes ? len : fast_peer_bytes);
}

#define send send_fast
#include "net/conn.c"
#undef send

#include "unit/net/loopback.h"

#include <signal.h>

/* An owner of a connection, and the other end of it. */
struct owner {
    struct conn conn;
    struct loop *loop;
    int peer;            /* the blocking end; -1: closed */
    size_t take_min;     /* bytes that must be there before input is consumed */
    bool pause_on_input; /* as an owner does that works on a request */
    enum {
        STAY,
        FINISH_INPUT,
        FINISH_DRAINED
    } habit;
    char *into; /* given to conn_read_into by the first input */
    size_t into_len;
    size_t into_after;    /* bytes consumed before that */
    char got[256 * 1024]; /* what was consumed */
    size_t got_len;
    unsigned inputs;
    unsigned drains;
    unsigned closes;
    enum conn_end end;
    unsigned released; /* file pieces */
    bool cold;         /* the page cache is */
    unsigned asked;    /* whether it is warm */
};

static void on_input(struct conn *c)
{
    struct owner *o = c->owner;
    struct slice in = conn_input(c);

    o->inputs++;
    if (o->habit == FINISH_INPUT) {
        conn_finish(c);
        return;
    }
    if (in.len < o->take_min) {
        return;
    }
    if (o->into != NULL) {
        in.len = o->into_after;
    }
    assert_true(o->got_len + in.len <= sizeof(o->got));
    if (in.len > 0) {
        memcpy(o->got + o->got_len, in.ptr, in.len);
        o->got_len += in.len;
        conn_consume(c, in.len);
    }
    if (o->into != NULL) {
        conn_read_into(c, o->into, o->into_len);
        o->into = NULL;
    }
    if (o->pause_on_input) {
        conn_pause(c, true);
    }
}

static void on_drained(struct conn *c)
{
    struct owner *o = c->owner;

    o->drains++;
    if (o->habit == FINISH_DRAINED) {
        conn_finish(c);
    }
}

static void on_closed(struct conn *c, enum conn_end end_reason)
{
    struct owner *o = c->owner;

    o->closes++;
    o->end = end_reason;
    conn_finish(c);
}

static const struct conn_handler handler = {on_input, on_drained, on_closed};
static const struct conn_config config = {.input_bytes_max = 64 * KIB};
static const struct conn_config tiny = {.input_bytes_max = 4000};

static struct owner *owner_create(const struct conn_config *limits)
{
    struct owner *o = calloc(1, sizeof(*o));
    int fd;

    assert_non_null(o);
    assert_int_equal(loop_create(&o->loop), 0);
    loopback_pair(&fd, &o->peer);
    assert_int_equal(conn_init(&o->conn, o->loop, fd, limits, &handler, o), 0);
    return o;
}

static void close_peer(struct owner *o)
{
    assert_int_equal(close(o->peer), 0);
    o->peer = -1;
}

/* `finished`: the connection was already. */
static void owner_destroy(struct owner *o, bool finished)
{
    if (!finished) {
        conn_finish(&o->conn);
    }
    if (o->peer >= 0) {
        close_peer(o);
    }
    loop_turn(o->loop, 0);
    loop_destroy(o->loop);
    free(o);
}

static void peer_send(struct owner *o, const char *bytes, size_t len)
{
    assert_int_equal(send(o->peer, bytes, len, MSG_NOSIGNAL), (ssize_t)len);
}

/* Reads exactly `len` bytes at the peer, turning the loop meanwhile. */
static void peer_read(struct owner *o, char *out, size_t len)
{
    size_t have = 0;

    while (have < len) {
        ssize_t got = recv(o->peer, out + have, len - have, MSG_DONTWAIT);

        if (got > 0) {
            have += (size_t)got;
            continue;
        }
        assert_int_equal(got, -1);
        assert_int_equal(errno, EAGAIN);
        loop_turn(o->loop, 1);
    }
}

static void peer_expect(struct owner *o, const char *text)
{
    char buffer[1024];

    peer_read(o, buffer, strlen(text));
    assert_memory_equal(buffer, text, strlen(text));
}

#define TURN_UNTIL(o, condition)    \
    while (!(condition)) {          \
        loop_turn((o)->loop, 1000); \
    }

static char *pattern(size_t len)
{
    char *bytes = malloc(len);

    assert_non_null(bytes);
    for (size_t i = 0; i < len; i++) {
        bytes[i] = (char)(i * 31 + i / 257);
    }
    return bytes;
}

/* A request that is consumed whole and answered leaves no buffer behind, and drained is told. */
static void test_answer_leaves_nothing_behind(void **state)
{
    struct owner *o = owner_create(&config);

    (void)state;
    peer_send(o, "ping", 4);
    TURN_UNTIL(o, o->got_len == 4);
    assert_memory_equal(o->got, "ping", 4);
    assert_null(o->conn.input);
    assert_int_equal(conn_send_copy(&o->conn, SLICE("po")), 0);
    assert_int_equal(conn_send_copy(&o->conn, SLICE("ng")), 0);
    assert_null(o->conn.output->next);
    assert_int_equal(conn_output_bytes(&o->conn), 4);
    conn_flush(&o->conn);
    assert_int_equal(conn_output_bytes(&o->conn), 0);
    assert_int_equal(o->drains, 0);
    peer_expect(o, "pong");
    TURN_UNTIL(o, o->drains == 1);
    assert_null(o->conn.output);
    assert_int_equal(o->inputs, 1);
    owner_destroy(o, false);
}

/* What the owner leaves is kept and shown again with what comes later. */
static void test_input_left_is_shown_again(void **state)
{
    struct owner *o = owner_create(&config);
    char *sent = pattern(3000);

    (void)state;
    o->take_min = 3000;
    for (size_t i = 0; i < 3000; i += 100) {
        peer_send(o, sent + i, 100);
        TURN_UNTIL(o, conn_input(&o->conn).len == (i + 100) % 3000);
    }
    assert_int_equal(o->got_len, 3000);
    assert_memory_equal(o->got, sent, 3000);
    assert_null(o->conn.input);
    free(sent);
    owner_destroy(o, false);
}

/* At the cap nothing more is read; consuming makes room and the rest comes. */
static void test_input_is_bounded(void **state)
{
    struct owner *o = owner_create(&tiny);
    char *sent = pattern(50000);

    (void)state;
    o->take_min = SIZE_MAX;
    peer_send(o, sent, 50000);
    TURN_UNTIL(o, conn_input(&o->conn).len == tiny.input_bytes_max);
    for (int i = 0; i < 10; i++) {
        loop_turn(o->loop, 0);
    }
    assert_int_equal(conn_input(&o->conn).len, tiny.input_bytes_max);
    o->take_min = 0;
    memcpy(o->got, conn_input(&o->conn).ptr, 1000);
    o->got_len = 1000;
    conn_consume(&o->conn, 1000);
    TURN_UNTIL(o, o->got_len == 50000);
    assert_memory_equal(o->got, sent, 50000);
    free(sent);
    owner_destroy(o, false);
}

/* A body goes to the owner's memory: what was buffered with the head, then from the socket. */
static void test_read_into(void **state)
{
    struct owner *o = owner_create(&config);
    size_t len = 300000;
    char *sent = pattern(len);
    char *body = malloc(len);

    (void)state;
    assert_non_null(body);
    o->into = body;
    o->into_len = len - 10 - 5;
    o->into_after = 10;
    for (size_t at = 0; at < len;) {
        ssize_t part = send(o->peer, sent + at, len - at, MSG_NOSIGNAL | MSG_DONTWAIT);

        at += part > 0 ? (size_t)part : 0;
        loop_turn(o->loop, 0);
    }
    TURN_UNTIL(o, o->got_len == 15);
    assert_int_equal(conn_into_missing(&o->conn), 0);
    assert_memory_equal(o->got, sent, 10);
    assert_memory_equal(body, sent + 10, len - 15);
    assert_memory_equal(o->got + 10, sent + len - 5, 5);
    free(body);
    free(sent);
    owner_destroy(o, false);
}

/* A body that is already buffered is there on return, and what follows it stays. */
static void test_read_into_from_the_buffer(void **state)
{
    struct owner *o = owner_create(&config);
    char body[6] = "";

    (void)state;
    o->take_min = SIZE_MAX;
    peer_send(o, "bodyrest", 8);
    TURN_UNTIL(o, conn_input(&o->conn).len == 8);
    conn_read_into(&o->conn, body, 4);
    assert_int_equal(conn_into_missing(&o->conn), 0);
    assert_string_equal(body, "body");
    assert_memory_equal(conn_input(&o->conn).ptr, "rest", 4);
    conn_read_into(&o->conn, body, 6);
    assert_int_equal(conn_into_missing(&o->conn), 2);
    conn_read_into(&o->conn, NULL, 0);
    assert_int_equal(conn_into_missing(&o->conn), 0);
    assert_null(o->conn.input);
    owner_destroy(o, false);
}

/* A paused connection calls nothing; going on shows what was buffered and what waited. */
static void test_pause(void **state)
{
    struct owner *o = owner_create(&config);

    (void)state;
    o->take_min = SIZE_MAX;
    peer_send(o, "ab", 2);
    TURN_UNTIL(o, o->inputs == 1);
    conn_pause(&o->conn, true);
    peer_send(o, "cd", 2);
    for (int i = 0; i < 5; i++) {
        loop_turn(o->loop, 0);
    }
    assert_int_equal(o->inputs, 1);
    assert_int_equal(conn_input(&o->conn).len, 2);
    o->take_min = 0;
    conn_pause(&o->conn, false);
    TURN_UNTIL(o, o->got_len == 4);
    assert_memory_equal(o->got, "abcd", 4);
    owner_destroy(o, false);
}

/* A client that closes its sending side after the request gets its answer, then the end. */
static void test_half_close_gets_its_answer(void **state)
{
    struct owner *o = owner_create(&config);
    char byte;

    (void)state;
    o->pause_on_input = true;
    peer_send(o, "ask", 3);
    assert_int_equal(shutdown(o->peer, SHUT_WR), 0);
    TURN_UNTIL(o, o->got_len == 3);
    for (int i = 0; i < 5; i++) {
        loop_turn(o->loop, 0);
    }
    assert_int_equal(o->closes, 0);
    assert_int_equal(conn_send_copy(&o->conn, SLICE("answer")), 0);
    conn_flush(&o->conn);
    conn_pause(&o->conn, false);
    TURN_UNTIL(o, o->closes == 1);
    assert_int_equal(o->end, CONN_END_PEER);
    peer_expect(o, "answer");
    assert_int_equal(recv(o->peer, &byte, 1, 0), 0);
    owner_destroy(o, true);
}

/* What is in the socket and was not read shows, and neither silence nor the peer's end does. */
static void test_unread_bytes_show(void **state)
{
    struct owner *o = owner_create(&config);

    (void)state;
    assert_false(conn_has_unread(&o->conn));
    peer_send(o, "ask", 3);
    while (!conn_has_unread(&o->conn)) {
        /* until the kernel has brought it */
    }
    TURN_UNTIL(o, o->got_len == 3);
    assert_false(conn_has_unread(&o->conn));
    close_peer(o);
    assert_false(conn_has_unread(&o->conn));
    TURN_UNTIL(o, o->closes == 1);
    owner_destroy(o, true);
}

/* A close ends an idle connection. */
static void test_close_of_idle_peer(void **state)
{
    struct owner *o = owner_create(&config);

    (void)state;
    close_peer(o);
    TURN_UNTIL(o, o->closes == 1);
    assert_int_equal(o->end, CONN_END_PEER);
    assert_int_equal(o->inputs, 0);
    owner_destroy(o, true);
}

/* Reads of queued output by a peer that has half-closed go on to the last byte. */
static void test_half_close_with_output_queued(void **state)
{
    struct owner *o = owner_create(&config);
    size_t len = 6 * MIB;
    char *sent = pattern(len);
    char *read = malloc(len);
    struct block *b = block_try_create(len);

    (void)state;
    assert_non_null(read);
    assert_non_null(b);
    memcpy(b->data, sent, len);
    assert_int_equal(conn_send_block(&o->conn, b, (struct slice){b->data, len}), 0);
    conn_flush(&o->conn);
    assert_true(conn_output_bytes(&o->conn) > 0);
    assert_int_equal(shutdown(o->peer, SHUT_WR), 0);
    for (int i = 0; i < 5; i++) {
        loop_turn(o->loop, 0);
    }
    assert_int_equal(o->closes, 0);
    peer_read(o, read, len);
    assert_memory_equal(read, sent, len);
    TURN_UNTIL(o, o->closes == 1);
    assert_int_equal(o->end, CONN_END_PEER);
    free(read);
    free(sent);
    owner_destroy(o, true);
}

/* A reset is noticed also while paused. */
static void test_reset_while_paused(void **state)
{
    struct owner *o = owner_create(&config);
    struct linger now = {.l_onoff = 1, .l_linger = 0};

    (void)state;
    conn_pause(&o->conn, true);
    assert_int_equal(setsockopt(o->peer, SOL_SOCKET, SO_LINGER, &now, sizeof(now)), 0);
    close_peer(o);
    TURN_UNTIL(o, o->closes == 1);
    assert_int_equal(o->end, CONN_END_PEER);
    owner_destroy(o, true);
}

/* Pieces of all kinds arrive in order, however full the socket gets. */
static void test_output_in_order(void **state)
{
    struct owner *o = owner_create(&config);
    size_t block_len = 9 * MIB;
    size_t copy_len = 5000;
    size_t len = 3 * (block_len + 100 * copy_len);
    char *sent = pattern(len);
    char *read = malloc(len);
    size_t at = 0;

    (void)state;
    assert_non_null(read);
    for (int round = 0; round < 3; round++) {
        struct block *b = block_try_create(block_len);

        assert_non_null(b);
        memcpy(b->data, sent + at, block_len);
        assert_int_equal(conn_send_block(&o->conn, b, (struct slice){b->data, block_len}), 0);
        at += block_len;
        for (int i = 0; i < 100; i++, at += copy_len) {
            /* Of many sizes, so that some share a piece. */
            size_t first = (size_t)i * 37 % 900;

            assert_int_equal(conn_send_copy(&o->conn, (struct slice){sent + at, first}), 0);
            assert_int_equal(
                conn_send_copy(&o->conn, (struct slice){sent + at + first, copy_len - first}), 0);
        }
    }
    assert_int_equal(conn_output_bytes(&o->conn), len);
    conn_flush(&o->conn);
    peer_read(o, read, len);
    assert_memory_equal(read, sent, len);
    TURN_UNTIL(o, o->drains == 1);
    free(read);
    free(sent);
    owner_destroy(o, false);
}

/* Many pieces are sent in a bounded number of calls per turn. */
static void test_turn_is_bounded(void **state)
{
    struct owner *o = owner_create(&config);
    unsigned pieces = WRITES_PER_TURN * SEND_PIECES_MAX + 100;
    char read[WRITES_PER_TURN * SEND_PIECES_MAX + 100];

    (void)state;
    for (unsigned i = 0; i < pieces; i++) {
        struct block *b = block_try_create(1);

        assert_non_null(b);
        b->data[0] = (char)i;
        assert_int_equal(conn_send_block(&o->conn, b, (struct slice){b->data, 1}), 0);
    }
    conn_flush(&o->conn);
    assert_int_equal(conn_output_bytes(&o->conn), 100);
    conn_flush(&o->conn);
    assert_int_equal(conn_output_bytes(&o->conn), 100);
    peer_read(o, read, pieces);
    for (unsigned i = 0; i < pieces; i++) {
        assert_int_equal(read[i], (char)i);
    }
    owner_destroy(o, false);
}

/* A peer that takes whatever it is sent gets a bounded number of bytes, then the others have their
 * turn. */
static void test_fast_peer_gives_way(void **state)
{
    struct owner *o = owner_create(&config);
    const size_t len = 3 * WRITE_BYTES_TURN + 100;
    struct block *b = block_try_create(len);

    (void)state;
    assert_non_null(b);
    assert_int_equal(conn_send_block(&o->conn, b, (struct slice){b->data, len}), 0);
    fast_peer_bytes = WRITE_BYTES_TURN / 4;
    fast_peer_sends = 0;
    conn_flush(&o->conn);
    assert_int_equal(conn_output_bytes(&o->conn), len - WRITE_BYTES_TURN);
    assert_int_equal(fast_peer_sends, 4);
    conn_flush(&o->conn); /* no second share in the same turn */
    assert_int_equal(fast_peer_sends, 4);
    for (unsigned turn = 2; turn <= 3; turn++) {
        loop_turn(o->loop, 1000);
        assert_int_equal(conn_output_bytes(&o->conn), len - turn * WRITE_BYTES_TURN);
        assert_int_equal(fast_peer_sends, 4 * turn);
    }
    assert_int_equal(o->drains, 0);
    TURN_UNTIL(o, o->drains == 1);
    assert_int_equal(conn_output_bytes(&o->conn), 0);
    fast_peer_bytes = 0;
    owner_destroy(o, false);
}

/* -------------------------------------------------------------------------------------- files */

static int file_of(const char *bytes, size_t len)
{
    char path[] = "/tmp/arbe-conn-XXXXXX";
    int fd = mkstemp(path);

    assert_true(fd >= 0);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(pwrite(fd, bytes, len, 0), (ssize_t)len);
    return fd;
}

static void on_release(void *context)
{
    struct owner *o = context;

    o->released++;
}

static bool on_warm(void *context, struct conn *c, uint64_t offset, size_t len)
{
    struct owner *o = context;

    (void)offset;
    assert_true(len <= SENDFILE_BYTES_MAX);
    assert_ptr_equal(c, &o->conn);
    o->asked++;
    return !o->cold;
}

/* A run of a file goes out between the memory before and after it, and is released once. */
static void test_file_run(void **state)
{
    struct owner *o = owner_create(&config);
    size_t len = 5 * MIB;
    char *bytes = pattern(len);
    char *read = malloc(len);
    int fd = file_of(bytes, len);
    struct conn_file file = {.fd = fd,
                             .offset = 1000,
                             .len = len - 3000,
                             .release = on_release,
                             .warm = on_warm,
                             .context = o};

    (void)state;
    assert_non_null(read);
    assert_int_equal(conn_send_copy(&o->conn, SLICE("head")), 0);
    assert_int_equal(conn_send_file(&o->conn, &file), 0);
    assert_int_equal(conn_send_copy(&o->conn, SLICE("tail")), 0);
    conn_flush(&o->conn);
    peer_expect(o, "head");
    peer_read(o, read, len - 3000);
    assert_memory_equal(read, bytes + 1000, len - 3000);
    peer_expect(o, "tail");
    assert_int_equal(o->released, 1);
    assert_true(o->asked >= (len - 3000) / SENDFILE_BYTES_MAX);
    assert_int_equal(close(fd), 0);
    free(read);
    free(bytes);
    owner_destroy(o, false);
}

/* A file that is shorter than promised ends the connection instead of spinning. */
static void test_short_file(void **state)
{
    struct owner *o = owner_create(&config);
    int fd = file_of("short", 5);
    struct conn_file file = {.fd = fd, .len = 6, .release = on_release, .context = o};

    (void)state;
    assert_int_equal(conn_send_file(&o->conn, &file), 0);
    conn_flush(&o->conn);
    TURN_UNTIL(o, o->closes == 1);
    assert_int_equal(o->end, CONN_END_ERROR);
    assert_int_equal(o->released, 1);
    peer_expect(o, "short");
    assert_int_equal(close(fd), 0);
    owner_destroy(o, true);
}

/* Cold bytes are not sent until the owner says that they are there. */
static void test_cold_file(void **state)
{
    struct owner *o = owner_create(&config);
    int fd = file_of("cold", 4);
    struct conn_file file = {
        .fd = fd, .len = 4, .release = on_release, .warm = on_warm, .context = o};

    (void)state;
    o->cold = true;
    assert_int_equal(conn_send_file(&o->conn, &file), 0);
    conn_flush(&o->conn);
    conn_flush(&o->conn);
    loop_turn(o->loop, 0);
    assert_int_equal(o->asked, 1);
    assert_int_equal(conn_output_bytes(&o->conn), 4);
    o->cold = false;
    conn_resume(&o->conn);
    peer_expect(o, "cold");
    TURN_UNTIL(o, o->drains == 1);
    assert_int_equal(o->asked, 2);
    assert_int_equal(close(fd), 0);
    owner_destroy(o, false);
}

/* --------------------------------------------------------------------------------------- ends */

/* A shutdown sends everything; unread input does not turn the end into a reset. */
static void test_shutdown_lets_the_answer_arrive(void **state)
{
    struct owner *o = owner_create(&config);
    size_t len = 8 * MIB;
    char *sent = pattern(len);
    char *read = malloc(len);
    struct block *b = block_try_create(len);
    char byte;

    (void)state;
    assert_non_null(read);
    assert_non_null(b);
    o->pause_on_input = true;
    memcpy(b->data, sent, len);
    peer_send(o, sent, 100000);
    TURN_UNTIL(o, o->inputs == 1);
    assert_int_equal(conn_send_block(&o->conn, b, (struct slice){b->data, len}), 0);
    conn_flush(&o->conn);
    conn_shutdown(&o->conn);
    conn_shutdown(&o->conn);
    peer_read(o, read, len);
    assert_memory_equal(read, sent, len);
    TURN_UNTIL(o, o->conn.lingering);
    assert_int_equal(recv(o->peer, &byte, 1, 0), 0);
    assert_int_equal(o->closes, 0);
    close_peer(o);
    TURN_UNTIL(o, o->closes == 1);
    assert_int_equal(o->end, CONN_END_SHUTDOWN);
    assert_int_equal(o->inputs, 1);
    free(read);
    free(sent);
    owner_destroy(o, true);
}

/* A peer that goes on sending after the shutdown is read from for a bounded amount. */
static void test_shutdown_is_bounded(void **state)
{
    struct owner *o = owner_create(&config);
    char *sent = pattern(MIB);

    (void)state;
    conn_shutdown(&o->conn);
    while (o->closes == 0) {
        /* Refused once the connection is closed. */
        (void)send(o->peer, sent, MIB, MSG_NOSIGNAL | MSG_DONTWAIT);
        loop_turn(o->loop, 0);
    }
    assert_int_equal(o->end, CONN_END_SHUTDOWN);
    free(sent);
    owner_destroy(o, true);
}

/* A shutdown whose peer says nothing ends by itself. */
static void test_shutdown_ends_in_time(void **state)
{
    struct owner *o = owner_create(&config);

    (void)state;
    conn_shutdown(&o->conn);
    assert_true(loop_timer_is_armed(&o->conn.deadline));
    conn_set_deadline(&o->conn, 0);
    assert_true(loop_timer_is_armed(&o->conn.deadline));
    on_deadline(&o->conn.deadline);
    TURN_UNTIL(o, o->closes == 1);
    assert_int_equal(o->end, CONN_END_SHUTDOWN);
    owner_destroy(o, true);
}

/* The deadline ends the connection, unless it was moved or taken away. */
static void test_deadline(void **state)
{
    struct owner *o = owner_create(&config);

    (void)state;
    conn_set_deadline(&o->conn, 1);
    conn_set_deadline(&o->conn, 0);
    loop_turn(o->loop, 5);
    assert_int_equal(o->closes, 0);
    conn_set_deadline(&o->conn, 1);
    TURN_UNTIL(o, o->closes == 1);
    assert_int_equal(o->end, CONN_END_TIMEOUT);
    owner_destroy(o, true);
}

/* A write to a peer that is gone ends the connection; what is queued later is dropped. */
static void test_write_to_a_reset_peer(void **state)
{
    struct owner *o = owner_create(&config);
    struct linger now = {.l_onoff = 1, .l_linger = 0};
    struct conn_file file = {.fd = -1, .len = 6, .release = on_release, .context = o};
    struct block *b = block_try_create(1);

    (void)state;
    assert_non_null(b);
    assert_int_equal(setsockopt(o->peer, SOL_SOCKET, SO_LINGER, &now, sizeof(now)), 0);
    close_peer(o);
    assert_int_equal(conn_send_copy(&o->conn, SLICE("lost")), 0);
    conn_flush(&o->conn);
    assert_int_equal(o->closes, 0);
    assert_int_equal(conn_send_copy(&o->conn, SLICE("dropped")), 0);
    assert_int_equal(conn_send_block(&o->conn, b, (struct slice){b->data, 1}), 0);
    assert_int_equal(conn_send_file(&o->conn, &file), 0);
    assert_int_equal(o->released, 1);
    assert_int_equal(conn_output_bytes(&o->conn), 0);
    TURN_UNTIL(o, o->closes == 1);
    assert_int_equal(o->end, CONN_END_PEER);
    owner_destroy(o, true);
}

/* The owner may finish the connection in every callback; what it queued is given back. */
static void test_finish_in_callbacks(void **state)
{
    struct owner *o = owner_create(&config);
    struct conn_file file = {.fd = -1, .len = 6, .release = on_release, .context = o};

    (void)state;
    o->habit = FINISH_INPUT;
    assert_int_equal(conn_send_file(&o->conn, &file), 0);
    peer_send(o, "x", 1);
    TURN_UNTIL(o, o->inputs == 1);
    assert_int_equal(o->released, 1);
    owner_destroy(o, true);

    o = owner_create(&config);
    o->habit = FINISH_DRAINED;
    assert_int_equal(conn_send_copy(&o->conn, SLICE("x")), 0);
    conn_flush(&o->conn);
    TURN_UNTIL(o, o->drains == 1);
    owner_destroy(o, true);
}

/* Reading one connection gives way to the others after a bounded number of receives. */
static void test_reading_gives_way(void **state)
{
    struct owner *o = owner_create(&tiny);
    char *sent = pattern(200000);

    (void)state;
    peer_send(o, sent, 200000);
    loop_turn(o->loop, 1000);
    assert_true(o->inputs > 0);
    /* The event and the deferred work of one turn. */
    assert_true(o->inputs <= 2 * READS_PER_TURN);
    TURN_UNTIL(o, o->got_len == 200000);
    assert_memory_equal(o->got, sent, 200000);
    free(sent);
    owner_destroy(o, false);
}

/* Without memory a send says so, gives back what it was given, and queues nothing. */
static void test_sends_without_memory(void **state)
{
    struct owner *o = owner_create(&config);
    struct conn_file file = {.fd = -1, .len = 6, .release = on_release, .context = o};
    struct block *b = block_try_create(1);

    (void)state;
    assert_non_null(b);
    fault_countdown = 0;
    assert_int_equal(conn_send_copy(&o->conn, SLICE("x")), ERR_NOMEM);
    assert_int_equal(conn_send_block(&o->conn, b, (struct slice){b->data, 1}), ERR_NOMEM);
    assert_int_equal(conn_send_file(&o->conn, &file), ERR_NOMEM);
    fault_countdown = -1;
    assert_int_equal(o->released, 1);
    assert_int_equal(conn_output_bytes(&o->conn), 0);
    owner_destroy(o, false);
}

/* Without memory for what the owner leaves, first or later, the connection ends. */
static void test_input_without_memory(void **state)
{
    (void)state;
    for (long good = 0; good < 2; good++) {
        struct owner *o = owner_create(&config);
        char *sent = pattern(5000);

        o->take_min = SIZE_MAX;
        fault_countdown = good;
        peer_send(o, sent, 100);
        TURN_UNTIL(o, o->inputs == 1);
        while (o->closes == 0) {
            (void)send(o->peer, sent, 5000, MSG_NOSIGNAL);
            loop_turn(o->loop, 1000);
        }
        fault_countdown = -1;
        assert_int_equal(o->end, CONN_END_ERROR);
        free(sent);
        owner_destroy(o, true);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_answer_leaves_nothing_behind),
        cmocka_unit_test(test_input_left_is_shown_again),
        cmocka_unit_test(test_input_is_bounded),
        cmocka_unit_test(test_read_into),
        cmocka_unit_test(test_read_into_from_the_buffer),
        cmocka_unit_test(test_pause),
        cmocka_unit_test(test_half_close_gets_its_answer),
        cmocka_unit_test(test_unread_bytes_show),
        cmocka_unit_test(test_close_of_idle_peer),
        cmocka_unit_test(test_half_close_with_output_queued),
        cmocka_unit_test(test_reset_while_paused),
        cmocka_unit_test(test_output_in_order),
        cmocka_unit_test(test_turn_is_bounded),
        cmocka_unit_test(test_fast_peer_gives_way),
        cmocka_unit_test(test_file_run),
        cmocka_unit_test(test_short_file),
        cmocka_unit_test(test_cold_file),
        cmocka_unit_test(test_shutdown_lets_the_answer_arrive),
        cmocka_unit_test(test_shutdown_is_bounded),
        cmocka_unit_test(test_shutdown_ends_in_time),
        cmocka_unit_test(test_deadline),
        cmocka_unit_test(test_write_to_a_reset_peer),
        cmocka_unit_test(test_finish_in_callbacks),
        cmocka_unit_test(test_reading_gives_way),
        cmocka_unit_test(test_sends_without_memory),
        cmocka_unit_test(test_input_without_memory),
    };

    (void)signal(SIGPIPE, SIG_IGN); /* as loop_run does for its thread */
    return UNIT_RUN(tests);
}
