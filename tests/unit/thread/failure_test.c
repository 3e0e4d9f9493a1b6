/* Failures of streams and records, as the API tells them. */
#include "thread/failure.c"

#include <stdio.h>
#include <string.h>

#include "client/call.h"
#include "unit/base/unit.h"

static struct stream_error error_of(enum stream_error_code code, int status, int unknown)
{
    struct stream_error error = {.code = code,
                                 .status = status,
                                 .outcome_unknown = unknown,
                                 .retry_after_ms = -1,
                                 .message = "cannot append to \"arbe-thread-x\": 127.0.0.1:1: why"};
    return error;
}

static char heard[STREAM_ERROR_MESSAGE_BYTES];

static void hear(void *context, const char *sentence)
{
    (void)context;
    (void)snprintf(heard, sizeof(heard), "%s", sentence);
}

static const struct failure_teller teller = {.tell = hear};

/* Each code of streams has one of the API; and some can never succeed. Addresses and names the
 * operator is told alone, and only of what is not the caller's own doing. */
static void streams(void **state)
{
    static const struct {
        enum stream_error_code code;
        int status;
        int unknown;
        enum api_code api;
        bool final;
    } rows[] = {
        {STREAM_ERROR_ARGUMENT, 0, 0, API_INTERNAL, true},
        {STREAM_ERROR_MEMORY, 0, 0, API_BUSY, false},
        {STREAM_ERROR_ABORTED, 0, 0, API_STREAMS_UNAVAILABLE, false},
        {STREAM_ERROR_ABORTED, 0, 1, API_OUTCOME_UNKNOWN, false},
        {STREAM_ERROR_TIMEOUT, 0, 1, API_OUTCOME_UNKNOWN, false},
        {STREAM_ERROR_TIMEOUT, 0, 0, API_STREAMS_UNAVAILABLE, false},
        {STREAM_ERROR_NETWORK, 0, 0, API_STREAMS_UNAVAILABLE, false},
        {STREAM_ERROR_TLS, 0, 0, API_STREAMS_UNAVAILABLE, false},
        {STREAM_ERROR_UNAUTHORIZED, 401, 0, API_STREAMS_UNAVAILABLE, false},
        {STREAM_ERROR_FORBIDDEN, 403, 0, API_STREAMS_UNAVAILABLE, false},
        {STREAM_ERROR_NOT_FOUND, 404, 0, API_NOT_FOUND, false},
        {STREAM_ERROR_GONE, 410, 0, API_NOT_FOUND, false},
        {STREAM_ERROR_EXISTS, 409, 0, API_INTERNAL, true},
        {STREAM_ERROR_CLOSED, 409, 0, API_THREAD_CLOSED, true},
        {STREAM_ERROR_SEQUENCE, 409, 0, API_INTERNAL, false},
        {STREAM_ERROR_REJECTED, 400, 0, API_INTERNAL, true},
        {STREAM_ERROR_REJECTED, 408, 0, API_INTERNAL, false},
        {STREAM_ERROR_REJECTED, 413, 0, API_TOO_LARGE, true},
        {STREAM_ERROR_BUSY, 429, 0, API_BUSY, false},
        {STREAM_ERROR_BUSY, 503, 0, API_BUSY, false},
        {STREAM_ERROR_BUSY, 507, 0, API_STORAGE_FULL, false},
        {STREAM_ERROR_SERVER, 500, 0, API_STREAMS_UNAVAILABLE, false},
        {STREAM_ERROR_SERVER, 500, 1, API_OUTCOME_UNKNOWN, false},
        {STREAM_ERROR_FORMAT, 200, 0, API_INTERNAL, false},
        {STREAM_ERROR_FORMAT, 200, 1, API_OUTCOME_UNKNOWN, false},
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        struct stream_error error = error_of(rows[i].code, rows[i].status, rows[i].unknown);
        struct api_error told;
        bool own = rows[i].api == API_NOT_FOUND || rows[i].api == API_THREAD_CLOSED ||
                   rows[i].api == API_TOO_LARGE;
        heard[0] = '\0';
        assert_int_equal(failure_of_stream(&told, &error, &teller), -1);
        assert_string_equal(api_error_code_text(told.code), api_error_code_text(rows[i].api));
        assert_true(told.message[0] != '\0');
        assert_null(strstr(told.message, "127.0.0.1"));
        assert_null(strstr(told.message, "arbe-thread"));
        assert_string_equal(heard, own ? "" : error.message);
        assert_int_equal(failure_of_stream(&told, &error, NULL), -1);
        assert_int_equal(failure_is_final(&error), rows[i].final);
    }
}

/* What the server asked for is told in whole seconds, never less. */
static void pauses(void **state)
{
    struct stream_error error = error_of(STREAM_ERROR_BUSY, 503, 0);
    (void)state;
    assert_int_equal(failure_retry_after_s(&error), 0);
    error.retry_after_ms = 0;
    assert_int_equal(failure_retry_after_s(&error), 1);
    error.retry_after_ms = 1000;
    assert_int_equal(failure_retry_after_s(&error), 1);
    error.retry_after_ms = 1001;
    assert_int_equal(failure_retry_after_s(&error), 2);
}

/* Records: what passes is busy, a full disk is one, the rest is ours. */
static void records(void **state)
{
    static const struct {
        int code;
        enum api_code api;
    } rows[] = {
        {ERR_NOSPC, API_STORAGE_FULL}, {ERR_BUSY, API_BUSY},          {ERR_AGAIN, API_BUSY},
        {ERR_NOMEM, API_BUSY},         {ERR_NOTFOUND, API_NOT_FOUND}, {ERR_IO, API_INTERNAL},
        {ERR_CORRUPT, API_INTERNAL},   {ERR_UNKNOWN, API_INTERNAL},
    };
    const struct errmsg msg = {.text = "app.db: why"};
    (void)state;
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        struct api_error told;
        heard[0] = '\0';
        assert_int_equal(failure_of_store(&told, rows[i].code, &msg, &teller), -1);
        assert_string_equal(api_error_code_text(told.code), api_error_code_text(rows[i].api));
        bool missing = rows[i].code == ERR_NOTFOUND;
        assert_int_equal(strstr(told.message, "app.db") != NULL, missing);
        assert_string_equal(heard, missing ? "" : "app.db: why");
        (void)failure_of_store(&told, rows[i].code, NULL, NULL);
        assert_true(told.message[0] != '\0');
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(streams),
        cmocka_unit_test(pauses),
        cmocka_unit_test(records),
    };
    return UNIT_RUN(tests);
}
