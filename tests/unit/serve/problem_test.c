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

/* The disk's own words are not for clients; the others' are, and an empty one has a default. */
static void hides_the_inside(void **state)
{
    struct errmsg msg;

    (void)state;
    (void)err_set(&msg, ERR_IO, "write of /data/wal/1: EIO");
    assert_true(slice_equal(problem_detail(ERR_IO, &msg), slice_of(err_text(ERR_IO))));
    assert_true(slice_equal(problem_detail(ERR_CORRUPT, &msg), slice_of(err_text(ERR_CORRUPT))));
    (void)err_set(&msg, ERR_INVALID, "what");
    assert_true(slice_equal(problem_detail(ERR_INVALID, &msg), SLICE("what")));
    msg.text[0] = '\0';
    assert_true(slice_equal(problem_detail(ERR_CLOSED, &msg), slice_of(err_text(ERR_CLOSED))));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(formats),
        cmocka_unit_test(hides_the_inside),
    };

    return UNIT_RUN(tests);
}
