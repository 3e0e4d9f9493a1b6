/* In order: is there such a route, does it know the method, who asks, may it change things from
 * there; then the body, then the handler. The first no is the answer. Nothing is read from who
 * shows no credentials where some are needed. */
#include "app/api_call.h"

#include "app/app.h"
#include "app/attempts.h"
#include "app/grants.h"
#include "app/handlers.h"
#include "serve/problem.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/random.h>
#include <time.h>

#define MEMORY_BYTES_MAX     (16ull * MIB) /* of one call, beside body and answer */
#define CALLER_KEPT_MS       60000
#define BEARER_SANDBOX_BYTES (8 * KIB)

/* What the path leads to, before there is a call. */
static void answer_early(struct exchange *x, const struct api_error *error)
{
    char memory[2 * KIB];
    struct buf document;

    buf_init_fixed(&document, memory, sizeof(memory));
    api_error_format(&document, error);
    buf_append_char(&document, '\n');
    reply_begin(x, api_error_status(error->code), REPLY_NO_STORE);
    reply_literal(x, SLICE("Content-Type"), SLICE("application/json"));
    reply_send(x, buf_slice(&document));
}

static void answer_no_route(struct exchange *x, struct slice path, const struct route_match *match)
{
    char allow[64];
    struct api_error error;

    if (match->bad_escape) {
        (void)api_error_set(&error, API_INVALID_INPUT,
                            "a '%%' in the path must be followed by two hex digits");
    } else if (match->known) {
        route_allow(path, allow, sizeof(allow));
        x->allow = slice_of(allow);
        (void)api_error_set(&error, API_METHOD_NOT_ALLOWED, "this path knows %s", allow);
    } else {
        (void)api_error_set(&error, API_UNKNOWN_ROUTE, "there is no such route");
        (void)api_error_suggest(&error, "docs/api.md lists the routes below /api");
    }
    answer_early(x, &error);
}

static void destroy(struct api_call *c)
{
    arena_finish(&c->memory);
    buf_finish(&c->answer);
    buf_finish(&c->cookie);
    free(c);
}

void api_leave(struct exchange *x)
{
    destroy(x->guest);
}

int api_refuse(struct api_call *c, enum api_code code, const char *format, ...)
{
    char text[API_MESSAGE_BYTES];
    va_list args;

    va_start(args, format);
    (void)vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    (void)api_error_set(&c->error, code, "%s", text);
    return API_FAILED;
}

int api_refuse_attempt(struct api_call *c, enum api_code code, const char *sentence)
{
    uint64_t wait = attempts_wait_s(c->app->attempts, c->peer, c->now_ms);

    if (wait == 0) {
        attempts_failed(c->app->attempts, c->peer, c->now_ms);
        return api_refuse(c, code, "%s", sentence);
    }
    c->retry_after = wait;
    return api_refuse(c, API_AUTH_RATE_LIMITED, "too many attempts failed; try again after %llu s",
                      (unsigned long long)wait);
}

static enum api_code code_of(int code)
{
    switch (code) {
    case ERR_NOTFOUND:
        return API_NOT_FOUND;
    case ERR_EXISTS:
    case ERR_CONFLICT:
    case ERR_LIMIT:
        return API_CONFLICT;
    case ERR_INVALID:
        return API_INVALID_INPUT;
    case ERR_TOOBIG:
        return API_TOO_LARGE;
    case ERR_NOSPC:
        return API_STORAGE_FULL;
    case ERR_BUSY:
    case ERR_AGAIN:
    case ERR_NOMEM:
        return API_BUSY;
    case ERR_UNKNOWN:
        return API_OUTCOME_UNKNOWN;
    default:
        return API_INTERNAL;
    }
}

int api_fail(struct api_call *c, int code, const struct errmsg *msg, const char *what)
{
    enum api_code mapped = code_of(code);

    if (mapped == API_NOT_FOUND) {
        return api_refuse(c, mapped, "there is no such %s", what);
    }
    if (mapped == API_INTERNAL || mapped == API_STORAGE_FULL) {
        /* The sentence tells of the inside of the server: it is for the operator. */
        logger_line(c->app->config.logger, LOGGER_ERROR, "%s: %s", c->route->pattern,
                    msg->text[0] == '\0' ? err_text(code) : msg->text);
        (void)api_error_set(&c->error, mapped, "%s",
                            mapped == API_INTERNAL ? "something went wrong inside the server"
                                                   : "no space is left on the disk");
        return API_FAILED;
    }
    return api_refuse(c, mapped, "%s", msg->text[0] == '\0' ? err_text(code) : msg->text);
}

int api_fail_append(struct api_call *c, int code, const struct errmsg *msg)
{
    switch (code) {
    case ERR_CLOSED:
        return api_refuse(c, API_THREAD_CLOSED, "the thread takes no more entries");
    case ERR_FAILED:
    case ERR_STOPPING:
        return api_refuse(c, API_STREAMS_UNAVAILABLE,
                          "the server takes no writes for now; see /health");
    default:
        return api_fail(c, code, msg, "thread");
    }
}

int api_answer(struct api_call *c, int status)
{
    if (status != 204) {
        buf_append_char(&c->answer, '\n'); /* for those who read it in a terminal */
    }
    if (c->answer.failed || c->cookie.failed) {
        return api_refuse(c, API_BUSY, "the server has no memory for the answer");
    }
    c->status = status;
    return API_DONE;
}

struct slice api_new_id(struct api_call *c)
{
    char *text = arena_try_alloc(&c->memory, UUID_TEXT_BYTES);
    struct uuid id;

    if (text == NULL || uuid_source_next(&c->app->ids, (uint64_t)c->now_ms, &id) != 0) {
        (void)api_refuse(c, API_BUSY, "the server cannot make an id just now");
        return (struct slice){NULL, 0};
    }
    uuid_format(&id, text);
    return slice_of(text);
}

bool api_random(struct api_call *c, unsigned char out[static API_KEY_RANDOM_BYTES])
{
    if (getrandom(out, API_KEY_RANDOM_BYTES, 0) == (ssize_t)API_KEY_RANDOM_BYTES) {
        return true;
    }
    (void)api_refuse(c, API_BUSY, "the server has no random numbers just now");
    return false;
}

static void count_refusal(struct api_call *c)
{
    if (c->route->run == entry_post || c->route->run == sandbox_write) {
        atomic_fetch_add_explicit(&c->app->posts_refused[c->error.code], 1, memory_order_relaxed);
    }
}

void api_answer_now(struct exchange *x)
{
    struct api_call *c = x->guest;

    if (c->result == API_HANDOVER) {
        c->handover(c);
        return;
    }
    if (c->result != API_DONE) {
        count_refusal(c);
        x->retry_after = c->retry_after;
        x->outcome_unknown = c->error.code == API_OUTCOME_UNKNOWN;
        c->status = api_error_status(c->error.code);
        buf_clear(&c->answer);
        api_error_format(&c->answer, &c->error);
        buf_append_char(&c->answer, '\n');
        if (c->answer.failed) {
            session_drop(x->session);
            return;
        }
    }
    reply_begin(x, c->status, REPLY_NO_STORE);
    if (c->cookie.len > 0) {
        reply_field(x, SLICE("Set-Cookie"), buf_slice(&c->cookie));
    }
    if (c->status == 204) {
        reply_send_bare(x);
        return;
    }
    reply_literal(x, SLICE("Content-Type"), SLICE("application/json"));
    reply_send(x, buf_slice(&c->answer));
}

void api_refuse_now(struct exchange *x, enum api_code code, const char *sentence)
{
    struct api_call *c = x->guest;

    c->result = api_refuse(c, code, "%s", sentence);
    api_answer_now(x);
}

static void back_on_loop(struct task *task)
{
    exchange_resume(container_of(task, struct api_call, task)->x);
}

void api_finish(struct api_call *c, int result)
{
    c->result = result;
    c->task.run = back_on_loop;
    loop_post(c->x->worker->loop, &c->task);
}

/* `count` is the pool's: the call may be gone when its step has ended. */
static void run_step(struct api_call *c, atomic_uint *count)
{
    c->on_pool = true;
    int result = c->step(c);

    if (result != API_PENDING) {
        api_finish(c, result);
    }
    (void)atomic_fetch_sub(count, 1);
}

static void step_on_pool(struct task *task)
{
    struct api_call *c = container_of(task, struct api_call, task);

    run_step(c, &c->app->pool_calls);
}

static void step_on_streams(struct task *task)
{
    struct api_call *c = container_of(task, struct api_call, task);

    run_step(c, &c->app->stream_calls);
}

/* Counts the call; false when too many wait, and it has its result. */
static bool admit_step(struct api_call *c, atomic_uint *count)
{
    if (atomic_fetch_add(count, 1) < APP_CALLS_MAX) {
        return true;
    }
    (void)atomic_fetch_sub(count, 1);
    api_finish(c, api_refuse(c, API_BUSY, "too many requests wait; try again shortly"));
    return false;
}

void api_run_on_streams(struct api_call *c, int (*step)(struct api_call *c))
{
    if (admit_step(c, &c->app->stream_calls)) {
        c->step = step;
        c->task.run = step_on_streams;
        pool_submit(c->app->stream_pool, &c->task);
    }
}

void api_run_on_pool(struct api_call *c, int (*step)(struct api_call *c))
{
    if (c->route->place == ROUTE_STREAMS) {
        api_run_on_streams(c, step);
    } else if (admit_step(c, &c->app->pool_calls)) {
        c->step = step;
        c->task.run = step_on_pool;
        pool_submit(c->app->pool, &c->task);
    }
}

/* On a thread of the pool, or, where all is known by heart, on the worker. */
static int run_handler(struct api_call *c)
{
    return c->route->run(c);
}

/* Asks the records who it is. */
static int find_caller(struct api_call *c)
{
    struct thread_store *store = c->app->store;
    struct slice hash = slice_of(c->caller.hash);
    struct caller_record record;
    struct errmsg msg = {{0}};
    int code = c->caller.proof == CALLER_KEY
                   ? store_key_find(store, hash, &c->memory, &record, &msg)
                   : store_session_find(store, hash, c->now_ms, &c->memory, &record, &msg);

    if (code == ERR_NOTFOUND && c->caller.proof == CALLER_SESSION &&
        c->route->guard == ROUTE_OPEN) {
        c->caller.proof = CALLER_NOBODY; /* or nobody whose session has ended could sign in again */
        return API_DONE;
    }
    if (code == ERR_NOTFOUND) {
        return api_refuse(c, API_UNAUTHENTICATED, "%s",
                          c->caller.proof == CALLER_KEY ? "the API key is unknown, or was revoked"
                                                        : "the session has ended; sign in again");
    }
    if (code != 0) {
        return api_fail(c, code, &msg, "caller");
    }
    (void)snprintf(c->caller.agent_id, sizeof(c->caller.agent_id), "%.*s", (int)record.agent.id.len,
                   record.agent.id.ptr);
    (void)snprintf(c->caller.key_id, sizeof(c->caller.key_id), "%.*s", (int)record.key_id.len,
                   record.key_id.ptr);
    c->caller.last_used_ms = record.last_used_ms;
    if (c->now_ms - record.last_used_ms >= STORE_KEY_TOUCH_MS) {
        code = store_key_touch(store, record.key_id, c->now_ms, &msg);
    }
    if (code != 0) {
        /* It only tells the key's owner when it was last used: no reason to refuse. */
        logger_line(c->app->config.logger, LOGGER_WARN, "the use of a key was not noted: %s",
                    msg.text);
    }
    grants_keep_caller(c->app->grants, c->epoch, &c->caller, c->now_ms + CALLER_KEPT_MS);
    return API_DONE;
}

/* One more request of somebody who may ask: one too many for this second? Who is nobody uses up
 * nothing of what is there for those who are somebody. */
static int count_request(struct api_call *c)
{
    struct rate *rate = &c->app->server->requests;
    struct timespec now;

    (void)clock_gettime(CLOCK_MONOTONIC, &now); /* cannot fail for this clock */
    c->retry_after = rate_take(rate, (uint64_t)now.tv_sec * 1000000 + (uint64_t)now.tv_nsec / 1000,
                               1);
    return c->retry_after == 0
               ? API_DONE
               : api_refuse(c, API_RATE_LIMITED,
                            "this server takes at most %llu requests per second "
                            "(--max-request-rate); try again after %llu s",
                            (unsigned long long)rate_get(rate), (unsigned long long)c->retry_after);
}

static int find_caller_and_run(struct api_call *c)
{
    c->epoch = grants_epoch(c->app->grants);
    int result = find_caller(c);

    result = result == API_DONE ? count_request(c) : result;
    return result == API_DONE ? run_handler(c) : result;
}

void api_look_again(struct api_call *c)
{
    exchange_park(c->x);
    api_run_on_pool(c, find_caller_and_run);
}

/* Runs what is to be run on the worker. What is pending may have ended already, on another thread,
 * and have its result; but that comes to this one in a later turn only, when the exchange is
 * parked. */
static void run_here(struct api_call *c)
{
    int result = c->route->run(c);

    if (result == API_PENDING) {
        exchange_park(c->x); /* c->result is the other thread's */
    } else {
        c->result = result;
        api_answer_now(c->x);
    }
}

/* The body is there. */
static void ready(struct exchange *x)
{
    struct api_call *c = x->guest;
    /* A body takes its time: what was known when the head came may be wrong by now. */
    bool known = c->caller.proof == CALLER_NOBODY ||
                 (c->caller.agent_id[0] != '\0' && c->epoch == grants_epoch(c->app->grants));

    c->now_ms = loop_wall_ms(x->worker->loop); /* the body may have been long in coming */
    if (x->body.len > 0) {
        c->body = (struct slice){x->body.block->data, x->body.len};
    }
    if (known && c->route->place == ROUTE_WORKER) {
        run_here(c);
        return;
    }
    exchange_park(x);
    api_run_on_pool(c, known ? run_handler : find_caller_and_run);
}

/* Bearer of a sandbox: judged at once, since that takes no records. */
static int admit_sandbox(struct api_call *c, const struct http_request *request)
{
    size_t count = 0;
    struct slice value = http_request_header(request, SLICE("authorization"), &count);
    struct slice scheme;

    if (count != 1 || !slice_split(&value, ' ', &scheme) || value.ptr == NULL ||
        !slice_equal_nocase(scheme, SLICE("bearer")) || value.len > BEARER_SANDBOX_BYTES) {
        return api_refuse(c, API_UNAUTHENTICATED,
                          "Authorization must be Bearer and the token of a sandbox");
    }
    return sandbox_token_verify(c->app->sandbox_key, slice_trim(value), c->now_ms, &c->memory,
                                &c->sandbox, &c->error);
}

static bool shows_authorization(const struct http_request *request)
{
    size_t count = 0;

    (void)http_request_header(request, SLICE("authorization"), &count);
    return count > 0;
}

/* What can be said of who asks from the head alone. */
static int admit(struct api_call *c, const struct http_request *request)
{
    struct credentials shown;
    size_t origins = 0;

    if (c->route->guard == ROUTE_SANDBOX) {
        return admit_sandbox(c, request);
    }
    if (c->route->guard == ROUTE_FREE) {
        /* A page of another origin must not sign its own agent in. */
        (void)http_request_header(request, SLICE("origin"), &origins);
        return origins == 0 ? API_DONE
                            : origin_check(request, slice_of(c->app->config.public_url), &c->error);
    }
    if (!credentials_find(request, &shown, &c->error)) {
        /* A cookie that is not ours must not keep anybody from signing in. */
        return c->route->guard == ROUTE_OPEN && !shows_authorization(request) ? API_DONE
                                                                              : API_FAILED;
    }
    if (shown.proof == CALLER_NOBODY) {
        if (c->route->guard == ROUTE_OPEN) {
            return API_DONE;
        }
        (void)api_refuse(c, API_UNAUTHENTICATED, "this needs an API key, or a session");
        return api_error_suggest(&c->error, "send Authorization: Bearer and an API key (arbe_...), "
                                            "or sign in by POST /api/session");
    }
    bool changes = c->x->method != HTTP_GET && c->x->method != HTTP_HEAD;

    if (shown.proof == CALLER_SESSION && changes &&
        origin_check(request, slice_of(c->app->config.public_url), &c->error) != 0) {
        return API_FAILED;
    }
    c->caller.proof = shown.proof;
    if (!api_key_hash(shown.secret, c->caller.hash)) {
        return api_refuse(c, API_BUSY, "the server has no memory for this just now");
    }
    if (!grants_find_caller(c->app->grants, c->caller.hash, c->now_ms, &c->caller)) {
        c->caller.agent_id[0] = '\0'; /* then the records are asked */
    }
    return API_DONE;
}

/* Bodies are JSON, whatever is said of them: curl says that they are forms. Only where a browser
 * might be made to send one by another page must it be said, which such a page cannot do. */
static int check_type(struct api_call *c, const struct http_request *request)
{
    size_t count = 0;
    struct slice type = http_request_header(request, SLICE("content-type"), &count);
    struct slice essence;

    if (c->caller.proof == CALLER_KEY || c->route->guard == ROUTE_SANDBOX ||
        (c->x->body.whole && c->x->body.len == 0)) {
        return API_DONE;
    }
    if (count == 1 && slice_split(&type, ';', &essence) &&
        slice_equal_nocase(slice_trim(essence), SLICE("application/json"))) {
        return API_DONE;
    }
    return api_refuse(c, API_UNSUPPORTED_MEDIA, "the body must be application/json");
}

static bool has_body(enum http_method method)
{
    return method == HTTP_POST || method == HTTP_PUT || method == HTTP_PATCH;
}

/* The call stands: lets the caller in, and waits for the body where there is to be one. */
static void serve(struct api_call *c)
{
    struct exchange *x = c->x;
    const struct http_request *request = exchange_request(x);
    uint64_t body_max = c->route->guard == ROUTE_SANDBOX ? API_BATCH_BYTES_MAX : API_BODY_BYTES_MAX;

    x->ready = ready;
    x->finish = api_answer_now;
    if (admit(c, request) != API_DONE || (has_body(x->method) && check_type(c, request) != 0)) {
        c->result = API_FAILED;
        api_answer_now(x);
        return;
    }
    bool somebody = c->route->guard == ROUTE_SANDBOX || c->caller.agent_id[0] != '\0';

    if (somebody && count_request(c) != API_DONE) {
        c->result = API_FAILED;
        api_answer_now(x);
        return;
    }
    if (!has_body(x->method)) {
        ready(x);
        return;
    }
    x->unrated = !somebody;
    int code = body_limit(&x->body, body_max);

    if (code != 0) {
        exchange_refuse_body(x, code);
    } else {
        exchange_await_body(x);
    }
}

void api_begin(struct exchange *x, struct slice path, struct slice query)
{
    struct app *app = x->mount->context;
    struct api_call *c = calloc(1, sizeof(*c) + path.len + 1);

    if (c == NULL) {
        session_drop(x->session);
        return;
    }
    struct route_match match = route_find(x->method, path, c->path);

    if (match.route == NULL) {
        answer_no_route(x, path, &match);
        free(c);
        return;
    }
    c->app = app;
    c->x = x;
    c->route = match.route;
    memcpy(c->params, match.params, sizeof(c->params));
    c->query = query;
    c->now_ms = loop_wall_ms(x->worker->loop);
    c->epoch = grants_epoch(app->grants);
    if (c->route->guard == ROUTE_OPEN || c->route->guard == ROUTE_FREE) {
        c->peer = attempts_address(app->attempts, x->session->conn.watch.fd);
    }
    list_init(&c->task.link);
    arena_init(&c->memory, MEMORY_BYTES_MAX);
    buf_init(&c->answer, API_ANSWER_BYTES_MAX);
    buf_init(&c->cookie, 512);
    x->guest = c;
    serve(c);
}
