/* Requests as they go out: URL and header fields of each verb, and what a program's callbacks may
 * and may not add. */
#include "unit/base/fault.h"

#include "base/buf.c"
#include "client/http_fields.c"
#include "client/http_request.c"

#include "unit/base/unit.h"
#include "unit/client/curl_fault.h"

struct fixture {
    struct http_settings settings;
    struct http_request request;
};

static void setup(struct fixture *f)
{
    *f = (struct fixture){0};
    stream_client_options_init(&f->settings.options);
    assert_int_equal(http_base_init(&f->settings.base, "http://h/v1", NULL), STREAM_OK);
}

static void finish(struct fixture *f)
{
    http_request_finish(&f->request);
    http_base_finish(&f->settings.base);
}

/* The header lines, each with "|" behind it. */
static void assert_lines(const struct fixture *f, const char *expected)
{
    char memory[1024];
    struct buf text;

    buf_init_fixed(&text, memory, sizeof(memory));
    for (const struct curl_slist *line = f->request.lines; line != NULL; line = line->next) {
        buf_append(&text, slice_of(line->data));
        buf_append_char(&text, '|');
    }
    memory[text.len] = '\0';
    assert_string_equal(memory, expected);
}

static void compose(struct fixture *f, struct call *call, const char *method, const char *url,
                    const char *lines)
{
    http_request_finish(&f->request);
    call_begin(call);
    assert_true(http_request_init(&f->request, &f->settings, call));
    assert_string_equal(f->request.method, method);
    assert_string_equal(f->request.url.ptr, url);
    assert_lines(f, lines);
}

/* Each verb, with all that it can say. */
static void test_verbs(void **state)
{
    const struct stream_create_options create = {
        .ttl_seconds = 60, .fork_of = "x y", .fork_offset = "0_1", .fork_sub_offset = 2};
    const struct stream_create_options expiry = {.expires_at = "2030-01-01T00:00:00Z"};
    struct fixture f;

    (void)state;
    setup(&f);
    compose(&f, &(struct call){.verb = CALL_CREATE, .name = SLICE("a")}, "PUT", "http://h/v1/a",
            "Content-Type:|Expect:|");
    compose(&f,
            &(struct call){.verb = CALL_CREATE,
                           .name = SLICE("a"),
                           .content_type = "text/plain",
                           .close = true,
                           .create = &create},
            "PUT", "http://h/v1/a",
            "Content-Type: text/plain|Stream-Closed: true|Stream-TTL: 60|"
            "Stream-Forked-From: /v1/x%20y|Stream-Fork-Offset: 0_1|Stream-Fork-Sub-Offset: 2|"
            "Expect:|");
    compose(&f, &(struct call){.verb = CALL_CREATE, .name = SLICE("a"), .create = &expiry}, "PUT",
            "http://h/v1/a", "Content-Type:|Stream-Expires-At: 2030-01-01T00:00:00Z|Expect:|");
    compose(&f,
            &(struct call){.verb = CALL_APPEND,
                           .name = SLICE("a/b c"),
                           .content_type = "text/plain",
                           .seq = "s1",
                           .producer_id = "p",
                           .producer_epoch = 1,
                           .producer_seq = INT64_C(1) << 40},
            "POST", "http://h/v1/a/b%20c",
            "Content-Type: text/plain|Stream-Seq: s1|Producer-Id: p|Producer-Epoch: 1|"
            "Producer-Seq: 1099511627776|Expect:|");
    compose(&f, &(struct call){.verb = CALL_DELETE, .name = SLICE("a")}, "DELETE", "http://h/v1/a",
            "Expect:|");
    compose(&f, &(struct call){.verb = CALL_HEAD, .name = SLICE("a")}, "HEAD", "http://h/v1/a",
            "Expect:|");
    finish(&f);
}

static void test_reads(void **state)
{
    struct fixture f;

    (void)state;
    setup(&f);
    compose(&f, &(struct call){.verb = CALL_READ, .name = SLICE("a")}, "GET",
            "http://h/v1/a?offset=-1", "Expect:|");
    compose(&f, &(struct call){.verb = CALL_READ, .name = SLICE("a"), .offset = "0&1"}, "GET",
            "http://h/v1/a?offset=0%261", "Expect:|");
    compose(&f,
            &(struct call){
                .verb = CALL_LONG_POLL, .name = SLICE("a"), .offset = "now", .cursor = "c 1"},
            "GET", "http://h/v1/a?offset=now&live=long-poll&cursor=c%201", "Expect:|");
    compose(&f, &(struct call){.verb = CALL_SSE, .name = SLICE("a"), .offset = "7", .cursor = ""},
            "GET", "http://h/v1/a?offset=7&live=sse", "Accept: text/event-stream|Expect:|");
    compose(&f, &(struct call){.verb = CALL_LIST}, "GET",
            "http://h/v1/__ds/streams?prefix=", "Expect:|");
    compose(&f, &(struct call){.verb = CALL_LIST, .name = SLICE("a/"), .after = "a/b c"}, "GET",
            "http://h/v1/__ds/streams?prefix=a%2F&after=a%2Fb%20c", "Expect:|");
    finish(&f);
}

/* Requests go out as they are; a body, be it empty, has its type. */
static void test_requests(void **state)
{
    struct fixture f;

    (void)state;
    setup(&f);
    compose(&f,
            &(struct call){.verb = CALL_REQUEST, .method = "GET", .name = SLICE("api/a?b=%20c")},
            "GET", "http://h/v1/api/a?b=%20c", "Expect:|");
    compose(&f,
            &(struct call){.verb = CALL_REQUEST,
                           .method = "PATCH",
                           .name = SLICE("api/a"),
                           .body = SLICE("{}"),
                           .content_type = "application/json"},
            "PATCH", "http://h/v1/api/a", "Content-Type: application/json|Expect:|");
    compose(&f, &(struct call){.verb = CALL_REQUEST, .method = "POST", .name = SLICE("api/a")},
            "POST", "http://h/v1/api/a", "Content-Type:|Expect:|");
    compose(&f, &(struct call){.verb = CALL_REQUEST, .method = "DELETE", .name = SLICE("api/a")},
            "DELETE", "http://h/v1/api/a", "Expect:|");
    finish(&f);
}

/* What the callbacks of a test add. */
struct added {
    const char *names[4];
    const char *values[4];
    unsigned calls;
};

static void add(void *context, struct stream_headers *headers)
{
    struct added *added = context;

    added->calls++;
    for (size_t i = 0; i < ARRAY_COUNT(added->names) && added->names[i] != NULL; i++) {
        stream_headers_add(headers, added->names[i], added->values[i]);
    }
}

/* Fields and parameters are added, in order; a field without a value keeps its name. */
static void test_callbacks(void **state)
{
    struct added added = {.names = {"X-One", "X-Empty"}, .values = {"1", ""}};
    struct added token = {.names = {"authorization"}, .values = {"Bearer new"}};
    struct fixture f;

    (void)state;
    setup(&f);
    f.settings.authorization = (char[]){"Authorization: Bearer old"};
    f.settings.options.context = &added;
    f.settings.options.add_headers = add;
    compose(&f, &(struct call){.verb = CALL_HEAD, .name = SLICE("a")}, "HEAD", "http://h/v1/a",
            "X-One: 1|X-Empty;|Expect:|Authorization: Bearer old|");
    f.settings.options.add_headers = NULL;
    f.settings.options.add_query = add;
    compose(&f, &(struct call){.verb = CALL_HEAD, .name = SLICE("a")}, "HEAD",
            "http://h/v1/a?X-One=1&X-Empty=", "Expect:|Authorization: Bearer old|");
    compose(&f, &(struct call){.verb = CALL_READ, .name = SLICE("a")}, "GET",
            "http://h/v1/a?offset=-1&X-One=1&X-Empty=", "Expect:|Authorization: Bearer old|");
    assert_int_equal(added.calls, 3);
    f.settings.options.add_query = NULL;
    f.settings.options.add_headers = add;
    f.settings.options.context = &token;
    compose(&f, &(struct call){.verb = CALL_HEAD, .name = SLICE("a")}, "HEAD", "http://h/v1/a",
            "authorization: Bearer new|Expect:|");
    finish(&f);
}

static void assert_refused(struct fixture *f, const char *name, const char *value,
                           const char *sentence)
{
    struct added added = {.names = {name}, .values = {value}};
    struct call call = {.verb = CALL_HEAD, .name = SLICE("a")};

    f->settings.options.context = &added;
    call_begin(&call);
    assert_false(http_request_init(&f->request, &f->settings, &call));
    assert_int_equal(call.result.error.code, STREAM_ERROR_ARGUMENT);
    assert_non_null(strstr(call.result.error.message, sentence));
    assert_null(strstr(call.result.error.message, "topsecret"));
}

/* A field that would break the request, or decide where it ends, fails it; the value, which may be
 * a secret, is not shown. */
static void test_bad_callbacks(void **state)
{
    struct fixture f;

    (void)state;
    setup(&f);
    f.settings.options.add_headers = add;
    assert_refused(&f, "X-A", "topsecret\r\nX-B: 1", "the header field \"X-A\"");
    assert_refused(&f, "X A", "topsecret", "the header field \"X A\"");
    assert_refused(&f, "", "topsecret", "the header field \"\"");
    assert_refused(&f, "X:A", "topsecret", "the header field");
    assert_refused(&f, "content-length", "0", "the header field");
    assert_refused(&f, "Transfer-Encoding", "chunked", "the header field");
    f.settings.options.add_headers = NULL;
    f.settings.options.add_query = add;
    assert_refused(&f, "a", "topsecret\n", "the query parameter \"a\"");
    assert_refused(&f, "", "topsecret", "the query parameter \"\"");
    finish(&f);
}

static void assert_argument(struct fixture *f, struct call *call, const char *sentence)
{
    call_begin(call);
    assert_false(http_request_init(&f->request, &f->settings, call));
    assert_int_equal(call->result.error.code, STREAM_ERROR_ARGUMENT);
    assert_non_null(strstr(call->result.error.message, sentence));
}

/* So do arguments that cannot be sent. */
static void test_bad_arguments(void **state)
{
    const struct stream_create_options fork = {.fork_of = "../x"};
    const struct stream_create_options expiry = {.expires_at = ""};
    static char offset[HTTP_URL_BYTES_MAX];
    struct fixture f;

    (void)state;
    setup(&f);
    memset(offset, '1', sizeof(offset) - 1);
    assert_argument(&f, &(struct call){.verb = CALL_HEAD, .name = SLICE("a\nb")}, "control");
    assert_argument(&f,
                    &(struct call){.verb = CALL_CREATE,
                                   .name = SLICE("a"),
                                   .content_type = "text/plain\r\nX: 1"},
                    "Content-Type");
    assert_argument(&f, &(struct call){.verb = CALL_APPEND, .name = SLICE("a"), .seq = ""},
                    "Stream-Seq");
    assert_argument(&f,
                    &(struct call){.verb = CALL_APPEND, .name = SLICE("a"), .producer_id = "\n"},
                    "Producer-Id");
    assert_argument(&f, &(struct call){.verb = CALL_CREATE, .name = SLICE("a"), .create = &fork},
                    "fork_of");
    assert_argument(&f, &(struct call){.verb = CALL_CREATE, .name = SLICE("a"), .create = &expiry},
                    "Stream-Expires-At");
    assert_argument(&f, &(struct call){.verb = CALL_READ, .name = SLICE("a"), .offset = offset},
                    "the URL would be longer");
    finish(&f);
}

/* Without memory the call fails so, and nothing is left behind. */
static void test_no_memory(void **state)
{
    const struct stream_create_options fork = {.fork_of = "x"};
    struct fixture f;
    bool good = false;

    (void)state;
    setup(&f);
    long i = 0;

    for (; !good; i++) {
        struct call call = {.verb = CALL_CREATE, .name = SLICE("a"), .create = &fork};

        call_begin(&call);
        fault_countdown = i;
        good = http_request_init(&f.request, &f.settings, &call);
        fault_countdown = -1;
        assert_int_equal(call.result.error.code, good ? STREAM_OK : STREAM_ERROR_MEMORY);
    }
    assert_true(i > 5);
    finish(&f);
}

int main(void)
{
    curl_fault_init();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_verbs),         cmocka_unit_test(test_reads),
        cmocka_unit_test(test_requests),      cmocka_unit_test(test_callbacks),
        cmocka_unit_test(test_bad_callbacks), cmocka_unit_test(test_bad_arguments),
        cmocka_unit_test(test_no_memory),
    };

    return UNIT_RUN(tests);
}
