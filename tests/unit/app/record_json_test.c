/* Records as the API shows them: all members, null for what is absent, escapes where needed. */
#include "app/record_json.c"

#include "base/limits.h"
#include "unit/base/unit.h"

static struct buf out;

static void assert_text(const char *wanted)
{
    buf_append_char(&out, '\0');
    assert_false(out.failed);
    assert_string_equal(out.ptr, wanted);
    buf_clear(&out);
}

static int set_up(void **state)
{
    (void)state;
    buf_init(&out, 64 * KIB);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    buf_finish(&out);
    return 0;
}

static void agents(void **state)
{
    struct agent_record agent = {.id = SLICE("a"), .name = SLICE("N\"\n"), .handle = SLICE("n")};

    (void)state;
    json_put_agent(&out, &agent);
    assert_text("{\"id\":\"a\",\"kind\":\"human\",\"name\":\"N\\\"\\n\",\"handle\":\"n\","
                "\"description\":null,\"model\":null,\"systemPrompt\":null,\"createdBy\":null,"
                "\"createdAt\":null,\"deletedAt\":null}");
    agent = (struct agent_record){.id = SLICE("a"),
                                  .kind = AGENT_BOT,
                                  .name = SLICE("N"),
                                  .handle = SLICE(""),
                                  .description = SLICE("d"),
                                  .model = SLICE("m"),
                                  .system_prompt = SLICE(""),
                                  .created_by = SLICE("b"),
                                  .created_ms = 1,
                                  .deleted_ms = 2};
    json_put_agent(&out, &agent);
    assert_text(
        "{\"id\":\"a\",\"kind\":\"bot\",\"name\":\"N\",\"handle\":\"\",\"description\":\"d\","
        "\"model\":\"m\",\"systemPrompt\":\"\",\"createdBy\":\"b\",\"createdAt\":1,"
        "\"deletedAt\":2}");
}

/* No hash of a key is ever shown. */
static void keys_houses_members(void **state)
{
    const struct key_record key = {
        .id = SLICE("k"), .agent_id = SLICE("a"), .hash = SLICE("secret"), .created_ms = 5};
    const struct house_record house = {
        .id = SLICE("h"), .name = SLICE("H"), .primary_thread_id = SLICE("p"), .role = ROLE_OWNER};
    const struct member_record member = {
        .agent_id = SLICE("a"), .role = ROLE_MEMBER, .name = SLICE("N"), .handle = SLICE("n")};

    (void)state;
    json_put_key(&out, &key);
    assert_text("{\"id\":\"k\",\"agentId\":\"a\",\"name\":null,\"createdAt\":5,\"lastUsedAt\":null,"
                "\"revokedAt\":null}");
    json_put_house(&out, &house);
    assert_text("{\"id\":\"h\",\"name\":\"H\",\"primaryThreadId\":\"p\",\"role\":\"owner\","
                "\"createdAt\":null}");
    json_put_member(&out, &member);
    assert_text("{\"agentId\":\"a\",\"role\":\"member\",\"kind\":\"human\",\"name\":\"N\","
                "\"handle\":\"n\",\"addedAt\":null}");
}

/* The newer of both times is told. */
static void threads(void **state)
{
    struct slice tags[] = {SLICE("a\\"), SLICE("b")};
    struct thread_record thread = {.id = SLICE("t"),
                                   .house_id = SLICE("h"),
                                   .parent_kind = PARENT_AGENT,
                                   .parent_id = SLICE("x"),
                                   .status = THREAD_RUNNING,
                                   .last_entry_ts = 10};

    (void)state;
    json_put_thread(&out, &thread, 0);
    assert_text("{\"id\":\"t\",\"houseId\":\"h\",\"parent\":{\"kind\":\"agent\",\"id\":\"x\"},"
                "\"name\":null,\"pinnedAt\":null,\"tags\":[],\"status\":\"running\","
                "\"environmentId\":null,\"lastEntryTs\":10,\"createdBy\":null,\"createdAt\":null}");
    thread.tags = tags;
    thread.tag_count = 2;
    json_put_thread(&out, &thread, 11);
    buf_append_char(&out, '\0');
    assert_non_null(strstr(out.ptr, "\"tags\":[\"a\\\\\",\"b\"]"));
    assert_non_null(strstr(out.ptr, "\"lastEntryTs\":11,"));
    buf_clear(&out);
    json_put_thread(&out, &thread, 9);
    buf_append_char(&out, '\0');
    assert_non_null(strstr(out.ptr, "\"lastEntryTs\":10,"));
}

static void usage(void **state)
{
    struct usage_total by[] = {{.id = SLICE("a"), .input_tokens = 1, .cost_usd = 0.1, .events = 1},
                               {.id = {NULL, 0}, .output_tokens = 2}};
    const struct usage_sum sum = {.by_agent = by, .agent_count = 2};

    (void)state;
    json_put_usage(&out, &sum);
    assert_text(
        "{\"total\":{\"inputTokens\":0,\"outputTokens\":0,\"cacheReadTokens\":0,"
        "\"cacheWriteTokens\":0,\"costUsd\":0.000000000,\"events\":0},"
        "\"byAgent\":[{\"agentId\":\"a\",\"inputTokens\":1,\"outputTokens\":0,"
        "\"cacheReadTokens\":0,\"cacheWriteTokens\":0,\"costUsd\":0.100000000,\"events\":1},"
        "{\"agentId\":null,\"inputTokens\":0,\"outputTokens\":2,\"cacheReadTokens\":0,"
        "\"cacheWriteTokens\":0,\"costUsd\":0.000000000,\"events\":0}],\"byModel\":[]}");
}

/* A buffer that is full says so, and nothing is written behind its end. */
static void room_runs_out(void **state)
{
    const struct agent_record agent = {.id = SLICE("a"), .name = SLICE("N"), .handle = SLICE("n")};
    char memory[64];
    struct buf small;

    (void)state;
    for (size_t size = 1; size < sizeof(memory); size++) {
        memset(memory, '#', sizeof(memory));
        buf_init_fixed(&small, memory, size);
        json_put_agent(&small, &agent);
        assert_true(small.failed);
        assert_int_equal(memory[size], '#');
    }
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest json_tests[] = {
        TEST(agents), TEST(keys_houses_members), TEST(threads), TEST(usage), TEST(room_runs_out),
    };

    return UNIT_RUN(json_tests);
}
