/* What statuses mean for each verb, which calls may be sent twice, and the words of errors. */
#include "client/call.c"

#include "unit/base/unit.h"

static struct call make(enum call_verb verb)
{
    struct call call = {.verb = verb, .name = SLICE("a/b"), .body = SLICE("x")};

    call_begin(&call);
    return call;
}

static void assert_status(enum call_verb verb, int status, enum stream_error_code code,
                          bool transient, bool unknown)
{
    struct call call = make(verb);

    call_fail_status(&call, status, false, (struct slice){NULL, 0});
    assert_int_equal(call.result.error.code, code);
    assert_int_equal(call.result.error.status, status);
    assert_int_equal(call.result.transient, transient);
    assert_int_equal(call.result.error.outcome_unknown, unknown);
}

/* Each status becomes one code. */
static void test_statuses(void **state)
{
    (void)state;
    assert_status(CALL_READ, 400, STREAM_ERROR_REJECTED, false, false);
    assert_status(CALL_READ, 401, STREAM_ERROR_UNAUTHORIZED, false, false);
    assert_status(CALL_READ, 403, STREAM_ERROR_FORBIDDEN, false, false);
    assert_status(CALL_READ, 404, STREAM_ERROR_NOT_FOUND, false, false);
    assert_status(CALL_READ, 409, STREAM_ERROR_REJECTED, false, false);
    assert_status(CALL_CREATE, 409, STREAM_ERROR_EXISTS, false, false);
    assert_status(CALL_APPEND, 409, STREAM_ERROR_EXISTS, false, false);
    assert_status(CALL_READ, 410, STREAM_ERROR_GONE, false, false);
    assert_status(CALL_APPEND, 413, STREAM_ERROR_REJECTED, false, false);
    assert_status(CALL_APPEND, 429, STREAM_ERROR_BUSY, true, false);
    assert_status(CALL_READ, 500, STREAM_ERROR_SERVER, true, false);
    assert_status(CALL_APPEND, 500, STREAM_ERROR_SERVER, true, true);
    assert_status(CALL_CREATE, 502, STREAM_ERROR_SERVER, true, true);
    assert_status(CALL_APPEND, 501, STREAM_ERROR_SERVER, false, false);
    assert_status(CALL_APPEND, 503, STREAM_ERROR_BUSY, true, true);
    assert_status(CALL_DELETE, 504, STREAM_ERROR_SERVER, true, true);
    assert_status(CALL_APPEND, 507, STREAM_ERROR_BUSY, false, false);
    assert_status(CALL_APPEND, 599, STREAM_ERROR_SERVER, false, true);
    assert_status(CALL_READ, 302, STREAM_ERROR_FORMAT, false, false);
    assert_status(CALL_READ, 999, STREAM_ERROR_FORMAT, false, false);
}

/* What stands beside the status decides on 403, 409 and 503. */
static void test_particulars(void **state)
{
    struct call call = make(CALL_APPEND);

    (void)state;
    call.result.info.closed = 1;
    call_fail_status(&call, 409, false, (struct slice){NULL, 0});
    assert_int_equal(call.result.error.code, STREAM_ERROR_CLOSED);

    call = make(CALL_APPEND);
    call.result.error.expected_seq = 7;
    call_fail_status(&call, 409, false, (struct slice){NULL, 0});
    assert_int_equal(call.result.error.code, STREAM_ERROR_SEQUENCE);
    assert_int_equal(call.result.error.expected_seq, 7);

    call = make(CALL_APPEND);
    call.seq = "5";
    call_fail_status(&call, 409, false, (struct slice){NULL, 0});
    assert_int_equal(call.result.error.code, STREAM_ERROR_SEQUENCE);

    call = make(CALL_APPEND);
    call.result.info.producer_epoch = 3;
    call_fail_status(&call, 403, false, (struct slice){NULL, 0});
    assert_int_equal(call.result.error.code, STREAM_ERROR_FENCED);
    assert_int_equal(call.result.error.current_epoch, 3);

    call = make(CALL_APPEND);
    call_fail_status(&call, 503, true, (struct slice){NULL, 0});
    assert_true(call.result.transient);
    assert_false(call.result.error.outcome_unknown);
}

/* Only a plain append with a body, whose fate is not known, may not be sent again. */
static void test_repeatable(void **state)
{
    struct call call = make(CALL_APPEND);

    (void)state;
    assert_true(call_repeatable(&call));
    call.result.error.outcome_unknown = 1;
    assert_false(call_repeatable(&call));
    call.producer_id = "p";
    assert_true(call_repeatable(&call));
    call.producer_id = NULL;
    call.close = true;
    assert_false(call_repeatable(&call));
    call.body.len = 0;
    assert_true(call_repeatable(&call));
    call = make(CALL_CREATE);
    call.result.error.outcome_unknown = 1;
    assert_true(call_repeatable(&call));
    call = make(CALL_REQUEST);
    call.method = "POST";
    assert_true(call_repeatable(&call));
    call.result.error.outcome_unknown = 1;
    assert_false(call_repeatable(&call));
    call.repeatable = true;
    assert_true(call_repeatable(&call));
}

/* A request of the API: what it changes depends on the method, and its 409 is no stream's. */
static void test_requests(void **state)
{
    struct call call = make(CALL_REQUEST);
    char memory[8];
    struct buf answer;
    struct refusal refusal = {.present = true};

    (void)state;
    call.what = "cannot do it";
    call.method = "GET";
    assert_false(call_writes(&call));
    call_fail_status(&call, 503, false, (struct slice){NULL, 0});
    assert_int_equal(call.result.error.outcome_unknown, 0);
    call.method = "DELETE";
    assert_true(call_writes(&call));
    call_fail_status(&call, 503, false, (struct slice){NULL, 0});
    assert_int_equal(call.result.error.outcome_unknown, 1);
    call_fail_status(&call, 404, false, (struct slice){NULL, 0});
    assert_string_equal(call.result.error.message, "cannot do it: there is none (status 404)");
    call_fail_status(&call, 409, false, SLICE("taken"));
    assert_int_equal(call.result.error.code, STREAM_ERROR_REJECTED);
    assert_string_equal(call.result.error.message, "cannot do it: taken (status 409)");

    buf_init_fixed(&answer, memory, sizeof(memory));
    buf_append(&answer, SLICE("old"));
    call.answer = &answer;
    call.refusal = &refusal;
    call_begin(&call);
    assert_int_equal(answer.len, 0);
    assert_false(refusal.present);
}

/* A message is one line: what was wanted, then the sentence, the server's where there is one. */
static void test_messages(void **state)
{
    struct call call = make(CALL_APPEND);

    (void)state;
    call_fail_status(&call, 404, false, (struct slice){NULL, 0});
    assert_string_equal(call.result.error.message,
                        "cannot append to \"a/b\": there is no such stream (status 404)");
    call_fail_status(&call, 400, false, SLICE("no\r\nsuch\x1b[31m thing"));
    assert_string_equal(call.result.error.message,
                        "cannot append to \"a/b\": no  such [31m thing (status 400)");
    call_fail_status(&call, 400, false,
                     SLICE("no\xc2\x9b"
                           "31m thing\xc2\xa0"));
    assert_string_equal(call.result.error.message,
                        "cannot append to \"a/b\": no  31m thing\xc2\xa0 (status 400)");
    call.close = true;
    call.body.len = 0;
    call_fail(&call, STREAM_ERROR_NETWORK, "%s", "gone");
    assert_string_equal(call.result.error.message, "cannot close \"a/b\": gone");
    call.verb = CALL_LIST;
    call.name.len = 0;
    call_fail_status(&call, 404, false, (struct slice){NULL, 0});
    assert_string_equal(call.result.error.message,
                        "cannot list streams: the server offers no listing (status 404)");
}

/* However long a name or a sentence is, the message fits and is whole characters. */
static void test_long_messages(void **state)
{
    struct call call = make(CALL_CREATE);
    char name[1000];
    char sentence[4000];

    (void)state;
    for (size_t i = 0; i + 1 < sizeof(sentence); i += 2) {
        memcpy(sentence + i, "\xc3\xa9", 2);
    }
    memcpy(name, sentence, sizeof(name));
    call.name = (struct slice){name, 999}; /* ends within a character */
    call_fail_status(&call, 400, false, (struct slice){sentence, sizeof(sentence)});
    const char *message = call.result.error.message;

    assert_true(strlen(message) < STREAM_ERROR_MESSAGE_BYTES);
    assert_true(strlen(message) > STREAM_ERROR_MESSAGE_BYTES - 4);
    assert_true(utf8_valid(slice_of(message)));
    assert_non_null(strstr(message, "...\": "));
}

static void assert_name(struct slice name, const char *why)
{
    const char *refusal = call_name_refusal(name);

    if (why == NULL) {
        assert_null(refusal);
    } else {
        assert_non_null(refusal);
        assert_non_null(strstr(refusal, why));
    }
}

/* Names that no server could take are refused before anything is sent. */
static void test_names(void **state)
{
    static char longest[CLIENT_NAME_BYTES_MAX + 1];

    (void)state;
    memset(longest, 'a', sizeof(longest));
    assert_name(SLICE("a/b c/%25/ü?#"), NULL);
    assert_name(SLICE("..a/b.."), NULL);
    assert_name((struct slice){longest, CLIENT_NAME_BYTES_MAX}, NULL);
    assert_name((struct slice){longest, CLIENT_NAME_BYTES_MAX + 1}, "2000 bytes");
    assert_name(SLICE(""), "empty");
    assert_name(SLICE("/a"), "slash");
    assert_name(SLICE("a\xff"), "UTF-8");
    assert_name(SLICE("a\nb"), "control");
    assert_name(SLICE("a\0b"), "control");
    assert_name(SLICE("a/../b"), "segments");
    assert_name(SLICE("."), "segments");
}

/* Errors without a call. */
static void test_error_set(void **state)
{
    struct stream_error error;

    (void)state;
    memset(&error, 1, sizeof(error));
    assert_int_equal(call_error_set(&error, STREAM_ERROR_MEMORY, "no %s", "room"),
                     STREAM_ERROR_MEMORY);
    assert_string_equal(error.message, "no room");
    assert_int_equal(error.status, 0);
    assert_int_equal(error.outcome_unknown, 0);
    assert_int_equal(error.retry_after_ms, -1);
    assert_int_equal(error.current_epoch, -1);
    assert_int_equal(error.expected_seq, -1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_statuses),   cmocka_unit_test(test_particulars),
        cmocka_unit_test(test_repeatable), cmocka_unit_test(test_requests),
        cmocka_unit_test(test_messages),   cmocka_unit_test(test_long_messages),
        cmocka_unit_test(test_names),      cmocka_unit_test(test_error_set),
    };

    return UNIT_RUN(tests);
}
