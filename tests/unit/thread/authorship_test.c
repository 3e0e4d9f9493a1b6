/* Who may write what: a test for every cell. A column for each kind of caller, a row for each type;
 * within a cell the author none, own and foreign, and for sandboxes the token that lists the type
 * or does not. */
#include "thread/authorship.c"

#include "unit/base/unit.h"

/* Who may write a type at all: a key (k), a sandbox whose token lists it (s), the server (v). */
static const char *const rows[PAYLOAD_TYPE_COUNT + 1] = {
    [PAYLOAD_CHAT] = "ksv",
    [PAYLOAD_PI_CHUNK] = "sv",
    [PAYLOAD_PI_ASSISTANT] = "sv",
    [PAYLOAD_PI_TOOL_RESULT] = "sv",
    [PAYLOAD_PI_COMPACTION] = "sv",
    [PAYLOAD_ENTRY_DELETED] = "v",
    [PAYLOAD_THREAD_CREATED] = "v",
    [PAYLOAD_THREAD_RENAMED] = "v",
    [PAYLOAD_THREAD_DELETED] = "v",
    [PAYLOAD_THREAD_STATUS_CHANGED] = "sv",
    [PAYLOAD_THREAD_PI_FAILED] = "sv",
    [PAYLOAD_THREAD_PI_ORPHANED] = "sv",
    [PAYLOAD_HOUSE_CREATED] = "v",
    [PAYLOAD_HOUSE_RENAMED] = "v",
    [PAYLOAD_HOUSE_DELETED] = "v",
    [PAYLOAD_HOUSE_MEMBER_ADDED] = "v",
    [PAYLOAD_HOUSE_MEMBER_REMOVED] = "v",
    [PAYLOAD_ENVIRONMENT_REQUESTED] = "sv",
    [PAYLOAD_ENVIRONMENT_STARTING] = "sv",
    [PAYLOAD_ENVIRONMENT_READY] = "sv",
    [PAYLOAD_ENVIRONMENT_STOPPED] = "sv",
    [PAYLOAD_ENVIRONMENT_FAILED] = "sv",
    [PAYLOAD_FILES_ADDED] = "sv",
    [PAYLOAD_FILES_CHANGED] = "sv",
    [PAYLOAD_FILES_REMOVED] = "sv",
    [PAYLOAD_DIRECTOR_WOKE] = "v",
    [PAYLOAD_DIRECTOR_DECIDED] = "v",
    [PAYLOAD_DIRECTOR_FAILED] = "v",
    [PAYLOAD_DISPATCH_STARTED] = "v",
    [PAYLOAD_DISPATCH_COMPLETED] = "v",
    [PAYLOAD_DISPATCH_FAILED] = "v",
    [PAYLOAD_DISPATCH_CANCELLED] = "v",
    [PAYLOAD_DISPATCH_SKIPPED] = "v",
    [PAYLOAD_UNKNOWN] = "",
};

#define OWN     SLICE("agent-1")
#define FOREIGN SLICE("agent-2")

/* The author that is stamped, or "refused", with the field that is to blame. */
static const char *decide(const struct authorship_question *q, const char **ret_field)
{
    static struct api_error e;
    struct slice author = SLICE("untouched");
    memset(&e, 0, sizeof(e));
    int code = authorship_decide(q, &author, &e);
    struct slice again = SLICE("untouched");
    assert_int_equal(authorship_decide(q, &again, NULL), code);
    assert_true(slice_equal(author, again));
    *ret_field = e.field;
    if (code == 0) {
        assert_int_equal(e.message[0], '\0');
        return author.len == 0 ? "nobody" : slice_equal(author, OWN) ? "own" : "foreign";
    }
    assert_int_equal(code, -1);
    assert_int_equal(e.code, API_FORBIDDEN);
    assert_true(strlen(e.message) > 20);
    assert_true(slice_equal(author, SLICE("untouched")));
    return "refused";
}

static void check_cell(const struct authorship_question *q, const char *want,
                       const char *want_field)
{
    const char *field;
    const char *got = decide(q, &field);
    if (strcmp(got, want) != 0 || strcmp(field, want_field) != 0) {
        fail_msg("caller %d, %s, author %.*s: %s at %s, not %s at %s", q->caller,
                 payload_type_text(q->type), (int)q->author_given.len, q->author_given.ptr, got,
                 field, want, want_field);
    }
}

/* The three authors of a cell, where the type is allowed or not. */
static void check_authors(struct authorship_question q, bool allowed)
{
    q.author_given = SLICE("");
    check_cell(&q, allowed ? "own" : "refused", allowed ? "" : "payload.type");
    q.author_given = OWN;
    check_cell(&q, allowed ? "own" : "refused", allowed ? "" : "payload.type");
    q.author_given = FOREIGN;
    bool as_anybody = q.caller == CALLER_SERVER;
    check_cell(&q, allowed && as_anybody ? "foreign" : "refused",
               !allowed     ? "payload.type"
               : as_anybody ? ""
                            : "authorId");
}

/* An API key, a person's or a bot's: chat only, as itself. */
static void test_agent(void **state)
{
    (void)state;
    for (enum payload_type type = 0; type <= PAYLOAD_UNKNOWN; type++) {
        struct authorship_question q = {
            .caller = CALLER_AGENT, .agent_id = OWN, .type = type, .token_types.bits = UINT64_MAX};
        check_authors(q, strchr(rows[type], 'k') != NULL);
    }
}

/* A sandbox whose token lists the type and nothing else. */
static void test_sandbox_listed(void **state)
{
    (void)state;
    for (enum payload_type type = 0; type <= PAYLOAD_UNKNOWN; type++) {
        struct authorship_question q = {.caller = CALLER_SANDBOX, .agent_id = OWN, .type = type};
        if (type != PAYLOAD_UNKNOWN) {
            payload_types_add(&q.token_types, type);
        }
        check_authors(q, strchr(rows[type], 's') != NULL);
    }
}

/* A sandbox whose token lists every type but this one. */
static void test_sandbox_not_listed(void **state)
{
    (void)state;
    for (enum payload_type type = 0; type <= PAYLOAD_UNKNOWN; type++) {
        struct authorship_question q = {.caller = CALLER_SANDBOX, .agent_id = OWN, .type = type};
        for (enum payload_type other = 0; other < PAYLOAD_TYPE_COUNT; other++) {
            if (other != type) {
                payload_types_add(&q.token_types, other);
            }
        }
        check_authors(q, false);
    }
}

/* The server in a bot's turn: the bot is the author where nobody is given. */
static void test_server(void **state)
{
    (void)state;
    for (enum payload_type type = 0; type <= PAYLOAD_UNKNOWN; type++) {
        struct authorship_question q = {.caller = CALLER_SERVER, .agent_id = OWN, .type = type};
        check_authors(q, strchr(rows[type], 'v') != NULL);
    }
}

/* The server by itself: no author where none is given. */
static void test_server_alone(void **state)
{
    (void)state;
    for (enum payload_type type = 0; type < PAYLOAD_TYPE_COUNT; type++) {
        struct authorship_question q = {.caller = CALLER_SERVER, .type = type};
        q.agent_id = SLICE("");
        q.author_given = SLICE("");
        check_cell(&q, "nobody", "");
        q.author_given = FOREIGN;
        check_cell(&q, "foreign", "");
    }
}

/* The types that a token may list are those of the table. */
static void test_sandbox_may(void **state)
{
    (void)state;
    for (enum payload_type type = 0; type <= PAYLOAD_UNKNOWN; type++) {
        assert_int_equal(authorship_sandbox_may(type), strchr(rows[type], 's') != NULL);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_agent),
        cmocka_unit_test(test_sandbox_listed),
        cmocka_unit_test(test_sandbox_not_listed),
        cmocka_unit_test(test_server),
        cmocka_unit_test(test_server_alone),
        cmocka_unit_test(test_sandbox_may),
    };
    return UNIT_RUN(tests);
}
