/* JSON: which texts are taken, which are not and why, and what the messages of a text are. */
#include "base/json.c"

#include "unit/base/unit.h"

#include <stdio.h>
#include <stdlib.h>

/* A text of a kind that a parser may get wrong. A SLICE each, since some hold NUL bytes. */
#define TEXT(literal)           \
    {                           \
        literal, sizeof literal \
    }

struct text {
    const char *bytes; /* the JSON text */
    size_t size;       /* with the NUL of the literal */
};

static const struct text accepted[] = {
    /* Arrays and objects. */
    TEXT("[]"),
    TEXT("[[ ]  ]"),
    TEXT("[\"\"]"),
    TEXT("[false]\n"),
    TEXT("[7\n]"),
    TEXT(" \t\r\n[7] "),
    TEXT("[null, 4, \"4\", {}, [true]]"),
    TEXT("[1,null,null,null,2]"),
    TEXT("{}"),
    TEXT("{\"\":0}"),
    TEXT("{\"k\":\"v\",\"k\":\"w\"}"),
    TEXT("{\"k\":\"v\",\"k\":\"v\"}"),
    TEXT("{\"one\":[],\"two\":{\"three\":[{}]}}"),
    TEXT("{\n\"k\" : \"v\"\n}"),
    TEXT("{\"min\":-1.0e+29,\"max\":1.0E-29}"),
    TEXT("{\"nul\\u0000in key\":17}"),
    TEXT("{\"id\":\"kkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkk\",\"a\":[{\"id\":\"mmmmmmmmm\"}]}"),
    /* Scalars alone, numbers of any size included. */
    TEXT("true"),
    TEXT("false"),
    TEXT("null"),
    TEXT("17"),
    TEXT("-0.5"),
    TEXT("\"text\""),
    TEXT("\"\""),
    TEXT("0"),
    TEXT("-0"),
    TEXT("0e1"),
    TEXT("0e+1"),
    TEXT("2e5"),
    TEXT("2E5"),
    TEXT("2E+5"),
    TEXT("2E-5"),
    TEXT("123.456e78"),
    TEXT("-0.000000000000000000000000000000000000000000000000000000000000000000000000000000001"),
    TEXT("9e99999999999999999999"),
    TEXT("-9e-99999999999999999999"),
    TEXT("123123123123123123123123123123123123123123123123"),
    TEXT("-123123123123123123123123123123123123123123123123"),
    TEXT("0.4e00669999999999999999999999999999999999999999999999999999999999999999999999996"),
    /* Strings and escapes, lone surrogates included: the bytes are kept as they came. */
    TEXT("\"\\\"\\\\\\/\\b\\f\\n\\r\\t\""),
    TEXT("\"\\u0060\\u012a\\u12AB\""),
    TEXT("\"\\uD801\\udc37\\ud83d\\ude39\""),
    TEXT("\"\\\\u0000 and \\\\a and \\\\n\""),
    TEXT("\"\\uFFFF\\u0022\\u005C\\u000A\\u0012\""),
    TEXT("\"a/*b*/c//d\""),
    TEXT("\"\x7f\""),
    TEXT("\"\xcf\x80 \xe2\x82\xac \xe2\x80\xa8\xe2\x80\xa9 \xf0\x9d\x84\x9e\""),
    TEXT("\"\xef\xbf\xbf \xf4\x8f\xbf\xbf \xf0\x9b\xbf\xbf \xef\xbb\xbf\""),
    TEXT("\"\\ud800\""),
    TEXT("\"\\udc00\""),
    TEXT("\"\\uDd1e\\uD834\""),
    TEXT("\"\\ud800\\n\""),
    TEXT("\"\\ud800\\ud800\\n\""),
    TEXT("\"\\ud800abc\""),
    TEXT("{\"\\udfaa\":0}"),
};

static const struct text refused[] = {
    /* Nothing, or nothing but marks. */
    TEXT(""),
    TEXT(" "),
    TEXT("\xef\xbb\xbf"),
    TEXT("\xef\xbb\xbf{}"),
    TEXT("\xef\xbb{}"),
    TEXT("\xff\xfe[\0]\0"),
    TEXT("[\0\"\0\xe9\0\"\0]\0"),
    TEXT("\0[\0\"\0\xe9\0\"\0]"),
    TEXT("\0"),
    TEXT("\xe2\x81\xa0"),
    TEXT("[\xe2\x81\xa0]"),
    TEXT("\xc3\xa5"),
    TEXT("\xe5"),
    TEXT("*"),
    TEXT("<.>"),
    TEXT("[<null>]"),
    /* Arrays. */
    TEXT("["),
    TEXT("]"),
    TEXT("[1"),
    TEXT("[1,"),
    TEXT("[1,]"),
    TEXT("[1,,]"),
    TEXT("[1,,2]"),
    TEXT("[,1]"),
    TEXT("[,]"),
    TEXT("[,"),
    TEXT("[-]"),
    TEXT("[1 true]"),
    TEXT("[1:2]"),
    TEXT("[\"a\" \"b\"]"),
    TEXT("[1;2]"),
    TEXT("[3[4]]"),
    TEXT("[x"),
    TEXT("[a\xe5]"),
    TEXT("[\xff]"),
    TEXT("[*]"),
    TEXT("[\"\",]"),
    TEXT("[\"\"],"),
    TEXT("[\"x\"]]"),
    TEXT("[1]x"),
    TEXT("[\"a\",\n4\n,1,"),
    TEXT("[1,\n1\n,1"),
    TEXT("[{}"),
    TEXT("[\v\"a\"\f]"),
    TEXT("[\f]"),
    TEXT("[][]"),
    TEXT("[1}"),
    TEXT("[[[["),
    TEXT("[\"a"),
    TEXT("['"),
    TEXT("[\"a\""),
    TEXT("[ false, nul"),
    TEXT("[ true, fals"),
    TEXT("[ false, tru"),
    TEXT("[\\u000A\"\"]"),
    TEXT("[{\"a\":1]"),
    /* Objects. */
    TEXT("{"),
    TEXT("}"),
    TEXT("{,"),
    TEXT("{[: \"x\"}"),
    TEXT("{\"a\", 1}"),
    TEXT("{\"a\"::1}"),
    TEXT("{\"a\" 1}"),
    TEXT("{:1}"),
    TEXT("{\"a\":"),
    TEXT("{\"a\":1"),
    TEXT("{\"a\""),
    TEXT("{\"a\"}"),
    TEXT("{\"a"),
    TEXT("{a:1}"),
    TEXT("{'a':0}"),
    TEXT("{1:1}"),
    TEXT("{9999E9999:1}"),
    TEXT("{null:null,null:null}"),
    TEXT("{\"a\":1,}"),
    TEXT("{\"a\":1,,\"b\":2}"),
    TEXT("{\"a\":1,,,,,}"),
    TEXT("{\"a\":1 \"b\":2}"),
    TEXT("{\"a\":true} \"x\""),
    TEXT("{\"a\":true}/**/"),
    TEXT("{\"a\":true}//"),
    TEXT("{\"a\":/*no*/1}"),
    TEXT("{\"a\":1}}"),
    TEXT("{\"a\":1}#"),
    TEXT("{]"),
    TEXT("{\"a\":1]"),
    TEXT("{\xf0\x9f\x87\xa8\xf0\x9f\x87\xad}"),
    TEXT("{\"\xb9\":\"0\",}"),
    TEXT("{\"x\":[a]}"),
    /* Words. */
    TEXT("tru"),
    TEXT("fals"),
    TEXT("nul"),
    TEXT("nulls"),
    TEXT("True"),
    TEXT("aTrue"),
    TEXT("NaN"),
    TEXT("-NaN"),
    TEXT("Infinity"),
    TEXT("-Infinity"),
    TEXT("+Inf"),
    TEXT("undefined"),
    /* Numbers. */
    TEXT("+1"),
    TEXT("++1"),
    TEXT("-"),
    TEXT("- 1"),
    TEXT("-01"),
    TEXT("012"),
    TEXT("0 0"),
    TEXT("123\0"),
    TEXT("-1.0."),
    TEXT("-2."),
    TEXT("-.1"),
    TEXT(".5"),
    TEXT(".2e-3"),
    TEXT(".-1"),
    TEXT("0.1.2"),
    TEXT("0.3e"),
    TEXT("0.3e+"),
    TEXT("0e"),
    TEXT("0E+"),
    TEXT("0.e1"),
    TEXT("1.0e-"),
    TEXT("2.e3"),
    TEXT("2.e+3"),
    TEXT("1eE2"),
    TEXT("1e+-2"),
    TEXT("1e1.5"),
    TEXT("1_000"),
    TEXT("1 000"),
    TEXT("1+2"),
    TEXT("0x1"),
    TEXT("0x42"),
    TEXT("1ea"),
    TEXT("1e1\xe5"),
    TEXT("1e\xe5"),
    TEXT("1\xe5"),
    TEXT("-1x"),
    TEXT("1.2a-3"),
    TEXT("1.8011670033376514H-308"),
    TEXT("\xef\xbc\x91"),
    TEXT("[2.]"),
    /* Strings. */
    TEXT("\""),
    TEXT("'x'"),
    TEXT("abc"),
    TEXT("\xc3\xa9"),
    TEXT("\"\\"),
    TEXT("\"\\\""),
    TEXT("\"\\x00\""),
    TEXT("\"\\\\\\\""),
    TEXT("\"\\\t\""),
    TEXT("\"\\\xf0\x9f\x8c\x80\""),
    TEXT("\"\\a\""),
    TEXT("\"\\0\""),
    TEXT("\"\\U0041\""),
    TEXT("\"\\u00A\""),
    TEXT("\"\\u00A"),
    TEXT("\"\\uqqqq\""),
    TEXT("\"\\u004g\""),
    TEXT("\"\\ud834\\uDd\""),
    TEXT("\"\\ud800\\\""),
    TEXT("\"\\ud800\\u\""),
    TEXT("\"\\ud800\\u1\""),
    TEXT("\"\\ud800\\u1x\""),
    TEXT("\"\\ud800\\uD800\\x\""),
    TEXT("\"\\u\xe5\""),
    TEXT("\"\\\xe5\""),
    TEXT("\\n"),
    TEXT("\\u0020\"x\""),
    TEXT("\"a\0b\""),
    TEXT("\"new\nline\""),
    TEXT("\"\t\""),
    TEXT("\"\x1f\""),
    TEXT("\"\"x"),
    /* Strings that are not UTF-8. */
    TEXT("\"\xff\""),
    TEXT("\"\x81\""),
    TEXT("\"\xe9\""),
    TEXT("\"\xe6\x97\xa5\xd1\x88\xfa\""),
    TEXT("\"\xed\xa0\x80\""),
    TEXT("\"\xed\xbf\xbf\""),
    TEXT("\"\xf4\xbf\xbf\xbf\""),
    TEXT("\"\xf4\x90\x80\x80\""),
    TEXT("\"\xc0\xaf\""),
    TEXT("\"\xe0\x80\xaf\""),
    TEXT("\"\xf0\x80\x80\xaf\""),
    TEXT("\"\xfc\x80\x80\x80\x80\x80\""),
    TEXT("\"\xe0\xff\""),
    TEXT("\"\xe2\x82\""),
    TEXT("\"\xe2\x82"),
};

static int ignore_message(void *context, struct slice message)
{
    (void)context;
    assert_true(message.len > 0);
    return 0;
}

/* Judges the text in a block of its exact size, where the sanitizer catches any read past it. */
static int judge(struct slice text, struct errmsg *msg)
{
    char *exact = malloc(text.len == 0 ? 1 : text.len);
    int result;

    assert_non_null(exact);
    memcpy(exact, text.ptr, text.len);
    result = json_each_message((struct slice){exact, text.len}, ignore_message, NULL, msg);
    free(exact);
    return result;
}

/* Every kind of valid text is taken. */
static void test_accepts_what_is_json(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_COUNT(accepted); i++) {
        struct errmsg msg;

        if (judge((struct slice){accepted[i].bytes, accepted[i].size - 1}, &msg) != 0) {
            fail_msg("refused %s: %s", accepted[i].bytes, msg.text);
        }
    }
}

/* Every kind of near miss is refused, with a sentence that names a byte of the text or its end. */
static void test_refuses_what_is_not(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_COUNT(refused); i++) {
        struct errmsg msg = {.text = ""};
        unsigned long where;

        if (judge((struct slice){refused[i].bytes, refused[i].size - 1}, &msg) != ERR_INVALID) {
            fail_msg("number %zu, %s, was taken", i, refused[i].bytes);
        }
        assert_int_equal(sscanf(msg.text, "not valid JSON at byte %lu: ", &where), 1);
        assert_in_range(where, 0, refused[i].size - 1);
    }
}

/* A valid array, object or string that is cut anywhere is refused, and never read past the cut. */
static void test_refuses_every_cut(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_COUNT(accepted); i++) {
        const char *bytes = accepted[i].bytes;
        size_t len = accepted[i].size - 1;

        while (len > 0 && strchr(" \n", bytes[len - 1]) != NULL) {
            len--;
        }
        if (bytes[0] != '[' && bytes[0] != '{' && bytes[0] != '"') {
            continue;
        }
        while (len-- > 0) {
            assert_int_equal(judge((struct slice){bytes, len}, NULL), ERR_INVALID);
        }
    }
}

/* The sentence says what was expected and at which byte. */
static void test_reasons(void **state)
{
    const struct {
        struct slice text;
        const char *sentence;
    } cases[] = {
        {SLICE(""), "byte 0: the text ends where a value is expected"},
        {SLICE("[1,]"), "byte 3: expected a value"},
        {SLICE("[1 2]"), "byte 3: expected ',' or ']'"},
        {SLICE("[[1 2]]"), "byte 4: expected ',' or ']'"},
        {SLICE("{\"a\":1 2}"), "byte 7: expected ',' or '}'"},
        {SLICE("{\"a\" 1}"), "byte 5: expected ':' after a member name"},
        {SLICE("{a:1}"), "byte 1: expected a member name in double quotes"},
        {SLICE("[1"), "byte 2: the text ends inside an array"},
        {SLICE("[[1"), "byte 3: the text ends inside an array"},
        {SLICE("{\"a\":1"), "byte 6: the text ends inside an object"},
        {SLICE("\"ab"), "byte 3: the text ends inside a string"},
        {SLICE("\"ab\\"), "byte 4: the text ends inside a string"},
        {SLICE("\"\\q\""), "byte 2: a backslash must be followed by one of \"\\/bfnrtu"},
        {SLICE("\"\\u12\""), "byte 2: \\u must be followed by four hexadecimal digits"},
        {SLICE("\"a\nb\""), "byte 2: a control character in a string must be escaped"},
        {SLICE("\"a\xff\""), "byte 2: a string must be valid UTF-8"},
        {SLICE("-x"), "byte 1: a digit is missing in a number"},
        {SLICE("nul"), "byte 0: expected true, false or null"},
        {SLICE("1 2"), "byte 2: nothing may follow the value"},
        {SLICE("\xef\xbb\xbf{}"), "byte 0: expected a value; a byte order mark is not allowed"},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
        struct errmsg msg;

        assert_int_equal(judge(cases[i].text, &msg), ERR_INVALID);
        assert_memory_equal(msg.text, "not valid JSON at ", 18);
        assert_string_equal(msg.text + 18, cases[i].sentence);
    }
}

/* `depth` openings, alternately of arrays and objects if `mixed`, closed again when `closed`. */
static struct buf nested(size_t depth, bool mixed, bool closed)
{
    struct buf b;

    buf_init(&b, 8u << 20);
    for (size_t i = 0; i < depth; i++) {
        buf_append(&b, mixed && i % 2 == 1 ? SLICE("{\"\":") : SLICE("["));
    }
    if (closed) {
        buf_append(&b, SLICE("0"));
        for (size_t i = depth; i-- > 0;) {
            buf_append(&b, mixed && i % 2 == 1 ? SLICE("}") : SLICE("]"));
        }
    }
    assert_false(b.failed);
    return b;
}

/* Nesting is taken to the cap and no deeper, the flattened level counted like any other. */
static void test_depth_is_capped(void **state)
{
    (void)state;
    for (size_t depth = JSON_DEPTH_MAX - 2; depth <= JSON_DEPTH_MAX + 2; depth++) {
        for (int mixed = 0; mixed < 2; mixed++) {
            struct buf b = nested(depth, mixed == 1, true);
            int want = depth <= JSON_DEPTH_MAX ? 0 : ERR_INVALID;
            struct errmsg msg = {.text = ""};
            struct slice value;
            long used = json_scan_value(buf_slice(&b), &value, NULL);

            assert_int_equal(judge(buf_slice(&b), &msg), want);
            assert_int_equal(used, want == 0 ? (long)b.len : ERR_INVALID);
            assert_int_equal(strstr(msg.text, "nested too deeply") != NULL, want != 0);
            buf_finish(&b);
        }
    }
}

/* A hundred thousand openings cost neither stack nor time. */
static void test_hostile_depth(void **state)
{
    (void)state;
    for (int mixed = 0; mixed < 2; mixed++) {
        struct buf b = nested(100000, mixed == 1, false);

        assert_int_equal(judge(buf_slice(&b), NULL), ERR_INVALID);
        buf_finish(&b);
    }
}

/* A closing bracket must be the one of what it closes, at every level of the stack of bits. */
static void test_brackets_match_at_every_level(void **state)
{
    (void)state;
    for (size_t depth = 1; depth < 200; depth++) {
        struct buf b = nested(depth, true, true);
        size_t close = b.len - depth;

        assert_int_equal(judge(buf_slice(&b), NULL), 0);
        for (size_t i = 0; i < depth; i++) {
            char right = b.ptr[close + i];

            b.ptr[close + i] = right == ']' ? '}' : ']';
            assert_int_equal(judge(buf_slice(&b), NULL), ERR_INVALID);
            b.ptr[close + i] = right;
        }
        buf_finish(&b);
    }
}

/* Each byte that ends the fast walk over a string is found at every distance from its start. */
static void test_strings_at_every_length(void **state)
{
    (void)state;
    for (size_t len = 0; len < 40; len++) {
        char text[64];

        memset(text, 'a', sizeof(text));
        text[0] = '"';
        text[len + 1] = '"';
        assert_int_equal(judge((struct slice){text, len + 2}, NULL), 0);
        for (size_t at = 1; at <= len; at++) {
            for (unsigned byte = 0; byte < 256; byte++) {
                bool fine = byte >= 0x20 && byte < 0x80 && byte != '"' && byte != '\\';

                text[at] = (char)byte;
                assert_int_equal(judge((struct slice){text, len + 2}, NULL),
                                 fine ? 0 : ERR_INVALID);
            }
            text[at] = 'a';
        }
    }
}

/* Messages of one walk, put one after the other with a bar behind each. */
static int collect(void *context, struct slice message)
{
    struct buf *all = context;

    buf_append(all, message);
    buf_append_char(all, '|');
    return 0;
}

/* An array gives its elements, any other value itself, without the white space around them; an
 * array inside the array stays whole (PROTOCOL.md 9.1.2). */
static void test_messages_of_a_text(void **state)
{
    const struct {
        struct slice text;
        struct slice messages;
    } cases[] = {
        {SLICE("{\"a\": 1}"), SLICE("{\"a\": 1}|")},
        {SLICE("  17\n"), SLICE("17|")},
        {SLICE("\"[1,2]\""), SLICE("\"[1,2]\"|")},
        {SLICE("[]"), SLICE("")},
        {SLICE(" [ \n ] "), SLICE("")},
        {SLICE("[[]]"), SLICE("[]|")},
        {SLICE("[ 1 , \"a,b\" ,{ \"x\" : [ 1 ] }, [ [2] , 3 ],null ]"),
         SLICE("1|\"a,b\"|{ \"x\" : [ 1 ] }|[ [2] , 3 ]|null|")},
        {SLICE("[1e400,1.0,-0,12345678901234567890123]"),
         SLICE("1e400|1.0|-0|12345678901234567890123|")},
        {SLICE("[{\"k\":1,\"k\":2},\"\\ud800\\u0041\"]"),
         SLICE("{\"k\":1,\"k\":2}|\"\\ud800\\u0041\"|")},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
        struct buf all;

        buf_init(&all, 1000);
        assert_int_equal(json_each_message(cases[i].text, collect, &all, NULL), 0);
        assert_true(slice_equal(buf_slice(&all), cases[i].messages));
        buf_finish(&all);
    }
}

static int stop_at_third(void *context, struct slice message)
{
    int *count = context;

    (void)message;
    return ++*count == 3 ? -77 : 0;
}

/* What the callback returns ends the walk and is the result, even before a later mistake. */
static void test_callback_ends_the_walk(void **state)
{
    struct errmsg msg = {.text = "untouched"};
    int count = 0;

    (void)state;
    assert_int_equal(json_each_message(SLICE("[1,2,3,4,oops"), stop_at_third, &count, &msg), -77);
    assert_int_equal(count, 3);
    assert_string_equal(msg.text, "untouched");
    count = 2;
    assert_int_equal(json_each_message(SLICE("3"), stop_at_third, &count, &msg), -77);
}

/* One value is taken from the front; the number of bytes leads to what follows. */
static void test_scan_value_stops_behind_the_value(void **state)
{
    struct slice rest = SLICE(" {\"a\":[1]}\n\t[2] 3\"x\"true");
    const struct slice want[] = {SLICE("{\"a\":[1]}"), SLICE("[2]"), SLICE("3"), SLICE("\"x\""),
                                 SLICE("true")};
    struct slice value;

    (void)state;
    for (size_t i = 0; i < ARRAY_COUNT(want); i++) {
        long used = json_scan_value(rest, &value, NULL);

        assert_true(used > 0);
        assert_true(slice_equal(value, want[i]));
        rest = (struct slice){rest.ptr + used, rest.len - (size_t)used};
    }
    assert_int_equal(json_scan_value(rest, &value, NULL), ERR_INVALID);
    assert_true(slice_equal(value, SLICE("true")));
    assert_int_equal(json_scan_value((struct slice){NULL, 0}, &value, NULL), ERR_INVALID);
}

/* Strings are written with the escapes that must be and no others. */
static void test_append_string_escapes(void **state)
{
    const struct {
        struct slice from;
        struct slice to;
    } cases[] = {
        {{NULL, 0}, SLICE("\"\"")},
        {SLICE("plain text, longer than eight"), SLICE("\"plain text, longer than eight\"")},
        {SLICE("\"\\/"), SLICE("\"\\\"\\\\/\"")},
        {SLICE("\b\f\n\r\t"), SLICE("\"\\b\\f\\n\\r\\t\"")},
        {SLICE("\0\x01\x1f\x7f"), SLICE("\"\\u0000\\u0001\\u001f\x7f\"")},
        {SLICE("\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80!"),
         SLICE("\"\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80!\"")},
        {SLICE("a\xff\xc3\xa4\xc3"), SLICE("\"a\xef\xbf\xbd\xc3\xa4\xef\xbf\xbd\"")},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
        struct buf b;

        buf_init(&b, 1000);
        json_append_string(&b, cases[i].from);
        assert_true(slice_equal(buf_slice(&b), cases[i].to));
        buf_finish(&b);
    }
}

/* Whatever the bytes, what is written is one valid JSON string; a full buffer only fails. */
static void test_append_string_is_always_valid(void **state)
{
    uint32_t seed = 20261130;

    (void)state;
    for (int round = 0; round < 3000; round++) {
        char bytes[30];
        size_t len = (size_t)round % sizeof(bytes);
        struct slice value;
        struct buf b;

        for (size_t i = 0; i < len; i++) {
            seed = seed * 1664525 + 1013904223;
            bytes[i] = (char)(seed >> 24);
        }
        buf_init(&b, 1000);
        json_append_string(&b, (struct slice){bytes, len});
        assert_int_equal(json_scan_value(buf_slice(&b), &value, NULL), b.len);
        buf_finish(&b);
        buf_init(&b, len);
        json_append_string(&b, (struct slice){bytes, len});
        assert_true(b.failed);
        buf_finish(&b);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_accepts_what_is_json),
        cmocka_unit_test(test_refuses_what_is_not),
        cmocka_unit_test(test_refuses_every_cut),
        cmocka_unit_test(test_reasons),
        cmocka_unit_test(test_depth_is_capped),
        cmocka_unit_test(test_hostile_depth),
        cmocka_unit_test(test_brackets_match_at_every_level),
        cmocka_unit_test(test_strings_at_every_length),
        cmocka_unit_test(test_messages_of_a_text),
        cmocka_unit_test(test_callback_ends_the_walk),
        cmocka_unit_test(test_scan_value_stops_behind_the_value),
        cmocka_unit_test(test_append_string_escapes),
        cmocka_unit_test(test_append_string_is_always_valid),
    };

    return UNIT_RUN(tests);
}
