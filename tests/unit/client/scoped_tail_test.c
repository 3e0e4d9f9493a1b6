/* Tails against a server that plays a script on loopback, and breaks off in every way it can: each
 * entry comes once and in order, what passes is waited out, what is final ends it at once, and so
 * does the caller's patience. */
#include "unit/base/fault.h"

#include "client/scoped_tail.c"

#include "base/buf.h"
#include "base/json_value.h"
#include "unit/base/unit.h"
#include "unit/client/api_answer.h"
#include "unit/client/scripted.h"

#define THREAD "0198c0de-0000-7000-8000-000000000001"
#define FOLLOW "cannot follow thread \"" THREAD "\": "
#define E1     "{\"id\":\"e1\",\"ts\":1,\"payload\":{\"type\":\"chat\",\"text\":\"one\"}}"
#define E2     "{\"id\":\"e2\",\"ts\":2,\"payload\":{\"type\":\"chat\",\"text\":\"two\"}}"
#define E3     "{\"id\":\"e3\",\"ts\":3,\"payload\":{\"type\":\"chat\",\"text\":\"three\"}}"

#define NO_401                                                                                  \
    api_answer("401 Unauthorized", "{\"error\":{\"code\":\"auth.unauthenticated\",\"message\":" \
                                   "\"a valid API key is needed\"}}")

struct fixture {
    struct scripted server;
    struct scoped_client *client;
    struct scoped_tail *tail;
    struct scoped_error error;
    struct buf told; /* "e1(o1)^ ": id, offset, up to date; "." closed */
};

static void options_init(struct scoped_client_options *options)
{
    scoped_client_options_init(options);
    options->bearer = "arbe_0";
    options->retry.max_retries = 0; /* tails have rules of their own */
    options->tail_retry.initial_delay_ms = 1;
    options->tail_retry.max_delay_ms = 2;
}

static void open_tail(struct fixture *f, const struct scoped_tail_options *tail,
                      const struct scoped_client_options *options)
{
    char url[64];

    (void)snprintf(url, sizeof(url), "http://127.0.0.1:%u/app/", f->server.port);
    assert_int_equal(scoped_client_new(url, options, &f->client, NULL), STREAM_OK);
    assert_int_equal(scoped_client_tail(f->client, THREAD, tail, &f->tail, NULL), STREAM_OK);
    buf_init(&f->told, 1 << 20);
}

static void setup_with(struct fixture *f, const struct scripted_turn *turns, size_t count,
                       const struct scoped_tail_options *tail,
                       const struct scoped_client_options *options)
{
    *f = (struct fixture){.client = NULL};
    scripted_init(&f->server, turns, count, NULL);
    open_tail(f, tail, options);
}

static void setup(struct fixture *f, const struct scripted_turn *turns, size_t count,
                  const struct scoped_tail_options *tail)
{
    struct scoped_client_options options;

    options_init(&options);
    setup_with(f, turns, count, tail, &options);
}

/* Keeps the answers, which turns of a next server may be. */
static void finish_but_answers(struct fixture *f)
{
    scoped_tail_free(f->tail);
    scoped_client_free(f->client);
    scripted_finish(&f->server);
    buf_finish(&f->told);
}

static void finish(struct fixture *f)
{
    finish_but_answers(f);
    api_answers_clear();
}

static void tell(struct fixture *f, const struct scoped_tail_view *view)
{
    if (view->has_entry) {
        buf_append(&f->told, slice_of(view->entry.id));
    }
    if (view->next_offset != NULL) {
        buf_append_format(&f->told, "(%s)", scoped_tail_offset(f->tail));
    }
    buf_append(&f->told, view->up_to_date ? SLICE("^") : SLICE(""));
    buf_append(&f->told, view->closed ? SLICE(".") : SLICE(""));
    buf_append_char(&f->told, ' ');
}

/* Follows to the end, and tells how it came. Any thread. */
static int play(struct fixture *f)
{
    struct scoped_tail_view view;
    int rc;

    while ((rc = scoped_tail_next(f->tail, &view, &f->error)) == STREAM_OK) {
        tell(f, &view);
    }
    buf_append_format(&f->told, "%s",
                      rc == STREAM_END ? "END" : stream_error_name((enum stream_error_code)rc));
    return rc;
}

static int play_out(struct fixture *f)
{
    struct scoped_tail_view view;
    int rc = play(f);

    /* And so it stays. */
    assert_int_equal(scoped_tail_next(f->tail, &view, NULL), rc);
    assert_int_equal(scoped_tail_step(f->tail, &view, NULL), rc);
    return rc;
}

static void assert_told(struct fixture *f, const char *expected)
{
    (void)play_out(f);
    buf_append_char(&f->told, '\0');
    assert_string_equal(f->told.ptr, expected);
}

/* -------------------------------------------------------------------------------- the good days */

/* From the caller's offset, page by page, then poll by poll with the cursor echoed. */
static void test_follow(void **state)
{
    struct scripted_turn turns[] = {
        {.answer = api_page("o1", "[" E1 "," E2 "]", 0)},
        {.answer = api_page("o2", "[" E3 "]", 1)},
        {.answer = "HTTP/1.1 204 No Content\r\nStream-Next-Offset: o2\r\nStream-Cursor: c9\r\n"
                   "Stream-Up-To-Date: true\r\n\r\n"},
        {.answer = api_page("o4", "[" E1 "]", 1)},
        {.answer = NO_401}};
    struct fixture f;

    (void)state;
    setup(&f, turns, ARRAY_COUNT(turns), &(const struct scoped_tail_options){.from_offset = "o0"});
    assert_string_equal(scoped_tail_offset(f.tail), "o0");
    assert_told(&f, "e1 e2(o1) e3(o2)^ e1(o4)^ UNAUTHORIZED");
    assert_true(scripted_asked(&f.server, 0,
                               "GET /app/api/threads/" THREAD "/stream?offset=o0 HTTP/1.1\r\n"));
    assert_true(scripted_asked(&f.server, 0, "\r\nAuthorization: Bearer arbe_0\r\n"));
    assert_true(scripted_asked(&f.server, 1, "/stream?offset=o1 "));
    assert_true(scripted_asked(&f.server, 2, "/stream?offset=o2&live=long-poll&cursor=co2 "));
    assert_true(scripted_asked(&f.server, 3, "/stream?offset=o2&live=long-poll&cursor=c9 "));
    assert_true(scripted_asked(&f.server, 4, "/stream?offset=o4&live=long-poll&cursor=co4 "));
    assert_string_equal(scoped_tail_offset(f.tail), "o4");
    finish(&f);
}

/* An entry is decoded, and what is none, or of no kind that is known, comes as it is. */
static void test_entries(void **state)
{
    struct scripted_turn turns[] = {
        {.answer = api_page("o1", "[ {\"id\":\"e\", \"payload\":{\"type\":\"new.kind\"}} , 7]",
                            1)}};
    struct scoped_tail_view view;
    struct fixture f;

    (void)state;
    setup(&f, turns, 1, &(const struct scoped_tail_options){.catch_up = 1});
    assert_string_equal(scoped_tail_offset(f.tail), "-1");
    assert_int_equal(scoped_tail_next(f.tail, &view, NULL), STREAM_OK);
    assert_string_equal(view.entry.type, "new.kind");
    assert_true(slice_equal((struct slice){view.entry.json, view.entry.json_len},
                            SLICE("{\"id\":\"e\", \"payload\":{\"type\":\"new.kind\"}}")));
    assert_int_equal(scoped_tail_next(f.tail, &view, NULL), STREAM_OK);
    assert_int_equal(view.has_entry, 1);
    assert_string_equal(view.entry.id, "");
    assert_true(slice_equal((struct slice){view.entry.json, view.entry.json_len}, SLICE("7")));
    assert_int_equal(scoped_tail_next(f.tail, &view, NULL), STREAM_END);
    finish(&f);
}

/* A catch-up ends at the tail, a stream that is closed where it is. */
static void test_ends(void **state)
{
    struct scripted_turn turns[] = {{.answer = api_page("o1", "[" E1 "]", 1)},
                                    {.answer = api_answer_with("200 OK",
                                                               "Stream-Next-Offset: o2\r\n"
                                                               "Stream-Closed: true\r\n",
                                                               "[" E2 "]")}};
    struct fixture f;

    (void)state;
    setup(&f, turns, 1, &(const struct scoped_tail_options){.catch_up = 1});
    assert_told(&f, "e1(o1)^ END");
    finish_but_answers(&f);
    setup(&f, turns, 2, NULL);
    assert_told(&f, "e1(o1)^ e2(o2)^. END");
    assert_int_equal(scripted_count(&f.server), 2);
    finish(&f);
}

/* ---------------------------------------------------------------------------- the bad ones */

/* Wherever a page or a poll breaks off, and however: the same entries, once each. */
static void test_breaks_anywhere(void **state)
{
    static const enum scripted_end ends[] = {SCRIPTED_CLOSE, SCRIPTED_RESET, SCRIPTED_HALF};
    const char *page = api_page("o1", "[" E1 "," E2 "]", 1);
    const char *poll_answer = api_page("o2", "[" E3 "]", 1);
    const char *no = NO_401;

    (void)state;
    for (size_t i = 0; i < strlen(page); i++) {
        enum scripted_end end = ends[i % ARRAY_COUNT(ends)];
        struct scripted_turn turns[] = {
            {.answer = i > 0 ? page : "", .len = i, .end = end},
            {.answer = page},
            {.answer = i > 0 ? poll_answer : "",
             .len = i < strlen(poll_answer) ? i : strlen(poll_answer) - 1,
             .end = end},
            {.answer = i % 2 > 0 ? "HTTP/1.1 502 Bad\r\nContent-Length: 0\r\n\r\n" : poll_answer},
            {.answer = i % 2 > 0 ? poll_answer : no},
            {.answer = no}};
        struct fixture f;

        setup(&f, turns, ARRAY_COUNT(turns), NULL);
        (void)play_out(&f);
        /* The first entry may have come before the break, and then has no offset behind it. */
        if (!slice_equal(buf_slice(&f.told), SLICE("e1 e2(o1)^ e3(o2)^ UNAUTHORIZED"))) {
            fail_msg("at %zu: %.*s", i, (int)f.told.len, f.told.ptr);
        }
        finish_but_answers(&f);
    }
    api_answers_clear();
}

/* What passes is waited out by a tail's own rules, for ever; what an error of it said is not what
 * the tail ends with. */
static void test_failures_that_pass(void **state)
{
    struct scripted_turn turns[] = {
        {.answer = api_answer("503 Busy", "{\"error\":{\"code\":\"server.busy\"}}")},
        {.answer = api_answer("500 Oops", "{\"error\":{\"code\":\"server.internal\"}}")},
        {.answer = api_answer_with("429 Slow", "Retry-After: 0\r\n", "{}")},
        {.answer = api_answer("502 Bad", "<html>")},
        {.answer = api_answer("504 Slow", "{}")},
        {.answer = "", .end = SCRIPTED_RESET},
        {.answer = api_answer("503 Busy", "{\"error\":{\"code\":\"server.busy\"}}")},
        {.answer = api_page("o1", "[" E1 "]", 1)},
        {.answer = api_answer("503 Busy", "{\"error\":{\"code\":\"server.draining\"}}")},
        {.answer = api_page("o2", "{}", 1)}};
    struct fixture f;

    (void)state;
    setup(&f, turns, ARRAY_COUNT(turns), NULL);
    assert_told(&f, "e1(o1)^ FORMAT");
    assert_string_equal(f.error.code, "client.response_invalid");
    assert_memory_equal(f.error.message, FOLLOW, sizeof(FOLLOW) - 1);
    assert_int_equal(f.error.status, 200);
    finish(&f);
}

/* Where the rules have an end, the last failure is the tail's. */
static void test_gives_up(void **state)
{
    struct scripted_turn turns[] = {
        {.answer = api_answer("503 Busy", "{\"error\":{\"code\":\"server.busy\","
                                          "\"message\":\"too much\",\"recoverable\":true}}")}};
    struct scoped_client_options options;
    struct fixture f;

    (void)state;
    options_init(&options);
    options.tail_retry.max_retries = 2;
    setup_with(&f, turns, 1, NULL, &options);
    assert_told(&f, "BUSY");
    assert_string_equal(f.error.code, "server.busy");
    assert_string_equal(f.error.message, "too much");
    assert_int_equal(f.error.recoverable, 1);
    assert_int_equal(scripted_count(&f.server), 3);
    finish(&f);
}

/* Final ones end it at once, at the beginning and in the middle. */
static void test_final(void **state)
{
    static const struct {
        const char *status;
        enum stream_error_code code;
    } finals[] = {{"401 No", STREAM_ERROR_UNAUTHORIZED},
                  {"403 No", STREAM_ERROR_FORBIDDEN},
                  {"404 No", STREAM_ERROR_NOT_FOUND},
                  {"410 No", STREAM_ERROR_GONE}};

    (void)state;
    for (size_t i = 0; i < 2 * ARRAY_COUNT(finals); i++) {
        const char *no = api_answer(finals[i / 2].status,
                                    "{\"error\":{\"code\":\"x.y\",\"message\":\"go away\"}}");
        struct scripted_turn turns[] = {{.answer = api_page("o1", "[" E1 "]", 1)}, {.answer = no}};
        struct fixture f;

        setup(&f, turns + i % 2, 2 - i % 2, NULL);
        assert_int_equal(play_out(&f), finals[i / 2].code);
        assert_string_equal(f.error.code, "x.y");
        assert_string_equal(f.error.message, "go away");
        assert_int_equal(scripted_count(&f.server), 2 - i % 2);
        finish(&f);
    }
}

/* A connection that is dead and does not know it. */
static void test_half_open(void **state)
{
    struct scripted_turn turns[] = {
        {.answer = NULL},
        {.answer = api_page("o1", "[" E1 "]", 1)},
        {.answer = NULL},
        {.answer = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
                   "Stream-Next-Offset: o2\r\nContent-Length: 99\r\n\r\n[{\"id\""},
        {.answer = api_page("o2", "[" E2 "]", 1)},
        {.answer = NO_401}};
    struct scoped_client_options options;
    struct fixture f;

    (void)state;
    options_init(&options);
    options.request_timeout_ms = 200;
    options.idle_timeout_ms = 200;
    setup_with(&f, turns, ARRAY_COUNT(turns), NULL, &options);
    assert_told(&f, "e1(o1)^ e2(o2)^ UNAUTHORIZED");
    finish(&f);
}

/* The server goes away between two polls and comes back: the tail goes on where it was. */
static void test_restart(void **state)
{
    struct scripted_turn before[] = {{.answer = api_page("o1", "[" E1 "]", 1)}, {.answer = NULL}};
    struct scripted_turn after[] = {{.answer = api_page("o2", "[" E2 "]", 1)}, {.answer = NO_401}};
    struct scoped_tail_view view;
    struct fixture f;

    (void)state;
    setup(&f, before, 2, NULL);
    assert_int_equal(scoped_tail_next(f.tail, &view, NULL), STREAM_OK);
    tell(&f, &view);
    assert_int_equal(scoped_tail_step(f.tail, &view, NULL), STREAM_WAIT);
    scripted_await(&f.server, 2); /* the poll hangs */
    uint16_t port = f.server.port;

    scripted_finish(&f.server);
    /* Nobody listens: refused at least once, or so it may be. */
    assert_int_equal(scoped_tail_step(f.tail, &view, NULL), STREAM_WAIT);
    scripted_init_at(&f.server, after, 2, NULL, port);
    assert_told(&f, "e1(o1)^ e2(o2)^ UNAUTHORIZED");
    assert_true(scripted_asked(&f.server, 0, "offset=o1&live=long-poll&cursor=co1 "));
    finish(&f);
}

/* Byte by byte is no less than at once. */
static void test_trickle(void **state)
{
    struct scripted_turn turns[] = {{.answer = NULL}, {.answer = NO_401}};
    const char *page = api_page("o1", "[" E1 "," E2 "]", 1);
    struct scoped_tail_view view;
    struct fixture f;

    (void)state;
    setup(&f, turns, 2, NULL);
    assert_int_equal(scoped_tail_step(f.tail, &view, NULL), STREAM_WAIT);
    scripted_await(&f.server, 1);
    for (const char *p = page; *p != '\0'; p++) {
        char one[2] = {*p, '\0'};

        scripted_send(&f.server, one);
    }
    assert_told(&f, "e1 e2(o1)^ UNAUTHORIZED");
    finish(&f);
}

/* An entry longer than any may be, and answers that no proxy of a thread gives. */
static void test_refused_answers(void **state)
{
    struct scripted_turn turns[] = {
        {.answer = api_page("o1", "[\"01234567890123456789\"]", 1)},
        {.answer = "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 4\r\n\r\n<hi>"},
        {.answer = "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nStream-Next-Offset: o1\r\n"
                   "Content-Length: 2\r\n\r\nhi"},
        {.answer = api_page("o1", "[1", 1)}};
    static const char *const messages[] = {
        "21", /* the bytes that are allowed */
        "no server of Durable Streams",
        "its content type is \"text/plain\"",
        "breaks off",
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_COUNT(turns); i++) {
        struct scoped_client_options options;
        struct fixture f;

        options_init(&options);
        options.max_entry_bytes = 21;
        setup_with(&f, &turns[i], 1, NULL, &options);
        assert_int_equal(play_out(&f), STREAM_ERROR_FORMAT);
        assert_string_equal(f.error.code, "client.response_invalid");
        if (strstr(f.error.message, messages[i]) == NULL) {
            fail_msg("%s", f.error.message);
        }
        finish_but_answers(&f);
    }
    api_answers_clear();
}

/* ---------------------------------------------------------------------------------- patience */

static struct scoped_tail *signalled;

static void on_signal(int number)
{
    (void)number;
    scoped_tail_abort(signalled);
}

static void *follow(void *context)
{
    (void)play(context);
    return NULL;
}

/* From a signal handler of the very thread that waits, from another one, and with all the client
 * has: while a poll hangs, within a body, in a pause between tries. */
static void test_abort(void **state)
{
    const struct sigaction action = {.sa_handler = on_signal};
    const struct scripted_turn seconds[] = {
        {.answer = NULL},
        {.answer = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
                   "Stream-Next-Offset: o2\r\nContent-Length: 99\r\n\r\n[{\"id\""},
        {.answer = api_answer_with("503 Busy", "Retry-After: 3600\r\n", "{}")}};
    const char *page = api_page("o1", "[" E1 "]", 1);

    (void)state;
    assert_int_equal(sigaction(SIGUSR1, &action, NULL), 0);
    for (size_t i = 0; i < 3 * ARRAY_COUNT(seconds); i++) {
        struct scripted_turn turns[] = {{.answer = page}, seconds[i / 3]};
        struct scoped_client_options options;
        struct fixture f;
        pthread_t thread;

        options_init(&options);
        options.tail_retry.retry_after_max_ms = 3600000;
        setup_with(&f, turns, 2, NULL, &options);
        signalled = f.tail;
        assert_int_equal(pthread_create(&thread, NULL, follow, &f), 0);
        scripted_await(&f.server, 2);
        if (i % 3 == 0) {
            assert_int_equal(pthread_kill(thread, SIGUSR1), 0);
        } else if (i % 3 == 1) {
            scoped_tail_abort(f.tail);
        } else {
            scoped_client_abort(f.client);
        }
        assert_int_equal(pthread_join(thread, NULL), 0);
        assert_true(slice_equal(buf_slice(&f.told), SLICE("e1(o1)^ ABORTED")));
        assert_string_equal(f.error.code, "client.aborted");
        assert_string_equal(f.error.message, FOLLOW "aborted");
        finish_but_answers(&f);
    }
    api_answers_clear();
}

/* One tail is aborted, the client and its other tails go on. */
static void test_abort_one(void **state)
{
    struct scripted_turn turns[] = {{.answer = NULL}, {.answer = api_page("o1", "[" E1 "]", 1)}};
    struct scoped_tail_view view;
    struct scoped_tail *other;
    struct fixture f;

    (void)state;
    setup(&f, turns, 2, &(const struct scoped_tail_options){.catch_up = 1});
    assert_int_equal(scoped_client_tail(f.client, THREAD, NULL, &other, NULL), STREAM_OK);
    assert_int_equal(scoped_tail_step(other, &view, NULL), STREAM_WAIT);
    scripted_await(&f.server, 1);
    scoped_tail_abort(other);
    assert_int_equal(scoped_tail_next(other, &view, NULL), STREAM_ERROR_ABORTED);
    scoped_tail_free(other);
    assert_told(&f, "e1(o1)^ END");
    finish(&f);
}

/* ------------------------------------------------------------------------------------- stepped */

static void test_step(void **state)
{
    struct scripted_turn turns[] = {{.answer = api_page("o1", "[" E1 "," E2 "]", 1)},
                                    {.answer = api_page("o2", "[" E3 "]", 1)},
                                    {.answer = NO_401}};
    struct scoped_tail_view view;
    struct fixture f;
    int rc;

    (void)state;
    setup(&f, turns, 3, NULL);
    while ((rc = scoped_tail_step(f.tail, &view, &f.error)) <= STREAM_OK) {
        struct pollfd polled = {.fd = scoped_client_fd(f.client), .events = POLLIN};

        if (rc == STREAM_OK) {
            tell(&f, &view);
        } else {
            assert_int_equal(rc, STREAM_WAIT);
            assert_int_equal(poll(&polled, 1, -1), 1);
        }
    }
    assert_int_equal(rc, STREAM_ERROR_UNAUTHORIZED);
    assert_true(slice_equal(buf_slice(&f.told), SLICE("e1 e2(o1)^ e3(o2)^ ")));
    finish(&f);
}

/* ------------------------------------------------------------------------------------ arguments */

static void test_arguments(void **state)
{
    static const struct scripted_turn turns[] = {{.answer = NULL}};
    static const struct {
        struct scoped_tail_options options;
        const char *message;
    } bad[] = {
        {{.from_offset = ""}, "the offset must have 1 to 127 bytes"},
        {{.from_offset = "a b"}, "the offset must not hold white space or control characters"},
        {{.poll_timeout_ms = -1}, "poll_timeout_ms must not be below 0"},
    };
    struct scoped_tail *tail;
    struct fixture f;

    (void)state;
    setup(&f, turns, 1, NULL);
    for (size_t i = 0; i < ARRAY_COUNT(bad); i++) {
        assert_int_equal(scoped_client_tail(f.client, THREAD, &bad[i].options, &tail, &f.error),
                         STREAM_ERROR_ARGUMENT);
        assert_memory_equal(f.error.message, FOLLOW, sizeof(FOLLOW) - 1);
        assert_string_equal(f.error.message + sizeof(FOLLOW) - 1, bad[i].message);
    }
    assert_int_equal(scoped_client_tail(f.client, "a/b", NULL, &tail, &f.error),
                     STREAM_ERROR_ARGUMENT);
    fault_countdown = 0;
    int code = scoped_client_tail(f.client, THREAD, NULL, &tail, &f.error);

    fault_countdown = -1;
    assert_int_equal(code, STREAM_ERROR_MEMORY);
    assert_string_equal(f.error.code, "client.memory");
    finish(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_follow),
        cmocka_unit_test(test_entries),
        cmocka_unit_test(test_ends),
        cmocka_unit_test(test_breaks_anywhere),
        cmocka_unit_test(test_failures_that_pass),
        cmocka_unit_test(test_gives_up),
        cmocka_unit_test(test_final),
        cmocka_unit_test(test_half_open),
        cmocka_unit_test(test_restart),
        cmocka_unit_test(test_trickle),
        cmocka_unit_test(test_refused_answers),
        cmocka_unit_test(test_abort),
        cmocka_unit_test(test_abort_one),
        cmocka_unit_test(test_step),
        cmocka_unit_test(test_arguments),
    };

    return UNIT_RUN(tests);
}
