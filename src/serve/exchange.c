/* From a head to a handler: is it a stream, is the secret there, is the name good, is the
 * method ours, are the headers good; then the body, then the handler. The first no is the
 * answer. */
#include "serve/exchange.h"

#include "serve/access.h"
#include "serve/auth.h"
#include "serve/control.h"
#include "serve/control_route.h"
#include "serve/handlers.h"
#include "serve/mount.h"
#include "serve/problem.h"
#include "stream/name.h"
#include "stream/refusal.h"

#include <assert.h>
#include <stdlib.h>

/* Copies the head out of the input buffer and points the request's slices to the copy. */
static struct request_head *copy_head(const struct http_request *request, struct slice bytes)
{
    struct request_head *head = malloc(sizeof(*head) + bytes.len);

    if (head == NULL) {
        return NULL;
    }
    http_request_copy(request, bytes, head->bytes, &head->request);
    return head;
}

void exchange_drop_head(struct exchange *x)
{
    free(x->head);
    x->head = NULL;
}

/* What was announced and has not come is not written. */
static void return_rate(struct exchange *x)
{
    uint64_t received = body_received(&x->body, &x->session->conn);

    if (x->rated > received) {
        rate_return(&x->worker->server->body_bytes_in, x->rated - received);
    }
}

void exchange_destroy(struct exchange *x)
{
    if (x == NULL) {
        return;
    }
    assert(!x->running);
    if (x->ended != NULL) {
        x->ended(x);
    }
    exchange_rest(x);
    if (x->guest != NULL) {
        x->mount->leave(x);
    }
    access_end(x);
    return_rate(x);
    body_finish(&x->body, x->worker->server);
    control_destroy(x->about);
    exchange_drop_head(x);
    free(x);
}

void exchange_rest(struct exchange *x)
{
    work_give(x->worker, x->work);
    x->work = NULL;
}

bool exchange_rise(struct exchange *x)
{
    struct slice name = stream_name(x->live.stream);

    x->work = work_take(x->worker);
    if (x->work == NULL) {
        return false;
    }
    memcpy(x->work->name, name.ptr, name.len);
    x->work->name_len = name.len;
    return true;
}

bool exchange_abandon(struct exchange *x)
{
    if (x->running) {
        return false;
    }
    exchange_destroy(x);
    return true;
}

void exchange_park(struct exchange *x)
{
    x->running = true;
    /* A client that sends its request and closes for writing is owed an answer: the end of its
     * input is not looked at before that. */
    conn_pause(&x->session->conn, true);
}

void exchange_resume(struct exchange *x)
{
    struct session *s = x->session;

    x->running = false;
    if (s->gone) {
        s->exchange = NULL;
        exchange_destroy(x);
        session_release(s);
        return;
    }
    conn_pause(&s->conn, false);
    x->finish(x);
    session_advance(s);
}

static void op_done(struct stream_op *op)
{
    exchange_resume(op->context);
}

void exchange_run(struct exchange *x)
{
    x->work->op.name = (struct slice){x->work->name, x->work->name_len};
    x->work->op.done = op_done;
    x->work->op.context = x;
    x->running = true;
    if (stream_start(x->worker->engine, &x->work->op) == STREAM_PENDING) {
        exchange_park(x);
        return;
    }
    x->running = false;
    x->finish(x);
}

static void body_complete(struct exchange *x)
{
    x->session->state = SESSION_BUSY;
    x->ready_us = loop_now_us(x->worker->loop);
    counter_add(&x->worker->tally.request_bytes, x->body.len);
    session_set_deadline(x->session, LOOP_NEVER_MS);
    x->ready(x);
}

void exchange_refuse_body(struct exchange *x, int code)
{
    struct errmsg msg = {{0}};

    x->keep = false; /* where the body ends is unknown or too far */
    if (code == ERR_TOOBIG) {
        code = refusal_of_body(&msg, x->body.max);
    } else if (code == ERR_INVALID) {
        (void)err_set(&msg, code, "the chunked request body is malformed");
    } else if (code == ERR_BUSY) {
        (void)err_set(&msg, code, "too many request bodies are under way; try again shortly");
    }
    problem_answer_code(x, code, &msg);
}

/* True when `amount` is too much for this second: then the request has been answered. */
static bool over_rate(struct exchange *x, struct rate *rate, uint64_t amount, const char *what,
                      const char *flag)
{
    struct errmsg msg = {{0}};

    x->retry_after = rate_take(rate, loop_now_us(x->worker->loop), amount);
    if (x->retry_after == 0) {
        return false;
    }
    (void)err_set(&msg, ERR_LIMIT,
                  "this server takes at most %llu %s per second (%s); try again after %llu s",
                  (unsigned long long)rate_get(rate), what, flag,
                  (unsigned long long)x->retry_after);
    problem_answer_code(x, ERR_LIMIT, &msg);
    return true;
}

bool exchange_over_rate(struct exchange *x)
{
    return over_rate(x, &x->worker->server->requests, 1, "requests", "--max-request-rate");
}

/* A body whose length is not known is let in while any byte would be, and pays as it comes. */
static bool over_body_rate(struct exchange *x)
{
    bool known = x->body.kind == HTTP_BODY_LENGTH;

    if (x->unrated) {
        return false;
    }
    if (over_rate(x, &x->worker->server->body_bytes_in, known ? x->body.declared : 1,
                  "bytes of request bodies", "--max-write-rate")) {
        return true;
    }
    x->rated = known ? x->body.declared : 0;
    return false;
}

void exchange_feed(struct exchange *x)
{
    struct worker *w = x->worker;
    size_t before = x->body.len;
    int code = body_feed(&x->body, w->server, &x->session->conn);

    if (x->body.kind == HTTP_BODY_CHUNKED && !x->unrated) {
        rate_charge(&w->server->body_bytes_in, loop_now_us(w->loop), x->body.len - before);
    }
    if (code != 0) {
        exchange_refuse_body(x, code);
    } else if (x->body.whole) {
        body_complete(x);
    }
}

void exchange_await_body(struct exchange *x)
{
    struct session *s = x->session;

    if (x->body.whole) {
        body_complete(x);
        return;
    }
    if (over_body_rate(x)) {
        return;
    }
    /* The client waits for a sign before it sends (RFC 9110 section 10.1.1), unless it did not. */
    if (x->unasked && conn_input(&s->conn).len == 0) {
        if (conn_send_copy(&s->conn, SLICE("HTTP/1.1 100 Continue\r\n\r\n")) != 0) {
            session_drop(s);
            return;
        }
    }
    x->unasked = false;
    s->state = SESSION_BODY;
    s->progress = 0;
    session_set_deadline(s, HTTP_BODY_WINDOW_MS);
    exchange_feed(x);
}

typedef int (*prepare_fn)(struct exchange *x, struct errmsg *msg);

static prepare_fn handler_of(enum http_method method)
{
    switch (method) {
    case HTTP_GET:
        return catchup_prepare;
    case HTTP_HEAD:
        return head_prepare;
    case HTTP_PUT:
        return create_prepare;
    case HTTP_POST:
        return append_prepare;
    case HTTP_DELETE:
        return remove_prepare;
    case HTTP_PATCH:
    case HTTP_OPTIONS:
    case HTTP_OTHER:
        break;
    }
    return NULL;
}

static void answer_name_error(struct exchange *x, int code, const struct errmsg *msg)
{
    tally_error(&x->worker->tally, code);
    problem_answer(x, refusal_name_status(code), slice_of(msg->text));
}

static void answer_method(struct exchange *x)
{
    problem_answer(x, 405, SLICE("a stream knows GET, HEAD, PUT, POST, DELETE and OPTIONS"));
}

struct slice exchange_reserved(const struct exchange *x)
{
    return x->mount != NULL ? (struct slice){NULL, 0} : server_reserved(x->worker->server);
}

int exchange_check_reserved(const struct exchange *x, struct slice name, struct errmsg *msg)
{
    struct slice reserved = exchange_reserved(x);

    if (reserved.len == 0 || !slice_starts_with(name, reserved)) {
        return 0;
    }
    return err_set(msg, ERR_PERM, "%s", x->worker->server->config->mount->reserved_why);
}

/* A request for a stream: everything below the root. */
static void serve_stream(struct exchange *x, struct slice path, struct slice query)
{
    const size_t root_len = sizeof(NAME_ROOT) - 1;
    struct slice raw = {path.ptr + root_len, path.len - root_len};
    struct server *server = x->worker->server;
    prepare_fn prepare = handler_of(x->method);
    struct errmsg msg = {{0}};

    if (!auth_is_good(exchange_request(x), server_tunables(server)->secret)) {
        problem_answer(x, 401, SLICE("this server wants Authorization: Bearer and its secret"));
        return;
    }
    if (exchange_over_rate(x)) {
        return;
    }
    int code = name_parse(raw, x->work->name, &x->work->name_len, &msg);

    if (code != 0) {
        answer_name_error(x, code, &msg);
        return;
    }
    if (prepare == NULL) {
        answer_method(x);
        return;
    }
    code = exchange_check_reserved(x, (struct slice){x->work->name, x->work->name_len}, &msg);
    if (code == 0 && x->method == HTTP_GET) {
        code = query_parse(query, &x->query, &msg);
    }
    if (code == 0) {
        code = prepare(x, &msg);
    }
    if (code == 0) {
        /* GET, HEAD and DELETE do not look at a body; it is read away behind the answer. */
        if (x->method == HTTP_PUT || x->method == HTTP_POST) {
            exchange_await_body(x);
        } else {
            x->ready(x);
        }
    } else {
        problem_answer_code(x, code, &msg);
    }
}

static void route(struct exchange *x)
{
    struct slice path;
    struct slice query;

    http_target_split(exchange_request(x)->target, &path, &query);
    if (x->method == HTTP_OPTIONS) {
        options_answer(x);
    } else if (x->control) {
        control_begin(x, path, query);
    } else if (x->mount != NULL) {
        x->mount->begin(x, path, query);
    } else if (name_is_stream_path(path)) {
        serve_stream(x, path, query);
    } else if (slice_equal(path, SLICE("/health"))) {
        health_answer(x);
    } else if (slice_equal(path, SLICE("/metrics"))) {
        metrics_answer(x);
    } else if (x->method == HTTP_OTHER || x->method == HTTP_PATCH) {
        answer_method(x);
    } else {
        problem_answer(x, 404,
                       SLICE("there is nothing here; streams live under " NAME_ROOT
                             " and a name of your choice"));
    }
}

void exchange_find_owner(struct exchange *x, const struct http_request *request)
{
    const struct mount *mount = x->worker->server->config->mount;
    struct slice path;
    struct slice query;

    http_target_split(request->target, &path, &query);
    x->control = control_is_path(path);
    if (mount != NULL && mount->takes(mount->context, path)) {
        x->mount = mount;
    }
}

void exchange_begin(struct session *s, struct slice input, size_t head_bytes)
{
    struct worker *w = s->worker;
    struct exchange *x = calloc(1, sizeof(*x));
    struct request_head *head = copy_head(&w->request, (struct slice){input.ptr, head_bytes});
    struct work *work = work_take(w);

    if (x == NULL || head == NULL || work == NULL) {
        free(x);
        free(head);
        work_give(w, work);
        session_drop(s);
        return;
    }
    conn_consume(&s->conn, head_bytes);
    s->exchange = x;
    x->session = s;
    x->worker = w;
    x->head = head;
    x->work = work;
    x->method = head->request.method;
    x->head_only = x->method == HTTP_HEAD;
    x->chunked_ok = head->request.minor_version > 0;
    x->keep = head->request.keep_alive;
    exchange_find_owner(x, &head->request);
    access_begin(x);
    int code = body_begin(&x->body, w->server, &head->request);

    x->unasked = head->request.expect_continue && !x->body.whole;
    if (code != 0) {
        exchange_refuse_body(x, code);
    } else {
        route(x);
    }
}
