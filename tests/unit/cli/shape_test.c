/* Shapes: what is told of values, and above all what is not. */
#include "unit/base/fault.h"

#include "base/arena.c"
#include "cli/shape.c"

#include "unit/base/unit.h"

#include <stdio.h>

struct rig {
    struct shape *shape;
    struct buf out;
};

static int rig_begin(void **state)
{
    static struct rig rig;

    rig.shape = shape_create();
    assert_non_null(rig.shape);
    buf_init(&rig.out, 64 * MIB);
    *state = &rig;
    return 0;
}

static int rig_end(void **state)
{
    struct rig *rig = *state;

    shape_destroy(rig->shape);
    buf_finish(&rig->out);
    return 0;
}

static void begin_anew(void **state)
{
    (void)rig_end(state);
    (void)rig_begin(state);
}

static void add(struct rig *rig, const char *json)
{
    struct slice value;

    assert_int_equal(json_text_read(slice_of(json), &value, NULL), 0);
    shape_add(rig->shape, value);
}

static const char *print(struct rig *rig)
{
    buf_clear(&rig->out);
    shape_print(rig->shape, 0, &rig->out);
    buf_append_char(&rig->out, '\0');
    assert_false(rig->out.failed);
    return rig->out.ptr;
}

static const char *json(struct rig *rig)
{
    struct slice value;

    buf_clear(&rig->out);
    shape_json(rig->shape, &rig->out);
    assert_int_equal(json_text_read(buf_slice(&rig->out), &value, NULL), 0);
    buf_append_char(&rig->out, '\0');
    assert_false(rig->out.failed);
    return rig->out.ptr;
}

/* Each type by its name; what was never seen is nothing. */
static void names_types(void **state)
{
    const char *const cases[][2] = {
        {"\"secret\"", "string"},
        {"17", "number"},
        {"-1e9", "number"},
        {"true", "boolean"},
        {"false", "boolean"},
        {"null", "null"},
        {"[]", "[]"},
        {"{}", "{}"},
        {"[1,2]", "[number]"},
        {"[[]]", "[[]]"},
        {"{\"a\":1}", "{\n  a: number\n}"},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
        struct rig *rig = *state;

        begin_anew(state);
        add(rig, cases[i][0]);
        assert_string_equal(print(rig), cases[i][1]);
    }
    begin_anew(state);
    assert_string_equal(print(*state), "nothing");
}

/* Values of several types at one place are a union, in a fixed order. */
static void shows_unions(void **state)
{
    struct rig *rig = *state;

    add(rig, "[null,\"a\",{},[1],2,[\"b\"],true]");
    assert_string_equal(print(rig), "[string | number | boolean | [string | number] | {} | null]");
}

/* Elements are merged, and what not every one has is marked. */
static void merges_elements(void **state)
{
    struct rig *rig = *state;

    add(rig, "{\"runs\":[{\"id\":\"x\",\"at\":null},{\"id\":\"y\",\"at\":\"t\",\"lineage\":{\"m\":"
             "1}}]}");
    assert_string_equal(print(rig),
                        "{\n  runs: [{\n    id: string\n    at: string | null\n    lineage?: {\n"
                        "      m: number\n    }\n  }]\n}");
}

/* What is added later merges too; an element's shape does not depend on the order. */
static void merges_values(void **state)
{
    struct rig *rig = *state;
    struct slice array;

    assert_int_equal(json_text_read(SLICE("[{\"b\":1},{\"a\":\"x\",\"b\":2}]"), &array, NULL), 0);
    shape_add_each(rig->shape, array);
    add(rig, "{\"b\":null}");
    assert_string_equal(print(rig), "{\n  b: number | null\n  a?: string\n}");
}

/* A name that stands twice in an object makes no other one look complete. */
static void counts_objects_not_names(void **state)
{
    struct rig *rig = *state;

    add(rig, "{\"a\":1,\"a\":2}");
    add(rig, "{}");
    assert_string_equal(print(rig), "{\n  a?: number\n}");
}

/* Keys that are no plain names are those of a map, and none of them is shown. */
static void hides_keys(void **state)
{
    const char *const keys[] = {
        "8f14e45f-ceea",
        "has space",
        "/home/me",
        "me@example.org",
        "1a",
        "a123",
        "PATH",
        "Secret",
        "",
        "\\u0061",
        "averyveryveryverylongnameindeedthatnobod", /* 40 bytes, good; see below */
        "averyveryveryverylongnameindeedthatnobody",
        "\xc3\xa4",
        "a.b",
        "a-b",
        "a\\nb",
        "$",
    };

    for (size_t i = 0; i < ARRAY_COUNT(keys); i++) {
        struct rig *rig = *state;
        char text[200];
        bool good = strlen(keys[i]) == 40;

        begin_anew(state);
        (void)snprintf(text, sizeof(text), "{\"id\":\"x\",\"%s\":{\"n\":1},\"more\":null}",
                       keys[i]);
        add(rig, text);
        if (strncmp(print(rig), good ? "{\n" : "{string: string | {", good ? 2 : 18) != 0) {
            fail_msg("\"%s\" is shown as %s", keys[i], print(rig));
        }
    }
}

/* Once a place is a map it stays one, and all names that were taken before are gone, as are those
 * below them. */
static void forgets_names(void **state)
{
    struct rig *rig = *state;

    add(rig, "{\"main\":1,\"thread\":{\"id\":[{\"lost\":1}]},\"runs\":[{\"lost\":1}],\"x\":[[1]]}");
    add(rig, "{\"feature/x\":{\"lost\":\"a\"}}");
    add(rig, "{\"thread\":{\"lost\":[]},\"runs\":[null]}");
    assert_string_equal(print(rig), "{string: number | [[number] | {...} | null] | {...}}");
    assert_null(strstr(json(rig), "main"));
    assert_null(strstr(json(rig), "lost"));
    assert_null(strstr(json(rig), "feature"));
}

/* One sibling that is odd, however it is odd, does not open what its neighbours hold. */
static void maps_open_nothing(void **state)
{
    const char *const odd[] = {"\"x-trace\":1", "\"in\\u0070ut\":{\"secret\":1}", "\"1\":null"};

    for (size_t i = 0; i < ARRAY_COUNT(odd); i++) {
        struct rig *rig = *state;
        char text[300];

        begin_anew(state);
        (void)snprintf(text, sizeof(text),
                       "{\"turnItems\":[{\"type\":\"x\",\"input\":{\"secret\":1},"
                       "\"session\":{\"secret\":{\"secret\":1}},%s}]}",
                       odd[i]);
        add(rig, text);
        assert_null(strstr(print(rig), "secret"));
        assert_null(strstr(json(rig), "secret"));
        assert_non_null(strstr(print(rig), "turnItems: [{string: string | "));
    }
}

/* Names below members that the contract does not know are not shown, whatever those are called,
 * nor are those of a known member in a place where the contract does not have it. */
static void opens_known_objects_only(void **state)
{
    const char *const names[] = {
        "input",   "output",  "env",      "labels",  "usersByName", "toolInput",
        "content", "payload", "request",  "details", "settings",    "context",
        "answers", "x",       "snapshot", "threads", "runs",        "event",
    };

    for (size_t i = 0; i < ARRAY_COUNT(names); i++) {
        struct rig *rig = *state;
        char text[400];

        begin_anew(state);
        (void)snprintf(text, sizeof(text),
                       "{\"turnItems\":[{\"%s\":{\"secret\":1}},{\"%s\":[{\"secret\":{}},[7]]}],"
                       "\"thread\":{\"lineage\":{\"%s\":{\"thread\":1}}}}",
                       names[i], names[i], names[i]);
        add(rig, text);
        (void)snprintf(text, sizeof(text),
                       "{\n  turnItems: [{\n    %s: [[number] | {...}] | {...}\n  }]\n  thread: {\n"
                       "    lineage: {\n      %s: {...}\n    }\n  }\n}",
                       names[i], names[i]);
        assert_string_equal(print(rig), text);
        assert_null(strstr(json(rig), "secret"));
    }
}

/* What is known, but of another kind than the contract has there, is not looked into: an object for
 * an array, an array for an object, an array in an array. */
static void opens_known_kinds_only(void **state)
{
    const char *const cases[][2] = {
        {"{\"turnItems\":{\"secret\":{\"secret\":1}}}", "{\n  turnItems: {...}\n}"},
        {"{\"runs\":{\"secret\":1,\"x\":2}}", "{\n  runs: {...}\n}"},
        {"{\"runs\":[[{\"secret\":1}],{\"id\":2}]}",
         "{\n  runs: [[{...}] | {\n    id: number\n  }]\n}"},
        {"{\"thread\":[{\"secret\":1}]}", "{\n  thread: [{...}]\n}"},
        {"{\"thread\":{\"checkpoints\":{\"secret\":{}}}}",
         "{\n  thread: {\n    checkpoints: {...}\n  }\n}"},
        {"{\"providerTurns\":[{\"tokenUsage\":[{\"secret\":1}]}]}",
         "{\n  providerTurns: [{\n    tokenUsage: [{...}]\n  }]\n}"},
        {"{\"snapshot\":[{\"secret\":1}]}", "{\n  snapshot: [{...}]\n}"},
        {"{\"event\":{\"payload\":[{\"secret\":1}]}}",
         "{\n  event: {\n    payload: [{...}]\n  }\n}"},
        {"{\"runs\":{\"a-b\":{\"secret\":1}}}", "{\n  runs: {...}\n}"},
        {"[{\"secret\":1}]", "[{...}]"},
    };

    for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
        struct rig *rig = *state;

        begin_anew(state);
        add(rig, cases[i][0]);
        assert_string_equal(print(rig), cases[i][1]);
        assert_null(strstr(json(rig), "secret"));
    }
}

/* A place where both kinds came shows what the known one has, whichever is first. */
static void merges_kinds(void **state)
{
    const char *const values[] = {"{\"runs\":[{\"id\":1}]}", "{\"runs\":{\"secret\":1}}"};

    for (size_t first = 0; first < ARRAY_COUNT(values); first++) {
        struct rig *rig = *state;

        begin_anew(state);
        add(rig, values[first]);
        add(rig, values[1 - first]);
        assert_string_equal(print(rig), "{\n  runs: [{\n    id: number\n  }] | {...}\n}");
        assert_null(strstr(json(rig), "secret"));
    }
}

/* An event's payload is a thread, a run and so on, whose known members are opened too. */
static void opens_events(void **state)
{
    struct rig *rig = *state;

    add(rig,
        "{\"event\":{\"id\":\"e\",\"payload\":{\"modelSelection\":{\"model\":\"m\",\"options\":"
        "{\"o\":1}},\"output\":[]}}}");
    assert_string_equal(print(rig),
                        "{\n  event: {\n    id: string\n    payload: {\n      modelSelection: {\n"
                        "        model: string\n        options: {...}\n      }\n      output: []\n"
                        "    }\n  }\n}");
}

/* Programs get the same. */
static void writes_json(void **state)
{
    struct rig *rig = *state;

    add(rig, "{\"runs\":[{\"a\":null,\"lineage\":{\"X\":1}},{\"a\":true}]}");
    assert_string_equal(
        json(rig),
        "{\"types\":[\"object\"],\"members\":[{\"name\":\"runs\",\"optional\":false,\"shape\":"
        "{\"types\":[\"array\"],\"elements\":{\"types\":[\"object\"],\"members\":["
        "{\"name\":\"a\",\"optional\":false,\"shape\":{\"types\":[\"boolean\",\"null\"]}},"
        "{\"name\":\"lineage\",\"optional\":true,\"shape\":{\"types\":[\"object\"],\"values\":"
        "{\"types\":[\"number\"]}}}]}}}]}");
}

/* Nothing that a value says is ever told: random values, whose strings and numbers all bear a
 * mark. */
static void tells_no_values(void **state)
{
    struct rig *rig = *state;
    char text[8192];
    unsigned seed = 7;

    for (int round = 0; round < 200; round++) {
        size_t len = 0;
        int depth = 0;

        len = (size_t)snprintf(text, sizeof(text), "{\"runs\":[");
        for (int i = 0; i < 100; i++) {
            seed = seed * 1103515245 + 12345;
            switch ((seed >> 16) % 4) {
            case 0:
                len += (size_t)snprintf(text + len, 64, "%s{\"id\":\"MARK\",\"k\":[\"MARK\"",
                                        i > 0 ? "," : "");
                depth++;
                break;
            case 1:
                len += (size_t)snprintf(text + len, 64, "%s%s", i > 0 ? "," : "", "4711");
                break;
            case 2:
                len += (size_t)snprintf(text + len, 64, "%s{\"MARK\":4711}", i > 0 ? "," : "");
                break;
            default:
                if (depth > 0) {
                    len += (size_t)snprintf(text + len, 64, "]}");
                    depth--;
                } else {
                    len += (size_t)snprintf(text + len, 64, "%s\"MARK\"", i > 0 ? "," : "");
                }
            }
        }
        while (depth-- > 0) {
            len += (size_t)snprintf(text + len, 64, "]}");
        }
        (void)snprintf(text + len, 64, "]}");
        add(rig, text);
        assert_null(strstr(print(rig), "MARK"));
        assert_null(strstr(rig->out.ptr, "4711"));
        assert_null(strstr(json(rig), "MARK"));
    }
}

/* Nesting beyond the cap is cut, whatever stands there. */
static void caps_depth(void **state)
{
    const char *const nests[][3] = {
        {"{\"snapshot\":", "}", "{...}"},
        {"[", "]", "[...]"},
    };

    for (size_t n = 0; n < ARRAY_COUNT(nests); n++) {
        struct rig *rig = *state;
        char text[2048] = "";
        char *at = text;
        size_t depth = 0;

        begin_anew(state);
        for (int i = 0; i < 100; i++) {
            at = stpcpy(at, nests[n][0]);
        }
        at = stpcpy(at, "null");
        for (int i = 0; i < 100; i++) {
            at = stpcpy(at, nests[n][1]);
        }
        add(rig, text);
        for (const char *c = print(rig); *c != '\0'; c++) {
            depth += *c == '[' || *c == '{';
        }
        assert_int_equal(depth, SHAPE_DEPTH_MAX + 1);
        assert_non_null(strstr(rig->out.ptr, nests[n][2]));
    }
}

/* An object of very many plain names is a map, and so is a place where very many came together. */
static void caps_names(void **state)
{
    struct rig *rig = *state;
    char text[SHAPE_NAMES_MAX * 32];
    size_t len;

    for (unsigned count = SHAPE_NAMES_EACH; count <= SHAPE_NAMES_EACH + 1; count++) {
        begin_anew(state);
        len = 0;
        for (unsigned i = 0; i < count; i++) {
            len += (size_t)snprintf(text + len, 32, "%s\"n%c%c\":1", i == 0 ? "{" : ",",
                                    (char)('a' + i / 26), (char)('a' + i % 26));
        }
        (void)snprintf(text + len, 2, "}");
        add(rig, text);
        assert_int_equal(strncmp(print(rig), "{string: ", 9) == 0, count > SHAPE_NAMES_EACH);
    }
    begin_anew(state);
    for (unsigned i = 0; i <= SHAPE_NAMES_MAX; i++) {
        (void)snprintf(text, sizeof(text), "{\"n%c%c\":1}", (char)('a' + i / 26),
                       (char)('a' + i % 26));
        assert_int_equal(strncmp(print(rig), "{string: ", 9) == 0, false);
        add(rig, text);
    }
    assert_string_equal(print(rig), "{string: number}");
}

/* Places are bounded whatever comes; more of them are cut, and what is kept stays whole. */
static void caps_places(void **state)
{
    const char *const names[] = {
        "archivedThreads",
        "attempts",
        "checkpointScopes",
        "checkpoints",
        "contextHandoffs",
        "contextTransfers",
        "messages",
        "nodes",
        "plans",
        "projects",
        "providerSessions",
        "providerThreads",
        "providerTurns",
        "runs",
        "runtimeRequests",
        "subagents",
    };
    struct rig *rig = *state;
    struct buf text;
    struct slice value;

    buf_init(&text, 64 * MIB);
    for (size_t i = 0; i < ARRAY_COUNT(names); i++) {
        buf_append_format(&text, "%s\"%s\":[{", i == 0 ? "{" : ",", names[i]);
        for (int j = 0; j < 90; j++) {
            buf_append_format(&text, "%s\"n%c%c\":[[[[[[[[[[[[[[[1]]]]]]]]]]]]]]]",
                              j == 0 ? "" : ",", 'a' + j / 26, 'a' + j % 26);
        }
        buf_append(&text, SLICE("}]"));
    }
    buf_append_char(&text, '}');
    assert_int_equal(json_text_read(buf_slice(&text), &value, NULL), 0);
    shape_add(rig->shape, value);
    shape_add(rig->shape, value);
    assert_int_equal(rig->shape->places, SHAPE_PLACES_MAX);
    assert_non_null(strstr(print(rig), "..."));
    assert_non_null(strstr(json(rig), "\"cut\":true"));
    buf_finish(&text);
}

#define RIG_TEST(name) cmocka_unit_test_setup_teardown(name, rig_begin, rig_end)

/* Where memory ran out nothing is printed as if it were all; nothing is left behind. */
static void fails_without_memory(void **state)
{
    struct shape *s = NULL;
    struct buf text;
    bool whole = false;

    (void)state;
    for (long i = 0; !whole; i++) {
        struct slice value;

        assert_int_equal(json_text_read(SLICE("{\"id\":[\"x\"]}"), &value, NULL), 0);
        buf_init(&text, KIB);
        fault_countdown = i;
        s = shape_create();
        if (s != NULL) {
            shape_add(s, value);
            shape_print(s, 0, &text);
        }
        fault_countdown = -1;
        whole = s != NULL && !text.failed;
        assert_true(whole ? i >= 2 : i < 4);
        assert_true(!whole || slice_equal(buf_slice(&text), SLICE("{\n  id: [string]\n}")));
        shape_destroy(s);
        buf_finish(&text);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        RIG_TEST(names_types),
        RIG_TEST(shows_unions),
        RIG_TEST(merges_elements),
        RIG_TEST(merges_values),
        RIG_TEST(counts_objects_not_names),
        RIG_TEST(hides_keys),
        RIG_TEST(forgets_names),
        RIG_TEST(maps_open_nothing),
        RIG_TEST(opens_known_objects_only),
        RIG_TEST(opens_known_kinds_only),
        RIG_TEST(merges_kinds),
        RIG_TEST(opens_events),
        RIG_TEST(writes_json),
        RIG_TEST(tells_no_values),
        RIG_TEST(caps_depth),
        RIG_TEST(caps_names),
        RIG_TEST(caps_places),
        cmocka_unit_test(fails_without_memory),
    };

    return UNIT_RUN(tests);
}
