/* How far the last dispatch got, entry by entry. */
#include "cli/diagnosis.c"

#include "unit/base/unit.h"

#define CHAT \
    "{\"id\":\"c1\",\"ts\":5,\"authorId\":\"ann\",\"payload\":{\"type\":\"chat\",\"text\":\"x\"}}"
#define WOKE "{\"ts\":6,\"payload\":{\"type\":\"signal.thread_director.woke\"}}"
#define DECIDED \
    "{\"ts\":7,\"payload\":{\"type\":\"signal.thread_director.decided\",\"agentIds\":[]}}"
#define DISPATCH(what, rest)                                                                  \
    "{\"ts\":8,\"payload\":{\"type\":\"signal.dispatch." what "\",\"dispatchId\":\"d\"," rest \
    "\"agentId\":\"bot\"}}"
#define STARTED DISPATCH("started", "")
#define CHUNK   "{\"ts\":9,\"payload\":{\"type\":\"pi.chunk\",\"delta\":\"x\"}}"
#define RENAMED "{\"ts\":99,\"payload\":{\"type\":\"signal.thread.renamed\",\"name\":\"x\"}}"
#define STATUS(which) \
    "{\"ts\":9,\"payload\":{\"type\":\"signal.thread.status_changed\",\"status\":\"" which "\"}}"

static struct diagnosis diagnose(const char *const *entries)
{
    struct diagnosis d = {.stage = DIAGNOSIS_EMPTY};

    for (size_t i = 0; entries[i] != NULL; i++) {
        struct scoped_entry entry;

        assert_int_equal(scoped_entry_read(entries[i], strlen(entries[i]), &entry), STREAM_OK);
        diagnosis_take(&d, &entry);
    }
    return d;
}

/* Each stage, by what is there last; what follows a chat is about that chat. */
static void finds_the_stage(void **state)
{
    static const struct {
        const char *entries[8];
        enum diagnosis_stage stage;
    } cases[] = {
        {{NULL}, DIAGNOSIS_EMPTY},
        {{RENAMED}, DIAGNOSIS_EMPTY},
        {{CHAT, RENAMED}, DIAGNOSIS_POSTED},
        {{CHAT, WOKE}, DIAGNOSIS_WOKEN},
        {{CHAT, WOKE, DECIDED}, DIAGNOSIS_DECIDED},
        {{CHAT, WOKE, DECIDED, STARTED}, DIAGNOSIS_STARTED},
        {{CHAT, STARTED, CHUNK, CHUNK}, DIAGNOSIS_WORKING},
        {{CHAT, CHUNK}, DIAGNOSIS_WORKING},
        {{CHAT, STARTED, CHUNK, DISPATCH("completed", "")}, DIAGNOSIS_COMPLETED},
        {{CHAT, STARTED, DISPATCH("failed", "\"reason\":\"oom\",")}, DIAGNOSIS_FAILED},
        {{CHAT, STARTED, DISPATCH("cancelled", "")}, DIAGNOSIS_CANCELLED},
        {{CHAT, WOKE, DISPATCH("skipped", "\"reason\":\"no\",")}, DIAGNOSIS_SKIPPED},
        {{CHAT, STARTED, DISPATCH("skipped", "\"reason\":\"no\",")}, DIAGNOSIS_STARTED},
        {{CHAT, "{\"payload\":{\"type\":\"signal.thread_director.failed\",\"reason\":\"down\"}}"},
         DIAGNOSIS_UNWOKEN},
        {{CHAT, STATUS("running")}, DIAGNOSIS_POSTED},
        {{CHAT, STATUS("completed")}, DIAGNOSIS_COMPLETED},
        {{CHAT, STATUS("cancelled")}, DIAGNOSIS_CANCELLED},
        {{CHAT, "{\"payload\":{\"type\":\"signal.thread.pi_failed\",\"reason\":\"x\"}}"},
         DIAGNOSIS_FAILED},
        {{CHAT, STARTED, DISPATCH("completed", ""), CHAT}, DIAGNOSIS_POSTED},
        {{CHAT, "{}", "{\"payload\":{}}", "{\"payload\":{\"type\":\"of.tomorrow\"}}"},
         DIAGNOSIS_POSTED},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
        struct diagnosis d = diagnose(cases[i].entries);

        if (d.stage != cases[i].stage) {
            fail_msg("case %zu: %s, not %s", i, diagnosis_word(d.stage),
                     diagnosis_word(cases[i].stage));
        }
        assert_true(strlen(diagnosis_text(d.stage)) > 0);
    }
}

/* Who, when and why. */
static void remembers_the_particulars(void **state)
{
    static const char *const entries[] = {
        CHAT, STARTED, CHUNK, DISPATCH("failed", "\"reason\":\"oom\","), RENAMED, NULL};
    struct diagnosis d = diagnose(entries);

    (void)state;
    assert_string_equal(d.trigger_id, "c1");
    assert_string_equal(d.author_id, "ann");
    assert_string_equal(d.dispatch_id, "d");
    assert_string_equal(d.agent_id, "bot");
    assert_string_equal(d.reason, "oom");
    assert_int_equal(d.posted_ts, 5);
    assert_int_equal(d.last_ts, 8);
    assert_int_equal(d.answers, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(finds_the_stage),
        cmocka_unit_test(remembers_the_particulars),
    };

    return UNIT_RUN(tests);
}
