/* Reading JSON values: members, elements, strings, whole numbers, and what is none of these. */
#include "base/json_value.c"

#include "unit/base/unit.h"

static struct slice read_text(const char *text)
{
    struct slice value = {NULL, 0};
    struct errmsg msg = {.text = ""};

    if (json_text_read(slice_of(text), &value, &msg) != 0) {
        fail_msg("%s: %s", text, msg.text);
    }
    return value;
}

static void assert_slice(struct slice got, const char *want)
{
    if (!slice_equal(got, slice_of(want))) {
        fail_msg("%.*s is not %s", (int)got.len, got.ptr, want);
    }
}

/* One value with white space around it, and nothing else. */
static void test_text(void **state)
{
    static const char *const bad[] = {"",  " ",   "{} {}",          "1 2",
                                      "{", "nul", "\xef\xbb\xbf{}", "[1],"};
    struct slice value;

    (void)state;
    assert_slice(read_text(" \t\r\n{\"a\":1} \n"), "{\"a\":1}");
    assert_slice(read_text("7"), "7");
    for (size_t i = 0; i < ARRAY_COUNT(bad); i++) {
        struct errmsg msg = {.text = ""};

        assert_int_equal(json_text_read(slice_of(bad[i]), &value, &msg), ERR_INVALID);
        assert_true(slice_starts_with(slice_of(msg.text), SLICE("not valid JSON at byte ")));
    }
}

/* The first byte tells the kind, and each has a name. */
static void test_kind(void **state)
{
    static const struct {
        const char *text;
        enum json_kind kind;
        const char *name;
    } cases[] = {
        {"null", JSON_NULL, "null"},       {"true", JSON_TRUE, "true"},
        {"false", JSON_FALSE, "false"},    {"-1", JSON_NUMBER, "a number"},
        {"\"\"", JSON_STRING, "a string"}, {"[]", JSON_ARRAY, "an array"},
        {"{}", JSON_OBJECT, "an object"},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
        assert_int_equal(json_kind(read_text(cases[i].text)), cases[i].kind);
        assert_string_equal(json_kind_text(cases[i].kind), cases[i].name);
    }
}

/* Elements come in order, without white space, whatever stands in them. */
static void test_elements(void **state)
{
    static const char *const want[] = {"1", "\"a,]\"", "[2,[3]]", "{\"x\":[4]}", "null"};
    struct json_walk w;
    struct slice value;
    size_t count = 0;

    (void)state;
    json_walk_begin(&w, read_text("[ 1 ,\"a,]\", [2,[3]] ,{\"x\":[4]}, null ]"));
    while (json_walk_element(&w, &value)) {
        assert_true(count < ARRAY_COUNT(want));
        assert_slice(value, want[count++]);
    }
    assert_int_equal(count, ARRAY_COUNT(want));
    assert_false(json_walk_element(&w, &value));
}

/* A value ends where it does, whatever its strings say: quotes behind backslashes, backslashes
 * before the quote that ends, brackets that are text, and white space within. */
static void test_where_values_end(void **state)
{
    static const char *const want[] = {
        "\"\\\\\"", "\"\\\"\"", "\"\\\\\\\",]\"", "{\"]}\\\\\": [\"}\", \"\\\"[\"] }",
        "\"\"",     "[ ]",      "-1.5e3",         "true",
        "{ }",
    };
    struct json_walk w;
    struct slice value;
    struct buf text;

    (void)state;
    buf_init(&text, 1024);
    for (size_t i = 0; i < ARRAY_COUNT(want); i++) {
        buf_append_format(&text, "%s%s", i == 0 ? "[" : i % 2 == 0 ? " ,\n" : ",", want[i]);
    }
    buf_append_format(&text, "]%c", '\0');
    json_walk_begin(&w, read_text(text.ptr));
    for (size_t i = 0; i < ARRAY_COUNT(want); i++) {
        assert_true(json_walk_element(&w, &value));
        assert_slice(value, want[i]);
    }
    assert_false(json_walk_element(&w, &value));
    buf_finish(&text);
}

/* Members come in order, names with their quotes. */
static void test_members(void **state)
{
    struct json_walk w;
    struct slice name;
    struct slice value;

    (void)state;
    json_walk_begin(&w, read_text("{ \"a\" : 1 , \"b:\" : {\"c\":2} }"));
    assert_true(json_walk_member(&w, &name, &value));
    assert_slice(name, "\"a\"");
    assert_slice(value, "1");
    assert_true(json_walk_member(&w, &name, &value));
    assert_slice(name, "\"b:\"");
    assert_slice(value, "{\"c\":2}");
    assert_false(json_walk_member(&w, &name, &value));
}

/* There is nothing to walk over in what is empty or no container. */
static void test_nothing(void **state)
{
    static const char *const texts[] = {"[]", "{}", "[ ]", "{ }", "1", "null", "\"abc\"", "true"};
    struct json_walk w;
    struct slice name;
    struct slice value;

    (void)state;
    for (size_t i = 0; i < ARRAY_COUNT(texts); i++) {
        json_walk_begin(&w, read_text(texts[i]));
        assert_false(json_walk_element(&w, &value));
        json_walk_begin(&w, read_text(texts[i]));
        assert_false(json_walk_member(&w, &name, &value));
    }
}

/* A member is found by its decoded name; twice is refused, not there is not. */
static void test_find(void **state)
{
    struct slice object = read_text("{\"a\":1,\"b\\u0063\":2,\"d\":3,\"\\u0064\":4,\"\":5}");
    struct slice value = SLICE("as before");
    struct errmsg msg = {.text = ""};

    (void)state;
    assert_int_equal(json_object_find(object, SLICE("a"), &value, &msg), 1);
    assert_slice(value, "1");
    assert_int_equal(json_object_find(object, SLICE("bc"), &value, &msg), 1);
    assert_slice(value, "2");
    assert_int_equal(json_object_find(object, SLICE(""), &value, &msg), 1);
    assert_slice(value, "5");
    assert_int_equal(json_object_find(object, SLICE("b"), &value, &msg), 0);
    assert_int_equal(json_object_find(object, SLICE("d"), &value, &msg), ERR_INVALID);
    assert_string_equal(msg.text, "\"d\" may be given once only");
    assert_slice(value, "5");
    assert_int_equal(json_object_find(read_text("[\"a\",1]"), SLICE("a"), &value, &msg), 0);
}

/* Escapes are decoded to UTF-8, pairs of surrogates to one character. */
static void test_decode(void **state)
{
    static const struct {
        const char *value;
        struct slice text;
    } cases[] = {
        {"\"\"", SLICE("")},
        {"\"plain\"", SLICE("plain")},
        {"\"\\\"\\\\\\/\\b\\f\\n\\r\\t\"", SLICE("\"\\/\b\f\n\r\t")},
        {"\"a\\u0000b\"", SLICE("a\0b")},
        {"\"\\u0041\\u00e9\\u20AC\\ud83d\\uDE00!\"",
         SLICE("A\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80!")},
        {"\"\\ud7ff\\ue000\\uffff\"", SLICE("\xed\x9f\xbf\xee\x80\x80\xef\xbf\xbf")},
        {"\"\\udbff\\udfff\"", SLICE("\xf4\x8f\xbf\xbf")},
        {"\"caf\xc3\xa9\"", SLICE("caf\xc3\xa9")},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
        struct slice value = read_text(cases[i].value);
        struct buf out;

        buf_init(&out, 1000);
        assert_int_equal(json_string_decode(value, &out), 0);
        assert_true(slice_equal(buf_slice(&out), cases[i].text));
        assert_true(json_string_equal(value, cases[i].text));
        assert_false(json_string_equal(value, SLICE("else")));
        buf_finish(&out);
    }
    assert_false(json_string_equal(SLICE("\"ab\""), SLICE("a")));
    assert_false(json_string_equal(SLICE("\"a\""), SLICE("ab")));
}

/* Half a pair is no character: not decoded, and equal to nothing. */
static void test_lone_surrogates(void **state)
{
    static const char *const bad[] = {
        "\"\\ud83d\"",        "\"\\ude00\"",        "\"\\ud83dx\"",
        "\"\\ud83d\\u0041\"", "\"\\ud83d\\ud83d\"", "\"a\\udc00b\"",
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_COUNT(bad); i++) {
        struct buf out;

        buf_init(&out, 100);
        assert_int_equal(json_string_decode(read_text(bad[i]), &out), ERR_INVALID);
        assert_false(json_string_equal(read_text(bad[i]), SLICE("a")));
        buf_finish(&out);
    }
}

/* A buffer that is too small says so. */
static void test_decode_full(void **state)
{
    char memory[4];
    struct buf out;

    (void)state;
    buf_init_fixed(&out, memory, sizeof(memory));
    assert_int_equal(json_string_decode(SLICE("\"abc\""), &out), 0);
    buf_init_fixed(&out, memory, sizeof(memory));
    assert_int_equal(json_string_decode(SLICE("\"abcd\""), &out), ERR_NOMEM);
}

/* Whole numbers as JavaScript reads them, exact up to the maximum. */
static void test_numbers(void **state)
{
    static const struct {
        const char *text;
        uint64_t number;
    } good[] = {
        {"0", 0},
        {"7", 7},
        {"30000", 30000},
        {"7.0", 7},
        {"70e-1", 7},
        {"0.7E+1", 7},
        {"-0", 0},
        {"-0.000e9", 0},
        {"0e99999999999999999999", 0},
        {"1200.00e-2", 12},
        {"18446744073709551615", UINT64_MAX},
        {"1844674407370955161500000e-5", UINT64_MAX},
    };
    static const char *const bad[] = {
        "-1",
        "0.5",
        "0.00000000000000000000000000000000012e33",
        "7.01",
        "1e-1",
        "18446744073709551616",
        "1e20",
        "1e99999999999999999999",
        "1e-99999999999999999999",
        "123456789012345678901234567890",
        "123456789012345678901e-20",
        "\"7\"",
        "null",
        "[7]",
        "true",
    };
    uint64_t number;

    (void)state;
    for (size_t i = 0; i < ARRAY_COUNT(good); i++) {
        if (!json_number_u64(read_text(good[i].text), UINT64_MAX, &number) ||
            number != good[i].number) {
            fail_msg("%s", good[i].text);
        }
    }
    for (size_t i = 0; i < ARRAY_COUNT(bad); i++) {
        if (json_number_u64(read_text(bad[i]), UINT64_MAX, &number)) {
            fail_msg("taken: %s", bad[i]);
        }
    }
    assert_true(json_number_u64(SLICE("10"), 10, &number));
    assert_false(json_number_u64(SLICE("11"), 10, &number));
}

/* Half of a surrogate pair, wherever it stands, becomes one U+FFFD; all else is as decoded. */
static void test_decode_lossy(void **state)
{
    static const struct {
        const char *value;
        const char *text;
    } cases[] = {
        {"\"\"", ""},
        {"\"a\\n\\ud83d\\uDE00\"", "a\n\xf0\x9f\x98\x80"},
        {"\"a\\ud83d\"", "a\xef\xbf\xbd"},
        {"\"\\ude00b\"", "\xef\xbf\xbd"
                         "b"},
        {"\"\\ud83d\\ud83d\\ude00\"", "\xef\xbf\xbd\xf0\x9f\x98\x80"},
        {"\"\\ud83d\\u0041\"", "\xef\xbf\xbd"
                               "A"},
        {"\"\\ud83d\\n\"", "\xef\xbf\xbd\n"},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
        char memory[64];
        struct buf out;

        buf_init_fixed(&out, memory, sizeof(memory));
        json_string_decode_lossy(read_text(cases[i].value), &out);
        assert_slice(buf_slice(&out), cases[i].text);
    }
}

/* The length is that of the decoded text. */
static void test_string_len(void **state)
{
    size_t len = 99;

    (void)state;
    assert_int_equal(json_string_len(read_text("\"\""), &len), 0);
    assert_int_equal(len, 0);
    assert_int_equal(json_string_len(read_text("\"a\\u00e9\\ud83d\\ude00\\n\""), &len), 0);
    assert_int_equal(len, 8);
    assert_int_equal(json_string_len(read_text("\"a\\ud83d\""), &len), ERR_INVALID);
    assert_int_equal(len, 8);
}

/* Numbers as doubles; what is beyond them, or absurdly long, is none. */
static void test_double(void **state)
{
    static const char *const bad[] = {
        "1e999", "-1e999", "\"1\"",
        "null",  "[1]",    "0.1234567890123456789012345678901234567890123456789012345678901234"};
    double number = 7;

    (void)state;
    for (size_t i = 0; i < ARRAY_COUNT(bad); i++) {
        assert_false(json_number_double(read_text(bad[i]), &number));
        assert_true(number == 7);
    }
    assert_true(json_number_double(read_text("0.25"), &number));
    assert_true(number == 0.25);
    assert_true(json_number_double(read_text("-12e-1"), &number));
    assert_true(number == -1.2);
    assert_true(json_number_double(read_text("1e-999"), &number));
    assert_true(number == 0);
}

/* Brackets count where they are not in strings. */
static void test_depth(void **state)
{
    (void)state;
    assert_int_equal(json_depth(read_text("1")), 0);
    assert_int_equal(json_depth(read_text("\"[[[\"")), 0);
    assert_int_equal(json_depth(read_text("[]")), 1);
    assert_int_equal(json_depth(read_text("{\"a\":[1,{\"b\":2}],\"c\":[[]]}")), 3);
    assert_int_equal(json_depth(read_text("[\"[\\\\\\\"[\",\"\",\"\\\\\"]")), 1);
    assert_int_equal(json_depth(SLICE("[\"[")), 1); /* not JSON: safe */
    assert_int_equal(json_depth(SLICE("[\"")), 1);
    assert_int_equal(json_depth(SLICE("[\"[\\\"")), 1);
    assert_int_equal(json_depth(read_text("[\"\\\"[\",\"\\\\\",[2]]")), 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_text),
        cmocka_unit_test(test_kind),
        cmocka_unit_test(test_elements),
        cmocka_unit_test(test_where_values_end),
        cmocka_unit_test(test_members),
        cmocka_unit_test(test_nothing),
        cmocka_unit_test(test_find),
        cmocka_unit_test(test_decode),
        cmocka_unit_test(test_lone_surrogates),
        cmocka_unit_test(test_decode_full),
        cmocka_unit_test(test_numbers),
        cmocka_unit_test(test_decode_lossy),
        cmocka_unit_test(test_string_len),
        cmocka_unit_test(test_double),
        cmocka_unit_test(test_depth),
    };

    return UNIT_RUN(tests);
}
