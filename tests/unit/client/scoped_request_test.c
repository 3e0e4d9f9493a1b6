/* Requests of the scoped client, against a server that plays a script on loopback: what goes out,
 * what comes of each answer, and what is done when none comes. */
#include "unit/base/fault.h"

#include "base/buf.c"
#include "client/scoped_request.c"

#include "unit/base/unit.h"
#include "unit/client/api_answer.h"
#include "unit/client/scripted.h"

#define THREAD  "0198c0de-0000-7000-8000-000000000001"
#define PAYLOAD "{\"type\":\"chat\",\"text\":\"hi\"}"
#define ENTRY   "{\"id\":\"e-1\",\"ts\":5,\"authorId\":\"me\",\"payload\":" PAYLOAD "}"

static const struct scoped_post post_e1 = {
    .payload = PAYLOAD, .payload_len = sizeof(PAYLOAD) - 1, .id = "e-1"};

struct fixture {
    struct scripted server;
    struct scoped_client *client;
    struct scoped_answer answer;
    struct scoped_error error;
};

static void options_init(struct scoped_client_options *options)
{
    scoped_client_options_init(options);
    options->bearer = "arbe_0";
    options->retry.max_retries = 3;
    options->retry.initial_delay_ms = 1;
    options->retry.max_delay_ms = 2;
}

static void setup_with(struct fixture *f, const struct scripted_turn *turns, size_t count,
                       const struct scoped_client_options *options)
{
    char url[64];

    *f = (struct fixture){.client = NULL};
    scripted_init(&f->server, turns, count, NULL);
    (void)snprintf(url, sizeof(url), "http://127.0.0.1:%u/app", f->server.port);
    assert_int_equal(scoped_client_new(url, options, &f->client, NULL), STREAM_OK);
}

static void setup(struct fixture *f, const struct scripted_turn *turns, size_t count)
{
    struct scoped_client_options options;

    options_init(&options);
    setup_with(f, turns, count, &options);
}

static void finish(struct fixture *f)
{
    scoped_client_free(f->client);
    scripted_finish(&f->server);
    scoped_answer_finish(&f->answer);
    api_answers_clear();
}

static int post(struct fixture *f)
{
    scoped_answer_finish(&f->answer);
    return scoped_client_post(f->client, THREAD, &post_e1, &f->answer, &f->error);
}

static int request(struct fixture *f, const char *method, const char *path, const char *body)
{
    const struct scoped_request what = {
        .method = method, .path = path, .body = body, .len = body != NULL ? strlen(body) : 0};

    scoped_answer_finish(&f->answer);
    return scoped_client_request(f->client, &what, &f->answer, &f->error);
}

/* ---------------------------------------------------------------------------------------- posts */

/* The body of a request that came in. */
static const char *body_of(struct fixture *f, unsigned index)
{
    const char *body = strstr(f->server.requests[index], "\r\n\r\n");

    assert_non_null(body);
    return body + 4;
}

static void test_post(void **state)
{
    struct scripted_turn turns[] = {{.answer = api_answer("201 Created", ENTRY)},
                                    {.answer = api_answer("200 OK", ENTRY)}};
    struct scoped_post by_me = post_e1;
    struct fixture f;

    (void)state;
    setup(&f, turns, 2);
    assert_int_equal(post(&f), STREAM_OK);
    assert_int_equal(f.answer.status, 201);
    assert_string_equal(f.answer.body, ENTRY);
    assert_int_equal(f.answer.len, strlen(ENTRY));
    assert_true(scripted_asked(&f.server, 0, "POST /app/api/threads/" THREAD "/entries HTTP/1.1"));
    assert_true(scripted_asked(&f.server, 0, "\r\nAuthorization: Bearer arbe_0\r\n"));
    assert_true(scripted_asked(&f.server, 0, "\r\nContent-Type: application/json\r\n"));
    assert_string_equal(body_of(&f, 0), "{\"id\":\"e-1\",\"payload\":" PAYLOAD "}");
    by_me.author_id = "me\"";
    scoped_answer_finish(&f.answer);
    assert_int_equal(scoped_client_post(f.client, THREAD, &by_me, &f.answer, NULL), STREAM_OK);
    assert_int_equal(f.answer.status, 200);
    assert_string_equal(body_of(&f, 1),
                        "{\"id\":\"e-1\",\"authorId\":\"me\\\"\",\"payload\":" PAYLOAD "}");
    finish(&f);
}

/* Answers with the entry that was posted. */
static void echo(const char *request_text, char *out, size_t size)
{
    const char *body = strstr(request_text, "\r\n\r\n") + 4;

    (void)snprintf(out, size,
                   "HTTP/1.1 201 Created\r\nContent-Type: application/json\r\n"
                   "Content-Length: %zu\r\n\r\n%s",
                   strlen(body), body);
}

/* Without an id a new one is made, and a try whose answer is lost is repeated with that same id. */
static void test_made_id(void **state)
{
    struct scripted_turn turns[] = {{.answer = "", .end = SCRIPTED_CLOSE},
                                    {.answer = api_answer("503 Busy", "{}")},
                                    {.answer = "", .compose = echo}};
    const struct scoped_post what = {.payload = PAYLOAD, .payload_len = sizeof(PAYLOAD) - 1};
    struct scoped_entry first;
    struct scoped_entry second;
    struct fixture f;
    struct uuid uuid;

    (void)state;
    setup(&f, turns, 3);
    assert_int_equal(scoped_client_post(f.client, THREAD, &what, &f.answer, &f.error), STREAM_OK);
    assert_int_equal(scoped_entry_read(f.answer.body, f.answer.len, &first), STREAM_OK);
    assert_true(uuid_parse(slice_of(first.id), &uuid));
    assert_int_equal(scripted_count(&f.server), 3);
    assert_string_equal(body_of(&f, 0), body_of(&f, 1));
    assert_string_equal(body_of(&f, 0), body_of(&f, 2));
    struct scoped_answer other;

    assert_int_equal(scoped_client_post(f.client, THREAD, &what, &other, &f.error), STREAM_OK);
    assert_int_equal(scoped_entry_read(other.body, other.len, &second), STREAM_OK);
    assert_true(strcmp(first.id, second.id) < 0);
    scoped_answer_finish(&other);
    finish(&f);
}

/* Wherever the connection breaks, the post goes through, once by its id. */
static void test_post_breaks_anywhere(void **state)
{
    static const enum scripted_end ends[] = {SCRIPTED_CLOSE, SCRIPTED_RESET, SCRIPTED_HALF};
    const char *whole = api_answer("201 Created", ENTRY);

    (void)state;
    for (size_t i = 0; i <= strlen(whole); i++) {
        struct scripted_turn turns[] = {
            {.answer = i > 0 ? whole : "", .len = i, .end = ends[i % ARRAY_COUNT(ends)]},
            {.answer = whole}};
        struct fixture f;
        struct scoped_entry entry;

        setup(&f, turns, 2);
        whole = turns[1].answer;
        assert_int_equal(scoped_client_post(f.client, THREAD, &post_e1, &f.answer, &f.error),
                         STREAM_OK);
        assert_int_equal(scoped_entry_read(f.answer.body, f.answer.len, &entry), STREAM_OK);
        assert_string_equal(entry.id, "e-1");
        if (scripted_count(&f.server) == 2) {
            assert_string_equal(body_of(&f, 0), body_of(&f, 1));
        } else {
            assert_int_equal(i, strlen(whole)); /* all of it came */
        }
        scoped_client_free(f.client);
        scripted_finish(&f.server);
        scoped_answer_finish(&f.answer);
    }
    api_answers_clear();
}

/* A connection that is dead and does not know it: the time is up, and another one is tried. */
static void test_post_stalls(void **state)
{
    struct scripted_turn turns[] = {
        {.answer = NULL},
        {.answer = "HTTP/1.1 201 Created\r\nContent-Type: application/json\r\n"
                   "Content-Length: 99\r\n\r\n{\"id\""},
        {.answer = api_answer("200 OK", ENTRY)}};
    struct scoped_client_options options;
    struct fixture f;

    (void)state;
    options_init(&options);
    options.request_timeout_ms = 200;
    options.retry.max_retries = 50; /* on a busy machine time may be up again */
    setup_with(&f, turns, 3, &options);
    assert_int_equal(post(&f), STREAM_OK);
    assert_true(scripted_count(&f.server) >= 3);
    assert_string_equal(f.answer.body, ENTRY);
    finish(&f);
}

static void test_delete(void **state)
{
    struct scripted_turn turns[] = {
        {.answer = "", .end = SCRIPTED_RESET},
        {.answer = api_answer("201 Created", "{\"id\":\"arbe.deleted.e-1\"}")},
        {.answer = "", .end = SCRIPTED_RESET},
        {.answer = api_answer("404 Not Found", "{\"error\":{\"code\":\"record.not_found\","
                                               "\"message\":\"there is no such record\"}}")}};
    struct fixture f;

    (void)state;
    setup(&f, turns, ARRAY_COUNT(turns));
    assert_int_equal(scoped_client_delete(f.client, THREAD, "e-1", &f.answer, &f.error), STREAM_OK);
    assert_int_equal(f.answer.status, 201);
    assert_true(scripted_asked(&f.server, 1,
                               "DELETE /app/api/threads/" THREAD "/entries/e-1 HTTP/1.1\r\n"));
    scoped_answer_finish(&f.answer);
    /* A tombstone stays: an entry that is not found was not deleted by the try before. */
    assert_int_equal(scoped_client_delete(f.client, THREAD, "e-1", &f.answer, &f.error),
                     STREAM_ERROR_NOT_FOUND);
    assert_string_equal(f.error.code, "record.not_found");
    finish(&f);
}

/* --------------------------------------------------------------------------------------- errors */

static void assert_refusal(const char *status, const char *body, int code, const char *api_code,
                           const char *message)
{
    struct scripted_turn turns[] = {{.answer = api_answer(status, body)}};
    struct scoped_client_options options;
    struct fixture f;

    options_init(&options);
    options.retry.max_retries = 0;
    setup_with(&f, turns, 1, &options);
    assert_int_equal(post(&f), code);
    assert_int_equal(f.error.kind, code);
    assert_string_equal(f.error.code, api_code);
    assert_string_equal(f.error.message, message);
    assert_int_equal(f.error.status, (int)strtol(status, NULL, 10));
    assert_null(f.answer.body);
    finish(&f);
}

/* The API's words come as they are; where it has none, ours say what was wanted. */
static void test_refusals(void **state)
{
    (void)state;
    assert_refusal("401 Unauthorized",
                   "{\"error\":{\"code\":\"auth.unauthenticated\",\"message\":\"no key\"}}",
                   STREAM_ERROR_UNAUTHORIZED, "auth.unauthenticated", "no key");
    assert_refusal("403 Forbidden",
                   "{\"error\":{\"code\":\"auth.forbidden\",\"message\":\"not a member\"}}",
                   STREAM_ERROR_FORBIDDEN, "auth.forbidden", "not a member");
    assert_refusal("409 Conflict",
                   "{\"error\":{\"code\":\"thread.closed\",\"message\":\"it is closed\"}}",
                   STREAM_ERROR_REJECTED, "thread.closed", "it is closed");
    assert_refusal("507 Full", "{\"error\":{\"code\":\"server.storage_full\"}}", STREAM_ERROR_BUSY,
                   "server.storage_full",
                   "cannot post to thread \"" THREAD
                   "\": the server cannot do it now (status 507)");
    assert_refusal("404 Not Found", "{}", STREAM_ERROR_NOT_FOUND, "client.not_found",
                   "cannot post to thread \"" THREAD "\": there is none (status 404)");
    assert_refusal("410 Gone", "{\"detail\":\"long gone\"}", STREAM_ERROR_GONE, "client.gone",
                   "cannot post to thread \"" THREAD "\": long gone (status 410)");
}

static void test_particulars(void **state)
{
    struct scripted_turn turns[] = {
        {.answer = api_answer_with("400 Bad", "Retry-After: 7\r\n",
                                   "{\"error\":{\"code\":\"validation.invalid_input\","
                                   "\"message\":\"m\",\"suggestion\":\"s\","
                                   "\"recoverable\":true,"
                                   "\"context\":{\"field\":\"payload.text\"}}}")}};
    struct fixture f;

    (void)state;
    setup(&f, turns, 1);
    assert_int_equal(post(&f), STREAM_ERROR_REJECTED);
    assert_string_equal(f.error.suggestion, "s");
    assert_string_equal(f.error.field, "payload.text");
    assert_int_equal(f.error.recoverable, 1);
    assert_int_equal(f.error.retry_after_ms, 7000);
    assert_int_equal(f.error.outcome_unknown, 0);
    assert_int_equal(scripted_count(&f.server), 1);
    finish(&f);
}

/* 401, 403 and 404 are final at once; what passes is tried again, then told. */
static void test_tries(void **state)
{
    struct scripted_turn turns[] = {{.answer = api_answer("503 Busy", "{}")},
                                    {.answer = api_answer("429 Slow", "{}")},
                                    {.answer = api_answer("401 No", "{}")},
                                    {.answer = api_answer("502 Bad", "<html>")}};
    struct fixture f;

    (void)state;
    setup(&f, turns, ARRAY_COUNT(turns));
    assert_int_equal(post(&f), STREAM_ERROR_UNAUTHORIZED);
    assert_int_equal(scripted_count(&f.server), 3);
    assert_int_equal(f.error.recoverable, 0);
    assert_int_equal(f.error.outcome_unknown, 1); /* the first try may have stored it */
    assert_int_equal(post(&f), STREAM_ERROR_SERVER);
    assert_int_equal(scripted_count(&f.server), 7);
    assert_string_equal(f.error.code, "client.server");
    assert_int_equal(f.error.recoverable, 1);
    finish(&f);
}

/* Whatever answers in the place of the API is not believed. */
static void test_other_answers(void **state)
{
    struct scripted_turn turns[] = {
        {.answer = "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 4\r\n\r\n<hi>"},
        {.answer = api_answer("201 Created", "{\"id\":\"e-2\"}")},
        {.answer = api_answer("201 Created", "[]")},
        {.answer = "HTTP/1.1 204 No Content\r\n\r\n"},
        {.answer = api_answer("201 Created", "{\"id\":")},
        {.answer = "HTTP/1.1 302 Found\r\nLocation: /login\r\nContent-Length: 0\r\n\r\n"}};
    static const char *const messages[] = {
        "the answer is not JSON (content type \"text/html\")",
        "the answer is another entry than \"e-1\"",
        "the answer is no entry",
        "the answer is no entry",
        "the answer is not JSON (content type \"application/json\")",
        "the server redirects, which is not followed (status 302)",
    };
    struct fixture f;

    (void)state;
    setup(&f, turns, ARRAY_COUNT(turns));
    for (size_t i = 0; i < ARRAY_COUNT(turns); i++) {
        assert_int_equal(post(&f), STREAM_ERROR_FORMAT);
        assert_string_equal(f.error.code, "client.response_invalid");
        assert_non_null(strstr(f.error.message, messages[i]));
        assert_int_equal(f.error.outcome_unknown, i < 5);
        assert_null(f.answer.body);
    }
    assert_int_equal(scripted_count(&f.server), ARRAY_COUNT(turns)); /* each of them once */
    finish(&f);
}

/* An answer larger than any may be ends before it fills the memory. */
static void test_large_answer(void **state)
{
    struct scripted_turn turns[] = {{.answer = api_answer("200 OK", "\"0123456789\"")}};
    struct scoped_client_options options;
    struct fixture f;

    (void)state;
    options_init(&options);
    options.max_answer_bytes = 11;
    setup_with(&f, turns, 1, &options);
    assert_int_equal(request(&f, "GET", "/api/me", NULL), STREAM_ERROR_FORMAT);
    assert_string_equal(f.error.message, "the request failed: the answer is longer than 11 bytes");
    finish(&f);
}

/* ---------------------------------------------------------------------------- any other request */

static void test_requests(void **state)
{
    struct scripted_turn turns[] = {{.answer = api_answer("200 OK", "{\"a\":1}")},
                                    {.answer = api_answer("200 OK", "{}")},
                                    {.answer = "HTTP/1.1 204 No Content\r\n\r\n"}};
    const char *const query[] = {"q", "a b&c", "none", NULL, "limit", "5", NULL};
    struct scoped_request list = {.method = "GET", .path = "/api/agents", .query = query};
    struct fixture f;

    (void)state;
    setup(&f, turns, 3);
    assert_int_equal(scoped_client_request(f.client, &list, &f.answer, NULL), STREAM_OK);
    assert_string_equal(f.answer.body, "{\"a\":1}");
    assert_true(scripted_asked(&f.server, 0, "GET /app/api/agents?q=a%20b%26c&limit=5 HTTP/1.1"));
    list.path = "/api/agents?kind=bot";
    scoped_answer_finish(&f.answer);
    assert_int_equal(scoped_client_request(f.client, &list, &f.answer, NULL), STREAM_OK);
    assert_true(scripted_asked(&f.server, 1, "/api/agents?kind=bot&q=a%20b%26c&limit=5 "));
    assert_int_equal(request(&f, "PUT", "/api/houses/h/members/a", "{\"role\":\"owner\"}"),
                     STREAM_OK);
    assert_int_equal(f.answer.status, 204);
    assert_string_equal(f.answer.body, "");
    assert_int_equal(f.answer.len, 0);
    assert_true(scripted_asked(&f.server, 2, "PUT /app/api/houses/h/members/a HTTP/1.1\r\n"));
    assert_string_equal(body_of(&f, 2), "{\"role\":\"owner\"}");
    finish(&f);
}

/* A POST whose fate is not known is not repeated, unless that is allowed; a PUT is, and so is a
 * DELETE, which has succeeded when there is nothing left to delete. */
static void test_repeats(void **state)
{
    struct scripted_turn turns[] = {
        {.answer = "", .end = SCRIPTED_CLOSE},         {.answer = "", .end = SCRIPTED_CLOSE},
        {.answer = api_answer("201 Created", "{}")},   {.answer = "", .end = SCRIPTED_CLOSE},
        {.answer = api_answer("404 Not Found", "{}")}, {.answer = "", .end = SCRIPTED_CLOSE},
        {.answer = api_answer("200 OK", "{}")}};
    struct scoped_request again = {.method = "PATCH", .path = "/api/a", .repeatable = 1};
    struct fixture f;

    (void)state;
    setup(&f, turns, ARRAY_COUNT(turns));
    assert_int_equal(request(&f, "POST", "/api/houses", "{}"), STREAM_ERROR_NETWORK);
    assert_int_equal(f.error.outcome_unknown, 1);
    assert_string_equal(f.error.code, "client.network");
    assert_int_equal(scripted_count(&f.server), 1);
    assert_int_equal(scoped_client_request(f.client, &again, &f.answer, &f.error), STREAM_OK);
    assert_int_equal(scripted_count(&f.server), 3);
    assert_int_equal(request(&f, "DELETE", "/api/houses/h", NULL), STREAM_OK);
    assert_int_equal(f.answer.status, 204);
    assert_string_equal(f.answer.body, "");
    assert_int_equal(request(&f, "PUT", "/api/a", "{}"), STREAM_OK);
    assert_int_equal(scripted_count(&f.server), 7);
    finish(&f);
}

/* What makes no sense is refused before anything is sent. */
static void test_arguments(void **state)
{
    static const struct {
        const char *method;
        const char *path;
        const char *body;
        const char *message;
    } bad[] = {
        {"HEAD", "/api/a", NULL, "the method must be GET, POST, PUT, PATCH or DELETE"},
        {NULL, "/api/a", NULL, "the method must be GET, POST, PUT, PATCH or DELETE"},
        {"GET", "api/a", NULL, "the path must begin with a slash"},
        {"GET", NULL, NULL, "the path must begin with a slash"},
        {"GET", "", NULL, "the path must begin with a slash"},
        {"GET", "/api/a b", NULL, "the path must be escaped"},
        {"GET", "/api/a\r\nX: y", NULL, "the path must be escaped"},
        {"GET", "/api/\xc3\xa9", NULL, "the path must be escaped"},
        {"GET", "/api/a#b", NULL, "the path must be escaped"},
        {"GET", "/api/../a?b", NULL, "the path must not have the segments"},
        {"GET", "/.", NULL, "the path must not have the segments"},
        {"GET", "/api/a", "{}", "a GET has no body"},
    };
    static const struct scripted_turn turns[] = {{.answer = NULL}};
    static const char *const payloads[] = {"", "{", "[]", "7", "{}{}", "{},\"id\":\"x\""};
    static const char *const ids[] = {"", ".", "..", "a/b", "a b", "a?", "\xc3\xa9", "a\n"};
    char long_id[98];
    struct scoped_post what = post_e1;
    struct fixture f;

    (void)state;
    setup(&f, turns, 1);
    for (size_t i = 0; i < ARRAY_COUNT(bad); i++) {
        assert_int_equal(request(&f, bad[i].method, bad[i].path, bad[i].body),
                         STREAM_ERROR_ARGUMENT);
        assert_non_null(strstr(f.error.message, bad[i].message));
        assert_string_equal(f.error.code, "client.argument");
    }
    for (size_t i = 0; i < ARRAY_COUNT(payloads); i++) {
        what.payload = payloads[i];
        what.payload_len = strlen(payloads[i]);
        assert_int_equal(scoped_client_post(f.client, THREAD, &what, &f.answer, &f.error),
                         STREAM_ERROR_ARGUMENT);
    }
    memset(long_id, 'x', sizeof(long_id) - 1);
    long_id[sizeof(long_id) - 1] = '\0';
    for (size_t i = 0; i <= ARRAY_COUNT(ids); i++) {
        what = post_e1;
        what.id = i < ARRAY_COUNT(ids) ? ids[i] : long_id;
        assert_int_equal(scoped_client_post(f.client, THREAD, &what, &f.answer, &f.error),
                         STREAM_ERROR_ARGUMENT);
        assert_int_equal(scoped_client_post(f.client, what.id, &post_e1, &f.answer, &f.error),
                         STREAM_ERROR_ARGUMENT);
        assert_int_equal(scoped_client_delete(f.client, THREAD, what.id, &f.answer, NULL),
                         STREAM_ERROR_ARGUMENT);
    }
    assert_string_equal(f.error.message, "the id of a thread must be 1 to 96 characters of A-Z a-z "
                                         "0-9 . _ ~ -");
    assert_int_equal(scripted_count(&f.server), 0);
    finish(&f);
}

/* A token that changes outranks that of the options. */
static void add_token(void *context, struct stream_headers *headers)
{
    stream_headers_add(headers, "Authorization", context);
}

static void test_changing_token(void **state)
{
    struct scripted_turn turns[] = {{.answer = api_answer("200 OK", "{}")}};
    char token[] = "Bearer arbe_1";
    struct scoped_client_options options;
    struct fixture f;

    (void)state;
    options_init(&options);
    options.add_headers = add_token;
    options.context = token;
    setup_with(&f, turns, 1, &options);
    assert_int_equal(request(&f, "GET", "/api/me", NULL), STREAM_OK);
    assert_true(scripted_asked(&f.server, 0, "\r\nAuthorization: Bearer arbe_1\r\n"));
    assert_false(scripted_asked(&f.server, 0, "arbe_0"));
    finish(&f);
}

/* -------------------------------------------------------------------------------------- aborted */

static struct scoped_client *signalled;

static void on_signal(int number)
{
    (void)number;
    scoped_client_abort(signalled);
}

struct blocked {
    struct fixture *f;
    int code;
    pthread_t thread;
};

static void *run_post(void *context)
{
    struct blocked *b = context;

    b->code = post(b->f);
    return NULL;
}

/* The caller's patience ends: while nothing comes, within a body, and in a pause between tries. */
static void test_abort(void **state)
{
    const struct sigaction action = {.sa_handler = on_signal};
    const struct scripted_turn turns[] = {
        {.answer = NULL},
        {.answer = "HTTP/1.1 201 Created\r\nContent-Type: application/json\r\n"
                   "Content-Length: 99\r\n\r\n{\"id\""},
        {.answer = api_answer_with("503 Busy", "Retry-After: 3600\r\n", "{}")}};

    (void)state;
    for (size_t i = 0; i < ARRAY_COUNT(turns); i++) {
        struct scoped_client_options options;
        struct fixture f;
        struct blocked b = {.f = &f};

        options_init(&options);
        options.retry.retry_after_max_ms = 3600000;
        setup_with(&f, &turns[i], 1, &options);
        signalled = f.client;
        assert_int_equal(sigaction(SIGUSR1, &action, NULL), 0);
        assert_int_equal(pthread_create(&b.thread, NULL, run_post, &b), 0);
        scripted_await(&f.server, 1);
        assert_int_equal(pthread_kill(b.thread, SIGUSR1), 0);
        assert_int_equal(pthread_join(b.thread, NULL), 0);
        assert_int_equal(b.code, STREAM_ERROR_ABORTED);
        assert_string_equal(f.error.code, "client.aborted");
        assert_string_equal(f.error.message, "cannot post to thread \"" THREAD "\": aborted");
        assert_int_equal(post(&f), STREAM_ERROR_ABORTED);
        assert_int_equal(scripted_count(&f.server), 1);
        scoped_client_free(f.client);
        scripted_finish(&f.server);
    }
    api_answers_clear();
}

/* -------------------------------------------------------------------------------------- stepped */

struct told {
    unsigned times;
    int code;
    struct scoped_answer answer; /* kept */
    char message[STREAM_ERROR_MESSAGE_BYTES];
};

static void on_told(void *context, int code, struct scoped_answer *answer,
                    const struct scoped_error *error)
{
    struct told *told = context;

    told->times++;
    told->code = code;
    assert_true((answer != NULL) == (code == STREAM_OK));
    assert_true((error != NULL) == (code != STREAM_OK));
    if (answer != NULL) {
        told->answer = *answer;
        *answer = (struct scoped_answer){.status = 0};
    } else {
        (void)snprintf(told->message, sizeof(told->message), "%s", error->message);
    }
}

static void step_until(struct fixture *f, const struct told *told)
{
    while (told->times == 0) {
        struct pollfd polled = {.fd = scoped_client_fd(f->client), .events = POLLIN};

        assert_int_equal(poll(&polled, 1, -1), 1);
        scoped_client_step(f->client);
    }
    assert_int_equal(told->times, 1);
}

/* What is started is copied, ends in a step, and its answer may be kept. */
static void test_started(void **state)
{
    struct scripted_turn turns[] = {{.answer = "", .end = SCRIPTED_RESET},
                                    {.answer = api_answer("201 Created", ENTRY)},
                                    {.answer = api_answer("200 OK", "{\"id\":\"t\"}")},
                                    {.answer = api_answer("403 Forbidden", "{}")},
                                    {.answer = NULL}};
    char payload[] = PAYLOAD;
    char id[] = "e-1";
    char thread[] = THREAD;
    const struct scoped_post what = {
        .payload = payload, .payload_len = sizeof(payload) - 1, .id = id};
    const struct scoped_request me = {.method = "GET", .path = "/api/me"};
    struct told told[4] = {{0}};
    struct fixture f;

    (void)state;
    setup(&f, turns, ARRAY_COUNT(turns));
    assert_int_equal(scoped_client_start_post(f.client, thread, &what, on_told, &told[0], NULL),
                     STREAM_OK);
    memset(payload, 'x', sizeof(payload));
    memset(id, 'x', sizeof(id));
    memset(thread, 'x', sizeof(thread));
    step_until(&f, &told[0]);
    assert_string_equal(told[0].answer.body, ENTRY);
    assert_int_equal(scoped_client_start_delete(f.client, THREAD, "e-1", on_told, &told[1], NULL),
                     STREAM_OK);
    step_until(&f, &told[1]);
    assert_int_equal(told[1].code, STREAM_OK);
    assert_int_equal(scoped_client_start_request(f.client, &me, on_told, &told[2], NULL),
                     STREAM_OK);
    step_until(&f, &told[2]);
    assert_int_equal(told[2].code, STREAM_ERROR_FORBIDDEN);
    assert_string_equal(told[2].message,
                        "the request failed: the server does not allow it (status 403)");
    assert_int_equal(scoped_client_start_request(f.client, &me, on_told, &told[3], NULL),
                     STREAM_OK);
    finish(&f); /* whoever is freed in the middle is told of it */
    assert_int_equal(told[3].code, STREAM_ERROR_ABORTED);
    for (size_t i = 0; i < ARRAY_COUNT(told); i++) {
        assert_int_equal(told[i].times, 1);
        scoped_answer_finish(&told[i].answer);
    }
}

/* What cannot even be started is refused there. */
static void test_not_started(void **state)
{
    static const struct scripted_turn turns[] = {{.answer = NULL}};
    const struct scoped_request bad = {.method = "GET", .path = "x"};
    struct told told = {0};
    struct fixture f;

    (void)state;
    setup(&f, turns, 1);
    assert_int_equal(scoped_client_start_post(f.client, "..", &post_e1, on_told, &told, &f.error),
                     STREAM_ERROR_ARGUMENT);
    assert_int_equal(scoped_client_start_delete(f.client, THREAD, "", on_told, &told, &f.error),
                     STREAM_ERROR_ARGUMENT);
    assert_int_equal(scoped_client_start_request(f.client, &bad, on_told, &told, &f.error),
                     STREAM_ERROR_ARGUMENT);
    assert_int_equal(told.times, 0);
    finish(&f);
}

/* --------------------------------------------------------------------------------------- memory */

/* Whichever allocation of composing fails, nothing is sent and nothing leaks. */
static void test_without_memory(void **state)
{
    static const char *const query[] = {"a", "b", NULL};
    const struct scoped_request what = {
        .method = "POST", .path = "/api/a", .query = query, .body = "{}", .len = 2};
    struct scoped_client client = {.max_answer_bytes = 100};
    unsigned failures = 0;

    (void)state;
    for (long i = 0;; i++) {
        struct scoped_exchange a;
        struct scoped_exchange b;
        struct scoped_exchange c;

        fault_countdown = i;
        (void)compose_post(&client, THREAD, &post_e1, &a, NULL);
        (void)compose_delete(&client, THREAD, "e-1", &b, NULL);
        (void)compose_request(&client, &what, &c, NULL);
        fault_countdown = -1;
        bool failed = a.path.failed || a.body.failed || b.path.failed || c.path.failed ||
                      c.body.failed;

        scoped_exchange_finish(&a);
        scoped_exchange_finish(&b);
        scoped_exchange_finish(&c);
        if (!failed) {
            break;
        }
        failures++;
    }
    assert_true(failures >= 5);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_post),
        cmocka_unit_test(test_made_id),
        cmocka_unit_test(test_post_breaks_anywhere),
        cmocka_unit_test(test_post_stalls),
        cmocka_unit_test(test_delete),
        cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_particulars),
        cmocka_unit_test(test_tries),
        cmocka_unit_test(test_other_answers),
        cmocka_unit_test(test_large_answer),
        cmocka_unit_test(test_requests),
        cmocka_unit_test(test_repeats),
        cmocka_unit_test(test_arguments),
        cmocka_unit_test(test_changing_token),
        cmocka_unit_test(test_abort),
        cmocka_unit_test(test_started),
        cmocka_unit_test(test_not_started),
        cmocka_unit_test(test_without_memory),
    };

    return UNIT_RUN(tests);
}
