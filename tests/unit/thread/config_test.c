/* Configuration: merging, null, arrays, unknown keys, perAgent; what a patch may hold; its caps. */
#include "thread/config.c"

#include "unit/base/unit.h"
#include "unit/thread/json_gen.h"

static struct api_error last;
static char result[8 * CONFIG_BYTES_MAX];

static const char *resolve(const char *house, const char *thread, const char *agent)
{
    struct buf out;
    struct slice value;
    buf_init_fixed(&out, result, sizeof(result));
    memset(&last, 0, sizeof(last));
    if (config_resolve(slice_of(house), slice_of(thread), slice_of(agent), &out, &last) < 0) {
        fail_msg("%s and %s: %s", house, thread, last.message);
    }
    result[out.len] = '\0';
    assert_int_equal(json_text_read(buf_slice(&out), &value, NULL), 0);
    return result;
}

/* The text of one place of the resolved configuration; "absent" where there is nothing. */
static const char *resolve_at(const char *house, const char *thread, const char *agent,
                              const char *path)
{
    static char text[1000];
    struct slice value = slice_of(resolve(house, thread, agent));
    struct slice rest = slice_of(path);
    struct slice key;
    while (slice_split(&rest, '.', &key)) {
        if (json_object_find(value, key, &value, NULL) != 1) {
            return "absent";
        }
    }
    assert_true(value.len < sizeof(text));
    memcpy(text, value.ptr, value.len);
    text[value.len] = '\0';
    return text;
}

#define MODE      "dispatch.triggerMode"
#define ALWAYS    "{\"dispatch\":{\"triggerMode\":\"always\"}}"
#define AMBIENT   "{\"dispatch\":{\"triggerMode\":\"ambient\"}}"
#define MODE_NULL "{\"dispatch\":{\"triggerMode\":null}}"

/* Without patches it is the defaults, which are a good configuration. */
static void test_defaults(void **state)
{
    (void)state;
    assert_string_equal(resolve("", "", ""), CONFIG_DEFAULT);
    assert_string_equal(resolve("{}", " {} ", "somebody"), CONFIG_DEFAULT);
    assert_int_equal(config_check_patch(SLICE(CONFIG_DEFAULT), &last), 0);
    assert_string_equal(resolve(CONFIG_DEFAULT, CONFIG_DEFAULT, ""), CONFIG_DEFAULT);
}

/* The thread's word counts before the house's, that before the default. */
static void test_layers(void **state)
{
    (void)state;
    assert_string_equal(resolve_at("", "", "", MODE), "\"mention\"");
    assert_string_equal(resolve_at(AMBIENT, "", "", MODE), "\"ambient\"");
    assert_string_equal(resolve_at("", ALWAYS, "", MODE), "\"always\"");
    assert_string_equal(resolve_at(AMBIENT, ALWAYS, "", MODE), "\"always\"");
    assert_string_equal(resolve_at(AMBIENT, ALWAYS, "", "dispatch.gateWindow"), "12");
    assert_string_equal(
        resolve_at("{\"dispatch\":{\"gateWindow\":1}}", ALWAYS, "", "dispatch.gateWindow"), "1");
    assert_string_equal(resolve_at("{\"llm\":{\"model\":\"a/b\"}}", ALWAYS, "", "llm.model"),
                        "\"a/b\"");
}

/* null brings back the code's default over any ancestor, at any depth; where the code has none,
 * nothing. A value in a nearer layer counts again. */
static void test_null(void **state)
{
    (void)state;
    assert_string_equal(resolve_at(ALWAYS, MODE_NULL, "", MODE), "\"mention\"");
    assert_string_equal(resolve_at(ALWAYS, "{\"dispatch\":null}", "", MODE), "\"mention\"");
    assert_string_equal(resolve_at(MODE_NULL, "", "", MODE), "\"mention\"");
    assert_string_equal(resolve_at(MODE_NULL, ALWAYS, "", MODE), "\"always\"");
    assert_string_equal(resolve_at("{\"dispatch\":null}", ALWAYS, "", MODE), "\"always\"");
    assert_string_equal(resolve_at("{\"dispatch\":null}", ALWAYS, "", "dispatch.depthCap"), "8");
    assert_string_equal(resolve_at("{\"x\":{\"y\":1}}", "{\"x\":{\"y\":null}}", "", "x"), "{}");
    assert_string_equal(resolve_at("{\"x\":{\"y\":1}}", "{\"x\":null}", "", "x"), "absent");
    assert_string_equal(
        resolve_at("{\"llm\":{\"model\":\"a\"}}", "{\"llm\":{\"model\":null}}", "", "llm.model"),
        "null");
    assert_string_equal(resolve_at("{\"flags\":{\"a\":1}}", "{\"flags\":null}", "", "flags"), "{}");
}

/* Arrays and other values replace, objects merge; an object over something else begins anew. */
static void test_kinds(void **state)
{
    (void)state;
    assert_string_equal(resolve_at("{\"x\":[1,2]}", "{\"x\":[ 3 ]}", "", "x"), "[ 3 ]");
    assert_string_equal(resolve_at("{\"x\":{\"a\":1,\"b\":{\"c\":2}}}",
                                   "{\"x\":{\"b\":{\"d\":3},\"e\":4}}", "", "x"),
                        "{\"a\":1,\"b\":{\"c\":2,\"d\":3},\"e\":4}");
    assert_string_equal(resolve_at("{\"x\":{\"a\":1}}", "{\"x\":7}", "", "x"), "7");
    assert_string_equal(resolve_at("{\"x\":7}", "{\"x\":{\"a\":1}}", "", "x"), "{\"a\":1}");
    assert_string_equal(resolve_at("{\"x\":[{\"a\":null}]}", "", "", "x"), "[{\"a\":null}]");
    assert_string_equal(resolve_at("{\"dispatch\":7}", AMBIENT, "", "dispatch.depthCap"), "8");
}

/* Keys that nobody knows survive, in order, with their bytes; names compare after decoding. */
static void test_unknown(void **state)
{
    (void)state;
    assert_string_equal(resolve_at("{\"x-y\":\"\\u0061\"}", "{\"z\":1.0}", "", "x-y"),
                        "\"\\u0061\"");
    assert_string_equal(resolve_at("{\"x-y\":1}", "{\"z\":1.0}", "", "z"), "1.0");
    assert_string_equal(resolve_at("{\"dispatch\":{\"new\":1}}", ALWAYS, "", "dispatch.new"), "1");
    assert_string_equal(resolve_at("{\"\\u0078\":1}", "{\"x\":2}", "", "x"), "2");
    assert_string_equal(
        resolve_at("{\"b\":1,\"a\":{\"d\":1}}", "{\"c\":1,\"a\":{\"b\":2}}", "", "a"),
        "{\"d\":1,\"b\":2}");
}

#define AGENT(patch) "{\"dispatch\":{\"perAgent\":{\"bot\":" patch "}}}"
#define BOTH(mode, patch) \
    "{\"dispatch\":{\"triggerMode\":\"" mode "\",\"perAgent\":{\"bot\":" patch "}}}"
#define AGENT_MODE(mode) AGENT("{\"triggerMode\":\"" mode "\"}")

/* What is said of one agent counts last, the house's word too, and for that agent alone. */
static void test_per_agent(void **state)
{
    (void)state;
    assert_string_equal(resolve_at(AGENT_MODE("always"), "", "bot", MODE), "\"always\"");
    assert_string_equal(resolve_at(AGENT_MODE("always"), "", "other", MODE), "\"mention\"");
    assert_string_equal(resolve_at(AGENT_MODE("always"), "", "", MODE), "\"mention\"");
    assert_string_equal(resolve_at(AGENT_MODE("always"), AMBIENT, "bot", MODE), "\"always\"");
    assert_string_equal(resolve_at(AGENT_MODE("always"), AGENT_MODE("ambient"), "bot", MODE),
                        "\"ambient\"");
    assert_string_equal(resolve_at(AGENT_MODE("always"), "", "bot", "dispatch.gateWindow"), "12");
    assert_string_equal(resolve_at(AGENT_MODE("always"), AGENT("{\"gateWindow\":3}"), "bot", MODE),
                        "\"always\"");
    assert_string_equal(resolve_at(AGENT_MODE("always"), "", "bot", "dispatch.perAgent.bot"),
                        "{\"triggerMode\":\"always\"}");
    /* null in it is the default over house and thread, too */
    assert_string_equal(resolve_at(ALWAYS, AGENT("{\"triggerMode\":null}"), "bot", MODE),
                        "\"mention\"");
    assert_string_equal(resolve_at(BOTH("ambient", "{\"triggerMode\":null}"), "", "bot", MODE),
                        "\"mention\"");
    assert_string_equal(resolve_at(AGENT_MODE("always"), AGENT("null"), "bot", MODE),
                        "\"mention\"");
    assert_string_equal(
        resolve_at(AGENT_MODE("always"), "{\"dispatch\":{\"perAgent\":null}}", "bot", MODE),
        "\"mention\"");
    assert_string_equal(resolve_at(BOTH("ambient", "{\"triggerMode\":\"always\"}"),
                                   "{\"dispatch\":null}", "bot", MODE),
                        "\"mention\"");
    assert_string_equal(resolve_at(AGENT("7"), "", "bot", MODE), "\"mention\"");
}

static const char *agent_patch(const char *house, const char *thread)
{
    struct buf out;
    buf_init_fixed(&out, result, sizeof(result));
    assert_int_equal(
        config_agent_patch(slice_of(house), slice_of(thread), SLICE("bot"), &out, &last), 0);
    result[out.len] = '\0';
    return result;
}

/* What is said of one agent is shown as one patch, with its nulls. */
static void test_agent_patch(void **state)
{
    (void)state;
    assert_string_equal(agent_patch("", ""), "{}");
    assert_string_equal(agent_patch(ALWAYS, "{\"dispatch\":{\"perAgent\":{\"other\":{}}}}"), "{}");
    assert_string_equal(agent_patch("", AGENT("{\"triggerMode\": null}")),
                        "{\"triggerMode\":null}");
    assert_string_equal(agent_patch(AGENT("{\"gateWindow\":1,\"depthCap\":2}"),
                                    AGENT("{\"gateWindow\":null,\"x\":3}")),
                        "{\"gateWindow\":null,\"depthCap\":2,\"x\":3}");
    assert_string_equal(agent_patch(AGENT("{\"gateWindow\":1}"), AGENT("null")), "{}");
    assert_string_equal(agent_patch(AGENT("{\"gateWindow\":1}"), "{\"dispatch\":null}"), "{}");
    assert_string_equal(agent_patch(AGENT("7"), ""), "{}");
}

/* A direct message's agent answers always there, and only there. */
static void test_seed(void **state)
{
    char seed[200];
    struct buf out;
    (void)state;
    buf_init_fixed(&out, seed, sizeof(seed));
    config_seed_dm(SLICE("b\"t"), &out);
    seed[out.len] = '\0';
    assert_string_equal(seed,
                        "{\"dispatch\":{\"perAgent\":{\"b\\\"t\":{\"triggerMode\":\"always\"}}}}");
    assert_int_equal(config_check_patch(buf_slice(&out), &last), 0);
    assert_string_equal(resolve_at("", seed, "b\"t", MODE), "\"always\"");
    assert_string_equal(resolve_at("", seed, "bot", MODE), "\"mention\"");
}

static const char *merge(const char *old, const char *new)
{
    struct buf out;
    buf_init_fixed(&out, result, sizeof(result));
    memset(&last, 0, sizeof(last));
    if (config_merge_patch(slice_of(old), slice_of(new), &out, &last) < 0) {
        assert_int_equal(out.len, 0);
        return NULL;
    }
    result[out.len] = '\0';
    return result;
}

/* A patch is merged into what is stored; null is stored, not obeyed. */
static void test_merge(void **state)
{
    (void)state;
    assert_string_equal(merge("", "{}"), "{}");
    assert_string_equal(merge("", "{\"a\": 1 }"), "{\"a\":1}");
    assert_string_equal(merge("{\"a\":1,\"b\":{\"c\":[1]}}", "{\"b\":{\"d\":2},\"e\":null}"),
                        "{\"a\":1,\"b\":{\"c\":[1],\"d\":2},\"e\":null}");
    assert_string_equal(merge("{\"a\":{\"b\":1}}", "{\"a\":null}"), "{\"a\":null}");
    assert_string_equal(merge("{\"a\":null}", "{\"a\":{\"b\":1}}"), "{\"a\":{\"b\":1}}");
    assert_string_equal(merge("{\"a\":[1,2]}", "{\"a\":[3]}"), "{\"a\":[3]}");
    assert_string_equal(merge("{\"a\":1}", ""), "{\"a\":1}");
    assert_string_equal(merge("{\"a\" : { \"b\" : [ 1 ] } }", "{ \"c\" : { } }"),
                        "{\"a\":{\"b\":[ 1 ]},\"c\":{}}");
    assert_null(merge("{\"a\":1}", "[]"));
    assert_string_equal(last.message, "a configuration must be an object, not an array");
    assert_null(merge("{\"a\":1}", "{\"a\":1"));
    assert_int_equal(last.code, API_MALFORMED_JSON);
}

static void assert_refused(const char *patch, const char *field, const char *message)
{
    memset(&last, 0, sizeof(last));
    if (config_check_patch(slice_of(patch), &last) == 0) {
        fail_msg("%s was taken", patch);
    }
    assert_int_equal(last.code, API_INVALID_INPUT);
    assert_string_equal(last.field, field);
    assert_string_equal(last.message, message);
}

/* Known keys are held to their kinds, with the path of the first that is wrong. */
static void test_check(void **state)
{
    (void)state;
    assert_refused("7", "", "a configuration must be an object, not a number");
    assert_refused("{\"dispatch\":7}", "dispatch", "dispatch must be an object");
    assert_refused("{\"llm\":[]}", "llm", "llm must be an object");
    assert_refused("{\"flags\":\"\"}", "flags", "flags must be an object");
    assert_refused("{\"dispatch\":{\"triggerMode\":\"never\"}}", "dispatch.triggerMode",
                   "dispatch.triggerMode must be mention, ambient or always");
    assert_refused("{\"dispatch\":{\"triggerMode\":1}}", "dispatch.triggerMode",
                   "dispatch.triggerMode must be mention, ambient or always");
    assert_refused("{\"dispatch\":{\"ambientDelayMs\":600001}}", "dispatch.ambientDelayMs",
                   "dispatch.ambientDelayMs must be a whole number from 0 to 600000");
    assert_refused("{\"dispatch\":{\"gateWindow\":\"12\"}}", "dispatch.gateWindow",
                   "dispatch.gateWindow must be a whole number from 0 to 1000");
    assert_refused("{\"dispatch\":{\"depthCap\":-1}}", "dispatch.depthCap",
                   "dispatch.depthCap must be a whole number from 0 to 100");
    assert_refused("{\"dispatch\":{\"perAgent\":[]}}", "dispatch.perAgent",
                   "dispatch.perAgent must be an object");
    assert_refused("{\"dispatch\":{\"perAgent\":{\"\":{}}}}", "dispatch.perAgent",
                   "dispatch.perAgent must be an object whose keys are ids of agents");
    assert_refused(AGENT("7"), "dispatch.perAgent.bot", "dispatch.perAgent.bot must be an object");
    assert_refused(AGENT("{\"entryLimit\":1.5}"), "dispatch.perAgent.bot.entryLimit",
                   "dispatch.perAgent.bot.entryLimit must be a whole number from 0 to 10000");
    assert_refused("{\"llm\":{\"model\":\"\"}}", "llm.model",
                   "llm.model must be a string of 1 to 200 bytes");
    assert_refused("{\"a\":1,\"\\u0061\":2}", "", "\"\\u0061\" is given twice");
    assert_refused("{\"x\":{\"a\":1,\"a\":2}}", "", "\"a\" is given twice");
    assert_refused("{\"\\ud83d\":1}", "",
                   "a key has half of a surrogate pair, which is no character");
}

/* null is good everywhere, what nobody knows too. */
static void test_check_good(void **state)
{
    static const char *const good[] = {
        "",
        "{}",
        "{\"dispatch\":null,\"llm\":null,\"flags\":null}",
        MODE_NULL,
        AGENT("null"),
        AGENT("{\"triggerMode\":null,\"x\":7}"),
        "{\"dispatch\":{\"x\":[null]},\"flags\":{\"a\":{\"b\":[]}},\"triggerMode\":7}",
        "{\"llm\":{\"model\":\"openrouter/anthropic/claude-haiku-4.5\"}}",
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_COUNT(good); i++) {
        assert_int_equal(config_check_patch(slice_of(good[i]), &last), 0);
    }
}

/* Bytes, depth and keys are bounded, the result of a merge as well. */
static void test_bounds(void **state)
{
    static char text[CONFIG_BYTES_MAX + 2];
    static char other[CONFIG_BYTES_MAX + 2];
    struct buf b;
    (void)state;
    memset(text, ' ', sizeof(text));
    memcpy(text, "{}", 2);
    assert_int_equal(config_check_patch((struct slice){text, CONFIG_BYTES_MAX}, &last), 0);
    assert_int_equal(config_check_patch((struct slice){text, CONFIG_BYTES_MAX + 1}, &last), -1);
    assert_int_equal(last.code, API_TOO_LARGE);
    for (unsigned over = 0; over <= 1; over++) {
        buf_init_fixed(&b, text, sizeof(text));
        for (unsigned i = 0; i < CONFIG_DEPTH_MAX + over; i++) {
            buf_append(&b, i == 0 ? SLICE("{\"a\":") : SLICE("["));
        }
        buf_append_char(&b, '1');
        for (unsigned i = 0; i < CONFIG_DEPTH_MAX + over; i++) {
            buf_append_char(&b, i + 1 == CONFIG_DEPTH_MAX + over ? '}' : ']');
        }
        assert_int_equal(config_check_patch(buf_slice(&b), &last), over ? -1 : 0);

        buf_init_fixed(&b, text, sizeof(text));
        for (unsigned i = 0; i < CONFIG_KEYS_MAX + over; i++) {
            buf_append_format(&b, "%s\"k%u\":1", i == 0 ? "{" : ",", i);
        }
        buf_append_char(&b, '}');
        assert_int_equal(config_check_patch(buf_slice(&b), &last), over ? -1 : 0);
    }
    assert_int_equal(last.code, API_TOO_LARGE);
    text[b.len] = '\0';
    assert_null(merge(text, "{}"));
    assert_null(merge("{\"x\":1}", "{\"y\":[[[[[[[[[[[[[[[[[1]]]]]]]]]]]]]]]]]}"));
    buf_init_fixed(&b, text, sizeof(text));
    buf_append(&b, SLICE("{\"a\":\""));
    memset(text + b.len, 'a', CONFIG_BYTES_MAX - 100);
    b.len += CONFIG_BYTES_MAX - 100;
    buf_append(&b, SLICE("\"}"));
    text[b.len] = '\0';
    memcpy(other, text, sizeof(text));
    other[2] = 'b';
    assert_non_null(merge(text, text));
    assert_null(merge(text, other));
    assert_int_equal(last.code, API_TOO_LARGE);
}

#define ROUNDS 500

/* Random patches resolve to JSON in which the thread's plain values stand; to resolve what was
 * resolved as the only patch changes nothing; merging is as resolving, but for null. */
static void test_random(void **state)
{
    struct gen g;
    static char house[1u << 16];
    static char thread[1u << 16];
    (void)state;
    gen_init(&g);
    for (int i = 0; i < ROUNDS; i++) {
        struct slice thread_text;
        struct slice member;
        struct slice value;
        struct json_walk w;
        char *texts[] = {house, thread};
        for (size_t j = 0; j < 2; j++) {
            do {
                buf_clear(&g.out);
                gen_container(&g, true, 5);
                buf_append_char(&g.out, '\0');
            } while (g.out.len > sizeof(house) ||
                     config_check_patch(slice_of(g.out.ptr), NULL) < 0);
            memcpy(texts[j], g.out.ptr, g.out.len);
        }
        assert_int_equal(json_text_read(slice_of(thread), &thread_text, NULL), 0);
        resolve(house, thread, "");
        struct slice resolved = slice_of(result);
        json_walk_begin(&w, thread_text);
        while (json_walk_member(&w, &member, &value)) {
            struct slice got;
            struct slice key = {member.ptr + 1, member.len - 2};
            if (json_kind(value) != JSON_OBJECT && json_kind(value) != JSON_NULL) {
                assert_int_equal(json_object_find(resolved, key, &got, NULL), 1);
                assert_true(slice_equal(got, value));
            }
        }
        char *again = strdup(result);
        assert_non_null(again);
        assert_string_equal(resolve("", again, ""), again);
        free(again);
        assert_non_null(merge(house, thread));
        assert_int_equal(config_check_patch(slice_of(result), &last), 0);
    }
    buf_finish(&g.out);
}

/* A full buffer is told. */
static void test_full(void **state)
{
    struct buf out;
    (void)state;
    buf_init_fixed(&out, result, 10);
    assert_int_equal(config_resolve(SLICE(""), SLICE(""), SLICE(""), &out, &last), -1);
    assert_int_equal(last.code, API_INTERNAL);
    buf_init_fixed(&out, result, 3);
    assert_int_equal(config_merge_patch(SLICE(""), SLICE("{\"a\":1}"), &out, &last), -1);
    assert_int_equal(last.code, API_INTERNAL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_defaults),   cmocka_unit_test(test_layers),
        cmocka_unit_test(test_null),       cmocka_unit_test(test_kinds),
        cmocka_unit_test(test_unknown),    cmocka_unit_test(test_per_agent),
        cmocka_unit_test(test_seed),       cmocka_unit_test(test_agent_patch),
        cmocka_unit_test(test_merge),      cmocka_unit_test(test_check),
        cmocka_unit_test(test_check_good), cmocka_unit_test(test_bounds),
        cmocka_unit_test(test_random),     cmocka_unit_test(test_full),
    };
    return UNIT_RUN(tests);
}
