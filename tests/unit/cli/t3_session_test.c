/* What T3 servers answer about tokens, and what is believed of it. */
#include "cli/t3_session.c"

#include "unit/base/unit.h"

static struct t3_http_answer answer_of(int status, const char *json)
{
    return (struct t3_http_answer){.status = status, .json = slice_of(json)};
}

/* A token may read and do nothing else; one of the two says so, and neither says more. */
static void judges_scopes(void **state)
{
    const struct {
        const char *session;
        const char *scope;
        int code;
    } cases[] = {
        {"{\"authenticated\":true,\"scopes\":[\"orchestration:read\"]}", T3_SCOPE, 0},
        {"{\"authenticated\":true,\"scopes\":[\"orchestration:read\"]}", "", 0},
        {"{\"authenticated\":true}", T3_SCOPE, 0},
        {"{\"authenticated\":true}", "", ERR_MISMATCH},
        {"{\"authenticated\":true,\"scopes\":null}", "", ERR_MISMATCH},
        {"{\"authenticated\":true,\"scopes\":[]}", T3_SCOPE, ERR_MISMATCH},
        {"{\"authenticated\":true,\"scopes\":[\"orchestration:read\",1]}", T3_SCOPE, ERR_MISMATCH},
        {"{\"authenticated\":true,\"scopes\":[\"orchestration:read\",\"\"]}", T3_SCOPE,
         ERR_MISMATCH},
        {"{\"authenticated\":true,\"scopes\":[\"orchestration:read\",\"access:write\"]}", T3_SCOPE,
         ERR_MISMATCH},
        {"{\"authenticated\":true,\"scopes\":[\"orchestration:read\"]}",
         "orchestration:read access:write", ERR_MISMATCH},
        {"{\"authenticated\":true,\"scopes\":[\"orchestration:operate\"]}", "", ERR_MISMATCH},
        {"{\"authenticated\":false,\"scopes\":[\"orchestration:read\"]}", T3_SCOPE, ERR_PERM},
        {"{\"authenticated\":\"true\"}", T3_SCOPE, ERR_PERM},
        {"{}", T3_SCOPE, ERR_PERM},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
        struct errmsg msg = {{0}};

        if (judge(slice_of(cases[i].session), cases[i].scope, &msg) != cases[i].code) {
            fail_msg("%s and \"%s\": %s", cases[i].session, cases[i].scope, msg.text);
        }
    }
}

/* Very many scopes are many, however they are cut. */
static void judges_long_scopes(void **state)
{
    char session[2000];
    char scope[T3_TEXT_BYTES + 100];
    struct t3_grant grant = {.token = ""};
    struct errmsg msg;
    size_t len = (size_t)snprintf(session, sizeof(session),
                                  "{\"authenticated\":true,\"scopes\":[\"orchestration:read\"");

    (void)state;
    for (int i = 0; i < 100; i++) {
        len += (size_t)snprintf(session + len, sizeof(session) - len, ",\"x:y%d\"", i);
    }
    (void)snprintf(session + len, sizeof(session) - len, "]}");
    assert_int_equal(judge(slice_of(session), T3_SCOPE, &msg), ERR_MISMATCH);
    memset(scope, 'y', sizeof(scope));
    (void)snprintf(session, sizeof(session),
                   "{\"access_token\":\"t\",\"token_type\":\"bearer\",\"scope\":\"%.*s\"}",
                   (int)sizeof(scope), scope);
    struct t3_http_answer answer = answer_of(200, session);

    assert_int_equal(
        read_grant(&(struct t3_site){.url = "http://127.0.0.1:1"}, &answer, &grant, &msg), 0);
    assert_int_equal(judge(SLICE("{\"authenticated\":true}"), grant.scope, &msg), ERR_MISMATCH);
}

/* The reason is a code of the server's, or nothing: no text that may hold anything. */
static void takes_reasons(void **state)
{
    const char *const cases[][2] = {
        {"{\"reason\":\"invalid_scope\"}", "invalid_scope"},
        {"{\"reason\":\"PAIR-1 is bad\",\"code\":\"invalid_request\"}", "invalid_request"},
        {"{\"reason\":\"\\u001b[2J\",\"error\":\"no way\"}", ""},
        {"{\"requiredScope\":\"access:write\"}", "access:write"},
        {"[]", ""},
        {"", ""},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
        struct t3_http_answer answer = answer_of(400, cases[i][0]);
        char reason[T3_TEXT_BYTES];

        take_reason(&answer, reason);
        assert_string_equal(reason, cases[i][1]);
    }
}

/* A token is what a header can carry, whole. */
static void takes_tokens(void **state)
{
    static char json[3 * T3_READER_TOKEN_BYTES];
    static char token[T3_READER_TOKEN_BYTES + 1];
    struct t3_grant grant = {.token = ""};
    struct errmsg msg;

    (void)state;
    memset(token, 'x', sizeof(token) - 1);
    for (size_t len = T3_READER_TOKEN_BYTES - 1; len <= T3_READER_TOKEN_BYTES; len++) {
        (void)snprintf(json, sizeof(json),
                       "{\"access_token\":\"%.*s\",\"token_type\":\"Bearer\",\"expires_in\":60}",
                       (int)len, token);
        struct t3_http_answer answer = answer_of(200, json);

        assert_int_equal(
            read_grant(&(struct t3_site){.url = "http://127.0.0.1:1"}, &answer, &grant, &msg),
            len < T3_READER_TOKEN_BYTES ? 0 : ERR_FAILED);
    }
    assert_int_equal(grant.expires_in_s, 60);
    struct t3_http_answer none = answer_of(200, "{\"token_type\":\"Bearer\"}");

    assert_int_equal(
        read_grant(&(struct t3_site){.url = "http://127.0.0.1:1"}, &none, &grant, &msg),
        ERR_FAILED);
}

/* The id of a session, from claims that look as T3's do, and from nothing else. */
static void reads_ids(void **state)
{
    const char *const cases[][2] = {
        {"{\"v\":1,\"sid\":\"a-B_9\"}", "a-B_9"},
        {"{\"sid\":\"a b\"}", NULL},
        {"{\"sid\":\"x;reboot\"}", NULL},
        {"{\"sid\":\"\"}", NULL},
        {"{\"sid\":7}", NULL},
        {"{\"sub\":\"x\"}", NULL},
        {"\"sid\"", NULL},
        {"no JSON", NULL},
    };
    char id[T3_SESSION_ID_BYTES] = "";

    (void)state;
    for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
        char token[200];
        size_t len = base64url_encode(token, slice_of(cases[i][0]));

        (void)snprintf(token + len, 10, ".sig");
        assert_int_equal(t3_session_id(token, id), cases[i][1] != NULL);
        if (cases[i][1] != NULL) {
            assert_string_equal(id, cases[i][1]);
        }
        token[len] = '\0'; /* without a signature it is another kind of token */
        assert_false(t3_session_id(token, id));
    }
    assert_false(t3_session_id("", id));
    assert_false(t3_session_id(".", id));
    assert_false(t3_session_id("!!.x", id));
}

/* A server of T3 says its environment; one of another protocol is named. */
static void reads_descriptors(void **state)
{
    struct t3_descriptor descriptor;
    struct errmsg msg;
    struct t3_http_answer good = answer_of(
        200, "{\"environmentId\":\"e\",\"label\":\"My\\u001b Mac\",\"serverVersion\":"
             "\"0.1.1\",\"orchestrationProtocolVersion\":2}");
    struct t3_http_answer old = answer_of(200, "{\"environmentId\":\"e\"}");
    struct t3_http_answer other = answer_of(
        200, "{\"environmentId\":\"e\",\"orchestrationProtocolVersion\":3}");
    struct t3_http_answer none = answer_of(200, "{\"label\":\"x\"}");
    struct t3_http_answer page = answer_of(200, "");

    (void)state;
    assert_int_equal(read_descriptor(&good, &descriptor, &msg), 0);
    assert_string_equal(descriptor.label, "My? Mac");
    assert_string_equal(descriptor.version, "0.1.1");
    assert_int_equal(read_descriptor(&old, &descriptor, &msg), 0);
    assert_int_equal(read_descriptor(&other, &descriptor, &msg), ERR_MISMATCH);
    assert_int_equal(read_descriptor(&none, &descriptor, &msg), ERR_NOTFOUND);
    assert_int_equal(read_descriptor(&page, &descriptor, &msg), ERR_NOTFOUND);
}

/* What the form of the exchange says, byte for byte. */
static void composes_the_exchange(void **state)
{
    struct buf form;

    (void)state;
    buf_init(&form, FORM_BYTES_MAX);
    append_exchange(&form, "A&b=c%+ \xc3\xa4", "arbe on x");
    buf_append_char(&form, '\0');
    assert_string_equal(
        form.ptr,
        "grant_type=urn%3Aietf%3Aparams%3Aoauth%3Agrant-type%3Atoken-exchange"
        "&subject_token=A%26b%3Dc%25%2B%20%C3%A4"
        "&subject_token_type=urn%3At3%3Aparams%3Aoauth%3Atoken-type%3Aenvironment-bootstrap"
        "&requested_token_type=urn%3Aietf%3Aparams%3Aoauth%3Atoken-type%3Aaccess_token"
        "&scope=orchestration%3Aread&client_label=arbe%20on%20x&client_device_type=bot"
        "&client_os=linux");
    buf_finish(&form);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(judges_scopes),
        cmocka_unit_test(judges_long_scopes),
        cmocka_unit_test(takes_reasons),
        cmocka_unit_test(takes_tokens),
        cmocka_unit_test(reads_ids),
        cmocka_unit_test(reads_descriptors),
        cmocka_unit_test(composes_the_exchange),
    };

    return UNIT_RUN(tests);
}
