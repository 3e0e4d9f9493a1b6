/* Errors: the API's words where there are some, ours otherwise. */
#include "client/scoped_error.c"

#include "unit/base/unit.h"

static struct stream_error failure(enum stream_error_code code)
{
    struct stream_error error;

    (void)call_error_set(&error, code, "cannot do it: no");
    return error;
}

static void test_own(void **state)
{
    static const struct refusal none = {.present = false};
    static const struct {
        enum stream_error_code code;
        const char *name;
        int recoverable;
    } kinds[] = {
        {STREAM_ERROR_NETWORK, "client.network", 1},
        {STREAM_ERROR_TIMEOUT, "client.timeout", 1},
        {STREAM_ERROR_BUSY, "client.busy", 1},
        {STREAM_ERROR_SERVER, "client.server", 1},
        {STREAM_ERROR_ABORTED, "client.aborted", 0},
        {STREAM_ERROR_NOT_FOUND, "client.not_found", 0},
        {STREAM_ERROR_FORMAT, "client.response_invalid", 0},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_COUNT(kinds); i++) {
        struct stream_error error = failure(kinds[i].code);
        struct scoped_error out;

        error.outcome_unknown = 1;
        error.status = 7;
        error.retry_after_ms = 9;
        assert_int_equal(scoped_error_fill(&out, &error, &none), kinds[i].code);
        assert_string_equal(out.code, kinds[i].name);
        assert_int_equal(out.kind, kinds[i].code);
        assert_int_equal(out.recoverable, kinds[i].recoverable);
        assert_string_equal(out.message, "cannot do it: no");
        assert_string_equal(out.suggestion, "");
        assert_string_equal(out.field, "");
        assert_int_equal(out.outcome_unknown, 1);
        assert_int_equal(out.status, 7);
        assert_int_equal(out.retry_after_ms, 9);
        assert_int_equal(scoped_error_fill(NULL, &error, &none), kinds[i].code);
    }
}

static void test_refusal(void **state)
{
    struct refusal refusal = {.present = true,
                              .recoverable = true,
                              .code = "thread.closed",
                              .message = "it is closed",
                              .suggestion = "make another",
                              .field = "id"};
    struct stream_error error = failure(STREAM_ERROR_REJECTED);
    struct scoped_error out;

    (void)state;
    assert_int_equal(scoped_error_fill(&out, &error, &refusal), STREAM_ERROR_REJECTED);
    assert_string_equal(out.code, "thread.closed");
    assert_string_equal(out.message, "it is closed");
    assert_string_equal(out.suggestion, "make another");
    assert_string_equal(out.field, "id");
    assert_int_equal(out.recoverable, 1);
    refusal.message[0] = '\0';
    refusal.recoverable = false;
    error = failure(STREAM_ERROR_BUSY);
    (void)scoped_error_fill(&out, &error, &refusal);
    assert_string_equal(out.message, "cannot do it: no");
    assert_int_equal(out.recoverable, 0);
}

/* However long it is, it fits and is one line. */
static void test_set(void **state)
{
    char text[1000];
    struct scoped_error out;

    (void)state;
    memset(text, 'x', sizeof(text));
    text[3] = '\n';
    text[sizeof(text) - 1] = '\0';
    assert_int_equal(scoped_error_set(&out, STREAM_ERROR_ARGUMENT, "%s", text),
                     STREAM_ERROR_ARGUMENT);
    assert_int_equal(strlen(out.message), sizeof(out.message) - 1);
    assert_null(strchr(out.message, '\n'));
    assert_int_equal(scoped_error_set(NULL, STREAM_ERROR_MEMORY, "no"), STREAM_ERROR_MEMORY);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_own),
        cmocka_unit_test(test_refusal),
        cmocka_unit_test(test_set),
    };

    return UNIT_RUN(tests);
}
