/* Members by a table of names, and elements. */
#include "t3/fields.c"

#include "unit/base/unit.h"

static const struct slice names[] = {SLICE("a"), SLICE("key")};

static void assert_value(struct slice got, const char *want)
{
    if (want == NULL) {
        assert_null(got.ptr);
    } else if (!slice_equal(got, slice_of(want))) {
        fail_msg("%.*s is not %s", (int)got.len, got.ptr, want);
    }
}

/* What is wanted is found among whatever else there is, however it is written. */
static void test_members(void **state)
{
    static const struct {
        const char *object;
        const char *a;
        const char *key;
    } cases[] = {
        {"{}", NULL, NULL},
        {"{\"a\":1}", "1", NULL},
        {"{\"b\" : [{\"a\":2},\"}]\"] , \"key\" : {\"a\":[]} , \"a\" : null }", "null",
         "{\"a\":[]}"},
        {"{\"\\\\\":\"\\\"\",\"k\\u0065y\":\"\\\\\",\"a\":\"x\\\\\\\"y\"}", "\"x\\\\\\\"y\"",
         "\"\\\\\""},
        {"{\"longer than eight\":\"\xe2\x82\xac, \xe2\x82\xac\",\"a\":-1.5e3,\"keys\":0}", "-1.5e3",
         NULL},
    };
    struct slice v[ARRAY_COUNT(names)];

    (void)state;
    for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
        assert_true(t3_fields_read(slice_of(cases[i].object), T3_WANTED(names), v));
        assert_value(v[0], cases[i].a);
        assert_value(v[1], cases[i].key);
    }
}

/* One that is there twice makes the object no good, if it is wanted; so does what is no object. */
static void test_no_good(void **state)
{
    struct slice v[ARRAY_COUNT(names)];

    (void)state;
    assert_false(t3_fields_read(SLICE("{\"a\":1,\"\\u0061\":1}"), T3_WANTED(names), v));
    assert_true(t3_fields_read(SLICE("{\"b\":1,\"b\":1}"), T3_WANTED(names), v));
    assert_false(t3_fields_read(SLICE("[\"a\",1]"), T3_WANTED(names), v));
    assert_false(t3_fields_read(SLICE("\"a\""), T3_WANTED(names), v));
    assert_false(t3_fields_read((struct slice){NULL, 0}, T3_WANTED(names), v));
}

/* Elements one by one, and objects among them read in passing. */
static void test_elements(void **state)
{
    static const char array[] = "[ 1,{\"a\":[2,3]}, {\"a\":1,\"a\":2},\"x,]\",{} ]";
    static const int found[] = {-1, 1, -1, -1, 1};
    struct t3_elements e;
    struct t3_elements f;
    struct slice v[ARRAY_COUNT(names)];
    struct slice value;
    struct slice same;

    (void)state;
    t3_elements_begin(&e, slice_of(array));
    t3_elements_begin(&f, slice_of(array));
    for (size_t i = 0; i < ARRAY_COUNT(found); i++) {
        assert_int_equal(t3_elements_read(&e, T3_WANTED(names), v, &value), found[i]);
        assert_true(t3_elements_next(&f, &same));
        assert_true(value.ptr == same.ptr && value.len == same.len);
    }
    assert_int_equal(t3_elements_read(&e, T3_WANTED(names), v, &value), 0);
    assert_false(t3_elements_next(&f, &value));
    t3_elements_begin(&e, SLICE("{\"a\":1}"));
    assert_false(t3_elements_next(&e, &value));
}

/* Ids are strings of some length that UTF-8 can hold. */
static void test_kinds(void **state)
{
    char longest[T3_ID_BYTES_MAX + 4] = {'"'};

    (void)state;
    assert_true(t3_field_id(SLICE("\"x\"")));
    assert_false(t3_field_id(SLICE("\"\"")));
    assert_false(t3_field_id(SLICE("\"\\ud800\"")));
    assert_false(t3_field_id(SLICE("7")));
    assert_false(t3_field_id((struct slice){NULL, 0}));
    memset(longest + 1, 'x', T3_ID_BYTES_MAX + 1);
    longest[T3_ID_BYTES_MAX + 2] = '"';
    assert_false(t3_field_id((struct slice){longest, T3_ID_BYTES_MAX + 3}));
    longest[T3_ID_BYTES_MAX + 1] = '"';
    assert_true(t3_field_id((struct slice){longest, T3_ID_BYTES_MAX + 2}));
    assert_true(t3_field_null(SLICE("null")) && !t3_field_given(SLICE("null")));
    assert_true(!t3_field_null((struct slice){NULL, 0}) &&
                !t3_field_given((struct slice){NULL, 0}));
    assert_true(t3_field_given(SLICE("0")) && t3_field_array(SLICE("[]")));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_members),
        cmocka_unit_test(test_no_good),
        cmocka_unit_test(test_elements),
        cmocka_unit_test(test_kinds),
    };

    return UNIT_RUN(tests);
}
