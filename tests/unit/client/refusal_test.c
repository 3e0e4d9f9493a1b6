/* The API's error envelope, good and hostile. */
#include "client/refusal.c"

#include "base/utf8.h"
#include "unit/base/unit.h"

#include <stdio.h>

static struct refusal read_body(const char *body)
{
    struct refusal refusal;

    memset(&refusal, 0x5a, sizeof(refusal));
    refusal_read(slice_of(body), &refusal);
    return refusal;
}

static void test_whole(void **state)
{
    struct refusal r = read_body(
        "{\"error\":{\"code\":\"validation.invalid_input\",\"message\":\"no \\u0022x\\u0022\","
        "\"suggestion\":\"say y\",\"recoverable\":true,"
        "\"context\":{\"field\":\"payload.text\",\"more\":[1]}},\"extra\":1}");

    (void)state;
    assert_true(r.present);
    assert_true(r.recoverable);
    assert_string_equal(r.code, "validation.invalid_input");
    assert_string_equal(r.message, "no \"x\"");
    assert_string_equal(r.suggestion, "say y");
    assert_string_equal(r.field, "payload.text");
}

/* Members that are absent, or not what they should be, are empty. */
static void test_parts(void **state)
{
    struct refusal r = read_body("{\"error\":{\"code\":\"auth.forbidden\",\"message\":7,"
                                 "\"suggestion\":null,\"recoverable\":\"yes\",\"context\":[]}}");

    (void)state;
    assert_true(r.present);
    assert_false(r.recoverable);
    assert_string_equal(r.code, "auth.forbidden");
    assert_string_equal(r.message, "");
    assert_string_equal(r.suggestion, "");
    assert_string_equal(r.field, "");
}

static void test_none(void **state)
{
    static const char *const bodies[] = {
        "",
        "<html>",
        "{}",
        "[]",
        "{\"error\":\"no\"}",
        "{\"error\":{}}",
        "{\"error\":{\"code\":\"\"}}",
        "{\"error\":{\"code\":1,\"message\":\"m\"}}",
        "{\"error\":{\"code\":\"a.b\",\"message\":\"m\"}", /* cut */
        "{\"error\":{\"code\":\"a.b\"},\"error\":{\"code\":\"c.d\"}}",
        "{\"title\":\"Not Found\",\"detail\":\"gone\"}",
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_COUNT(bodies); i++) {
        struct refusal r = read_body(bodies[i]);

        assert_false(r.present);
        assert_string_equal(r.code, "");
        assert_string_equal(r.message, "");
    }
}

/* Texts are cut at whole characters, and hold nothing that a terminal would act on. */
static void test_hostile_texts(void **state)
{
    char body[CLIENT_SENTENCE_BYTES];
    char text[1501];
    struct refusal r;

    (void)state;
    for (size_t i = 0; i < sizeof(text) - 1; i += 2) {
        memcpy(text + i, "\xc3\xa9", 2);
    }
    text[sizeof(text) - 1] = '\0';
    (void)snprintf(body, sizeof(body),
                   "{\"error\":{\"code\":\"%s\",\"message\":\"a\\u001b[31m\\n%s\","
                   "\"suggestion\":\"\\ud800\"}}",
                   text, text);
    r = read_body(body);
    assert_true(r.present);
    assert_int_equal(strlen(r.code), 62);
    assert_true(utf8_valid(slice_of(r.message)));
    assert_true(strlen(r.message) > sizeof(r.message) - 3);
    assert_memory_equal(r.message, "a [31m ", 7);
    assert_string_equal(r.suggestion, ""); /* half a surrogate is no text */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_whole),
        cmocka_unit_test(test_parts),
        cmocka_unit_test(test_none),
        cmocka_unit_test(test_hostile_texts),
    };

    return UNIT_RUN(tests);
}
