/* The calls of a client against a server that answers as a table says: what goes out, what comes
 * back, each error with its code and its sentence, and what is tried again. */
#include "unit/base/fault.h"

#include "client/stream_client.c"

#include "arbe/producer.h"
#include "unit/base/unit.h"
#include "unit/client/scripted.h"

#include <dirent.h>

#define OFFSET "Stream-Next-Offset: 0_7\r\n"
#define EMPTY  "Content-Length: 0\r\n\r\n"
#define OK_200 "HTTP/1.1 200 OK\r\n" OFFSET "Content-Type: text/plain\r\n" EMPTY
#define OK_204 "HTTP/1.1 204 No Content\r\n" OFFSET "\r\n"

struct fixture {
    struct scripted server;
    struct stream_client *client;
    struct stream_info info;
    struct stream_error error;
    unsigned told; /* calls of begin_anew */
};

static void options_init(struct stream_client_options *options)
{
    stream_client_options_init(options);
    options->retry.initial_delay_ms = 1;
    options->retry.max_delay_ms = 2;
    options->retry.max_retries = 0;
}

static void setup_with(struct fixture *f, const struct scripted_turn *turns, size_t count,
                       const struct stream_client_options *options)
{
    *f = (struct fixture){0};
    scripted_init(&f->server, turns, count, NULL);
    assert_int_equal(stream_client_new(f->server.url, options, &f->client, &f->error), STREAM_OK);
}

static void setup(struct fixture *f, const struct scripted_turn *turns, size_t count)
{
    struct stream_client_options options;

    options_init(&options);
    setup_with(f, turns, count, &options);
}

static void finish(struct fixture *f)
{
    stream_client_free(f->client);
    scripted_finish(&f->server);
}

static int append(struct fixture *f, const char *type)
{
    const struct stream_append_options options = {.content_type = type};

    return stream_client_append(f->client, "a/b", "data", 4, &options, &f->info, &f->error);
}

/* One call of each kind, by the letter of its verb. */
static int call_one(struct fixture *f, char verb)
{
    switch (verb) {
    case 'c':
        return stream_client_create(f->client, "a/b", NULL, &f->info, &f->error);
    case 'a':
        return append(f, "text/plain");
    case 'd':
        return stream_client_delete(f->client, "a/b", &f->error);
    default:
        return stream_client_head(f->client, "a/b", &f->info, &f->error);
    }
}

/* ------------------------------------------------------------------------------- what goes well */

static void test_create(void **state)
{
    static const struct scripted_turn turns[] = {
        {.answer = "HTTP/1.1 201 Created\r\n" OFFSET "Content-Type: application/json\r\n"
                   "Stream-Closed: true\r\n" EMPTY},
        {.answer = OK_200},
    };
    const struct stream_create_options options = {
        .content_type = "application/json", .closed = 1, .data = "[1]", .len = 3};
    struct fixture f;

    (void)state;
    setup(&f, turns, ARRAY_COUNT(turns));
    assert_int_equal(stream_client_create(f.client, "a/b c", &options, &f.info, &f.error), 0);
    assert_int_equal(f.info.status, 201);
    assert_int_equal(f.info.created, 1);
    assert_int_equal(f.info.closed, 1);
    assert_string_equal(f.info.next_offset, "0_7");
    assert_string_equal(f.info.content_type, "application/json");
    assert_true(scripted_asked(&f.server, 0, "PUT /v1/stream/a/b%20c HTTP/1.1\r\n"));
    assert_true(scripted_asked(&f.server, 0, "Content-Type: application/json\r\n"));
    assert_true(scripted_asked(&f.server, 0, "Stream-Closed: true\r\n"));
    assert_true(scripted_asked(&f.server, 0, "User-Agent: arbe/"));
    assert_true(scripted_asked(&f.server, 0, "\r\n\r\n[1]"));
    assert_false(scripted_asked(&f.server, 0, "Authorization"));
    assert_false(scripted_asked(&f.server, 0, "Expect"));
    assert_int_equal(stream_client_create(f.client, "x", NULL, &f.info, NULL), STREAM_OK);
    assert_int_equal(f.info.created, 0);
    assert_false(scripted_asked(&f.server, 1, "Content-Type"));
    assert_int_equal(stream_client_create(f.client, "x", NULL, NULL, NULL), STREAM_OK);
    finish(&f);
}

static void test_append_and_close(void **state)
{
    static const struct scripted_turn turns[] = {
        {.answer = OK_204},
        {.answer = "HTTP/1.1 200 OK\r\n" OFFSET "Producer-Epoch: 2\r\nProducer-Seq: 5\r\n" EMPTY},
        {.answer = "HTTP/1.1 204 No Content\r\n" OFFSET "Stream-Closed: true\r\n\r\n"},
    };
    const struct stream_append_options producer = {.content_type = "text/plain",
                                                   .seq = "s",
                                                   .producer_id = "p",
                                                   .producer_epoch = 2,
                                                   .producer_seq = 5};
    struct fixture f;

    (void)state;
    setup(&f, turns, ARRAY_COUNT(turns));
    assert_int_equal(append(&f, "text/plain"), STREAM_OK);
    assert_string_equal(f.info.next_offset, "0_7");
    assert_int_equal(f.info.duplicate, 0);
    assert_int_equal(f.info.producer_epoch, -1);
    assert_true(scripted_asked(&f.server, 0, "POST /v1/stream/a/b HTTP/1.1\r\n"));
    assert_true(scripted_asked(&f.server, 0, "\r\n\r\ndata"));
    assert_int_equal(stream_client_append(f.client, "a/b", "x", 1, &producer, &f.info, &f.error),
                     STREAM_OK);
    assert_int_equal(f.info.producer_epoch, 2);
    assert_int_equal(f.info.producer_seq, 5);
    assert_true(scripted_asked(&f.server, 1, "Stream-Seq: s\r\nProducer-Id: p\r\n"));
    assert_int_equal(stream_client_close(f.client, "a/b", &f.info, &f.error), STREAM_OK);
    assert_int_equal(f.info.closed, 1);
    assert_true(scripted_asked(&f.server, 2, "Stream-Closed: true\r\n"));
    assert_true(scripted_asked(&f.server, 2, "Content-Length: 0\r\n"));
    assert_false(scripted_asked(&f.server, 2, "Content-Type"));
    assert_int_equal(stream_client_append(f.client, "a/b", "x", 1, &producer, &f.info, &f.error),
                     STREAM_OK);
    assert_int_equal(f.info.duplicate, 1);
    finish(&f);
}

/* One connection carries all calls, and a body much larger than a socket's buffer. */
static void test_large_append(void **state)
{
    static const struct scripted_turn turns[] = {{.answer = OK_204}};
    const struct stream_append_options options = {.content_type = "text/plain"};
    size_t len = 8 << 20;
    char *data = malloc(len);
    struct fixture f;

    (void)state;
    assert_non_null(data);
    memset(data, 'x', len);
    setup(&f, turns, ARRAY_COUNT(turns));
    for (int i = 0; i < 3; i++) {
        assert_int_equal(
            stream_client_append(f.client, "a", data, len, &options, &f.info, &f.error), 0);
    }
    assert_int_equal(f.server.accepted, 1);
    assert_int_equal(strlen(strstr(f.server.requests[2], "\r\n\r\n")), len + 4);
    finish(&f);
    free(data);
}

/* An append that is not told the content type asks once, remembers, and asks again when it has
 * become wrong. */
static void test_type_is_found(void **state)
{
    static const struct scripted_turn turns[] = {
        {.answer = OK_200},
        {.answer = OK_204},
        {.answer = OK_204},
        {.answer = "HTTP/1.1 409 Conflict\r\n" EMPTY},
        {.answer = "HTTP/1.1 200 OK\r\n" OFFSET "Content-Type: text/html\r\n" EMPTY},
        {.answer = OK_204},
        {.answer = "HTTP/1.1 409 Conflict\r\n" EMPTY},
        {.answer = "HTTP/1.1 404 Not Found\r\n" EMPTY},
    };
    struct fixture f;

    (void)state;
    setup(&f, turns, ARRAY_COUNT(turns));
    assert_int_equal(append(&f, NULL), STREAM_OK);
    assert_true(scripted_asked(&f.server, 0, "HEAD /v1/stream/a/b "));
    assert_true(scripted_asked(&f.server, 1, "Content-Type: text/plain\r\n"));
    assert_int_equal(append(&f, NULL), STREAM_OK);
    assert_int_equal(scripted_count(&f.server), 3);
    assert_int_equal(append(&f, NULL), STREAM_OK);
    assert_int_equal(scripted_count(&f.server), 6);
    assert_true(scripted_asked(&f.server, 5, "Content-Type: text/html\r\n"));
    assert_int_equal(append(&f, NULL), STREAM_ERROR_NOT_FOUND);
    assert_string_equal(f.error.message,
                        "cannot append to \"a/b\": there is no such stream (status 404)");
    assert_int_equal(f.error.outcome_unknown, 0);
    finish(&f);
}

/* A batch is a JSON array for JSON streams, and one run of bytes for others. */
static void test_batch(void **state)
{
    static const struct scripted_turn turns[] = {
        {.answer = OK_204},
        {.answer = OK_204},
        {.answer = OK_200},
        {.answer = OK_204},
        {.answer = "HTTP/1.1 409 Conflict\r\n" EMPTY},
        {.answer = "HTTP/1.1 200 OK\r\n" OFFSET "Content-Type: application/json\r\n" EMPTY},
        {.answer = OK_204},
        {.answer = "HTTP/1.1 404 Not Found\r\n" EMPTY},
    };
    const struct stream_message messages[] = {{"{}", 2}, {"[1]", 3}, {"2", 1}};
    const struct stream_append_options json = {.content_type = "application/json; charset=utf-8"};
    const struct stream_append_options bytes = {.content_type = "a/b"};
    struct fixture f;

    (void)state;
    setup(&f, turns, ARRAY_COUNT(turns));
    assert_int_equal(stream_client_append_batch(f.client, "a", messages, 3, &json, NULL, NULL), 0);
    assert_true(scripted_asked(&f.server, 0, "\r\n\r\n[{},[1],2]"));
    assert_int_equal(stream_client_append_batch(f.client, "a", messages, 3, &bytes, NULL, NULL), 0);
    assert_true(scripted_asked(&f.server, 1, "\r\n\r\n{}[1]2"));
    assert_int_equal(stream_client_append_batch(f.client, "a", messages, 2, NULL, NULL, NULL), 0);
    assert_true(scripted_asked(&f.server, 3, "\r\n\r\n{}[1]"));
    /* The stream is another one by now. */
    assert_int_equal(stream_client_append_batch(f.client, "a", messages, 1, NULL, NULL, NULL), 0);
    assert_true(scripted_asked(&f.server, 4, "\r\n\r\n{}"));
    assert_true(scripted_asked(&f.server, 6, "\r\n\r\n[{}]"));
    assert_int_equal(stream_client_append_batch(f.client, "b", messages, 1, NULL, NULL, &f.error),
                     STREAM_ERROR_NOT_FOUND);
    finish(&f);
}

/* What would not come back as the message that it was is refused, whoever told the type. */
static void test_batch_values(void **state)
{
    static const struct scripted_turn turns[] = {
        {.answer = "HTTP/1.1 200 OK\r\n" OFFSET "Content-Type: application/json\r\n" EMPTY},
        {.answer = OK_204},
        {.answer = OK_200}, /* the stream is one of text by now */
        {.answer = OK_204},
    };
    static const char *const bad[] = {"1,2", "", "{", "1 2", "1],[2", "\"a", "\xef\xbb\xbf{}"};
    const struct stream_append_options json = {.content_type = "application/json"};
    struct stream_message messages[] = {{" {}\n", 4}, {NULL, 0}};
    struct fixture f;

    (void)state;
    setup(&f, turns, ARRAY_COUNT(turns));
    for (size_t i = 0; i < ARRAY_COUNT(bad); i++) {
        messages[1] = (struct stream_message){bad[i], strlen(bad[i])};
        assert_int_equal(
            stream_client_append_batch(f.client, "a", messages, 2, &json, NULL, &f.error),
            STREAM_ERROR_ARGUMENT);
        assert_non_null(strstr(f.error.message,
                               "cannot append to \"a\": messages[1] must be one JSON value: "));
    }
    assert_int_equal(scripted_count(&f.server), 0);
    assert_int_equal(stream_client_append_batch(f.client, "a", messages, 1, NULL, NULL, NULL), 0);
    assert_true(scripted_asked(&f.server, 1, "\r\n\r\n[ {}\n]"));
    assert_int_equal(stream_client_append_batch(f.client, "a", messages, 2, NULL, NULL, NULL), 0);
    assert_int_equal(scripted_count(&f.server), 4);
    assert_true(scripted_asked(&f.server, 3, "\r\n\r\n {}\n\xef\xbb\xbf{}"));
    finish(&f);
}

/* A server that does not tell the type of a stream leaves nothing to append by. */
static void test_no_type(void **state)
{
    static const struct scripted_turn turns[] = {{.answer = "HTTP/1.1 200 OK\r\n" OFFSET EMPTY}};
    const struct stream_message message = {"x", 1};
    struct fixture f;

    (void)state;
    setup(&f, turns, ARRAY_COUNT(turns));
    assert_int_equal(append(&f, NULL), STREAM_ERROR_FORMAT);
    assert_string_equal(f.error.message,
                        "cannot append to \"a/b\": the server does not tell the content type");
    assert_int_equal(stream_client_append_batch(f.client, "a", &message, 1, NULL, NULL, &f.error),
                     STREAM_ERROR_FORMAT);
    assert_string_equal(f.error.message, "the server does not tell the content type of \"a\"");
    assert_int_equal(scripted_count(&f.server), 2);
    finish(&f);
}

/* Batches that no memory holds, or could hold, are not sent. */
static void test_batch_memory(void **state)
{
    static const struct scripted_turn turns[] = {{.answer = OK_204}};
    const struct stream_message huge[] = {{"x", SIZE_MAX / 2}, {"x", SIZE_MAX / 2}, {"x", 9}};
    const struct stream_message small[] = {{"x", 1}, {NULL, 0}, {"y", 1}};
    const struct stream_append_options bytes = {.content_type = "a/b"};
    struct fixture f;

    (void)state;
    setup(&f, turns, ARRAY_COUNT(turns));
    assert_int_equal(stream_client_append_batch(f.client, "a", huge, 3, &bytes, NULL, &f.error),
                     STREAM_ERROR_MEMORY);
    fault_countdown = 0;
    int code = stream_client_append_batch(f.client, "a", small, 3, &bytes, NULL, &f.error);

    fault_countdown = -1;
    assert_int_equal(code, STREAM_ERROR_MEMORY);
    assert_int_equal(scripted_count(&f.server), 0);
    assert_int_equal(stream_client_append_batch(f.client, "a", small, 3, &bytes, NULL, &f.error),
                     STREAM_OK);
    assert_true(scripted_asked(&f.server, 0, "\r\n\r\nxy"));
    finish(&f);
}

static void on_end(void *context, int code, const struct stream_info *info,
                   const struct stream_error *error)
{
    unsigned *good = context;

    assert_int_equal(code, STREAM_OK);
    assert_null(error);
    assert_string_equal(info->next_offset, "0_7");
    (*good)++;
}

/* Each call that can be started, from an event loop of the program's own; what makes no sense is
 * refused at once. */
static void test_started(void **state)
{
    static const struct scripted_turn turns[] = {{.answer = OK_200}};
    const struct stream_create_options create = {.ttl_seconds = -1};
    struct pollfd polled = {.events = POLLIN};
    struct stream_client *client;
    struct stream_error *error;
    unsigned good = 0;
    struct fixture f;

    (void)state;
    setup(&f, turns, ARRAY_COUNT(turns));
    client = f.client;
    error = &f.error;
    assert_int_equal(stream_client_start_create(client, "a", &create, on_end, &good, error),
                     STREAM_ERROR_ARGUMENT);
    assert_int_equal(stream_client_start_head(client, "", on_end, &good, error),
                     STREAM_ERROR_ARGUMENT);
    assert_int_equal(stream_client_start_append(client, "a", "", 0, NULL, on_end, &good, error),
                     STREAM_ERROR_ARGUMENT);
    assert_int_equal(stream_client_start_delete(client, "..", on_end, &good, error),
                     STREAM_ERROR_ARGUMENT);
    assert_int_equal(stream_client_start_create(client, "a", NULL, on_end, &good, error), 0);
    assert_int_equal(stream_client_start_head(client, "a", on_end, &good, error), 0);
    assert_int_equal(stream_client_start_append(client, "a", "x", 1, NULL, on_end, &good, error),
                     0);
    assert_int_equal(stream_client_start_delete(client, "a", on_end, &good, error), 0);
    polled.fd = stream_client_fd(client);
    while (good < 4) {
        assert_int_equal(poll(&polled, 1, -1), 1);
        stream_client_step(client);
    }
    finish(&f);
}

static int never(void *context, const char *name, const struct stream_info *info)
{
    (void)context;
    (void)name;
    (void)info;
    return 1;
}

static void expect_freed(int code, struct stream_error *error, const char *sentence)
{
    assert_int_equal(code, STREAM_ERROR_ABORTED);
    assert_int_equal(error->code, STREAM_ERROR_ABORTED);
    assert_string_equal(error->message, sentence);
    *error = (struct stream_error){0};
}

/* Told of its end by stream_client_free, it begins one of each. */
static void begin_anew(void *context, int code, const struct stream_info *info,
                       const struct stream_error *told)
{
    const struct stream_message message = {"1", 1};
    struct fixture *f = context;
    struct stream_client *client = f->client;
    struct stream_error *error = &f->error;
    struct stream_producer *producer;
    struct stream_reader *reader;
    char *data;
    size_t len;

    (void)info;
    (void)told;
    assert_int_equal(code, STREAM_ERROR_ABORTED);
    expect_freed(stream_client_start_head(client, "a", begin_anew, f, error), error,
                 "cannot look at \"a\": the client is being freed");
    stream_client_reset(client); /* takes nothing back */
    expect_freed(stream_client_head(client, "a", NULL, error), error,
                 "cannot look at \"a\": the client is being freed");
    expect_freed(stream_client_append_batch(client, "a", &message, 1, NULL, NULL, error), error,
                 "cannot look at \"a\": the client is being freed");
    expect_freed(stream_client_list(client, "", never, NULL, error), error,
                 "cannot list streams: the client is being freed");
    expect_freed(stream_client_read(client, "a", NULL, &reader, error), error,
                 "cannot read \"a\": the client is being freed");
    expect_freed(stream_client_read_all(client, "a", NULL, 9, &data, &len, NULL, error), error,
                 "cannot read \"a\": the client is being freed");
    expect_freed(stream_producer_new(client, "a", "me", NULL, &producer, error), error,
                 "cannot append to \"a\": the client is being freed");
    f->told++;
}

/* What is begun while the client is being freed has no thread that would end it: refused. */
static void test_begun_at_free(void **state)
{
    static const struct scripted_turn turns[] = {{.answer = NULL}};
    struct fixture f;

    (void)state;
    setup(&f, turns, ARRAY_COUNT(turns));
    for (int i = 0; i < 2; i++) {
        assert_int_equal(stream_client_start_head(f.client, "a", begin_anew, &f, &f.error), 0);
    }
    finish(&f);
    assert_int_equal(f.told, 2);
}

static void test_head_and_delete(void **state)
{
    static const struct scripted_turn turns[] = {
        {.answer = "HTTP/1.1 200 OK\r\n" OFFSET "Content-Type: a/b\r\nStream-TTL: 60\r\n"
                   "Stream-Expires-At: 2030-01-01T00:00:00Z\r\nETag: \"x\"\r\n"
                   "Content-Length: 1000\r\n\r\n"},
        {.answer = "HTTP/1.1 204 No Content\r\n\r\n"},
    };
    struct fixture f;

    (void)state;
    setup(&f, turns, ARRAY_COUNT(turns));
    assert_int_equal(stream_client_head(f.client, "a/b", &f.info, &f.error), STREAM_OK);
    assert_int_equal(f.info.ttl_seconds, 60);
    assert_string_equal(f.info.expires_at, "2030-01-01T00:00:00Z");
    assert_string_equal(f.info.etag, "\"x\"");
    assert_int_equal(stream_client_delete(f.client, "a/b", &f.error), STREAM_OK);
    assert_true(scripted_asked(&f.server, 1, "DELETE /v1/stream/a/b "));
    finish(&f);
}

/* -------------------------------------------------------------------------------------- errors */

#define PROBLEM(status, fields, body) "HTTP/1.1 " status "\r\n" fields "\r\n" body

struct expected {
    const char *answer;
    enum scripted_end end;
    char verb;
    enum stream_error_code code;
    int status;
    int unknown;
    const char *sentence;
};

static void assert_expected(const struct expected *e)
{
    const struct scripted_turn turn = {.answer = e->answer, .end = e->end};
    struct fixture f;

    setup(&f, &turn, 1);
    int code = call_one(&f, e->verb);

    if (code != (int)e->code || strstr(f.error.message, e->sentence) == NULL ||
        f.error.outcome_unknown != e->unknown) {
        print_error("%c of %.60s: %s: %s\n", e->verb, e->answer != NULL ? e->answer : "nothing",
                    stream_error_name((enum stream_error_code)code), f.error.message);
    }
    assert_int_equal(code, e->code);
    assert_int_equal(f.error.code, e->code);
    assert_int_equal(f.error.status, e->status);
    assert_int_equal(f.error.outcome_unknown, e->unknown);
    assert_non_null(strstr(f.error.message, e->sentence));
    assert_non_null(strstr(f.error.message, "\"a/b\": "));
    assert_int_equal(scripted_count(&f.server), 1);
    finish(&f);
}

/* Statuses, with the server's sentence in each of its forms. */
static void test_refusals(void **state)
{
    static const struct expected all[] = {
        {PROBLEM("400 Bad Request", "Content-Type: application/problem+json\r\n",
                 "{\"title\":\"Bad\",\"detail\":\"so it is\"}"),
         SCRIPTED_CLOSE, 'a', STREAM_ERROR_REJECTED, 400, 0, "so it is (status 400)"},
        {PROBLEM("401 Unauthorized", "Content-Type: application/json\r\n",
                 "{\"error\":{\"message\":\"so it isn't\"}}"),
         SCRIPTED_CLOSE, 'c', STREAM_ERROR_UNAUTHORIZED, 401, 0, "so it isn't (status 401)"},
        {PROBLEM("403 Forbidden", "Content-Type: text/plain\r\n", "so it will be\r\nor not\r\n"),
         SCRIPTED_CLOSE, 'd', STREAM_ERROR_FORBIDDEN, 403, 0, "so it will be (status 403)"},
        {PROBLEM("404 Not Found", "Content-Type: text/html\r\n",
                 "<html><body>nothing</body></html>\n"),
         SCRIPTED_CLOSE, 'a', STREAM_ERROR_NOT_FOUND, 404, 0, "there is no such stream"},
        {"HTTP/1.1 404 Not Found\r\nContent-Length: 500\r\n\r\n", SCRIPTED_KEEP, 'h',
         STREAM_ERROR_NOT_FOUND, 404, 0, "there is no such stream (status 404)"},
        {"HTTP/1.1 409 Conflict\r\n" EMPTY, SCRIPTED_KEEP, 'c', STREAM_ERROR_EXISTS, 409, 0,
         "it exists with another configuration"},
        {"HTTP/1.1 409 Conflict\r\n" OFFSET "Stream-Closed: true\r\n" EMPTY, SCRIPTED_KEEP, 'a',
         STREAM_ERROR_CLOSED, 409, 0, "the stream is closed"},
        {"HTTP/1.1 409 Conflict\r\nProducer-Expected-Seq: 3\r\nProducer-Received-Seq: 5\r\n" EMPTY,
         SCRIPTED_KEEP, 'a', STREAM_ERROR_SEQUENCE, 409, 0, "the sequence number does not fit"},
        {"HTTP/1.1 403 Forbidden\r\nProducer-Epoch: 3\r\n" EMPTY, SCRIPTED_KEEP, 'a',
         STREAM_ERROR_FENCED, 403, 0, "newer epoch"},
        {"HTTP/1.1 410 Gone\r\n" EMPTY, SCRIPTED_KEEP, 'h', STREAM_ERROR_GONE, 410, 0,
         "it was deleted"},
        {"HTTP/1.1 413 Too Large\r\n" EMPTY, SCRIPTED_CLOSE, 'a', STREAM_ERROR_REJECTED, 413, 0,
         "the server refuses the request"},
        {"HTTP/1.1 429 Slow Down\r\nRetry-After: 7\r\n" EMPTY, SCRIPTED_KEEP, 'a',
         STREAM_ERROR_BUSY, 429, 0, "the server cannot do it now"},
        {"HTTP/1.1 500 Broken\r\n" EMPTY, SCRIPTED_KEEP, 'a', STREAM_ERROR_SERVER, 500, 1,
         "the server failed"},
        {"HTTP/1.1 502 Bad Gateway\r\n" EMPTY, SCRIPTED_KEEP, 'h', STREAM_ERROR_SERVER, 502, 0,
         "the server failed"},
        {"HTTP/1.1 503 Busy\r\n" EMPTY, SCRIPTED_KEEP, 'a', STREAM_ERROR_BUSY, 503, 1,
         "the server cannot do it now"},
        {"HTTP/1.1 503 Busy\r\nRetry-After: 1\r\n" EMPTY, SCRIPTED_KEEP, 'a', STREAM_ERROR_BUSY,
         503, 0, "the server cannot do it now"},
        {"HTTP/1.1 507 Full\r\n" EMPTY, SCRIPTED_KEEP, 'a', STREAM_ERROR_BUSY, 507, 0,
         "the server cannot do it now"},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_COUNT(all); i++) {
        assert_expected(&all[i]);
    }
}

/* Answers that the protocol does not allow, and servers that speak something else. */
static void test_wrong_answers(void **state)
{
    static const struct expected all[] = {
        {"HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1:1/\r\n" EMPTY, SCRIPTED_KEEP, 'a',
         STREAM_ERROR_FORMAT, 302, 0, "the server redirects, which is not followed"},
        {"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 5\r\n\r\nhello",
         SCRIPTED_KEEP, 'c', STREAM_ERROR_FORMAT, 200, 1,
         "no Stream-Next-Offset, so this is no server of Durable Streams"},
        {"HTTP/1.1 200 OK\r\nStream-Next-Offset:\r\n" EMPTY, SCRIPTED_KEEP, 'h',
         STREAM_ERROR_FORMAT, 200, 0, "a Stream- field of the answer is malformed"},
        {"HTTP/1.1 200 OK\r\n" OFFSET "Producer-Seq: many\r\n" EMPTY, SCRIPTED_KEEP, 'a',
         STREAM_ERROR_FORMAT, 200, 1, "a Producer- field of the answer is malformed"},
        {"SSH-2.0-OpenSSH_9.2\r\n", SCRIPTED_KEEP, 'a', STREAM_ERROR_FORMAT, 0, 1,
         "the answer is not HTTP/1.1"},
        {"HTTP/9.9 200 OK\r\n\r\n", SCRIPTED_CLOSE, 'h', STREAM_ERROR_FORMAT, 0, 0,
         "the answer is not HTTP/1.1"},
        {"HTTP/1.1 abc\r\n\r\n", SCRIPTED_CLOSE, 'h', STREAM_ERROR_FORMAT, 0, 0,
         "the answer is not HTTP/1.1"},
        {"HTTP/1.1 200 OK\r\n" OFFSET "Content-Encoding: gzip\r\nContent-Length: 4\r\n\r\nnope",
         SCRIPTED_KEEP, 'c', STREAM_ERROR_FORMAT, 200, 1, "the answer's compression is broken"},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_COUNT(all); i++) {
        assert_expected(&all[i]);
    }
}

/* Connections that break. Whether an append was taken is then not known. */
static void test_broken_connections(void **state)
{
    static const struct expected all[] = {
        {NULL, SCRIPTED_CLOSE, 'a', STREAM_ERROR_NETWORK, 0, 1, "ended without an answer"},
        {NULL, SCRIPTED_CLOSE, 'h', STREAM_ERROR_NETWORK, 0, 0, "ended without an answer"},
        {NULL, SCRIPTED_RESET, 'a', STREAM_ERROR_NETWORK, 0, 1, "the connection broke"},
        {NULL, SCRIPTED_HALF, 'd', STREAM_ERROR_NETWORK, 0, 1, "ended without an answer"},
        {"HTTP/1.1 200 OK\r\nStream-Ne", SCRIPTED_CLOSE, 'a', STREAM_ERROR_NETWORK, 200, 1, ": "},
        {"HTTP/1.1 200 OK\r\n" OFFSET "Content-Length: 10\r\n\r\nhalf", SCRIPTED_CLOSE, 'c',
         STREAM_ERROR_NETWORK, 200, 1, "broke off before it was whole"},
        {"HTTP/1.1 200 OK\r\n" OFFSET "Transfer-Encoding: chunked\r\n\r\nff\r\nhalf", SCRIPTED_HALF,
         'c', STREAM_ERROR_NETWORK, 200, 1, "broke off before it was whole"},
        {"HTTP/1.1 404 No\r\nContent-Length: 10\r\n\r\nhalf", SCRIPTED_CLOSE, 'a',
         STREAM_ERROR_NETWORK, 404, 1, "broke off before it was whole"},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_COUNT(all); i++) {
        assert_expected(&all[i]);
    }
}

/* Nobody listens: nothing can have been taken. */
static void test_refused_connection(void **state)
{
    static const struct scripted_turn turns[] = {{.answer = OK_204}};
    struct stream_client_options options;
    struct fixture f;
    char expected[128];

    (void)state;
    options_init(&options);
    options.retry.max_retries = 2;
    setup_with(&f, turns, ARRAY_COUNT(turns), &options);
    scripted_finish(&f.server);
    assert_int_equal(append(&f, "text/plain"), STREAM_ERROR_NETWORK);
    (void)snprintf(expected, sizeof(expected),
                   "cannot append to \"a/b\": 127.0.0.1:%u: no connection: Connection refused",
                   f.server.port);
    assert_string_equal(f.error.message, expected);
    assert_int_equal(f.error.outcome_unknown, 0);
    assert_int_equal(f.error.status, 0);
    stream_client_free(f.client);
    assert_int_equal(stream_client_new("http://no-such-host.invalid/", &options, &f.client, NULL),
                     STREAM_OK);
    assert_int_equal(stream_client_head(f.client, "a", NULL, &f.error), STREAM_ERROR_NETWORK);
    assert_non_null(strstr(f.error.message, "no-such-host.invalid:80: "));
    stream_client_free(f.client);
}

/* A refusal with a body without end is still a refusal, and an answer with one is cut. */
static void test_endless_bodies(void **state)
{
    size_t len = 4 << 20;
    char *answer = malloc(len);
    const struct scripted_turn turn = {.answer = answer, .len = len, .end = SCRIPTED_CLOSE};
    struct fixture f;

    (void)state;
    assert_non_null(answer);
    memset(answer, 'x', len);
    memcpy(answer, "HTTP/1.1 400 No\r\nContent-Type: text/plain\r\n\r\n", 45);
    setup(&f, &turn, 1);
    assert_int_equal(append(&f, "text/plain"), STREAM_ERROR_REJECTED);
    assert_int_equal(f.error.status, 400);
    assert_non_null(strstr(f.error.message, "xxxxxx"));
    assert_true(strlen(f.error.message) < sizeof(f.error.message));
    finish(&f);
    memset(answer, 'x', len);
    memcpy(answer, "HTTP/1.1 200 OK\r\n" OFFSET "\r\n",
           strlen("HTTP/1.1 200 OK\r\n" OFFSET "\r\n"));
    setup(&f, &turn, 1);
    assert_int_equal(append(&f, "text/plain"), STREAM_OK);
    assert_string_equal(f.info.next_offset, "0_7");
    finish(&f);
    memset(answer, 'y', len);
    memcpy(answer, "HTTP/1.1 200 OK\r\nX-A: ", strlen("HTTP/1.1 200 OK\r\nX-A: "));
    setup(&f, &turn, 1);
    assert_int_not_equal(append(&f, "text/plain"), STREAM_OK);
    assert_int_equal(f.error.outcome_unknown, 1);
    finish(&f);
    free(answer);
}

/* ------------------------------------------------------------------------------- arguments */

static void assert_argument(const struct fixture *f, int code, const char *message)
{
    assert_int_equal(code, STREAM_ERROR_ARGUMENT);
    assert_int_equal(f->error.code, STREAM_ERROR_ARGUMENT);
    assert_string_equal(f->error.message, message);
}

/* What makes no sense is refused before anything is sent. */
static void test_arguments(void **state)
{
    static const struct scripted_turn turns[] = {{.answer = OK_204}};
    const struct stream_append_options producer = {.producer_id = "", .content_type = "a/b"};
    struct stream_create_options create = {.ttl_seconds = -1};
    struct fixture f;

    (void)state;
    setup(&f, turns, 1);
    assert_argument(&f, stream_client_head(f.client, "", NULL, &f.error),
                    "cannot look at \"\": a stream's name must not be empty");
    assert_argument(&f, stream_client_delete(f.client, "/a", &f.error),
                    "cannot delete \"/a\": a stream's name must not begin with a slash");
    assert_argument(&f, stream_client_append(f.client, "a", NULL, 0, NULL, NULL, &f.error),
                    "cannot append to \"a\": there is nothing to append");
    assert_argument(&f, stream_client_append_batch(f.client, "a", NULL, 0, NULL, NULL, &f.error),
                    "cannot append to \"a\": there is nothing to append");
    assert_argument(&f, stream_client_append(f.client, "a", "x", 1, &producer, NULL, &f.error),
                    "cannot append to \"a\": producer_id must not be empty, nor producer_epoch or "
                    "producer_seq below 0");
    assert_argument(&f, stream_client_create(f.client, "a", &create, NULL, &f.error),
                    "cannot create \"a\": ttl_seconds must not be below 0");
    create = (struct stream_create_options){.ttl_seconds = 1, .expires_at = "x"};
    assert_argument(&f, stream_client_create(f.client, "a", &create, NULL, &f.error),
                    "cannot create \"a\": ttl_seconds and expires_at exclude each other");
    create = (struct stream_create_options){.fork_offset = "0"};
    assert_argument(&f, stream_client_create(f.client, "a", &create, NULL, &f.error),
                    "cannot create \"a\": fork_offset means nothing without fork_of");
    create = (struct stream_create_options){.fork_of = "x", .fork_sub_offset = -1};
    assert_argument(&f, stream_client_create(f.client, "a", &create, NULL, &f.error),
                    "cannot create \"a\": fork_sub_offset must not be below 0");
    create = (struct stream_create_options){.content_type = "a/b\r\nX: y"};
    assert_int_equal(stream_client_create(f.client, "a", &create, NULL, &f.error),
                     STREAM_ERROR_ARGUMENT);
    assert_int_equal(scripted_count(&f.server), 0);
    finish(&f);
}

/* -------------------------------------------------------------------------------- trying again */

/* Tries `verb` against the answers and returns the code; *ret_count is how often it was sent. */
static int try(const struct scripted_turn *turns, size_t count, char verb, bool at_least_once,
               unsigned *ret_count, struct stream_error *ret_error)
{
    struct stream_client_options options;
    struct fixture f;

    options_init(&options);
    options.retry.max_retries = 3;
    options.retry.retry_after_max_ms = 5;
    options.at_least_once = at_least_once;
    setup_with(&f, turns, count, &options);
    int code = call_one(&f, verb);

    *ret_count = scripted_count(&f.server);
    *ret_error = f.error;
    finish(&f);
    return code;
}

/* Failures that pass: all but appends are sent again; appends only when they cannot have been
 * taken, or when the program wants it so. */
static void test_retries(void **state)
{
    static const struct {
        struct scripted_turn bad;
        const char *verbs; /* in upper case: sent again */
    } cases[] = {
        {{.answer = "HTTP/1.1 500 No\r\n" EMPTY}, "CaDH"},
        {{.answer = "HTTP/1.1 502 No\r\n" EMPTY}, "CaDH"},
        {{.answer = "HTTP/1.1 503 No\r\n" EMPTY}, "CaDH"},
        {{.answer = "HTTP/1.1 504 No\r\n" EMPTY}, "CaDH"},
        {{.answer = "HTTP/1.1 503 No\r\nRetry-After: 0\r\n" EMPTY}, "CADH"},
        {{.answer = "HTTP/1.1 503 No\r\nContent-Type: application/problem+json\r\n" EMPTY}, "CaDH"},
        {{.answer = "HTTP/1.1 429 No\r\n" EMPTY}, "CADH"},
        {{.end = SCRIPTED_CLOSE}, "CaDH"},
        {{.end = SCRIPTED_RESET}, "CaDH"},
        {{.answer = "HTTP/1.1 200 OK\r\n" OFFSET "Content-Length: 9\r\n\r\n",
          .end = SCRIPTED_CLOSE},
         "CaDh"}, /* the answer to a HEAD has no body */
        {{.answer = "HTTP/1.1 400 No\r\n" EMPTY}, "cadh"},
        {{.answer = "HTTP/1.1 404 No\r\n" EMPTY}, "cadh"},
        {{.answer = "HTTP/1.1 507 No\r\n" EMPTY}, "cadh"},
        {{.answer = "HTTP/1.1 501 No\r\n" EMPTY}, "cadh"},
        {{.answer = "HTTP/1.1 301 No\r\n" EMPTY}, "cadh"},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
        for (const char *verb = cases[i].verbs; *verb != '\0'; verb++) {
            const struct scripted_turn turns[] = {cases[i].bad, cases[i].bad, {.answer = OK_200}};
            bool again = *verb < 'a';
            struct stream_error error;
            unsigned count;
            int code = try(turns, 3, (char)(*verb | 0x20), false, &count, &error);

            if (count != (again ? 3u : 1u) || (again && code != STREAM_OK)) {
                print_error("%c after %.30s: sent %u times: %s\n", *verb,
                            cases[i].bad.answer != NULL ? cases[i].bad.answer : "a break", count,
                            error.message);
            }
            assert_int_equal(count, again ? 3 : 1);
            assert_true(!again || code == STREAM_OK);
        }
    }
}

static void test_at_least_once(void **state)
{
    static const struct scripted_turn turns[] = {
        {.answer = "HTTP/1.1 500 No\r\n" EMPTY}, {.end = SCRIPTED_CLOSE}, {.answer = OK_204}};
    struct stream_error error;
    unsigned count;

    (void)state;
    assert_int_equal(try(turns, 3, 'a', true, &count, &error), STREAM_OK);
    assert_int_equal(count, 3);
}

/* In the end the last failure is told, and that an earlier try may have been taken. */
static void test_retries_end(void **state)
{
    static const struct scripted_turn turns[] = {{.answer = "HTTP/1.1 500 No\r\n" EMPTY},
                                                 {.answer = "HTTP/1.1 429 No\r\n" EMPTY}};
    struct stream_error error;
    unsigned count;

    (void)state;
    assert_int_equal(try(turns, 2, 'c', false, &count, &error), STREAM_ERROR_BUSY);
    assert_int_equal(count, 4);
    assert_int_equal(error.status, 429);
    assert_int_equal(error.outcome_unknown, 1);
}

/* A delete that broke off and then finds nothing has deleted. */
static void test_delete_again(void **state)
{
    static const struct scripted_turn turns[] = {{.end = SCRIPTED_CLOSE},
                                                 {.answer = "HTTP/1.1 404 No\r\n" EMPTY}};
    static const struct scripted_turn busy[] = {{.answer = "HTTP/1.1 429 No\r\n" EMPTY},
                                                {.answer = "HTTP/1.1 404 No\r\n" EMPTY}};
    struct stream_error error;
    unsigned count;

    (void)state;
    assert_int_equal(try(turns, 2, 'd', false, &count, &error), STREAM_OK);
    assert_int_equal(count, 2);
    assert_int_equal(try(busy, 2, 'd', false, &count, &error), STREAM_ERROR_NOT_FOUND);
}

/* libcurl must not send an append again by itself when a connection that it kept dies under it. */
static void test_dead_connection(void **state)
{
    static const struct scripted_turn turns[] = {{.answer = OK_204},
                                                 {.end = SCRIPTED_CLOSE},
                                                 {.answer = OK_204},
                                                 {.end = SCRIPTED_CLOSE},
                                                 {.answer = OK_200}};
    struct fixture f;

    (void)state;
    setup(&f, turns, ARRAY_COUNT(turns));
    assert_int_equal(append(&f, "text/plain"), STREAM_OK);
    assert_int_equal(append(&f, "text/plain"), STREAM_ERROR_NETWORK);
    assert_int_equal(f.error.outcome_unknown, 1);
    assert_int_equal(scripted_count(&f.server), 2);
    assert_int_equal(append(&f, "text/plain"), STREAM_OK);
    /* A question may be asked twice. */
    assert_int_equal(call_one(&f, 'h'), STREAM_OK);
    assert_int_equal(scripted_count(&f.server), 5);
    finish(&f);
}

/* What Retry-After said is told. */
static void test_retry_after_is_told(void **state)
{
    static const struct scripted_turn turns[] = {
        {.answer = "HTTP/1.1 429 No\r\nRetry-After: 7\r\n" EMPTY},
        {.answer = "HTTP/1.1 503 No\r\nDate: Sun, 09 Sep 2001 01:46:40 GMT\r\n"
                   "Retry-After: Sun, 09 Sep 2001 01:46:43 GMT\r\n" EMPTY},
        {.answer = "HTTP/1.1 503 No\r\n" EMPTY}};
    struct fixture f;

    (void)state;
    setup(&f, turns, ARRAY_COUNT(turns));
    assert_int_equal(append(&f, "text/plain"), STREAM_ERROR_BUSY);
    assert_int_equal(f.error.retry_after_ms, 7000);
    assert_int_equal(append(&f, "text/plain"), STREAM_ERROR_BUSY);
    assert_int_equal(f.error.retry_after_ms, 3000);
    assert_int_equal(append(&f, "text/plain"), STREAM_ERROR_BUSY);
    assert_int_equal(f.error.retry_after_ms, -1);
    finish(&f);
}

static unsigned open_descriptors(void)
{
    DIR *dir = opendir("/proc/self/fd");
    unsigned count = 0;

    assert_non_null(dir);
    while (readdir(dir) != NULL) {
        count++;
    }
    assert_int_equal(closedir(dir), 0);
    return count;
}

/* Clients leave no descriptor behind, whatever became of their calls. */
static void test_descriptors(void **state)
{
    static const struct scripted_turn turns[] = {{.answer = OK_204},
                                                 {.end = SCRIPTED_CLOSE},
                                                 {.answer = "HTTP/1.1 404 No\r\n" EMPTY},
                                                 {.answer = "rubbish"}};
    unsigned before = open_descriptors();
    struct fixture f;

    (void)state;
    for (int i = 0; i < 10; i++) {
        setup(&f, turns, ARRAY_COUNT(turns));
        (void)stream_client_fd(f.client);
        for (size_t k = 0; k < ARRAY_COUNT(turns); k++) {
            (void)append(&f, "text/plain");
        }
        finish(&f);
    }
    assert_int_equal(open_descriptors(), before);
}

static void test_version(void **state)
{
    (void)state;
    assert_string_equal(stream_client_version(), ARBE_VERSION);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_create),
        cmocka_unit_test(test_append_and_close),
        cmocka_unit_test(test_large_append),
        cmocka_unit_test(test_type_is_found),
        cmocka_unit_test(test_batch),
        cmocka_unit_test(test_batch_values),
        cmocka_unit_test(test_no_type),
        cmocka_unit_test(test_batch_memory),
        cmocka_unit_test(test_started),
        cmocka_unit_test(test_begun_at_free),
        cmocka_unit_test(test_head_and_delete),
        cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_wrong_answers),
        cmocka_unit_test(test_broken_connections),
        cmocka_unit_test(test_refused_connection),
        cmocka_unit_test(test_endless_bodies),
        cmocka_unit_test(test_arguments),
        cmocka_unit_test(test_retries),
        cmocka_unit_test(test_at_least_once),
        cmocka_unit_test(test_retries_end),
        cmocka_unit_test(test_delete_again),
        cmocka_unit_test(test_dead_connection),
        cmocka_unit_test(test_retry_after_is_told),
        cmocka_unit_test(test_descriptors),
        cmocka_unit_test(test_version),
    };

    return UNIT_RUN(tests);
}
