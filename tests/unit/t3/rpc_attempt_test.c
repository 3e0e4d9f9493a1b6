/* Addresses one after another, and the sentences when none leads to a connection. */
#include "t3/rpc_attempt.c"

#include "unit/base/unit.h"

static const struct rpc_url url = {.host = (char *)"127.0.0.1", .literal = true};

static void never(void *context)
{
    (void)context;
    fail_msg("an address is not looked up");
}

static struct rpc_attempt begun(bool token)
{
    struct rpc_attempt attempt;
    struct rpc_failure failure;

    rpc_attempt_init(&attempt, &url, token);
    assert_int_equal(rpc_attempt_begin(&attempt, never, NULL, &failure), T3_RPC_OK);
    assert_int_equal(rpc_attempt_look(&attempt, &failure), T3_RPC_OK);
    assert_non_null(attempt.next);
    return attempt;
}

/* Puts the first address there once more, `count` times in all. Only the first is owned. */
static void repeat(struct rpc_attempt *attempt, struct addrinfo *copies, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        copies[i] = *attempt->literal;
        copies[i].ai_next = i + 1 < count ? &copies[i + 1] : NULL;
    }
    attempt->next = copies;
}

static void advance(struct rpc_attempt *attempt, uint64_t now_ms, uint64_t deadline_ms)
{
    char numeric[NI_MAXHOST];
    struct rpc_failure failure;

    assert_int_equal(rpc_attempt_advance(attempt, now_ms, deadline_ms, numeric, &failure),
                     T3_RPC_OK);
    assert_string_equal(numeric, "127.0.0.1");
}

/* Each address has an equal part of the time that is left; the last one has all of it. */
static void test_parts(void **state)
{
    struct rpc_attempt attempt = begun(false);
    struct addrinfo copies[3];

    (void)state;
    repeat(&attempt, copies, 3);
    advance(&attempt, 1000, 1900);
    assert_int_equal(attempt.try_ms, 1300);
    assert_false(rpc_attempt_is_late(&attempt, 1299));
    assert_true(rpc_attempt_is_late(&attempt, 1300));
    advance(&attempt, 1100, 1900);
    assert_int_equal(attempt.try_ms, 1500);
    advance(&attempt, 2000, 1900); /* nothing is left */
    assert_int_equal(attempt.try_ms, 2000);
    assert_false(rpc_attempt_is_late(&attempt, 5000));
    rpc_attempt_finish(&attempt);
}

/* The next address is tried when one does not answer, and when it is late, whatever is said of
 * that; not when somebody there has spoken. */
static void test_next(void **state)
{
    struct rpc_attempt attempt = begun(false);
    struct addrinfo copies[2];
    struct rpc_failure failure;

    (void)state;
    repeat(&attempt, copies, 2);
    advance(&attempt, 0, 100);
    assert_true(rpc_attempt_fail(&attempt, "Unable to connect", &failure));
    assert_int_equal(attempt.latest, RPC_TRY_FAILED);
    repeat(&attempt, copies, 2);
    advance(&attempt, 0, 100);
    assert_int_equal(attempt.latest, RPC_TRY_RUNNING);
    assert_false(rpc_attempt_fail(&attempt, "HS: whatever", &failure));
    attempt.latest = RPC_TRY_LATE;
    assert_true(rpc_attempt_fail(&attempt, "HS: whatever", &failure));
    attempt.status = 401;
    assert_false(rpc_attempt_fail(&attempt, "Unable to connect", &failure));
    assert_int_equal(failure.code, T3_RPC_ERROR_AUTH);
    rpc_attempt_finish(&attempt);
}

/* Why the only address led nowhere. */
static void test_sentences(void **state)
{
    static const struct {
        bool token;
        bool head_sent;
        int status;
        int verify_code;
        const char *words;
        enum t3_rpc_code code;
        const char *text;
    } cases[] = {
        {false, true, 401, 0, "", T3_RPC_ERROR_AUTH,
         "the server wants a token, and none was given (HTTP 401)"},
        {true, true, 403, 0, "", T3_RPC_ERROR_AUTH,
         "the server does not accept the token (HTTP 403)"},
        {true, true, 426, 0, "", T3_RPC_ERROR_VERSION,
         "the server wants another orchestration protocol than 2 (HTTP 426)"},
        {true, true, 500, 0, "", T3_RPC_ERROR_HTTP,
         "the server answered HTTP 500 instead of opening a WebSocket"},
        {true, true, -5, 0, "HS: no", T3_RPC_ERROR_PROTOCOL,
         "the answer is no good upgrade to a WebSocket: its status is none of HTTP"},
        {true, true, 1401, 0, "HS: no", T3_RPC_ERROR_PROTOCOL,
         "the answer is no good upgrade to a WebSocket: its status is none of HTTP"},
        {true, true, 101, 0, "HS: no", T3_RPC_ERROR_PROTOCOL,
         "the answer is no good upgrade to a WebSocket: HS: no"},
        {true, true, 0, 0, "problems parsing header", T3_RPC_ERROR_PROTOCOL,
         "the answer is no good upgrade to a WebSocket: problems parsing header"},
        {true, false, 0, X509_V_ERR_CERT_HAS_EXPIRED, "connect SSL err", T3_RPC_ERROR_TLS,
         "the server's certificate is not good: certificate has expired"},
        {true, false, 0, 0, "connect SSL err", T3_RPC_ERROR_TLS,
         "no TLS connection: connect SSL err"},
        {true, false, 0, 0, "connect SSL err: reason(1)", T3_RPC_ERROR_TLS,
         "no TLS connection: what answers there seems to speak no TLS; perhaps http:// is meant"},
        {true, true, 0, 0, "HS: OOM", T3_RPC_ERROR_MEMORY, "out of memory"},
        {true, true, 0, 0, "closed", T3_RPC_ERROR_NETWORK,
         "the connection ended without an answer"},
        {true, false, 0, 0, "Unable to connect", T3_RPC_ERROR_NETWORK,
         "no connection: nothing answers there"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct rpc_attempt attempt = begun(cases[i].token);
        struct rpc_failure failure = {.code = T3_RPC_OK};

        advance(&attempt, 0, 100);
        attempt.head_sent = cases[i].head_sent;
        attempt.status = cases[i].status;
        attempt.verify_code = cases[i].verify_code;
        assert_false(rpc_attempt_fail(&attempt, cases[i].words, &failure));
        assert_int_equal(failure.code, cases[i].code);
        assert_string_equal(failure.text, cases[i].text);
        rpc_attempt_finish(&attempt);
    }
}

/* The words of a library, however long, make no longer sentence than there is room for. */
static void test_long_words(void **state)
{
    struct rpc_attempt attempt = begun(false);
    struct rpc_failure failure = {.code = T3_RPC_OK};
    char words[1000] = "HS: ";

    (void)state;
    memset(words + 4, 'x', sizeof(words) - 5);
    advance(&attempt, 0, 100);
    assert_false(rpc_attempt_fail(&attempt, words, &failure));
    assert_true(strlen(failure.text) < sizeof(failure.text) - 1);
    rpc_attempt_finish(&attempt);
    rpc_attempt_finish(&attempt);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_parts),
        cmocka_unit_test(test_next),
        cmocka_unit_test(test_sentences),
        cmocka_unit_test(test_long_words),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
