/* Members of a body: what is taken, and what is refused in words with its place. */
#include "app/input.c"

#include "unit/base/unit.h"

#include <string.h>

static const struct input_text needed = {.bytes_max = 5, .required = true};
static const struct input_text wished = {.bytes_max = 5, .null_ok = true};
static const struct input_text lines = {.bytes_max = 20, .lines = true};

struct rig {
    struct arena memory;
    struct api_error error;
    struct input in;
};

static struct input *begin(struct rig *r, const char *body)
{
    arena_init(&r->memory, 64 * 1024);
    r->error = (struct api_error){.code = API_INTERNAL};
    input_begin(&r->in, slice_of(body), false, &r->memory, &r->error);
    return &r->in;
}

static void expect_refusal(struct rig *r, const char *message, const char *field)
{
    assert_int_equal(input_end(&r->in), -1);
    assert_int_equal(r->error.code, API_INVALID_INPUT);
    assert_string_equal(r->error.message, message);
    assert_string_equal(r->error.field, field);
    arena_finish(&r->memory);
}

/* Texts are decoded; what is not there, or null where that is fine, is absent. */
static void reads_texts(void **state)
{
    struct rig r;
    struct input *in = begin(&r, "{\"a\":\"x\\u00e9\",\"b\":null,\"l\":\"1\\n\\t2\"}");

    (void)state;
    assert_true(slice_equal(input_text(in, "a", &needed), SLICE("x\xc3\xa9")));
    assert_true(input_has(in, "b"));
    assert_null(input_text(in, "b", &wished).ptr);
    assert_false(input_has(in, "c"));
    assert_null(input_text(in, "c", &wished).ptr);
    assert_true(slice_equal(input_text(in, "l", &lines), SLICE("1\n\t2")));
    assert_int_equal(input_end(in), 0);
    arena_finish(&r.memory);
}

/* Numbers, flags and lists, and what they are when they are not given. */
static void reads_others(void **state)
{
    struct rig r;
    struct slice texts[3];
    struct input *in = begin(&r,
                             "{\"n\":7.0,\"f\":true,\"t\":[\"a\",\"b\",\"a\"],\"v\":{\"x\":1}}");

    (void)state;
    assert_int_equal(input_number(in, "n", 1, 9, 5), 7);
    assert_int_equal(input_number(in, "m", 1, 9, 5), 5);
    assert_true(input_flag(in, "f", false));
    assert_true(input_flag(in, "g", true));
    assert_int_equal(input_texts(in, "t", 3, 5, texts), 2);
    assert_true(slice_equal(texts[1], SLICE("b")));
    assert_int_equal(input_texts(in, "u", 3, 5, texts), 0);
    assert_true(slice_equal(input_value(in, "v"), SLICE("{\"x\":1}")));
    assert_int_equal(input_end(in), 0);
    arena_finish(&r.memory);
}

/* A body may be left out where nothing is needed. */
static void takes_no_body(void **state)
{
    struct rig r;

    (void)state;
    arena_init(&r.memory, 1024);
    input_begin(&r.in, SLICE(""), true, &r.memory, &r.error);
    assert_null(input_text(&r.in, "a", &wished).ptr);
    assert_int_equal(input_end(&r.in), 0);
    arena_finish(&r.memory);
    (void)begin(&r, "");
    assert_int_equal(input_end(&r.in), -1);
    assert_int_equal(r.error.code, API_MALFORMED_JSON);
    arena_finish(&r.memory);
}

/* What is no object, and what is no JSON. */
static void refuses_other_bodies(void **state)
{
    struct rig r;

    (void)state;
    (void)begin(&r, "[1]");
    expect_refusal(&r, "the body must be a JSON object, not an array", "");
    (void)begin(&r, "{\"a\":1");
    assert_int_equal(input_end(&r.in), -1);
    assert_int_equal(r.error.code, API_MALFORMED_JSON);
    arena_finish(&r.memory);
}

/* Each rule of texts has its sentence. */
static void refuses_texts_in_words(void **state)
{
    struct rig r;

    (void)state;
    (void)input_text(begin(&r, "{}"), "a", &needed);
    expect_refusal(&r, "a is missing; it must be a string", "a");
    (void)input_text(begin(&r, "{\"a\":1}"), "a", &needed);
    expect_refusal(&r, "a must be a string, not a number", "a");
    (void)input_text(begin(&r, "{\"a\":null}"), "a", &needed);
    expect_refusal(&r, "a must be a string, not null", "a");
    (void)input_text(begin(&r, "{\"a\":\"\"}"), "a", &needed);
    expect_refusal(&r, "a must not be empty", "a");
    (void)input_text(begin(&r, "{\"a\":\"  \"}"), "a", &needed);
    expect_refusal(&r, "a must not be empty", "a");
    (void)input_text(begin(&r, "{\"a\":\"123456\"}"), "a", &needed);
    expect_refusal(&r, "a must have at most 5 bytes, not 6", "a");
    (void)input_text(begin(&r, "{\"a\":\"1\\n\"}"), "a", &needed);
    expect_refusal(&r, "a must not hold control characters", "a");
    (void)input_text(begin(&r, "{\"a\":\"\\u0085\"}"), "a", &lines);
    expect_refusal(&r, "a must not hold control characters", "a");
    (void)input_text(begin(&r, "{\"a\":\"\\ud800\"}"), "a", &needed);
    expect_refusal(&r, "a holds half a surrogate pair, which is no character", "a");
    (void)input_text(begin(&r, "{\"a\":\"1\",\"\\u0061\":\"2\"}"), "a", &needed);
    expect_refusal(&r, "a may be given once only", "a");
}

/* And those of the other kinds. */
static void refuses_others_in_words(void **state)
{
    struct rig r;
    struct slice texts[2];

    (void)state;
    (void)input_number(begin(&r, "{\"n\":0}"), "n", 1, 9, 5);
    expect_refusal(&r, "n must be a whole number from 1 to 9", "n");
    (void)input_number(begin(&r, "{\"n\":\"1\"}"), "n", 1, 9, 5);
    expect_refusal(&r, "n must be a whole number from 1 to 9", "n");
    (void)input_flag(begin(&r, "{\"f\":1}"), "f", false);
    expect_refusal(&r, "f must be true or false, not a number", "f");
    (void)input_texts(begin(&r, "{\"t\":\"a\"}"), "t", 2, 5, texts);
    expect_refusal(&r, "t must be an array of strings, not a string", "t");
    (void)input_texts(begin(&r, "{\"t\":[\"a\",\"b\",\"c\"]}"), "t", 2, 5, texts);
    expect_refusal(&r, "t must have at most 2 elements", "t");
    (void)input_texts(begin(&r, "{\"t\":[\"\"]}"), "t", 2, 5, texts);
    expect_refusal(&r, "t must hold texts of 1 to 5 bytes without control characters", "t");
    (void)begin(&r, "{\"nmae\":1}");
    expect_refusal(&r,
                   "the body must not have a member \"nmae\"; docs/api.md lists those that it may "
                   "have",
                   "nmae");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads_texts),
        cmocka_unit_test(reads_others),
        cmocka_unit_test(takes_no_body),
        cmocka_unit_test(refuses_other_bodies),
        cmocka_unit_test(refuses_texts_in_words),
        cmocka_unit_test(refuses_others_in_words),
    };

    return UNIT_RUN(tests);
}
