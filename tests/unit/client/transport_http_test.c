/* The transport over HTTP, without a client around it: bodies that are handed out, held back and
 * cut short, limits of time, TLS, compression, and memory that runs out. */
#include "unit/base/fault.h"

#include "client/transport_http.c"

#include "client/client.h"
#include "base/limits.h"
#include "unit/base/unit.h"
#include "unit/client/curl_fault.h"
#include "unit/client/scripted.h"
#include "unit/serve/certificate.h"

#include <fcntl.h>

#define OFFSET "Stream-Next-Offset: 0_7\r\n"
#define EMPTY  "Content-Length: 0\r\n\r\n"

struct fixture {
    struct scripted server;
    struct transport *transport;
    int wake[2];
};

/* A call and what became of it. */
struct
try {
    struct call call;
    char body[4096];
    size_t len;
    unsigned pieces;
    enum call_flow flow; /* answer of the next on_data */
    bool info_at_once;   /* the head was known at the first piece */
    bool done;
};

static enum call_flow on_data(struct call *call, struct slice bytes)
{
    struct try *try = container_of(call, struct try, call);
    enum call_flow flow = try->flow;

    try->pieces++;
    try->info_at_once = call->result.info.next_offset[0] != '\0';
    if (flow == CALL_TAKEN) {
        assert_true(try->len + bytes.len < sizeof(try->body));
        memcpy(try->body + try->len, bytes.ptr, bytes.len);
        try->len += bytes.len;
    }
    return flow;
}

static void on_done(struct call *call)
{
    struct try *try = container_of(call, struct try, call);

    assert_false(try->done);
    try->done = true;
}

static struct try make(enum call_verb verb)
{
    return (struct try){
        .call = {.verb = verb, .name = SLICE("a"), .on_data = on_data, .on_done = on_done}};
}

static void options_init(struct stream_client_options *options)
{
    stream_client_options_init(options);
    options->retry.max_retries = 0;
}

static void setup_url(struct fixture *f, const char *url,
                      const struct stream_client_options *options)
{
    assert_int_equal(transport_http_new(url, options, &f->transport, NULL), STREAM_OK);
    assert_int_equal(pipe(f->wake), 0);
}

static void setup_with(struct fixture *f, const struct scripted_turn *turns, size_t count,
                       const struct stream_client_options *options)
{
    *f = (struct fixture){0};
    scripted_init(&f->server, turns, count, NULL);
    setup_url(f, f->server.url, options);
}

static void setup(struct fixture *f, const struct scripted_turn *turns, size_t count)
{
    struct stream_client_options options;

    options_init(&options);
    setup_with(f, turns, count, &options);
}

static void finish_client(struct fixture *f)
{
    f->transport->ops->destroy(f->transport);
    (void)close(f->wake[0]);
    (void)close(f->wake[1]);
}

static void finish(struct fixture *f)
{
    finish_client(f);
    scripted_finish(&f->server);
}

static void start_try(struct fixture *f, struct try *try)
{
    call_begin(&try->call);
    f->transport->ops->start(f->transport, &try->call);
    assert_false(try->done); /* only inside of wait */
}

static void turn(struct fixture *f)
{
    f->transport->ops->wait(f->transport, f->wake[0], 1000);
}

static void run(struct fixture *f, struct try *try)
{
    start_try(f, try);
    while (!try->done) {
        turn(f);
    }
}

static void assert_error(const struct try *try, enum stream_error_code code, bool transient,
                         const char *sentence)
{
    const struct call_result *r = &try->call.result;

    if (r->error.code != code || strstr(r->error.message, sentence) == NULL) {
        print_error("%s: %s\n", stream_error_name(r->error.code), r->error.message);
    }
    assert_int_equal(r->error.code, code);
    assert_int_equal(r->transient, transient);
    assert_non_null(strstr(r->error.message, sentence));
}

/* --------------------------------------------------------------------------------------- bodies */

/* The head is known before the first byte, and the end is told from a breaking off. */
static void test_read(void **state)
{
    static const struct scripted_turn turns[] = {
        {.answer = "HTTP/1.1 200 OK\r\n" OFFSET "Stream-Up-To-Date: true\r\n"
                   "Content-Type: text/plain\r\nContent-Length: 5\r\n\r\nhello"},
        {.answer = "HTTP/1.1 200 OK\r\n" OFFSET "Transfer-Encoding: chunked\r\n\r\n"
                   "2\r\nhe\r\n3\r\nllo\r\n0\r\n\r\n"},
        {.answer = "HTTP/1.1 200 OK\r\n" OFFSET "Content-Length: 9\r\n\r\nhello",
         .end = SCRIPTED_CLOSE},
    };
    struct fixture f;

    (void)state;
    setup(&f, turns, ARRAY_COUNT(turns));
    for (int i = 0; i < 3; i++) {
        struct try try = make(CALL_READ);

        run(&f, &try);
        assert_memory_equal(try.body, "hello", 5);
        assert_int_equal(try.len, 5);
        assert_true(try.info_at_once);
        assert_int_equal(try.call.result.body_whole, i < 2);
        if (i < 2) {
            assert_int_equal(try.call.result.error.code, STREAM_OK);
        } else {
            assert_error(&try, STREAM_ERROR_NETWORK, true, "broke off");
        }
        assert_int_equal(try.call.result.up_to_date, i == 0);
    }
    assert_true(scripted_asked(&f.server, 0, "GET /v1/stream/a?offset=-1 "));
    finish(&f);
}

/* A piece that is not taken comes again after the resume, as often as that happens. */
static void test_pause(void **state)
{
    static const struct scripted_turn turns[] = {
        {.answer = "HTTP/1.1 200 OK\r\n" OFFSET "Content-Length: 5\r\n\r\nhello"}};
    struct try try = make(CALL_READ);
    struct fixture f;

    (void)state;
    setup(&f, turns, ARRAY_COUNT(turns));
    try.flow = CALL_PAUSE;
    start_try(&f, &try);
    while (try.pieces == 0) {
        turn(&f);
    }
    f.transport->ops->wait(f.transport, f.wake[0], 10);
    assert_int_equal(try.pieces, 1);
    f.transport->ops->resume(f.transport, &try.call);
    assert_int_equal(try.pieces, 1); /* only inside of wait */
    while (try.pieces == 1) {
        turn(&f);
    }
    assert_int_equal(try.len, 0);
    try.flow = CALL_TAKEN;
    f.transport->ops->resume(f.transport, &try.call);
    while (!try.done) {
        turn(&f);
    }
    assert_int_equal(try.call.result.error.code, STREAM_OK);
    assert_int_equal(try.len, 5);
    assert_memory_equal(try.body, "hello", 5);
    finish(&f);
}

/* Who has enough ends the call well, also just after a pause. */
static void test_stop(void **state)
{
    static const struct scripted_turn turns[] = {
        {.answer = "HTTP/1.1 200 OK\r\n" OFFSET "Content-Length: 500\r\n\r\nhello"}};
    struct fixture f;

    (void)state;
    setup(&f, turns, ARRAY_COUNT(turns));
    for (int i = 0; i < 2; i++) {
        struct try try = make(CALL_READ);

        try.flow = i == 0 ? CALL_STOP : CALL_PAUSE;
        start_try(&f, &try);
        while (try.pieces == 0) {
            turn(&f);
        }
        if (i == 1) {
            try.flow = CALL_STOP;
            f.transport->ops->resume(f.transport, &try.call);
        }
        while (!try.done) {
            turn(&f);
        }
        assert_int_equal(try.call.result.error.code, STREAM_OK);
        assert_false(try.call.result.body_whole);
        assert_int_equal(try.pieces, i + 1);
    }
    finish(&f);
}

/* A call that is cancelled is never heard of again: before it went out, within a body, in a pause,
 * and when it could not even be prepared. */
static void test_cancel(void **state)
{
    static const struct scripted_turn turns[] = {
        {.answer = "HTTP/1.1 200 OK\r\n" OFFSET "Content-Length: 500\r\n\r\nhello"}};
    struct try before = make(CALL_READ);
    struct try within = make(CALL_READ);
    struct try paused = make(CALL_READ);
    struct try bad = make(CALL_READ);
    struct fixture f;

    (void)state;
    setup(&f, turns, ARRAY_COUNT(turns));
    bad.call.name = SLICE("/");
    paused.flow = CALL_PAUSE;
    start_try(&f, &before);
    f.transport->ops->cancel(f.transport, &before.call);
    start_try(&f, &bad);
    f.transport->ops->cancel(f.transport, &bad.call);
    start_try(&f, &within);
    start_try(&f, &paused);
    while (within.pieces == 0 || paused.pieces == 0) {
        turn(&f);
    }
    f.transport->ops->cancel(f.transport, &within.call);
    f.transport->ops->cancel(f.transport, &paused.call);
    f.transport->ops->wait(f.transport, f.wake[0], 0);
    assert_false(before.done || within.done || paused.done || bad.done);
    assert_int_equal(scripted_count(&f.server), 2);
    finish(&f);
}

/* What cannot be prepared ends in the next turn, with its reason. */
static void test_unprepared(void **state)
{
    static const struct scripted_turn turns[] = {{.answer = NULL}};
    struct try try = make(CALL_READ);
    struct fixture f;

    (void)state;
    setup(&f, turns, 1);
    try.call.name = SLICE("a//..");
    run(&f, &try);
    assert_error(&try, STREAM_ERROR_ARGUMENT, false, "segments");
    assert_int_equal(scripted_count(&f.server), 0);
    finish(&f);
}

/* A wake-up ends the wait at once. */
static void test_wake(void **state)
{
    static const struct scripted_turn turns[] = {{.answer = NULL}};
    struct try try = make(CALL_READ);
    struct fixture f;

    (void)state;
    setup(&f, turns, 1);
    start_try(&f, &try);
    assert_int_equal(write(f.wake[1], "", 1), 1);
    f.transport->ops->wait(f.transport, f.wake[0], -1);
    scripted_await(&f.server, 0);
    f.transport->ops->cancel(f.transport, &try.call);
    finish(&f);
}

/* -------------------------------------------------------------------------------- wrong answers */

static void assert_answer(const char *answer, enum call_verb verb, const char *sentence)
{
    const struct scripted_turn turns[] = {{.answer = answer}};
    struct try try = make(verb);
    struct fixture f;

    setup(&f, turns, 1);
    run(&f, &try);
    assert_error(&try, STREAM_ERROR_FORMAT, false, sentence);
    assert_int_equal(try.pieces, 0);
    finish(&f);
}

/* Nothing of an answer that is not the protocol's is handed out. */
static void test_wrong_answers(void **state)
{
    (void)state;
    assert_answer("HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 4\r\n\r\nhtml",
                  CALL_READ, "no server of Durable Streams");
    assert_answer("HTTP/1.1 206 Partial\r\n" OFFSET "Content-Length: 4\r\n\r\npart", CALL_READ,
                  "the protocol knows no status 206 here");
    assert_answer("HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 4\r\n\r\nhtml",
                  CALL_SSE, "the answer is \"text/html\", not text/event-stream");
    assert_answer("HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nhtml", CALL_SSE,
                  "the answer is \"\", not text/event-stream");
    assert_answer("HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n"
                  "Stream-SSE-Data-Encoding: hex\r\nContent-Length: 4\r\n\r\nhtml",
                  CALL_SSE, "a Stream- field of the answer is malformed");
    assert_answer("HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 4\r\n\r\nhtml",
                  CALL_LIST, "no listing of streams");
    assert_answer(
        "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n[]",
        CALL_LIST, "no listing of streams");
}

/* Events need no offset in the head: their control events have it. */
static void test_events(void **state)
{
    static const struct scripted_turn turns[] = {
        {.answer = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream; charset=utf-8\r\n"
                   "Stream-SSE-Data-Encoding: base64\r\nContent-Length: 6\r\n\r\n: ho\n\n"}};
    struct try try = make(CALL_SSE);
    struct fixture f;

    (void)state;
    setup(&f, turns, 1);
    run(&f, &try);
    assert_int_equal(try.call.result.error.code, STREAM_OK);
    assert_true(try.call.result.base64);
    assert_int_equal(try.len, 6);
    assert_true(scripted_asked(&f.server, 0, "Accept: text/event-stream\r\n"));
    assert_false(scripted_asked(&f.server, 0, "Accept-Encoding"));
    finish(&f);
}

/* A listing longer than any page may be is refused before it fills the memory. */
static void test_long_listing(void **state)
{
    static const char head[] = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\r\n";
    size_t len = (size_t)CLIENT_LISTING_BYTES_MAX + 100000;
    char *answer = malloc(len);
    const struct scripted_turn turns[] = {{.answer = answer, .len = len, .end = SCRIPTED_CLOSE}};
    struct try try = make(CALL_LIST);
    struct fixture f;

    (void)state;
    assert_non_null(answer);
    memset(answer, ' ', len);
    memcpy(answer, head, sizeof(head) - 1);
    setup(&f, turns, 1);
    run(&f, &try);
    assert_error(&try, STREAM_ERROR_FORMAT, false, "the page of the listing is longer than");
    finish(&f);
    free(answer);
}

/* ----------------------------------------------------------------------------------------- time */

/* An answer that does not come, or does not end, in time. */
static void test_request_timeout(void **state)
{
    static const struct scripted_turn turns[] = {
        {.answer = NULL},
        {.answer = NULL},
        {.answer = "HTTP/1.1 200 OK\r\n" OFFSET "Content-Length: 9\r\n\r\nhello"}};
    struct stream_client_options options;
    struct try append = make(CALL_APPEND);
    struct try head = make(CALL_HEAD);
    struct try page = make(CALL_READ);
    struct fixture f;

    (void)state;
    options_init(&options);
    options.request_timeout_ms = 40;
    setup_with(&f, turns, ARRAY_COUNT(turns), &options);
    append.call.body = SLICE("x");
    run(&f, &append);
    assert_error(&append, STREAM_ERROR_TIMEOUT, false, "there was no whole answer within 40 ms");
    /* On a busy machine it may not have gone out, or not have been read yet. */
    if (append.call.result.error.outcome_unknown) {
        scripted_await(&f.server, 1);
    }
    assert_int_equal(append.call.result.error.outcome_unknown, scripted_count(&f.server) > 0);
    run(&f, &head);
    assert_error(&head, STREAM_ERROR_TIMEOUT, false, "there was no whole answer within 40 ms");
    assert_int_equal(head.call.result.error.outcome_unknown, 0);
    run(&f, &page);
    assert_error(&page, STREAM_ERROR_TIMEOUT, true, "there was no whole answer within 40 ms");
    finish(&f);
}

/* A live answer may last longer than any other, but not without a byte. */
static void test_idle_timeout(void **state)
{
    static const struct scripted_turn turns[] = {
        {.answer = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n"}, {.answer = NULL}};
    struct stream_client_options options;
    struct try events = make(CALL_SSE);
    struct try poll = make(CALL_LONG_POLL);
    struct fixture f;

    (void)state;
    options_init(&options);
    options.request_timeout_ms = 1;
    options.idle_timeout_ms = 60;
    setup_with(&f, turns, ARRAY_COUNT(turns), &options);
    run(&f, &events);
    assert_error(&events, STREAM_ERROR_TIMEOUT, true, "nothing was heard within 60 ms");
    run(&f, &poll);
    assert_error(&poll, STREAM_ERROR_TIMEOUT, true, "nothing was heard within 60 ms");
    finish(&f);
}

/* Turns until the server has had so many requests. */
static void turn_until(struct fixture *f, unsigned count)
{
    while (scripted_count(&f->server) < count) {
        f->transport->ops->wait(f->transport, f->wake[0], 10);
    }
}

/* A call that waits for a connection is not sent before there is one. Readers have connections of
 * their own. */
static void test_connections_are_bounded(void **state)
{
    static const struct scripted_turn turns[] = {{.answer = NULL}};
    struct stream_client_options options;
    struct try reads[3] = {make(CALL_LONG_POLL), make(CALL_READ), make(CALL_SSE)};
    struct try head = make(CALL_HEAD);
    struct try appends[2] = {make(CALL_APPEND), make(CALL_APPEND)};
    struct fixture f;

    (void)state;
    options_init(&options);
    options.max_connections = 1;
    setup_with(&f, turns, ARRAY_COUNT(turns), &options);
    start_try(&f, &head);
    start_try(&f, &appends[0]);
    start_try(&f, &appends[1]);
    for (size_t i = 0; i < ARRAY_COUNT(reads); i++) {
        start_try(&f, &reads[i]);
    }
    turn_until(&f, 4);
    f.transport->ops->wait(f.transport, f.wake[0], 10);
    assert_int_equal(scripted_count(&f.server), 4);
    f.transport->ops->cancel(f.transport, &appends[0].call);
    f.transport->ops->cancel(f.transport, &head.call);
    turn_until(&f, 5);
    assert_true(scripted_asked(&f.server, 4, "POST "));
    f.transport->ops->cancel(f.transport, &appends[1].call);
    for (size_t i = 0; i < ARRAY_COUNT(reads); i++) {
        f.transport->ops->cancel(f.transport, &reads[i].call);
    }
    finish(&f);
}

/* The time of a call that waits runs all the same. */
static void test_queue_timeout(void **state)
{
    static const struct scripted_turn turns[] = {{.answer = NULL}};
    struct stream_client_options options;
    struct try tries[20];
    struct fixture f;

    (void)state;
    options_init(&options);
    options.request_timeout_ms = 60;
    options.max_connections = 1;
    setup_with(&f, turns, ARRAY_COUNT(turns), &options);
    for (size_t i = 0; i < ARRAY_COUNT(tries); i++) {
        tries[i] = make(CALL_HEAD);
        start_try(&f, &tries[i]);
    }
    for (size_t i = 0; i < ARRAY_COUNT(tries); i++) {
        while (!tries[i].done) {
            turn(&f);
        }
        assert_error(&tries[i], STREAM_ERROR_TIMEOUT, false, "no whole answer within 60 ms");
    }
    finish(&f);
}

/* Calls that wait have their turns in order. */
static void test_queue(void **state)
{
    static const struct scripted_turn turns[] = {{.answer = "HTTP/1.1 200 OK\r\n" OFFSET EMPTY}};
    static const char *const names[] = {"a", "b", "c", "..", "d", "e"};
    struct stream_client_options options;
    struct try tries[ARRAY_COUNT(names)];
    struct fixture f;

    (void)state;
    options_init(&options);
    options.max_connections = 1;
    setup_with(&f, turns, ARRAY_COUNT(turns), &options);
    for (size_t i = 0; i < ARRAY_COUNT(names); i++) {
        tries[i] = make(CALL_HEAD);
        tries[i].call.name = slice_of(names[i]);
        start_try(&f, &tries[i]);
    }
    for (size_t i = 0; i < ARRAY_COUNT(names); i++) {
        while (!tries[i].done) {
            turn(&f);
        }
        assert_error(&tries[i], i == 3 ? STREAM_ERROR_ARGUMENT : STREAM_OK, false, "");
    }
    assert_true(scripted_asked(&f.server, 0, "HEAD /v1/stream/a "));
    assert_true(scripted_asked(&f.server, 2, "HEAD /v1/stream/c "));
    assert_true(scripted_asked(&f.server, 4, "HEAD /v1/stream/e "));
    assert_int_equal(f.server.accepted, 1);
    finish(&f);
}

/* Nobody takes the connection: a socket whose queue is full answers no SYN. */
static void test_connect_timeout(void **state)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
    socklen_t len = sizeof(address);
    struct stream_client_options options;
    struct try append = make(CALL_APPEND);
    struct fixture f = {0};
    int full[8];
    char url[64];
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    (void)state;
    assert_int_equal(bind(fd, (const struct sockaddr *)&address, len), 0);
    assert_int_equal(listen(fd, 0), 0);
    assert_int_equal(getsockname(fd, (struct sockaddr *)&address, &len), 0);
    for (size_t i = 0; i < ARRAY_COUNT(full); i++) {
        full[i] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        (void)connect(full[i], (const struct sockaddr *)&address, len);
    }
    (void)snprintf(url, sizeof(url), "http://127.0.0.1:%u/", ntohs(address.sin_port));
    options_init(&options);
    options.connect_timeout_ms = 50;
    setup_url(&f, url, &options);
    append.call.body = SLICE("x");
    run(&f, &append);
    assert_error(&append, STREAM_ERROR_TIMEOUT, true, "no connection within 50 ms");
    assert_int_equal(append.call.result.error.outcome_unknown, 0);
    finish_client(&f);
    for (size_t i = 0; i < ARRAY_COUNT(full); i++) {
        (void)close(full[i]);
    }
    (void)close(fd);
}

/* ---------------------------------------------------------------------------------- compression */

/* "hello hello hello hello hello" by gzip. */
#define GZIP                                                                                   \
    "\x1f\x8b\x08\x00\x00\x00\x00\x00\x02\xff\xcb\x48\xcd\xc9\xc9\x57\xc8\xc0\x4e\x02\x00\xf6" \
    "\xd2\x53\x38\x1d\x00\x00\x00"

static void test_compression(void **state)
{
    static const char answer[] = "HTTP/1.1 200 OK\r\n" OFFSET "Content-Encoding: gzip\r\n"
                                 "Content-Length: 29\r\n\r\n" GZIP;
    const struct scripted_turn turns[] = {{.answer = answer, .len = sizeof(answer) - 1}};
    struct stream_client_options options;
    struct fixture f;

    (void)state;
    options_init(&options);
    for (options.compression = 0; options.compression < 2; options.compression++) {
        struct try try = make(CALL_READ);

        setup_with(&f, turns, 1, &options);
        run(&f, &try);
        assert_int_equal(scripted_asked(&f.server, 0, "Accept-Encoding: "), options.compression);
        if (options.compression) {
            assert_int_equal(try.call.result.error.code, STREAM_OK);
            assert_int_equal(try.len, 29);
            assert_memory_equal(try.body, "hello hello hello hello hello", 29);
        }
        finish(&f);
    }
}

/* ------------------------------------------------------------------------------------------ TLS */

static void try_tls(const struct certificate *server, const char *host, const char *ca_file,
                    struct try *try)
{
    static const struct scripted_turn turns[] = {
        {.answer = "HTTP/1.1 200 OK\r\n" OFFSET "Content-Length: 0\r\n\r\n"}};
    SSL_CTX *tls = server != NULL ? certificate_server(server) : NULL;
    struct stream_client_options options;
    struct fixture f = {0};
    char url[64];

    options_init(&options);
    options.ca_file = ca_file;
    scripted_init(&f.server, turns, 1, tls);
    (void)snprintf(url, sizeof(url), "https://%s:%u/", host, f.server.port);
    setup_url(&f, url, &options);
    *try = make(CALL_HEAD);
    run(&f, try);
    finish(&f);
    SSL_CTX_free(tls);
}

/* Certificates must be good in every way; none of the failures is tried again. */
static void test_tls(void **state)
{
    struct certificate authority;
    struct certificate good;
    struct certificate other;
    struct certificate late;
    struct certificate own;
    struct try try;
    char path[] = "/tmp/arbe-ca-XXXXXX";
    int fd = mkstemp(path);

    (void)state;
    assert_true(fd >= 0);
    (void)close(fd);
    certificate_init(&authority, NULL, NULL, -3600, 3600);
    certificate_init(&good, "localhost", &authority, -3600, 3600);
    certificate_init(&other, "elsewhere.test", &authority, -3600, 3600);
    certificate_init(&late, "localhost", &authority, -7200, -3600);
    certificate_init(&own, "localhost", NULL, -3600, 3600);
    certificate_save(&authority, path);
    try_tls(&good, "localhost", path, &try);
    assert_error(&try, STREAM_OK, false, "");
    try_tls(&good, "localhost", NULL, &try);
    assert_error(&try, STREAM_ERROR_TLS, false, "localhost:");
    try_tls(&other, "localhost", path, &try);
    assert_error(&try, STREAM_ERROR_TLS, false, "localhost");
    try_tls(&late, "localhost", path, &try);
    assert_error(&try, STREAM_ERROR_TLS, false, "expired");
    try_tls(&own, "localhost", path, &try);
    assert_error(&try, STREAM_ERROR_TLS, false, "self");
    try_tls(&good, "localhost", "/no/such/file", &try);
    assert_error(&try, STREAM_ERROR_TLS, false, "/no/such/file");
    assert_int_equal(remove(path), 0);
    certificate_finish(&own);
    certificate_finish(&late);
    certificate_finish(&other);
    certificate_finish(&good);
    certificate_finish(&authority);
}

/* A server that speaks plain HTTP where TLS is wanted. */
static void test_tls_to_plain(void **state)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
    socklen_t len = sizeof(address);
    struct stream_client_options options;
    struct try try = make(CALL_HEAD);
    struct fixture f = {0};
    char url[64];
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    (void)state;
    assert_int_equal(bind(fd, (const struct sockaddr *)&address, len), 0);
    assert_int_equal(listen(fd, 8), 0);
    assert_int_equal(getsockname(fd, (struct sockaddr *)&address, &len), 0);
    (void)snprintf(url, sizeof(url), "https://127.0.0.1:%u/", ntohs(address.sin_port));
    options_init(&options);
    setup_url(&f, url, &options);
    start_try(&f, &try);
    turn(&f);
    int peer = accept(fd, NULL, NULL);

    assert_true(write(peer, "HTTP/1.1 400 What is this?\r\n\r\n", 30) == 30);
    while (!try.done) {
        turn(&f);
    }
    assert_error(&try, STREAM_ERROR_TLS, false, "127.0.0.1:");
    finish_client(&f);
    (void)close(peer);
    (void)close(fd);
}

/* -------------------------------------------------------------------------------------- options */

/* What a header field could not hold is refused when the client is made. */
static void test_bad_texts(void **state)
{
    struct stream_client_options options;
    struct stream_error error;
    struct transport *transport;

    (void)state;
    options_init(&options);
    options.bearer = "a\nb";
    assert_int_equal(transport_http_new("http://h/", &options, &transport, &error),
                     STREAM_ERROR_ARGUMENT);
    assert_string_equal(error.message, "bearer is empty or holds control characters");
    options.bearer = "";
    assert_int_equal(transport_http_new("http://h/", &options, &transport, &error),
                     STREAM_ERROR_ARGUMENT);
    options.bearer = NULL;
    options.user_agent = "\x7f";
    assert_int_equal(transport_http_new("http://h/", &options, &transport, &error),
                     STREAM_ERROR_ARGUMENT);
    assert_string_equal(error.message, "user_agent holds control characters");
}

/* Connections are not handed on to programs that this one starts. */
static void test_close_on_exec(void **state)
{
    static const struct scripted_turn turns[] = {{.answer = "HTTP/1.1 200 OK\r\n" OFFSET EMPTY}};
    struct try try = make(CALL_HEAD);
    unsigned found = 0;
    struct fixture f;

    (void)state;
    setup(&f, turns, 1);
    run(&f, &try);
    for (int fd = 0; fd < 256; fd++) {
        struct sockaddr_in peer = {0};
        socklen_t len = sizeof(peer);

        if (getpeername(fd, (struct sockaddr *)&peer, &len) == 0 &&
            ntohs(peer.sin_port) == f.server.port) {
            found++;
            assert_true((fcntl(fd, F_GETFD) & FD_CLOEXEC) != 0);
        }
    }
    assert_int_equal(found, 1);
    finish(&f);
}

/* The token goes with every request, and the texts are copies. */
static void test_bearer(void **state)
{
    static const struct scripted_turn turns[] = {{.answer = "HTTP/1.1 200 OK\r\n" OFFSET EMPTY}};
    char bearer[] = "top";
    char agent[] = "test/1";
    struct stream_client_options options;
    struct try try = make(CALL_HEAD);
    struct fixture f;

    (void)state;
    options_init(&options);
    options.bearer = bearer;
    options.user_agent = agent;
    setup_with(&f, turns, 1, &options);
    bearer[0] = 'x';
    agent[0] = 'x';
    run(&f, &try);
    assert_true(scripted_asked(&f.server, 0, "Authorization: Bearer top\r\n"));
    assert_true(scripted_asked(&f.server, 0, "User-Agent: test/1\r\n"));
    finish(&f);
}

/* --------------------------------------------------------------------------------------- memory */

/* Without memory a transport is not made, and nothing of it is left. */
static void test_new_without_memory(void **state)
{
    struct stream_client_options options;
    struct transport *transport = NULL;
    struct stream_error error;
    int code = STREAM_ERROR_MEMORY;

    (void)state;
    options_init(&options);
    options.bearer = "b";
    options.ca_file = "c";
    for (long i = 0; code != STREAM_OK; i++) {
        fault_countdown = i;
        code = transport_http_new("http://h/", &options, &transport, &error);
        fault_countdown = -1;
        assert_true(code == STREAM_OK || code == STREAM_ERROR_MEMORY);
        assert_true(i < 1000);
    }
    transport->ops->destroy(transport);
}

/* Whichever allocation of a call fails, its own or libcurl's, the call ends with one error. Nobody
 * listens, so that all of it happens on this thread. */
static void test_call_without_memory(void **state)
{
    struct stream_client_options options;
    struct fixture f = {0};
    unsigned without = 0;
    bool good = false;

    (void)state;
    options_init(&options);
    for (long i = 0; !good; i++) {
        struct try try = make(CALL_APPEND);

        setup_url(&f, "http://127.0.0.1:1/", &options);
        try.call.body = SLICE("x");
        fault_countdown = i;
        run(&f, &try);
        good = fault_countdown > 0;
        fault_countdown = -1;
        without += try.call.result.error.code == STREAM_ERROR_MEMORY;
        assert_true(try.call.result.error.code == STREAM_ERROR_MEMORY ||
                    try.call.result.error.code == STREAM_ERROR_NETWORK);
        finish_client(&f);
        assert_true(i < 10000);
    }
    assert_true(without > 5);
}

/* A server that has gone when connections are ended does not raise SIGPIPE in the program. */
static void test_end_quietly(void **state)
{
    static const struct scripted_turn turns[] = {{.answer = "HTTP/1.1 200 OK\r\n" OFFSET EMPTY}};
    struct certificate own;
    struct fixture f = {0};
    struct try try = make(CALL_HEAD);
    struct stream_client_options options;
    char path[] = "/tmp/arbe-ca-XXXXXX";
    char url[64];
    sigset_t pending;
    int fd = mkstemp(path);

    (void)state;
    assert_true(fd >= 0);
    (void)close(fd);
    certificate_init(&own, "localhost", NULL, -3600, 3600);
    certificate_save(&own, path);
    SSL_CTX *tls = certificate_server(&own);

    options_init(&options);
    options.ca_file = path;
    scripted_init(&f.server, turns, 1, tls);
    (void)snprintf(url, sizeof(url), "https://localhost:%u/", f.server.port);
    setup_url(&f, url, &options);
    run(&f, &try);
    assert_error(&try, STREAM_OK, false, "");
    scripted_finish(&f.server);
    finish_client(&f);
    assert_int_equal(sigpending(&pending), 0);
    assert_false(sigismember(&pending, SIGPIPE));
    SSL_CTX_free(tls);
    certificate_finish(&own);
    assert_int_equal(remove(path), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_read),
        cmocka_unit_test(test_pause),
        cmocka_unit_test(test_stop),
        cmocka_unit_test(test_cancel),
        cmocka_unit_test(test_unprepared),
        cmocka_unit_test(test_wake),
        cmocka_unit_test(test_wrong_answers),
        cmocka_unit_test(test_events),
        cmocka_unit_test(test_long_listing),
        cmocka_unit_test(test_request_timeout),
        cmocka_unit_test(test_idle_timeout),
        cmocka_unit_test(test_connections_are_bounded),
        cmocka_unit_test(test_queue),
        cmocka_unit_test(test_queue_timeout),
        cmocka_unit_test(test_connect_timeout),
        cmocka_unit_test(test_compression),
        cmocka_unit_test(test_tls),
        cmocka_unit_test(test_tls_to_plain),
        cmocka_unit_test(test_end_quietly),
        cmocka_unit_test(test_bad_texts),
        cmocka_unit_test(test_close_on_exec),
        cmocka_unit_test(test_bearer),
        cmocka_unit_test(test_new_without_memory),
        cmocka_unit_test(test_call_without_memory),
    };

    sigset_t broken_pipe;

    curl_fault_init();
    (void)sigemptyset(&broken_pipe); /* as the client's thread has it */
    (void)sigaddset(&broken_pipe, SIGPIPE);
    (void)pthread_sigmask(SIG_BLOCK, &broken_pipe, NULL);
    return UNIT_RUN(tests);
}
