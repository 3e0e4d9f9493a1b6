/* Observers against a server that plays a script: backfilled, settled, stopped. The rule itself is
 * in settle_test.c. */
#include "unit/base/fault.h"

#include "client/scoped_observer.c"

#include "base/buf.h"
#include "unit/base/unit.h"
#include "unit/client/api_answer.h"
#include "unit/client/scripted.h"

#define CHAT(id)    "{\"id\":\"" id "\",\"payload\":{\"type\":\"chat\",\"text\":\"hi\"}}"
#define STARTED(id) SIGNAL("s" id, "started", id)
#define DONE(id)    SIGNAL("d" id, "completed", id)
#define FAILED(id)  SIGNAL("f" id, "failed", id)
#define SIGNAL(id, verb, dispatch)                                           \
    "{\"id\":\"" id "\",\"payload\":{\"type\":\"signal.dispatch." verb "\"," \
    "\"dispatchId\":\"" dispatch "\",\"triggerEntryId\":\"c1\",\"reason\":\"r\"}}"

struct fixture {
    struct scripted server;
    struct scoped_client *client;
    struct scoped_observer *observer;
    struct scoped_error error;
    struct buf told;
};

static void setup(struct fixture *f, const struct scripted_turn *turns, size_t count,
                  const struct scoped_observe_options *observe)
{
    struct scoped_client_options options;
    char url[64];

    *f = (struct fixture){.client = NULL};
    scoped_client_options_init(&options);
    options.tail_retry.initial_delay_ms = 1;
    options.tail_retry.max_delay_ms = 2;
    scripted_init(&f->server, turns, count, NULL);
    (void)snprintf(url, sizeof(url), "http://127.0.0.1:%u", f->server.port);
    assert_int_equal(scoped_client_new(url, &options, &f->client, NULL), STREAM_OK);
    assert_int_equal(scoped_client_observe(f->client, "t-1", observe, &f->observer, NULL),
                     STREAM_OK);
    buf_init(&f->told, 1 << 20);
}

static void finish(struct fixture *f)
{
    scoped_observer_free(f->observer);
    scoped_client_free(f->client);
    scripted_finish(&f->server);
    buf_finish(&f->told);
    api_answers_clear();
}

static void tell_event(struct fixture *f, const struct scoped_event *event)
{
    switch (event->kind) {
    case SCOPED_ENTRY:
        buf_append_format(&f->told, "%s ", event->entry.id);
        break;
    case SCOPED_BACKFILLED:
        buf_append(&f->told, SLICE("| "));
        break;
    case SCOPED_SETTLED:
        buf_append_format(&f->told, "%s:%s:%s ", scoped_outcome_name(event->outcome),
                          event->entry_id, event->reason);
        break;
    }
}

/* To the end. Any thread. */
static int play(struct fixture *f)
{
    struct scoped_event event;
    int rc;

    while ((rc = scoped_observer_next(f->observer, &event, &f->error)) == STREAM_OK) {
        tell_event(f, &event);
    }
    buf_append_format(&f->told, "%s",
                      rc == STREAM_END ? "END" : stream_error_name((enum stream_error_code)rc));
    return rc;
}

static void assert_told(struct fixture *f, const char *expected)
{
    struct scoped_event event;
    int rc = play(f);

    assert_int_equal(scoped_observer_next(f->observer, &event, NULL), rc); /* so it stays */
    assert_int_equal(scoped_observer_step(f->observer, &event, NULL), rc);
    buf_append_char(&f->told, '\0');
    assert_string_equal(f->told.ptr, expected);
}

/* The past settles nothing; what comes behind it does, and that is the end. */
static void test_settles(void **state)
{
    struct scripted_turn turns[] = {
        {.answer = api_page("o1", "[" CHAT("c0") "," DONE("0") "]", 0)},
        {.answer = api_page("o2", "[" CHAT("c1") "]", 1)},
        {.answer = api_page("o3", "[" STARTED("1") "," STARTED("2") "," FAILED("1") "]", 1)},
        {.answer = "HTTP/1.1 502 Bad\r\nContent-Length: 0\r\n\r\n"},
        {.answer = api_page("o4", "[" DONE("2") "," CHAT("c9") "]", 1)}};
    struct fixture f;

    (void)state;
    setup(&f, turns, ARRAY_COUNT(turns),
          &(const struct scoped_observe_options){.from_offset = "o0"});
    assert_string_equal(scoped_observer_offset(f.observer), "o0");
    assert_told(&f, "c0 d0 c1 | s1 s2 f1 d2 failed:f1:r END");
    assert_string_equal(scoped_observer_offset(f.observer), "o3"); /* o4 lies behind more */
    assert_true(scripted_asked(&f.server, 0, "GET /api/threads/t-1/stream?offset=o0 "));
    assert_int_equal(scripted_count(&f.server), 5);
    finish(&f);
}

/* Whoever wants to goes on, and is told each time. */
static void test_goes_on(void **state)
{
    struct scripted_turn turns[] = {
        {.answer = api_page("o1", "[]", 1)},
        {.answer = api_page("o2", "[" DONE("1") "," CHAT("c2") "]", 1)},
        {.answer = api_page("o3", "[" FAILED("2") "]", 1)},
        {.answer = api_answer("403 No", "{\"error\":{\"code\":\"auth.forbidden\"}}")}};
    struct fixture f;

    (void)state;
    setup(&f, turns, ARRAY_COUNT(turns), &(const struct scoped_observe_options){.go_on = 1});
    assert_told(&f, "| d1 completed:d1:r c2 f2 failed:f2:r FORBIDDEN");
    assert_string_equal(f.error.code, "auth.forbidden");
    finish(&f);
}

/* A thread that the backfill shows at rest, if that is wanted; the caller's own post, wherever its
 * end is found. */
static void test_past(void **state)
{
    struct scripted_turn turns[] = {{.answer = api_page("o1", "[" CHAT("c1") "," DONE("1") "]", 1)},
                                    {.answer = api_answer("404 No", "{}")}};
    struct fixture f;

    (void)state;
    setup(&f, turns, 2, &(const struct scoped_observe_options){.settle_at_rest = 1});
    assert_told(&f, "c1 d1 | completed:d1:r END");
    scoped_observer_free(f.observer);
    f.observer = NULL;
    finish(&f);

    turns[0].answer = api_page("o1", "[" CHAT("c1") "," DONE("1") "]", 1);
    turns[1].answer = api_answer("404 No", "{}");
    setup(&f, turns, 2, NULL);
    assert_told(&f, "c1 d1 | NOT_FOUND");
    finish(&f);

    turns[0].answer = api_page("o1", "[" CHAT("c1") "," DONE("1") "," CHAT("c2") "]", 1);
    setup(&f, turns, 1, &(const struct scoped_observe_options){.trigger = "c1"});
    assert_told(&f, "c1 d1 completed:d1:r END");
    finish(&f);
}

/* Stepped, with the descriptor; at the end it is quiet, and nothing more is asked of the server. */
static void test_step(void **state)
{
    struct scripted_turn turns[] = {{.answer = api_page("o1", "[" CHAT("c1") "]", 1)},
                                    {.answer = api_page("o2", "[" DONE("1") "]", 1)},
                                    {.answer = NULL}};
    struct scoped_event event;
    struct fixture f;
    int rc;

    (void)state;
    setup(&f, turns, 3, NULL);
    while ((rc = scoped_observer_step(f.observer, &event, &f.error)) != STREAM_END) {
        struct pollfd polled = {.fd = scoped_client_fd(f.client), .events = POLLIN};

        if (rc == STREAM_OK) {
            tell_event(&f, &event);
        } else {
            assert_int_equal(rc, STREAM_WAIT);
        }
        assert_int_equal(poll(&polled, 1, -1), 1);
    }
    assert_true(slice_equal(buf_slice(&f.told), SLICE("c1 | d1 completed:d1:r ")));
    assert_int_equal(scripted_count(&f.server), 2);
    finish(&f);
}

static struct scoped_observer *signalled;

static void on_signal(int number)
{
    (void)number;
    scoped_observer_stop(signalled);
}

/* Stopped by a signal while it waits. */
static void *observe(void *context)
{
    (void)play(context);
    return NULL;
}

static void test_stop(void **state)
{
    const struct sigaction action = {.sa_handler = on_signal};
    struct scripted_turn turns[] = {{.answer = api_page("o1", "[" CHAT("c1") "]", 1)},
                                    {.answer = NULL}};
    struct fixture f;
    pthread_t thread;

    (void)state;
    setup(&f, turns, 2, NULL);
    signalled = f.observer;
    assert_int_equal(sigaction(SIGUSR1, &action, NULL), 0);
    assert_int_equal(pthread_create(&thread, NULL, observe, &f), 0);
    scripted_await(&f.server, 2);
    assert_int_equal(pthread_kill(thread, SIGUSR1), 0);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_true(slice_equal(buf_slice(&f.told), SLICE("c1 | ABORTED")));
    assert_string_equal(f.error.code, "client.aborted");
    finish(&f);
}

static void test_arguments(void **state)
{
    static const struct scripted_turn turns[] = {{.answer = NULL}};
    const struct scoped_observe_options bad_trigger = {.trigger = "a b"};
    const struct scoped_observe_options bad_offset = {.from_offset = ""};
    struct scoped_observer *observer;
    struct fixture f;

    (void)state;
    setup(&f, turns, 1, NULL);
    assert_int_equal(scoped_client_observe(f.client, "t", &bad_trigger, &observer, &f.error),
                     STREAM_ERROR_ARGUMENT);
    assert_int_equal(scoped_client_observe(f.client, "t", &bad_offset, &observer, &f.error),
                     STREAM_ERROR_ARGUMENT);
    assert_int_equal(scoped_client_observe(f.client, "..", NULL, &observer, &f.error),
                     STREAM_ERROR_ARGUMENT);
    fault_countdown = 0;
    int code = scoped_client_observe(f.client, "t", NULL, &observer, &f.error);

    fault_countdown = -1;
    assert_int_equal(code, STREAM_ERROR_MEMORY);
    assert_string_equal(scoped_outcome_name(SCOPED_CANCELLED), "cancelled");
    assert_string_equal(scoped_outcome_name(SCOPED_SKIPPED), "skipped");
    finish(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_settles), cmocka_unit_test(test_goes_on),
        cmocka_unit_test(test_past),    cmocka_unit_test(test_step),
        cmocka_unit_test(test_stop),    cmocka_unit_test(test_arguments),
    };

    return UNIT_RUN(tests);
}
