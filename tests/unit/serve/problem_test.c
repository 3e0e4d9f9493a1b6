/* Problem documents: valid JSON whatever they quote, and silent about the inside. */
#include "serve/problem.c"

#include "unit/base/unit.h"

static void assert_document(struct slice detail, const char *text)
{
    char memory[DOCUMENT_BYTES_MAX];
    struct buf document;

    buf_init_fixed(&document, memory, sizeof(memory));
    problem_format(&document, 404, detail);
    buf_append_char(&document, '\0');
    assert_false(document.failed);
    assert_string_equal(document.ptr, text);
}

/* Title and status come from the status, the detail is a JSON string. */
static void formats(void **state)
{
    (void)state;
    assert_document(SLICE("none"),
                    "{\"type\":\"about:blank\",\"title\":\"Not Found\",\"status\":404,"
                    "\"detail\":\"none\"}\n");
    assert_document(SLICE("\"<\\"),
                    "{\"type\":\"about:blank\",\"title\":\"Not Found\",\"status\":404,"
                    "\"detail\":\"\\\"<\\\\\"}\n");
}

static void assert_control(int status, const char *text)
{
    char memory[DOCUMENT_BYTES_MAX];
    struct buf document;

    buf_init_fixed(&document, memory, sizeof(memory));
    problem_format_control(&document, status, SLICE("a \"b\""));
    buf_append_char(&document, '\0');
    assert_false(document.failed);
    assert_non_null(strstr(document.ptr, text));
    assert_non_null(strstr(document.ptr, ",\"message\":\"a \\\"b\\\"\"}}\n"));
}

/* The control API's form has a word for every status, and the sentence as a JSON string. */
static void formats_for_the_control_api(void **state)
{
    (void)state;
    assert_control(400, "{\"error\":{\"code\":\"INVALID_REQUEST\",");
    assert_control(401, "\"UNAUTHORIZED\"");
    assert_control(403, "\"FORBIDDEN\"");
    assert_control(404, "\"SUBSCRIPTION_NOT_FOUND\"");
    assert_control(405, "\"METHOD_NOT_ALLOWED\"");
    assert_control(408, "\"REQUEST_TIMEOUT\"");
    assert_control(413, "\"REQUEST_TOO_LARGE\"");
    assert_control(429, "\"LIMIT_REACHED\"");
    assert_control(500, "\"INTERNAL_ERROR\"");
    assert_control(503, "\"UNAVAILABLE\"");
    assert_control(507, "\"OUT_OF_SPACE\"");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(formats),
        cmocka_unit_test(formats_for_the_control_api),
    };

    return UNIT_RUN(tests);
}
