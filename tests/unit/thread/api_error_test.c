/* Errors of the API: the codes keep what docs and clients rely on, and the envelope is JSON. */
#include "thread/api_error.c"

#include "base/json_value.h"

#include "unit/base/unit.h"

static char memory[4096];

static const char *envelope(const struct api_error *e)
{
    struct buf out;
    struct slice value;
    buf_init_fixed(&out, memory, sizeof(memory));
    api_error_format(&out, e);
    assert_false(out.failed);
    memory[out.len] = '\0';
    assert_int_equal(json_text_read(buf_slice(&out), &value, NULL), 0);
    return memory;
}

/* Each code is domain.reason in lower case, once, with a status of an error and a sentence. */
static void test_codes(void **state)
{
    (void)state;
    for (enum api_code i = 0; i < API_CODE_COUNT; i++) {
        const char *text = api_error_code_text(i);
        assert_non_null(strchr(text, '.'));
        assert_int_equal(strspn(text, "abcdefghijklmnopqrstuvwxyz_."), strlen(text));
        assert_in_range(api_error_status(i), 400, 599);
        assert_true(strlen(codes[i].text) > 0);
        for (enum api_code j = 0; j < i; j++) {
            assert_string_not_equal(text, api_error_code_text(j));
        }
    }
}

/* The map from code to status, which clients rely on; only what may pass by itself is recoverable.
 */
static void test_status(void **state)
{
    (void)state;
    assert_int_equal(api_error_status(API_INVALID_INPUT), 400);
    assert_int_equal(api_error_status(API_UNAUTHENTICATED), 401);
    assert_int_equal(api_error_status(API_FORBIDDEN), 403);
    assert_int_equal(api_error_status(API_NOT_FOUND), 404);
    assert_int_equal(api_error_status(API_METHOD_NOT_ALLOWED), 405);
    assert_int_equal(api_error_status(API_LAST_OWNER), 409);
    assert_int_equal(api_error_status(API_TOO_LARGE), 413);
    assert_int_equal(api_error_status(API_UNSUPPORTED_MEDIA), 415);
    assert_int_equal(api_error_status(API_STORAGE_FULL), 507);
    assert_int_equal(api_error_status(API_INTERNAL), 500);
    for (enum api_code i = 0; i < API_CODE_COUNT; i++) {
        int status = api_error_status(i);
        bool passes = status == 408 || status == 429 || status == 503 || status == 507;
        assert_int_equal(api_error_recoverable(i), passes);
    }
}

/* Members stand in the order of the documentation, and only those that there are. */
static void test_envelope(void **state)
{
    struct api_error e = {.code = API_FORBIDDEN};
    (void)state;
    assert_string_equal(envelope(&e), "{\"error\":{\"code\":\"auth.forbidden\",\"message\":\"this "
                                      "is not allowed\",\"recoverable\":false}}");
    assert_int_equal(api_error_set(&e, API_INVALID_INPUT, "%s must be a string", "payload.text"),
                     -1);
    assert_int_equal(api_error_set_field(&e, "payload.%s", "text"), -1);
    assert_int_equal(api_error_suggest(&e, "send \"%s\"", "hi\n"), -1);
    assert_string_equal(
        envelope(&e),
        "{\"error\":{\"code\":\"validation.invalid_input\",\"message\":\"payload.text must be a "
        "string\",\"suggestion\":\"send \\\"hi\\n\\\"\",\"recoverable\":false,"
        "\"context\":{\"field\":\"payload.text\"}}}");
    assert_int_equal(api_error_set(&e, API_BUSY, "wait"), -1);
    assert_string_equal(envelope(&e), "{\"error\":{\"code\":\"server.busy\",\"message\":\"wait\","
                                      "\"recoverable\":true}}");
}

/* A long sentence is cut, and never within a character; nothing is told to nobody. */
static void test_cut(void **state)
{
    struct api_error e = {.code = API_INTERNAL};
    char text[2 * API_MESSAGE_BYTES];
    (void)state;
    for (size_t i = 0; i + 2 < sizeof(text); i += 2) {
        memcpy(text + i, "\xc3\xa9", 3);
    }
    assert_int_equal(api_error_set(&e, API_INTERNAL, "%s", text), -1);
    assert_int_equal(strlen(e.message), API_MESSAGE_BYTES - 2);
    assert_true(utf8_valid(slice_of(e.message)));
    assert_int_equal(api_error_set(&e, API_INTERNAL, ".%s", text), -1);
    assert_int_equal(strlen(e.message), API_MESSAGE_BYTES - 1);
    assert_int_equal(api_error_set_field(&e, "%s", text), -1);
    assert_true(utf8_valid(slice_of(e.field)));
    assert_int_equal(api_error_set(NULL, API_INTERNAL, "x"), -1);
    assert_int_equal(api_error_set_field(NULL, "x"), -1);
    assert_int_equal(api_error_suggest(NULL, "x"), -1);
}

/* A place in a batch comes before the field, and before a sentence that begins with the field. */
static void test_prefix(void **state)
{
    struct api_error e = {.code = API_INTERNAL};
    (void)state;
    assert_int_equal(api_error_set(&e, API_INVALID_INPUT, "payload.text is missing"), -1);
    assert_int_equal(api_error_prefix(&e, "[%d].", 2), -1);
    assert_string_equal(e.message, "payload.text is missing");
    assert_string_equal(e.field, "");
    (void)api_error_set_field(&e, "payload.text");
    assert_int_equal(api_error_prefix(&e, "[%d].", 2), -1);
    assert_string_equal(e.message, "[2].payload.text is missing");
    assert_string_equal(e.field, "[2].payload.text");
    (void)api_error_set(&e, API_FORBIDDEN, "not allowed");
    (void)api_error_set_field(&e, "authorId");
    (void)api_error_prefix(&e, "[0].");
    assert_string_equal(e.message, "not allowed");
    assert_string_equal(e.field, "[0].authorId");
    assert_int_equal(api_error_prefix(NULL, "[0]."), -1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_codes),    cmocka_unit_test(test_status),
        cmocka_unit_test(test_envelope), cmocka_unit_test(test_cut),
        cmocka_unit_test(test_prefix),
    };
    return UNIT_RUN(tests);
}
