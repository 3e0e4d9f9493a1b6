/* What is read out of payloads, good ones and those that another program wrote. */
#include "thread/payload_read.c"

#include "unit/base/unit.h"

static void assert_text(enum payload_type type, const char *payload, const char *want)
{
    char memory[200];
    struct buf out;
    buf_init_fixed(&out, memory, sizeof(memory));
    payload_text(slice_of(payload), type, &out);
    memory[out.len] = '\0';
    assert_string_equal(memory, want);
}

/* A chat says its text, a model's answer its text blocks, anything else nothing. */
static void test_text(void **state)
{
    (void)state;
    assert_text(PAYLOAD_CHAT, "{\"text\":\"a\\u00e9\\n@bot\"}", "a\xc3\xa9\n@bot");
    assert_text(PAYLOAD_CHAT, "{\"text\":\"a\\ud83d\"}", "a\xef\xbf\xbd");
    assert_text(PAYLOAD_CHAT, "{\"text\":5}", "");
    assert_text(PAYLOAD_CHAT, "{\"text\":\"a\",\"text\":\"b\"}", "");
    assert_text(PAYLOAD_PI_ASSISTANT,
                "{\"content\":[{\"type\":\"thinking\",\"thinking\":\"no\"},{\"type\":\"text\","
                "\"text\":\"one\"},{\"type\":\"toolCall\",\"name\":\"no\"},7,{\"type\":\"text\"},"
                "{\"type\":\"text\",\"text\":\"two\"}]}",
                "one\ntwo");
    assert_text(PAYLOAD_PI_ASSISTANT, "{\"content\":\"one\"}", "");
    assert_text(PAYLOAD_PI_COMPACTION, "{\"text\":\"a\",\"summary\":\"b\"}", "");
    assert_text(PAYLOAD_UNKNOWN, "{\"text\":\"a\"}", "");
}

/* Text without escapes is borrowed, with them decoded, and there is none of another kind. */
static void test_string(void **state)
{
    struct slice payload = SLICE("{\"a\":\"plain\",\"b\":\"\\u0041\\/\",\"c\":1,\"d\":\"\"}");
    struct arena arena;
    struct slice text = SLICE("as before");
    (void)state;
    arena_init(&arena, 1000);
    assert_int_equal(payload_string(payload, SLICE("c"), &arena, &text), 0);
    assert_int_equal(payload_string(payload, SLICE("e"), &arena, &text), 0);
    assert_true(slice_equal(text, SLICE("as before")));
    assert_int_equal(payload_string(payload, SLICE("a"), &arena, &text), 1);
    assert_true(text.ptr > payload.ptr && text.ptr < payload.ptr + payload.len);
    assert_true(slice_equal(text, SLICE("plain")));
    assert_int_equal(payload_string(payload, SLICE("b"), &arena, &text), 1);
    assert_true(slice_equal(text, SLICE("A/")));
    assert_int_equal(payload_string(payload, SLICE("d"), &arena, &text), 1);
    assert_int_equal(text.len, 0);
    arena_finish(&arena);
    arena_init(&arena, 4);
    assert_int_equal(payload_string(payload, SLICE("b"), &arena, &text), ERR_NOMEM);
    arena_finish(&arena);
}

#define USAGE(counts) \
    "{\"provider\":\"open\\u0061i\",\"model\":\"a/b\",\"invocationId\":\"i\",\"usage\":" counts "}"

/* All that there is of a usage, and zeros for what is not told. */
static void test_usage(void **state)
{
    struct arena arena;
    struct payload_usage usage;
    (void)state;
    arena_init(&arena, 1000);
    assert_int_equal(payload_usage(SLICE(USAGE("{\"input\":1,\"output\":2,\"cacheRead\":3,"
                                               "\"cacheWrite\":4,\"cost\":{\"total\":0.25}}")),
                                   PAYLOAD_PI_ASSISTANT, &arena, &usage),
                     1);
    assert_int_equal(usage.input_tokens, 1);
    assert_int_equal(usage.output_tokens, 2);
    assert_int_equal(usage.cache_read_tokens, 3);
    assert_int_equal(usage.cache_write_tokens, 4);
    assert_true(usage.cost_usd == 0.25);
    assert_true(slice_equal(usage.provider, SLICE("openai")));
    assert_true(slice_equal(usage.model, SLICE("a/b")));
    assert_true(slice_equal(usage.invocation_id, SLICE("i")));
    assert_int_equal(payload_usage(SLICE("{\"usage\":{\"input\":1,\"output\":2,\"cost\":{\"total\":"
                                         "null},\"cacheRead\":\"x\"}}"),
                                   PAYLOAD_PI_COMPACTION, &arena, &usage),
                     1);
    assert_int_equal(usage.cache_read_tokens, 0);
    assert_true(usage.cost_usd == 0);
    assert_int_equal(usage.model.len, 0);
    arena_finish(&arena);
}

/* No usage, or one that cannot be counted, is none; a full arena is told. */
static void test_no_usage(void **state)
{
    static const char *const payloads[] = {"{}", USAGE("null"), USAGE("{\"input\":1}"),
                                           USAGE("{\"input\":1,\"output\":-1}"), USAGE("[1,2]")};
    struct arena arena;
    struct payload_usage usage = {.input_tokens = 99};
    struct slice good = SLICE(USAGE("{\"input\":1,\"output\":2}"));
    (void)state;
    arena_init(&arena, 4);
    for (size_t i = 0; i < ARRAY_COUNT(payloads); i++) {
        assert_int_equal(payload_usage(slice_of(payloads[i]), PAYLOAD_PI_ASSISTANT, &arena, &usage),
                         0);
    }
    assert_int_equal(payload_usage(good, PAYLOAD_CHAT, &arena, &usage), 0);
    assert_int_equal(payload_usage(good, PAYLOAD_PI_ASSISTANT, &arena, &usage), ERR_NOMEM);
    assert_int_equal(usage.input_tokens, 99);
    arena_finish(&arena);
}

/* Three signals tell a status; nothing else does, nor a status that is none. */
static void test_status(void **state)
{
    enum thread_status status = THREAD_STATUS_COUNT;
    (void)state;
    assert_true(payload_status(SLICE("{\"status\":\"runn\\u0069ng\"}"),
                               PAYLOAD_THREAD_STATUS_CHANGED, &status));
    assert_int_equal(status, THREAD_RUNNING);
    assert_true(payload_status(SLICE("{}"), PAYLOAD_THREAD_PI_FAILED, &status));
    assert_int_equal(status, THREAD_FAILED);
    status = THREAD_OPEN;
    assert_true(payload_status(SLICE("{}"), PAYLOAD_THREAD_PI_ORPHANED, &status));
    assert_int_equal(status, THREAD_FAILED);
    assert_false(
        payload_status(SLICE("{\"status\":\"archived\"}"), PAYLOAD_THREAD_STATUS_CHANGED, &status));
    assert_false(payload_status(SLICE("{\"status\":1}"), PAYLOAD_THREAD_STATUS_CHANGED, &status));
    assert_false(payload_status(SLICE("{\"status\":\"open\"}"), PAYLOAD_CHAT, &status));
    assert_false(payload_status(SLICE("{\"status\":\"open\"}"), PAYLOAD_UNKNOWN, &status));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_text),   cmocka_unit_test(test_string),
        cmocka_unit_test(test_usage),  cmocka_unit_test(test_no_usage),
        cmocka_unit_test(test_status),
    };
    return UNIT_RUN(tests);
}
