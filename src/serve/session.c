/* Happy path: the socket has bytes, session_advance parses a head, exchange.c serves it, the
 * answer is queued, session_answered puts the session back to HEAD, and the loop in
 * session_advance looks for the next request, which a pipelining client may have sent already.
 * Output leaves in one write at the end of a turn.
 *
 * What ends a session: the peer (on_closed), a time-out, an answer with Connection: close
 * (SESSION_CLOSING: conn_shutdown flushes, then on_closed), or memory running out
 * (session_drop). The memory is freed by a task of its own turn, so every function here may
 * drop the session and return to callers that still hold it. An op that is pending cannot be
 * cancelled: then the session is `gone` and its op's end frees it. */
#include "serve/session.h"

#include "serve/access.h"
#include "serve/exchange.h"
#include "serve/problem.h"

#include <assert.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

/* A trickle must not hold the budget for unfinished bodies. */
#define BODY_PROGRESS_BYTES_MIN \
    ((uint64_t)HTTP_BODY_BYTES_PER_SECOND_MIN * HTTP_BODY_WINDOW_MS / 1000)
#define CONN_CLOSING_MS (24 * 3600 * 1000u) /* conn.c's own bound is not by progress */
#define NEVER           LOOP_NEVER_MS
#define STOPPING        "the server is shutting down; try again shortly"
#define TOO_MANY        "too many connections are open; try again shortly"

static void free_now(struct task *task)
{
    struct session *s = container_of(task, struct session, free_task);
    struct worker *w = s->worker;

    free(s);
    w->session_count--;
    worker_check_end(w);
}

void session_release(struct session *s)
{
    assert(s->gone && s->exchange == NULL);
    s->free_task.run = free_now;
    loop_defer(s->worker->loop, &s->free_task);
}

void session_drop(struct session *s)
{
    if (s->gone) {
        return;
    }
    s->gone = true;
    s->state = SESSION_CLOSING;
    loop_timer_cancel(s->worker->loop, &s->timer);
    conn_finish(&s->conn);
    list_remove(&s->link);
    atomic_fetch_sub(&s->worker->server->connections, 1);
    if (s->exchange == NULL || exchange_abandon(s->exchange)) {
        s->exchange = NULL;
        session_release(s);
    }
}

void session_set_deadline(struct session *s, uint64_t delay_ms)
{
    struct loop *l = s->worker->loop;

    if (s->gone) {
        return;
    }
    if (delay_ms == NEVER) {
        loop_timer_disarm(l, &s->timer);
    } else if (loop_timer_set(l, &s->timer, delay_ms) != 0) {
        session_drop(s);
    }
}

static void enter(struct session *s, enum session_state state, uint64_t deadline_ms)
{
    s->state = state;
    session_set_deadline(s, deadline_ms);
}

/* How long what is left may lie without progress. Who reads live comes again and misses nothing, so
 * one that takes nothing does not hold up the server's end. */
static uint64_t closing_ms(const struct session *s)
{
    return s->endless && s->worker->draining ? HTTP_STOPPING_TIMEOUT_MS : HTTP_CLOSING_TIMEOUT_MS;
}

static void begin_closing(struct session *s)
{
    s->endless = s->state == SESSION_LIVE;
    enter(s, SESSION_CLOSING, closing_ms(s));
    s->progress = 0;
    if (!s->gone) {
        conn_set_deadline(&s->conn, CONN_CLOSING_MS);
        conn_shutdown(&s->conn);
    }
}

/* Answers a head that is no request, or came where none is wanted, and closes. */
static void refuse(struct session *s, int status, const char *sentence)
{
    struct exchange *x = calloc(1, sizeof(*x));

    if (x == NULL) {
        session_drop(s);
        return;
    }
    x->session = s;
    x->worker = s->worker;
    x->body.whole = true;
    x->method = s->worker->request.method;
    x->head_only = x->method == HTTP_HEAD;
    if (x->method != HTTP_OTHER) {
        exchange_find_owner(x, &s->worker->request);
    }
    s->exchange = x;
    access_begin(x);
    problem_answer(x, status, slice_of(sentence));
}

/* Whether the server is well is answered to the last. */
static bool asks_health(const struct http_request *request)
{
    struct slice path;
    struct slice query;

    http_target_split(request->target, &path, &query);
    return slice_equal(path, SLICE("/health"));
}

static bool step_head(struct session *s)
{
    struct worker *w = s->worker;
    struct slice input = conn_input(&s->conn);
    struct http_refusal refusal = {.status = 400, .sentence = "the request is malformed"};

    if (input.len == 0 || conn_output_bytes(&s->conn) > HTTP_PIPELINE_BYTES_MAX) {
        return false;
    }
    long used = http_request_parse(input, &s->scanned, &w->request, &refusal);

    if (used == 0) {
        if (!s->head_started) {
            s->head_started = true;
            session_set_deadline(s, s->refused ? HTTP_REFUSED_TIMEOUT_MS : HTTP_HEAD_TIMEOUT_MS);
        }
        return false;
    }
    s->head_started = false;
    s->scanned = 0;
    if (used < 0) {
        w->request.method = HTTP_OTHER; /* what a refused head asked for is not known */
        refuse(s, refusal.status, refusal.sentence);
    } else if (w->draining && !asks_health(&w->request)) {
        refuse(s, 503, STOPPING);
    } else if (s->refused) {
        refuse(s, 503, TOO_MANY);
    } else {
        enter(s, SESSION_BUSY, NEVER);
        exchange_begin(s, input, (size_t)used);
        return true;
    }
    return false;
}

static bool step_drain(struct session *s)
{
    struct slice input = conn_input(&s->conn);
    size_t count = input.len < s->drain_left ? input.len : (size_t)s->drain_left;

    conn_consume(&s->conn, count);
    s->drain_left -= count;
    if (s->drain_left > 0) {
        return false;
    }
    enter(s, SESSION_HEAD, HTTP_IDLE_TIMEOUT_MS);
    return true;
}

/* One step; whether another may follow. */
static bool step(struct session *s)
{
    switch (s->state) {
    case SESSION_HEAD:
        return step_head(s);
    case SESSION_BODY:
        exchange_feed(s->exchange);
        return s->state != SESSION_BODY;
    case SESSION_DRAIN:
        return step_drain(s);
    case SESSION_LIVE:
        /* The answer said Connection: close, so nothing that comes now is a request. */
        conn_consume(&s->conn, conn_input(&s->conn).len);
        return false;
    case SESSION_BUSY:
    case SESSION_CLOSING:
        return false;
    }
    return false;
}

void session_advance(struct session *s)
{
    if (s->advancing || s->gone) {
        return;
    }
    s->advancing = true;
    while (!s->gone && step(s)) {
    }
    s->advancing = false;
    if (!s->gone && s->state != SESSION_CLOSING && conn_output_bytes(&s->conn) > 0) {
        conn_flush(&s->conn);
    }
}

void session_answered(struct session *s, bool keep, uint64_t unread_body_bytes)
{
    s->exchange = NULL;
    if (s->gone) {
        return;
    }
    if (!keep) {
        begin_closing(s);
        return;
    }
    s->drain_left = unread_body_bytes;
    if (unread_body_bytes > 0) {
        enter(s, SESSION_DRAIN, HTTP_DRAIN_TIMEOUT_MS);
    } else {
        enter(s, SESSION_HEAD, HTTP_IDLE_TIMEOUT_MS);
    }
    session_advance(s);
}

/* Whether anything moved since the last look: output out, or input in. */
static bool has_progress(struct session *s, uint64_t moved, uint64_t at_least)
{
    bool good = moved >= s->progress + at_least;

    s->progress = moved;
    return good;
}

/* Output shrinks as it goes out, so its progress is counted downwards. */
static bool output_moves(struct session *s)
{
    return has_progress(s, UINT64_MAX - conn_output_bytes(&s->conn), 1);
}

static void head_timed_out(struct session *s)
{
    if (conn_output_bytes(&s->conn) > 0 && output_moves(s)) {
        session_set_deadline(s, HTTP_IDLE_TIMEOUT_MS);
    } else if (s->head_started && conn_output_bytes(&s->conn) == 0) {
        s->worker->request.method = HTTP_OTHER;
        refuse(s, 408, "the request head did not come in time");
    } else {
        session_drop(s);
    }
}

/* Answers a request whose body is still coming, and closes. */
static void refuse_body(struct session *s, int status, struct slice sentence)
{
    /* The connection must not write to what is about to be freed. */
    body_stop(&s->exchange->body, &s->conn);
    s->exchange->keep = false;
    problem_answer(s->exchange, status, sentence);
}

static void body_timed_out(struct session *s)
{
    if (has_progress(s, body_received(&s->exchange->body, &s->conn), BODY_PROGRESS_BYTES_MIN)) {
        session_set_deadline(s, HTTP_BODY_WINDOW_MS);
        return;
    }
    refuse_body(s, 408,
                SLICE("the request body came too slowly; at least 1 KiB per second is expected"));
}

/* Whether a reader waits, or its answer goes on. */
static bool is_live(const struct session *s)
{
    return (s->state == SESSION_BUSY || s->state == SESSION_LIVE) && s->exchange->live_ops != NULL;
}

static void timed_out(struct session *s)
{
    switch (s->state) {
    case SESSION_HEAD:
        head_timed_out(s);
        break;
    case SESSION_BODY:
        body_timed_out(s);
        break;
    case SESSION_BUSY:
    case SESSION_LIVE:
        if (is_live(s)) {
            s->exchange->live_ops->tick(s->exchange);
        }
        break;
    case SESSION_DRAIN:
        session_drop(s);
        break;
    case SESSION_CLOSING:
        if (output_moves(s)) {
            session_set_deadline(s, closing_ms(s));
        } else {
            session_drop(s);
        }
        break;
    }
}

static void on_timer(struct loop_timer *timer)
{
    struct session *s = container_of(timer, struct session, timer);

    timed_out(s);
    session_advance(s);
}

static void on_input(struct conn *c)
{
    session_advance(c->owner);
}

static void on_drained(struct conn *c)
{
    struct session *s = c->owner;

    if (s->state == SESSION_HEAD) {
        session_advance(s);
    } else if (is_live(s) && s->exchange->live_ops->drained != NULL) {
        s->exchange->live_ops->drained(s->exchange);
        session_advance(s);
    }
}

static void on_closed(struct conn *c, enum conn_end end)
{
    (void)end; /* however it ended, it is over */
    session_drop(c->owner);
}

static const struct conn_handler handler = {
    .input = on_input,
    .drained = on_drained,
    .closed = on_closed,
};

/* Above the cap a client is told so in answer to its request; far above it, at once, and nobody
 * waits for what it says. */
static bool admit(struct server *server, bool *ret_refused)
{
    unsigned max = server_tunables(server)->connection_count_max;
    unsigned open = atomic_fetch_add(&server->connections, 1);

    *ret_refused = open >= max;
    if (open < max + HTTP_REFUSED_CONNECTIONS(max)) {
        return true;
    }
    atomic_fetch_sub(&server->connections, 1);
    return false;
}

/* Sends a refusal into a new socket, which has room for it, and closes. What has come already is
 * read, since closing upon unread bytes is a reset, which may overtake the answer. */
static void turn_away(struct worker *w, int fd)
{
    char away[16 * KIB];
    struct slice answer = problem_unasked(w, 503, SLICE(TOO_MANY));

    /* Who has gone already, or sends more, loses the answer and nothing else. */
    (void)send(fd, answer.ptr, answer.len, MSG_NOSIGNAL | MSG_DONTWAIT);
    (void)shutdown(fd, SHUT_WR);
    (void)recv(fd, away, sizeof(away), MSG_DONTWAIT);
    (void)close(fd);
}

void session_accept(struct worker *w, int fd)
{
    bool refused = false;

    bool admitted = admit(w->server, &refused);

    counter_add(admitted && !refused ? &w->tally.accepted : &w->tally.refused, 1);
    if (!admitted) {
        turn_away(w, fd);
        return;
    }
    struct session *s = calloc(1, sizeof(*s));

    if (s == NULL) {
        (void)close(fd); /* as above */
        atomic_fetch_sub(&w->server->connections, 1);
        return;
    }
    s->worker = w;
    s->refused = refused;
    s->timer.fire = on_timer;
    if (conn_init(&s->conn, w->loop, fd, &w->server->conn, &handler, s) != 0) {
        atomic_fetch_sub(&w->server->connections, 1);
        free(s);
        return;
    }
    w->session_count++;
    list_init(&s->link);
    list_append(&w->sessions, &s->link);
    enter(s, SESSION_HEAD, refused ? HTTP_REFUSED_TIMEOUT_MS : HTTP_IDLE_TIMEOUT_MS);
}

/* Whether there is neither a request nor an answer. A request that waits in the socket, as on a
 * connection that was accepted a moment ago, is read in this turn or the next, and refused. */
static bool is_idle(const struct session *s)
{
    return conn_input(&s->conn).len == 0 && conn_output_bytes(&s->conn) == 0 &&
           !conn_has_unread(&s->conn);
}

void session_drain(struct session *s)
{
    switch (s->state) {
    case SESSION_HEAD:
        if (is_idle(s)) {
            begin_closing(s);
        }
        break;
    case SESSION_BUSY:
    case SESSION_LIVE:
        if (is_live(s)) {
            s->exchange->live_ops->stop(s->exchange);
        }
        break;
    case SESSION_CLOSING:
        if (s->endless) {
            session_set_deadline(s, closing_ms(s));
        }
        break;
    case SESSION_BODY:
    case SESSION_DRAIN:
        break;
    }
}

void session_hurry(struct session *s)
{
    switch (s->state) {
    case SESSION_HEAD:
        if (s->head_started) {
            s->worker->request.method = HTTP_OTHER;
            refuse(s, 503, STOPPING);
        } else {
            begin_closing(s);
        }
        break;
    case SESSION_BODY:
        refuse_body(s, 503, SLICE(STOPPING));
        break;
    case SESSION_DRAIN:
        begin_closing(s); /* it was answered */
        break;
    case SESSION_BUSY:
    case SESSION_LIVE:
    case SESSION_CLOSING:
        break;
    }
    session_advance(s); /* sends it */
}

void session_end_read(struct session *s)
{
    if (is_live(s)) {
        s->exchange->live_ops->stop(s->exchange);
    } else if (s->exchange != NULL) {
        s->exchange->unwanted = true;
    }
    session_advance(s); /* sends it */
}
