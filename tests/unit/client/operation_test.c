/* Calls with all their retries: aborted in each of their states, started and stepped, pauses, and
 * what a program's callbacks see. */
#include "unit/base/fault.h"

#include "client/operation.c"

#include "unit/base/unit.h"
#include "unit/client/scripted.h"

#include <poll.h>
#include <signal.h>
#include <stdatomic.h>

#define OFFSET "Stream-Next-Offset: 0_7\r\n"
#define EMPTY  "Content-Length: 0\r\n\r\n"
#define OK_200 "HTTP/1.1 200 OK\r\n" OFFSET "Content-Type: text/plain\r\n" EMPTY
#define OK_204 "HTTP/1.1 204 No Content\r\n" OFFSET "\r\n"
#define NO_500 "HTTP/1.1 500 No\r\n" EMPTY
#define NO_429 "HTTP/1.1 429 No\r\nRetry-After: 3600\r\n" EMPTY

struct fixture {
    struct scripted server;
    struct stream_client *client;
};

static void options_init(struct stream_client_options *options)
{
    stream_client_options_init(options);
    options->retry.initial_delay_ms = 1;
    options->retry.max_delay_ms = 2;
}

static void setup_with(struct fixture *f, const struct scripted_turn *turns, size_t count,
                       const struct stream_client_options *options)
{
    scripted_init(&f->server, turns, count, NULL);
    assert_int_equal(stream_client_new(f->server.url, options, &f->client, NULL), STREAM_OK);
}

static void setup(struct fixture *f, const struct scripted_turn *turns, size_t count)
{
    struct stream_client_options options;

    options_init(&options);
    setup_with(f, turns, count, &options);
}

static void finish_fixture(struct fixture *f)
{
    stream_client_free(f->client);
    scripted_finish(&f->server);
}

/* -------------------------------------------------------------------------------------- aborted */

/* A call that blocks, on a thread of its own. */
struct blocked {
    struct stream_client *client;
    struct call call;
    struct stream_error error;
    int code;
    pthread_t thread;
};

static void *run_blocked(void *context)
{
    struct blocked *b = context;

    b->code = operation_block(b->client, &b->call, NULL, NULL, &b->error);
    return NULL;
}

static void block(struct fixture *f, struct blocked *b, struct call call)
{
    *b = (struct blocked){.client = f->client, .call = call};
    b->call.name = SLICE("a/b");
    assert_int_equal(pthread_create(&b->thread, NULL, run_blocked, b), 0);
}

static void join_aborted(struct blocked *b, const char *message, int unknown)
{
    assert_int_equal(pthread_join(b->thread, NULL), 0);
    assert_int_equal(b->code, STREAM_ERROR_ABORTED);
    assert_int_equal(b->error.code, STREAM_ERROR_ABORTED);
    assert_string_equal(b->error.message, message);
    assert_int_equal(b->error.outcome_unknown, unknown);
}

/* While the answer is waited for: of an append it is not known whether it was taken. */
static void test_abort_waiting(void **state)
{
    static const struct scripted_turn turns[] = {{.answer = NULL}};
    struct blocked append;
    struct blocked head;
    struct fixture f;

    (void)state;
    setup(&f, turns, 1);
    block(&f, &append,
          (struct call){.verb = CALL_APPEND, .body = SLICE("x"), .content_type = "text/plain"});
    block(&f, &head, (struct call){.verb = CALL_HEAD});
    scripted_await(&f.server, 2);
    stream_client_abort(f.client);
    join_aborted(&append, "cannot append to \"a/b\": aborted", 1);
    join_aborted(&head, "cannot look at \"a/b\": aborted", 0);
    finish_fixture(&f);
}

/* In the middle of a body, and of the request for the content type. */
static void test_abort_within(void **state)
{
    static const struct scripted_turn turns[] = {
        {.answer = "HTTP/1.1 201 OK\r\n" OFFSET "Content-Length: 99\r\n\r\nhalf"},
        {.answer = NULL}};
    struct blocked create;
    struct blocked append;
    struct fixture f;

    (void)state;
    setup(&f, turns, ARRAY_COUNT(turns));
    block(&f, &create, (struct call){.verb = CALL_CREATE});
    scripted_await(&f.server, 1);
    block(&f, &append, (struct call){.verb = CALL_APPEND, .body = SLICE("x")});
    scripted_await(&f.server, 2);
    assert_true(scripted_asked(&f.server, 1, "HEAD "));
    stream_client_abort(f.client);
    join_aborted(&create, "cannot create \"a/b\": aborted", 1);
    join_aborted(&append, "cannot append to \"a/b\": aborted", 0);
    finish_fixture(&f);
}

static struct stream_client *signalled;

static void on_signal(int number)
{
    (void)number;
    stream_client_abort(signalled);
}

/* In a pause of an hour that the server asked for, by a signal handler. */
static void test_abort_in_pause(void **state)
{
    static const struct scripted_turn turns[] = {{.answer = NO_429}};
    struct sigaction action = {.sa_handler = on_signal};
    struct stream_client_options options;
    struct blocked append;
    struct fixture f;

    (void)state;
    options_init(&options);
    options.retry.retry_after_max_ms = 3600000;
    setup_with(&f, turns, 1, &options);
    signalled = f.client;
    assert_int_equal(sigaction(SIGUSR1, &action, NULL), 0);
    block(&f, &append,
          (struct call){.verb = CALL_APPEND, .body = SLICE("x"), .content_type = "text/plain"});
    scripted_await(&f.server, 1);
    assert_int_equal(pthread_kill(append.thread, SIGUSR1), 0);
    assert_int_equal(pthread_join(append.thread, NULL), 0);
    assert_int_equal(append.code, STREAM_ERROR_ABORTED);
    assert_int_equal(scripted_count(&f.server), 1);
    finish_fixture(&f);
}

/* Calls to come are aborted too, without being sent, until that is taken back. */
static void test_reset(void **state)
{
    static const struct scripted_turn turns[] = {{.answer = OK_200}};
    const struct call call = {.verb = CALL_HEAD, .name = SLICE("a")};
    struct stream_error error;
    struct fixture f;

    (void)state;
    setup(&f, turns, 1);
    stream_client_abort(f.client);
    assert_int_equal(operation_block(f.client, &call, NULL, NULL, &error), STREAM_ERROR_ABORTED);
    assert_string_equal(error.message, "cannot look at \"a\": aborted");
    stream_client_reset(f.client);
    assert_int_equal(operation_block(f.client, &call, NULL, NULL, &error), STREAM_OK);
    assert_int_equal(scripted_count(&f.server), 1);
    finish_fixture(&f);
}

/* ------------------------------------------------------------------------------------- requests */

static int request(struct fixture *f, const char *method, bool repeatable, struct stream_info *info,
                   struct stream_error *error)
{
    struct call call = {.verb = CALL_REQUEST,
                        .method = method,
                        .name = SLICE("api/a"),
                        .what = "cannot do it",
                        .repeatable = repeatable,
                        .removes = strcmp(method, "DELETE") == 0};
    struct buf answer;

    buf_init(&answer, 100);
    call.answer = &answer;
    int code = operation_block(f->client, &call, info, NULL, error);

    buf_finish(&answer);
    return code;
}

/* What may happen twice is tried again; what may not is told as it is. A delete that finds nothing
 * the second time has succeeded. */
static void test_requests(void **state)
{
    static const struct scripted_turn turns[] = {{.answer = NO_500},
                                                 {.answer = NO_500},
                                                 {.answer = "HTTP/1.1 201 Created\r\n" EMPTY},
                                                 {.answer = NO_500},
                                                 {.answer = "HTTP/1.1 404 Not Found\r\n" EMPTY},
                                                 {.answer = "HTTP/1.1 404 Not Found\r\n" EMPTY}};
    struct stream_error error;
    struct stream_info info;
    struct fixture f;

    (void)state;
    setup(&f, turns, ARRAY_COUNT(turns));
    assert_int_equal(request(&f, "POST", false, NULL, &error), STREAM_ERROR_SERVER);
    assert_int_equal(error.outcome_unknown, 1);
    assert_int_equal(request(&f, "POST", true, &info, &error), STREAM_OK);
    assert_int_equal(info.status, 201);
    assert_int_equal(request(&f, "DELETE", true, &info, &error), STREAM_OK);
    assert_int_equal(info.status, 204);
    assert_int_equal(request(&f, "DELETE", true, &info, &error), STREAM_ERROR_NOT_FOUND);
    assert_string_equal(error.message, "cannot do it: there is none (status 404)");
    assert_int_equal(scripted_count(&f.server), 6);
    finish_fixture(&f);
}

/* A connection that was used before may end just as a request comes in; libcurl then sends that
 * again by itself. A delete that finds nothing has succeeded then too. */
static void test_resent(void **state)
{
    static const struct scripted_turn turns[] = {{.answer = OK_200},
                                                 {.answer = "", .end = SCRIPTED_CLOSE},
                                                 {.answer = "HTTP/1.1 404 Not Found\r\n" EMPTY}};
    const struct call head = {.verb = CALL_HEAD, .name = SLICE("a")};
    const struct call delete = {.verb = CALL_DELETE, .name = SLICE("a")};
    struct fixture f;

    (void)state;
    setup(&f, turns, ARRAY_COUNT(turns));
    assert_int_equal(operation_block(f.client, &head, NULL, NULL, NULL), STREAM_OK);
    assert_int_equal(operation_block(f.client, &delete, NULL, NULL, NULL), STREAM_OK);
    assert_int_equal(scripted_count(&f.server), 3);
    finish_fixture(&f);
}

/* -------------------------------------------------------------------------------------- stepped */

struct told {
    unsigned times;
    int code;
    char offset[STREAM_OFFSET_BYTES];
    char message[STREAM_ERROR_MESSAGE_BYTES];
};

static void on_end(void *context, int code, const struct stream_info *info,
                   const struct stream_error *error)
{
    struct told *told = context;

    told->times++;
    told->code = code;
    assert_true((info != NULL) == (code == STREAM_OK));
    assert_true((error != NULL) == (code != STREAM_OK));
    (void)snprintf(told->offset, sizeof(told->offset), "%s", info != NULL ? info->next_offset : "");
    (void)snprintf(told->message, sizeof(told->message), "%s", error != NULL ? error->message : "");
}

static void start_one(struct fixture *f, struct call call, struct told *told)
{
    char name[] = "a/b";

    *told = (struct told){0};
    call.name = slice_of(name);
    assert_int_equal(operation_start(f->client, &call, on_end, told, NULL), STREAM_OK);
    memset(name, 'x', sizeof(name)); /* it was copied */
}

/* Waits on the descriptor, as a program's loop does, and steps until all have ended. */
static void step_until(struct fixture *f, const struct told *told, size_t count)
{
    size_t ended = 0;

    while (ended < count) {
        struct pollfd polled = {.fd = stream_client_fd(f->client), .events = POLLIN};

        assert_int_equal(poll(&polled, 1, -1), 1);
        stream_client_step(f->client);
        ended = 0;
        for (size_t i = 0; i < count; i++) {
            ended += told[i].times;
        }
    }
}

/* Calls that were started end in the step that follows, and one blocks meanwhile. */
static void test_step(void **state)
{
    static const struct scripted_turn turns[] = {{.answer = OK_204}};
    const struct call head = {.verb = CALL_HEAD, .name = SLICE("a")};
    struct told told[3];
    struct fixture f;

    (void)state;
    setup(&f, turns, 1);
    for (size_t i = 0; i < ARRAY_COUNT(told); i++) {
        start_one(&f, (struct call){.verb = CALL_APPEND, .body = SLICE("x"), .content_type = "a/b"},
                  &told[i]);
    }
    assert_int_equal(operation_block(f.client, &head, NULL, NULL, NULL), STREAM_OK);
    for (size_t i = 0; i < ARRAY_COUNT(told); i++) {
        assert_int_equal(told[i].times, 0);
    }
    step_until(&f, told, ARRAY_COUNT(told));
    for (size_t i = 0; i < ARRAY_COUNT(told); i++) {
        assert_int_equal(told[i].code, STREAM_OK);
        assert_string_equal(told[i].offset, "0_7");
        assert_true(scripted_asked(&f.server, (unsigned)i, "/v1/stream/a"));
    }
    finish_fixture(&f);
}

static void test_step_errors(void **state)
{
    static const struct scripted_turn turns[] = {
        {.answer = "HTTP/1.1 404 Not Found\r\nContent-Type: text/plain\r\nContent-Length: 4\r\n\r\n"
                   "gone"},
        {.answer = NULL}};
    struct told told[2];
    struct fixture f;

    (void)state;
    setup(&f, turns, 2);
    start_one(&f, (struct call){.verb = CALL_DELETE}, &told[0]);
    step_until(&f, told, 1);
    assert_int_equal(told[0].code, STREAM_ERROR_NOT_FOUND);
    assert_string_equal(told[0].message, "cannot delete \"a/b\": gone (status 404)");
    start_one(&f, (struct call){.verb = CALL_DELETE}, &told[1]);
    scripted_await(&f.server, 2);
    stream_client_abort(f.client);
    step_until(&f, &told[1], 1);
    assert_int_equal(told[1].code, STREAM_ERROR_ABORTED);
    finish_fixture(&f);
}

/* Whoever frees the client is still told of each end, and of calls that have hardly begun. */
static void test_step_at_free(void **state)
{
    static const struct scripted_turn turns[] = {{.answer = NULL}};
    struct told told[20];
    struct fixture f;

    (void)state;
    setup(&f, turns, 1);
    for (size_t i = 0; i < ARRAY_COUNT(told); i++) {
        start_one(&f, (struct call){.verb = CALL_HEAD}, &told[i]);
    }
    finish_fixture(&f);
    for (size_t i = 0; i < ARRAY_COUNT(told); i++) {
        assert_int_equal(told[i].times, 1);
        assert_int_equal(told[i].code, STREAM_ERROR_ABORTED);
    }
}

/* --------------------------------------------------------------------------------------- inside */

struct inside {
    struct stream_client *client;
    struct told told;
    pthread_t thread;    /* that told */
    struct inside *next; /* to be started then; NULL: none */
    atomic_bool has_ended;
};

static void on_inside(void *context, int code, const struct stream_info *info,
                      const struct stream_error *error);

static void start_inside(struct stream_client *client, struct inside *inside)
{
    const struct call call = {
        .verb = CALL_APPEND, .name = SLICE("a"), .body = SLICE("x"), .content_type = "a/b"};

    inside->client = client;
    assert_int_equal(operation_start_inside(client, &call, on_inside, inside, NULL), STREAM_OK);
}

static void on_inside(void *context, int code, const struct stream_info *info,
                      const struct stream_error *error)
{
    struct inside *inside = context;

    on_end(&inside->told, code, info, error);
    inside->thread = pthread_self();
    if (inside->next != NULL) {
        start_inside(inside->client, inside->next);
    }
    atomic_store(&inside->has_ended, true);
}

static void await_inside(const struct inside *inside)
{
    while (!atomic_load(&inside->has_ended)) {
        (void)poll(NULL, 0, 1);
    }
}

/* Calls that end inside do so without a step and with nothing to be polled, on the thread of the
 * client, and may start others there; an abort is told there as well. */
static void test_inside(void **state)
{
    static const struct scripted_turn turns[] = {
        {.answer = OK_204}, {.answer = OK_204}, {.answer = NULL}};
    struct inside third = {.has_ended = false};
    struct inside second = {.next = NULL};
    struct inside first = {.next = &second};
    struct fixture f;

    (void)state;
    setup(&f, turns, ARRAY_COUNT(turns));
    struct pollfd polled = {.fd = stream_client_fd(f.client), .events = POLLIN};

    start_inside(f.client, &first);
    await_inside(&first);
    await_inside(&second);
    assert_int_equal(poll(&polled, 1, 0), 0);
    assert_int_equal(first.told.code, STREAM_OK);
    assert_string_equal(second.told.offset, "0_7");
    assert_false(pthread_equal(first.thread, pthread_self()));
    assert_true(pthread_equal(first.thread, second.thread));
    start_inside(f.client, &third);
    scripted_await(&f.server, 3);
    stream_client_abort(f.client);
    await_inside(&third);
    assert_int_equal(third.told.code, STREAM_ERROR_ABORTED);
    finish_fixture(&f);
    assert_int_equal(first.told.times + second.told.times + third.told.times, 3);
}

/* Whoever frees the client is told of those, too, by the thread that ends. */
static void test_inside_at_free(void **state)
{
    static const struct scripted_turn turns[] = {{.answer = NULL}};
    struct inside calls[20];
    struct fixture f;

    (void)state;
    memset(calls, 0, sizeof(calls));
    setup(&f, turns, 1);
    for (size_t i = 0; i < ARRAY_COUNT(calls); i++) {
        start_inside(f.client, &calls[i]);
    }
    finish_fixture(&f);
    for (size_t i = 0; i < ARRAY_COUNT(calls); i++) {
        assert_int_equal(calls[i].told.times, 1);
        assert_int_equal(calls[i].told.code, STREAM_ERROR_ABORTED);
    }
}

/* Too many of them are refused; a step makes room. */
static void test_step_busy(void **state)
{
    static const struct scripted_turn turns[] = {{.answer = OK_200}};
    const struct call call = {.verb = CALL_HEAD, .name = SLICE("a")};
    struct stream_error error;
    struct told told = {0};
    struct fixture f;

    (void)state;
    setup(&f, turns, 1);
    for (unsigned i = 1; i < CLIENT_STARTED_MAX; i++) {
        assert_true(client_started_add(f.client));
    }
    start_one(&f, call, &told);
    assert_int_equal(operation_start(f.client, &call, on_end, &told, &error), STREAM_ERROR_BUSY);
    assert_string_equal(error.message, "65536 calls are under way; stream_client_step ends them");
    step_until(&f, &told, 1);
    start_one(&f, call, &told);
    step_until(&f, &told, 1);
    finish_fixture(&f);
}

static void test_step_without_memory(void **state)
{
    static const struct scripted_turn turns[] = {{.answer = OK_200}};
    const struct call call = {.verb = CALL_HEAD, .name = SLICE("a")};
    struct stream_error error;
    struct told told = {0};
    struct fixture f;

    (void)state;
    setup(&f, turns, 1);
    for (long i = 0; i < 2; i++) {
        fault_countdown = i;
        int code = operation_start(f.client, &call, on_end, &told, &error);

        fault_countdown = -1;
        assert_int_equal(code, STREAM_ERROR_MEMORY);
    }
    assert_int_equal(told.times, 0);
    finish_fixture(&f);
}

/* --------------------------------------------------------------------------------- each request */

static void add_token(void *context, struct stream_headers *headers)
{
    unsigned *count = context;
    char token[32];

    (void)snprintf(token, sizeof(token), "Bearer token-%u", (*count)++);
    stream_headers_add(headers, "Authorization", token);
}

static void add_number(void *context, struct stream_headers *query)
{
    const unsigned *count = context;
    char number[32];

    (void)snprintf(number, sizeof(number), "n-%u", *count);
    stream_headers_add(query, "try", number);
}

/* The callbacks are asked for each try anew: a token may have changed. */
static void test_callbacks_each_try(void **state)
{
    static const struct scripted_turn turns[] = {
        {.answer = NO_500}, {.answer = NO_500}, {.answer = OK_200}};
    const struct call call = {.verb = CALL_HEAD, .name = SLICE("a")};
    struct stream_client_options options;
    unsigned count = 0;
    struct fixture f;

    (void)state;
    options_init(&options);
    options.bearer = "never";
    options.add_headers = add_token;
    options.add_query = add_number;
    options.context = &count;
    setup_with(&f, turns, ARRAY_COUNT(turns), &options);
    assert_int_equal(operation_block(f.client, &call, NULL, NULL, NULL), STREAM_OK);
    assert_int_equal(count, 3);
    assert_true(scripted_asked(&f.server, 0, "HEAD /v1/stream/a?try=n-0 "));
    assert_true(scripted_asked(&f.server, 0, "Authorization: Bearer token-0\r\n"));
    assert_true(scripted_asked(&f.server, 2, "Authorization: Bearer token-2\r\n"));
    assert_true(scripted_asked(&f.server, 2, "HEAD /v1/stream/a?try=n-2 "));
    assert_false(scripted_asked(&f.server, 0, "never"));
    finish_fixture(&f);
}

/* Many threads may use one client, over more connections than it opens. */
#define THREADS 8
#define CALLS   50

static void *call_often(void *context)
{
    struct stream_client *client = context;
    const struct call call = {
        .verb = CALL_APPEND, .name = SLICE("a"), .body = SLICE("x"), .content_type = "a/b"};
    unsigned good = 0;

    for (int i = 0; i < CALLS; i++) {
        good += operation_block(client, &call, NULL, NULL, NULL) == STREAM_OK;
    }
    return good == CALLS ? context : NULL;
}

static void test_threads(void **state)
{
    static const struct scripted_turn turns[] = {{.answer = OK_204}};
    struct stream_client_options options;
    pthread_t threads[THREADS];
    struct fixture f;

    (void)state;
    options_init(&options);
    options.max_connections = 3;
    setup_with(&f, turns, 1, &options);
    for (int i = 0; i < THREADS; i++) {
        assert_int_equal(pthread_create(&threads[i], NULL, call_often, f.client), 0);
    }
    for (int i = 0; i < THREADS; i++) {
        void *good = NULL;

        assert_int_equal(pthread_join(threads[i], &good), 0);
        assert_non_null(good);
    }
    assert_int_equal(scripted_count(&f.server), THREADS * CALLS);
    assert_in_range(f.server.accepted, 1, 3);
    finish_fixture(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_abort_waiting),
        cmocka_unit_test(test_abort_within),
        cmocka_unit_test(test_abort_in_pause),
        cmocka_unit_test(test_reset),
        cmocka_unit_test(test_requests),
        cmocka_unit_test(test_resent),
        cmocka_unit_test(test_step),
        cmocka_unit_test(test_step_errors),
        cmocka_unit_test(test_step_at_free),
        cmocka_unit_test(test_inside),
        cmocka_unit_test(test_inside_at_free),
        cmocka_unit_test(test_step_busy),
        cmocka_unit_test(test_step_without_memory),
        cmocka_unit_test(test_callbacks_each_try),
        cmocka_unit_test(test_threads),
    };

    return UNIT_RUN(tests);
}
