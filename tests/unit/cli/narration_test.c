/* What entries say to people. */
#include "cli/narration.c"

#include "unit/base/unit.h"

/* What was told, a line each: the kind's letter and the text. */
struct told {
    char text[4096];
};

static struct slice name_of(void *context, struct slice agent_id)
{
    (void)context;
    return slice_equal(agent_id, SLICE("a1"))   ? SLICE("Ann")
           : slice_equal(agent_id, SLICE("b1")) ? SLICE("Bot")
                                                : SLICE("someone");
}

static void tell(void *context, enum narration_kind kind, struct slice text)
{
    struct told *told = context;
    size_t len = strlen(told->text);

    (void)snprintf(told->text + len, sizeof(told->text) - len, "%c %.*s|", "SNT"[kind],
                   (int)text.len, text.ptr);
}

static const char *told_of(const char *author_id, const char *payload, size_t memory_max)
{
    static struct told told;
    const struct narrator narrator = {name_of, tell, &told};
    struct arena memory;
    struct slice value;

    told.text[0] = '\0';
    assert_int_equal(json_text_read(slice_of(payload), &value, NULL), 0);
    arena_init(&memory, memory_max);
    narrate(&narrator, slice_of(author_id), value, &memory);
    arena_finish(&memory);
    return told.text;
}

static const struct {
    const char *author_id;
    const char *payload;
    const char *told;
} cases[] = {
    {"a1", "{\"type\":\"chat\",\"text\":\"one\\ntwo \\u001b[1m\"}", "S one\ntwo \033[1m|"},
    {"a1",
     "{\"type\":\"chat\",\"text\":\"see\",\"attachments\":[{\"name\":\"a.pdf\"},{\"name\":\"b\"}]}",
     "S see|N Ann attached a.pdf|N Ann attached b|"},
    {"b1", "{\"type\":\"pi.chunk\",\"delta\":\"x\"}", ""},
    {"b1",
     "{\"type\":\"pi.assistant\",\"content\":[{\"type\":\"thinking\",\"thinking\":\"hm\"},"
     "{\"type\":\"text\",\"text\":\"I look.\"},{\"type\":\"toolCall\",\"id\":\"1\",\"name\":"
     "\"bash\",\"arguments\":{\"timeout\":3,\"command\":\"ls\\n-la\"}},{\"type\":\"toolCall\","
     "\"name\":\"wait\",\"arguments\":{\"s\":1}}],\"stopReason\":\"toolUse\"}",
     "S I look.|T bash: ls|T wait: {\"s\":1}|"},
    {"b1",
     "{\"type\":\"pi.assistant\",\"content\":[],\"stopReason\":\"error\",\"errorMessage\":\"no "
     "credit\"}",
     "N Bot could not answer: no credit|"},
    {"b1", "{\"type\":\"pi.assistant\",\"content\":[],\"stopReason\":\"aborted\"}",
     "N Bot could not answer|"},
    {"b1", "{\"type\":\"pi.tool_result\",\"toolName\":\"bash\",\"content\":[],\"isError\":false}",
     ""},
    {"b1",
     "{\"type\":\"pi.tool_result\",\"toolName\":\"bash\",\"content\":[{\"type\":\"image\"},"
     "{\"type\":\"text\",\"text\":\"\\n no such file \\nmore\"}],\"isError\":true}",
     "T bash failed: no such file|"},
    {"b1", "{\"type\":\"pi.tool_result\",\"toolName\":\"bash\",\"content\":[],\"isError\":true}",
     "T bash failed|"},
    {"", "{\"type\":\"pi.compaction\",\"summary\":\"s\",\"tokensBefore\":900}",
     "N what was said so far was summed up, 900 tokens of it|"},
    {"a1", "{\"type\":\"signal.entry.deleted\",\"entryId\":\"e\"}", "N Ann deleted a message|"},
    {"a1", "{\"type\":\"signal.thread.created\"}", "N Ann made the thread|"},
    {"a1", "{\"type\":\"signal.thread.renamed\",\"name\":\"plans\"}",
     "N Ann renamed the thread to \"plans\"|"},
    {"", "{\"type\":\"signal.thread.status_changed\",\"status\":\"failed\",\"reason\":\"oom\"}",
     "N the server set the thread to failed: oom|"},
    {"a1", "{\"type\":\"signal.thread.status_changed\",\"status\":\"open\"}",
     "N Ann set the thread to open|"},
    {"", "{\"type\":\"signal.thread.pi_failed\",\"reason\":\"exit 1\"}", "N run failed: exit 1|"},
    {"", "{\"type\":\"signal.thread.pi_session_orphaned\"}", "N run lost its session|"},
    {"a1", "{\"type\":\"signal.house.member_added\",\"agentId\":\"b1\",\"role\":\"member\"}",
     "N Ann made Bot member of the house|"},
    {"a1", "{\"type\":\"signal.house.member_added\",\"agentId\":\"a1\",\"role\":\"owner\"}",
     "N Ann joined as owner|"},
    {"a1", "{\"type\":\"signal.house.member_removed\",\"agentId\":\"x\"}",
     "N Ann removed someone from the house|"},
    {"a1", "{\"type\":\"signal.house.member_removed\",\"agentId\":\"a1\"}",
     "N Ann left the house|"},
    {"", "{\"type\":\"signal.environment.failed\",\"environmentId\":\"e\",\"reason\":\"gone\"}",
     "N environment e failed: gone|"},
    {"b1", "{\"type\":\"signal.files.added\",\"path\":\"a/b\"}", "N Bot added the file a/b|"},
    {"", "{\"type\":\"signal.thread_director.decided\",\"agentIds\":[\"b1\",7,\"a1\"]}",
     "N the director asked Bot, Ann|"},
    {"", "{\"type\":\"signal.thread_director.decided\",\"agentIds\":[]}",
     "N the director asked nobody|"},
    {"", "{\"type\":\"signal.thread_director.failed\",\"reason\":\"down\"}",
     "N the director could not be woken: down|"},
    {"", "{\"type\":\"signal.dispatch.failed\",\"agentId\":\"b1\",\"reason\":\"oom\"}",
     "N Bot failed: oom|"},
    {"", "{\"type\":\"signal.dispatch.skipped\",\"reason\":\"not mentioned\"}",
     "N no reason to answer: not mentioned|"},
    {"", "{\"type\":\"signal.dispatch.skipped\",\"agentId\":\"b1\",\"reason\":\"quiet\"}",
     "N Bot had no reason to answer: quiet|"},
    {"", "{\"type\":\"signal.of.tomorrow\"}", ""},
    {"", "{\"type\":7}", ""},
    {"", "{}", ""},
    {"", "[]", ""},
};

static void tells(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
        assert_string_equal(told_of(cases[i].author_id, cases[i].payload, 64 * KIB), cases[i].told);
    }
}

/* Every type that there is says something, or is known to say nothing. */
static void leaves_no_type_out(void **state)
{
    (void)state;
    for (unsigned type = 0; type < PAYLOAD_TYPE_COUNT; type++) {
        bool silent = type == PAYLOAD_CHAT || type == PAYLOAD_PI_ASSISTANT ||
                      type == PAYLOAD_PI_CHUNK || type == PAYLOAD_PI_TOOL_RESULT;

        assert_int_equal(find_sentence((enum payload_type)type) == NULL, silent);
    }
}

/* What is quoted stays short, and is cut between characters. */
static void stays_short(void **state)
{
    char payload[1024];
    size_t len = (size_t)snprintf(payload, sizeof(payload),
                                  "{\"type\":\"signal.thread.pi_failed\",\"reason\":\"");

    (void)state;
    for (size_t i = 0; i < 159; i++) {
        payload[len++] = 'x';
    }
    (void)snprintf(payload + len, sizeof(payload) - len, "ä and more\"}");
    const char *told = told_of("", payload, 64 * KIB);

    assert_int_equal(strlen(told), strlen("N run failed: ") + 159 + strlen("…|"));
    assert_non_null(strstr(told, "x…|"));
}

/* Without memory less is said, and nothing breaks. */
static void does_without_memory(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
        (void)told_of(cases[i].author_id, cases[i].payload, 1); /* it need not say anything */
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tells),
        cmocka_unit_test(leaves_no_type_out),
        cmocka_unit_test(stays_short),
        cmocka_unit_test(does_without_memory),
    };

    return UNIT_RUN(tests);
}
