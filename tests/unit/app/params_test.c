/* Query parameters: what is taken, and what is refused in words. */
#include "app/params.c"

#include "unit/base/unit.h"

struct rig {
    struct arena memory;
    struct api_error error;
    struct params p;
};

static struct params *begin(struct rig *r, const char *query)
{
    arena_init(&r->memory, 64 * 1024);
    r->error = (struct api_error){.code = API_INTERNAL};
    params_begin(&r->p, query == NULL ? (struct slice){NULL, 0} : slice_of(query), &r->memory,
                 &r->error);
    return &r->p;
}

static void expect_refusal(struct rig *r, const char *message, const char *field)
{
    assert_int_equal(params_end(&r->p), -1);
    assert_int_equal(r->error.code, API_INVALID_INPUT);
    assert_string_equal(r->error.message, message);
    assert_string_equal(r->error.field, field);
    arena_finish(&r->memory);
}

/* Each kind is read, decoded, and has a value when it is not given. */
static void reads_each_kind(void **state)
{
    struct rig r;
    struct params *p = begin(&r, "q=a%20b&limit=7&pinned=1&off=0&%6Eame=%C3%A9");

    (void)state;
    assert_true(slice_equal(params_text(p, "q", 10), SLICE("a b")));
    assert_true(slice_equal(params_text(p, "name", 10), SLICE("\xc3\xa9")));
    assert_null(params_text(p, "other", 10).ptr);
    assert_int_equal(params_number(p, "limit", 1, 10, 5), 7);
    assert_int_equal(params_number(p, "more", 1, 10, 5), 5);
    assert_true(params_flag(p, "pinned"));
    assert_false(params_flag(p, "off"));
    assert_false(params_flag(p, "missing"));
    assert_int_equal(params_end(p), 0);
    arena_finish(&r.memory);
}

/* No query is as good as an empty one. */
static void takes_no_query(void **state)
{
    struct rig r;

    (void)state;
    assert_int_equal(params_end(begin(&r, NULL)), 0);
    arena_finish(&r.memory);
    assert_int_equal(params_end(begin(&r, "")), 0);
    arena_finish(&r.memory);
}

/* Every refusal says which parameter, and what would be accepted. */
static void refuses_in_words(void **state)
{
    struct rig r;

    (void)state;
    (void)begin(&r, "limt=1");
    expect_refusal(&r, "there is no parameter limt here; docs/api.md lists them", "limt");
    (void)params_number(begin(&r, "limit=0"), "limit", 1, 10, 5);
    expect_refusal(&r, "limit must be a number from 1 to 10", "limit");
    (void)params_number(begin(&r, "limit=11"), "limit", 1, 10, 5);
    expect_refusal(&r, "limit must be a number from 1 to 10", "limit");
    (void)params_number(begin(&r, "limit=+1"), "limit", 1, 10, 5);
    expect_refusal(&r, "limit must be a number from 1 to 10", "limit");
    (void)params_flag(begin(&r, "pinned=yes"), "pinned");
    expect_refusal(&r, "pinned must be 0 or 1", "pinned");
    (void)params_text(begin(&r, "q=abcdef"), "q", 5);
    expect_refusal(&r, "q must have 1 to 5 bytes", "q");
    (void)params_text(begin(&r, "q="), "q", 5);
    expect_refusal(&r, "q must have 1 to 5 bytes", "q");
    (void)params_text(begin(&r, "q=%ff"), "q", 5);
    expect_refusal(&r, "q must be UTF-8", "q");
    (void)begin(&r, "%ff=1");
    expect_refusal(&r, "the query must be UTF-8", "the query");
    /* What is told of a long name ends with a whole character. */
    (void)begin(&r, "012345678901234567890123456789012345678901234567890123456789%C3%A9");
    expect_refusal(&r,
                   "there is no parameter "
                   "012345678901234567890123456789012345678901234567890123456789 here; "
                   "docs/api.md lists them",
                   "012345678901234567890123456789012345678901234567890123456789é");
    (void)begin(&r, "01234567890123456789012345678901234567890123456789012345678%C3%A9");
    expect_refusal(&r,
                   "there is no parameter "
                   "01234567890123456789012345678901234567890123456789012345678 here; "
                   "docs/api.md lists them",
                   "01234567890123456789012345678901234567890123456789012345678é");
    (void)begin(&r, "q=%f");
    expect_refusal(&r, "the query has a '%' without two hex digits", "the query");
    (void)begin(&r, "q=1&q=2");
    expect_refusal(&r, "a parameter may be given once only", "a parameter");
    (void)begin(&r, "a&b&c&d&e&f&g&h&i&j&k&l&m");
    expect_refusal(&r, "the query has more than 12 parameters", "the query");
}

/* The first refusal counts. */
static void keeps_the_first_refusal(void **state)
{
    struct rig r;
    struct params *p = begin(&r, "limit=x&pinned=x");

    (void)state;
    assert_int_equal(params_number(p, "limit", 1, 10, 5), 0);
    assert_false(params_flag(p, "pinned"));
    expect_refusal(&r, "limit must be a number from 1 to 10", "limit");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads_each_kind),
        cmocka_unit_test(takes_no_query),
        cmocka_unit_test(refuses_in_words),
        cmocka_unit_test(keeps_the_first_refusal),
    };

    return UNIT_RUN(tests);
}
