/* What is said of hosts: advice that cures what was told, and none beside it. */
#include "cli/host_words.c"

#include "unit/base/unit.h"

static struct t3_host known[] = {
    {.label = "box", .url = "https://b"},
    {.label = "mac", .url = "https://m", .token_file = "/token"},
};
static const struct t3_hosts hosts = {known, ARRAY_COUNT(known)};

/* The words for a host that refused so, where there are keys or not. */
static const char *refused(const char *label, enum t3_rpc_code code, int status, bool keys)
{
    static char text[HOST_WORDS_BYTES];
    const struct t3_watch_host host = {
        .label = label,
        .url = "https://m",
        .state = T3_READER_REFUSED,
        .error = {.code = code, .status = status, .message = "no"},
    };

    host_words(text, &host, &(struct host_place){.hosts = &hosts, .keys = keys});
    return text;
}

#define MAC "refused: no; sign in with: arbe t3 login https://m --host mac"

/* A token that the server does not take is cured by signing in, and told where r then helps. */
static void test_token(void **state)
{
    (void)state;
    assert_string_equal(refused("mac", T3_RPC_ERROR_AUTH, 401, true), MAC "; then r tries again");
    assert_string_equal(refused("mac", T3_RPC_ERROR_AUTH, 401, false), MAC);
    assert_string_equal(refused("mac", T3_RPC_ERROR_SCOPE, 0, false), MAC);
    known[1].file = "my hosts";
    assert_string_equal(refused("mac", T3_RPC_ERROR_SCOPE, 0, false), MAC " --t3-hosts 'my hosts'");
    known[1].file = NULL;
}

/* The advised command must not be refused: over plain http it allows that, but on this machine. */
static void test_plain_http(void **state)
{
    const struct host_place place = {.hosts = &hosts};
    char text[HOST_WORDS_BYTES];
    struct t3_watch_host host = {.label = "mac",
                                 .url = "http://mac.local:3773",
                                 .state = T3_READER_REFUSED,
                                 .error = {.code = T3_RPC_ERROR_SCOPE, .message = "no"}};

    (void)state;
    host_words(text, &host, &place);
    assert_string_equal(text, "refused: no; sign in with: arbe t3 login http://mac.local:3773 "
                              "--host mac --allow-http");
    host.url = "http://127.0.0.1:3773";
    host_words(text, &host, &place);
    assert_string_equal(text, "refused: no; sign in with: arbe t3 login http://127.0.0.1:3773 "
                              "--host mac");
}

/* Where the token has no file, or is another's to set, r alone would not find the new one. */
static void test_no_file(void **state)
{
    (void)state;
    assert_string_equal(refused("box", T3_RPC_ERROR_AUTH, 401, true),
                        "refused: no; sign in with: arbe t3 login https://m --host box; then start "
                        "again");
    known[0].token = "from the environment";
    assert_string_equal(
        refused("box", T3_RPC_ERROR_AUTH, 401, true),
        "refused: no; that token is of ARBE_T3_TOKEN: set another, and start again");
    known[0].token = NULL;
}

/* What has its cure in its own sentence gets no second one. */
static void test_own_cure(void **state)
{
    (void)state;
    assert_string_equal(refused("mac", T3_RPC_ERROR_AUTH, 0, true),
                        "refused: no; then r tries again");
    assert_string_equal(refused("mac", T3_RPC_ERROR_AUTH, 0, false), "refused: no");
    assert_string_equal(refused("mac", T3_RPC_ERROR_VERSION, 0, false), "refused: no");
}

/* Versions that do not fit: one of the two is older. */
static void test_versions(void **state)
{
    const char *want = "refused: no; that T3 Code and this arbe do not fit: update the older one";

    (void)state;
    assert_string_equal(refused("mac", T3_RPC_ERROR_METHOD, 0, false), want);
    assert_string_equal(refused("mac", T3_RPC_ERROR_VERSION, 426, false), want);
}

/* The other states, and what is said besides. */
static void test_states(void **state)
{
    char text[HOST_WORDS_BYTES];
    struct t3_watch_host host = {.label = "mac", .url = "u", .state = T3_READER_LOST};

    (void)state;
    (void)snprintf(host.error.message, sizeof(host.error.message), "it broke");
    host_words(text, &host, &(struct host_place){.keys = true});
    assert_string_equal(text, "lost: it broke; trying again");
    host.state = T3_READER_LIVE;
    host.full = true;
    host.skipped = 2;
    host_words(text, &host, &(struct host_place){.keys = true});
    assert_string_equal(text,
                        "live; some of its threads are left out: a board has 100000 rows; 2 broken "
                        "items left out");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_token),    cmocka_unit_test(test_no_file),
        cmocka_unit_test(test_own_cure), cmocka_unit_test(test_versions),
        cmocka_unit_test(test_states),   cmocka_unit_test(test_plain_http),
    };

    return UNIT_RUN(tests);
}
