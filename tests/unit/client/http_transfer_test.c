/* One transfer without libcurl behind it: its limits of time, and what it makes of heads and bodies
 * as libcurl would hand them over. */
#include "unit/base/fault.h"

#include "base/buf.c"
#include "client/http_transfer.c"

#include "unit/base/unit.h"

struct fixture {
    struct http_settings settings;
    struct call call;
    struct http_transfer transfer;
    enum call_flow flow; /* answer of on_data */
    size_t taken;        /* bytes */
    char host[8];
};

static enum call_flow on_data(struct call *call, struct slice bytes)
{
    struct fixture *f = container_of(call, struct fixture, call);

    f->taken += f->flow == CALL_TAKEN ? bytes.len : 0;
    return f->flow;
}

static void setup(struct fixture *f, enum call_verb verb)
{
    *f = (struct fixture){.call = {.verb = verb, .name = SLICE("a"), .on_data = on_data}};
    stream_client_options_init(&f->settings.options);
    f->settings.options.request_timeout_ms = 1000;
    f->settings.options.idle_timeout_ms = 2000;
    memcpy(f->host, "h:80", 5);
    f->settings.base.host = f->host;
    call_begin(&f->call);
    http_transfer_init(&f->transfer, &f->settings, &f->call);
}

static size_t line(struct fixture *f, const char *text)
{
    char copy[256];
    size_t len = strlen(text);

    memcpy(copy, text, len);
    return on_header(copy, 1, len, &f->transfer);
}

static size_t body(struct fixture *f, const char *text)
{
    char copy[64];
    size_t len = strlen(text);

    memcpy(copy, text, len);
    return on_body(copy, 1, len, &f->transfer);
}

/* What is not live has a deadline, which nothing moves but a pause. */
static void test_deadline(void **state)
{
    struct fixture f;

    (void)state;
    uint64_t now = client_now_ms();

    setup(&f, CALL_READ);
    uint64_t limit = http_transfer_limit(&f.transfer);

    assert_in_range(limit, now, client_now_ms() + 1000);
    assert_int_not_equal(line(&f, "HTTP/1.1 200 OK\r\n"), 0);
    assert_int_not_equal(line(&f, "Stream-Next-Offset: 1\r\n"), 0);
    assert_int_not_equal(line(&f, "\r\n"), 0);
    assert_int_equal(body(&f, "hello"), 5);
    assert_int_equal(f.taken, 5);
    assert_int_equal(http_transfer_limit(&f.transfer), limit);
    f.transfer.deadline_ms = client_now_ms() + 500;
    f.flow = CALL_PAUSE;
    assert_int_equal(body(&f, "hello"), CURL_WRITEFUNC_PAUSE);
    assert_true(f.transfer.paused);
    assert_int_equal(http_transfer_limit(&f.transfer), 0);
    f.transfer.left_ms = 300; /* as if time had passed before the pause */
    now = client_now_ms();
    (void)http_transfer_resume(&f.transfer); /* there is nothing to go on with */
    assert_in_range(http_transfer_limit(&f.transfer), now + 300, client_now_ms() + 300);
    http_transfer_finish(&f.transfer);
}

/* A live answer has time from each byte on, comments and heads included. */
static void test_silence(void **state)
{
    struct fixture f;

    (void)state;
    setup(&f, CALL_SSE);
    f.transfer.heard_ms = 100;
    assert_int_equal(http_transfer_limit(&f.transfer), 2100);
    assert_int_not_equal(line(&f, "HTTP/1.1 200 OK\r\n"), 0);
    assert_true(http_transfer_limit(&f.transfer) >= client_now_ms());
    assert_int_not_equal(line(&f, "Content-Type: text/event-stream\r\n"), 0);
    assert_int_not_equal(line(&f, "\r\n"), 0);
    f.transfer.heard_ms = 100;
    assert_int_equal(body(&f, ":\n"), 2);
    assert_true(http_transfer_limit(&f.transfer) >= client_now_ms());
    f.settings.options.idle_timeout_ms = 0;
    assert_int_equal(http_transfer_limit(&f.transfer), 0);
    http_transfer_finish(&f.transfer);
    setup(&f, CALL_APPEND);
    f.settings.options.request_timeout_ms = 0;
    http_transfer_init(&f.transfer, &f.settings, &f.call);
    assert_int_equal(http_transfer_limit(&f.transfer), 0);
    http_transfer_finish(&f.transfer);
}

/* The second time that a request goes out is only for what may happen twice. */
static void test_sent_twice(void **state)
{
    struct fixture f;

    (void)state;
    setup(&f, CALL_APPEND);
    f.call.body = SLICE("x");
    assert_int_equal(on_send(&f.transfer, NULL, NULL, 0, 0), CURL_PREREQFUNC_OK);
    assert_int_equal(on_send(&f.transfer, NULL, NULL, 0, 0), CURL_PREREQFUNC_ABORT);
    http_transfer_settle(&f.transfer, CURLE_ABORTED_BY_CALLBACK);
    assert_int_equal(f.call.result.error.code, STREAM_ERROR_NETWORK);
    assert_int_equal(f.call.result.error.outcome_unknown, 1);
    assert_true(f.call.result.transient);
    f.call.producer_id = "p";
    assert_int_equal(on_send(&f.transfer, NULL, NULL, 0, 0), CURL_PREREQFUNC_OK);
    f.call.producer_id = NULL;
    f.settings.options.at_least_once = 1;
    assert_int_equal(on_send(&f.transfer, NULL, NULL, 0, 0), CURL_PREREQFUNC_OK);
    f.settings.options.at_least_once = 0;
    f.call.body.len = 0;
    assert_int_equal(on_send(&f.transfer, NULL, NULL, 0, 0), CURL_PREREQFUNC_OK);
    http_transfer_finish(&f.transfer);
}

/* ------------------------------------------------------------------------ requests of an API */

static void setup_request(struct fixture *f, struct buf *answer_buf, const char *head)
{
    setup(f, CALL_REQUEST);
    f->call.method = "POST";
    f->call.what = "cannot do it";
    f->call.body = SLICE("{}");
    f->call.answer = answer_buf;
    call_begin(&f->call);
    for (const char *at = head; *at != '\0';) {
        const char *end = strchr(at, '\n') + 1;
        char copy[256];

        memcpy(copy, at, (size_t)(end - at));
        assert_int_not_equal(on_header(copy, 1, (size_t)(end - at), &f->transfer), 0);
        at = end;
    }
}

#define JSON_200 "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\r\n"

/* The answer is kept whole, if it is JSON. */
static void test_answer(void **state)
{
    struct buf out;
    struct fixture f;

    (void)state;
    buf_init(&out, 100);
    setup_request(&f, &out, JSON_200);
    assert_int_equal(body(&f, "{\"a\":"), 5);
    assert_int_equal(body(&f, "1}"), 2);
    http_transfer_settle(&f.transfer, CURLE_OK);
    assert_int_equal(f.call.result.error.code, STREAM_OK);
    assert_int_equal(f.call.result.info.status, 200);
    assert_true(slice_equal(buf_slice(&out), SLICE("{\"a\":1}")));
    http_transfer_finish(&f.transfer);

    setup_request(&f, &out, JSON_200); /* a try after it begins anew */
    assert_int_equal(out.len, 0);
    assert_int_equal(body(&f, "{\"a\":"), 5);
    http_transfer_settle(&f.transfer, CURLE_OK);
    assert_int_equal(f.call.result.error.code, STREAM_ERROR_FORMAT);
    assert_int_equal(f.call.result.error.outcome_unknown, 1);
    http_transfer_finish(&f.transfer);

    setup_request(&f, &out, "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n");
    assert_int_equal(body(&f, "{}"), 2);
    http_transfer_settle(&f.transfer, CURLE_OK);
    assert_string_equal(f.call.result.error.message,
                        "cannot do it: the answer is not JSON (content type \"text/html\")");
    http_transfer_finish(&f.transfer);

    setup_request(&f, &out, "HTTP/1.1 204 No Content\r\n\r\n");
    http_transfer_settle(&f.transfer, CURLE_OK);
    assert_int_equal(f.call.result.error.code, STREAM_OK);
    http_transfer_finish(&f.transfer);
    buf_finish(&out);
}

/* An answer that is too long ends the call, and may not be sent again. */
static void test_long_answer(void **state)
{
    struct buf out;
    struct fixture f;

    (void)state;
    buf_init(&out, 8);
    setup_request(&f, &out, JSON_200);
    assert_int_equal(body(&f, "\"12345"), 6);
    assert_int_equal(body(&f, "678\""), 0);
    http_transfer_settle(&f.transfer, CURLE_WRITE_ERROR);
    assert_int_equal(f.call.result.error.code, STREAM_ERROR_FORMAT);
    assert_string_equal(f.call.result.error.message,
                        "cannot do it: the answer is longer than 8 bytes");
    assert_false(f.call.result.transient);
    http_transfer_finish(&f.transfer);
    buf_finish(&out);
}

static void test_answer_without_memory(void **state)
{
    struct buf out;
    struct fixture f;

    (void)state;
    buf_init(&out, 100);
    setup_request(&f, &out, JSON_200);
    fault_countdown = 0;
    size_t taken = body(&f, "{}");

    fault_countdown = -1;
    assert_int_equal(taken, 0);
    http_transfer_settle(&f.transfer, CURLE_WRITE_ERROR);
    assert_int_equal(f.call.result.error.code, STREAM_ERROR_MEMORY);
    http_transfer_finish(&f.transfer);
    buf_finish(&out);
}

/* What the API refuses with is read, for whoever asks. */
static void test_refusal(void **state)
{
    struct refusal refusal;
    struct buf out;
    struct fixture f;

    (void)state;
    buf_init(&out, 100);
    setup_request(&f, &out, "HTTP/1.1 403 Forbidden\r\nContent-Type: application/json\r\n\r\n");
    f.call.refusal = &refusal;
    call_begin(&f.call);
    assert_false(refusal.present);
    assert_int_not_equal(body(&f, "{\"error\":{\"code\":\"auth.forbidden\","), 0);
    assert_int_not_equal(body(&f, "\"message\":\"no\"}}"), 0);
    http_transfer_settle(&f.transfer, CURLE_OK);
    assert_int_equal(f.call.result.error.code, STREAM_ERROR_FORBIDDEN);
    assert_true(refusal.present);
    assert_string_equal(refusal.code, "auth.forbidden");
    assert_string_equal(refusal.message, "no");
    assert_int_equal(out.len, 0);
    http_transfer_finish(&f.transfer);
    buf_finish(&out);
}

/* What may not happen twice is not sent twice, nor tried again when its time is up. */
static void test_request_once(void **state)
{
    struct buf out;
    struct fixture f;

    (void)state;
    buf_init(&out, 100);
    setup_request(&f, &out, "");
    assert_int_equal(on_send(&f.transfer, NULL, NULL, 0, 0), CURL_PREREQFUNC_OK);
    assert_int_equal(on_send(&f.transfer, NULL, NULL, 0, 0), CURL_PREREQFUNC_ABORT);
    http_transfer_fail_late(&f.transfer);
    assert_false(f.call.result.transient);
    f.call.repeatable = true;
    assert_int_equal(on_send(&f.transfer, NULL, NULL, 0, 0), CURL_PREREQFUNC_OK);
    http_transfer_fail_late(&f.transfer);
    assert_true(f.call.result.transient);
    f.call.repeatable = false;
    f.call.method = "GET";
    assert_int_equal(on_send(&f.transfer, NULL, NULL, 0, 0), CURL_PREREQFUNC_OK);
    http_transfer_finish(&f.transfer);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_deadline),    cmocka_unit_test(test_silence),
        cmocka_unit_test(test_sent_twice),  cmocka_unit_test(test_answer),
        cmocka_unit_test(test_long_answer), cmocka_unit_test(test_answer_without_memory),
        cmocka_unit_test(test_refusal),     cmocka_unit_test(test_request_once),
    };

    return UNIT_RUN(tests);
}
