/* Sandbox tokens: what is minted is good for its time; nothing else is, whatever it says. */
#include "thread/sandbox_token.c"

#include "unit/base/unit.h"

static const unsigned char key[SANDBOX_KEY_BYTES] = "0123456789abcdef0123456789abcde";
static const unsigned char other_key[SANDBOX_KEY_BYTES] = "0123456789abcdef0123456789abcdf";

#define NOW_S  INT64_C(1700000000)
#define NOW_MS (NOW_S * 1000 + 999)

static struct arena arena;
static struct api_error last;
static char memory[SANDBOX_TOKEN_BYTES_MAX + 100];

static int setup(void **state)
{
    (void)state;
    arena_init(&arena, 1u << 20);
    memset(&last, 0, sizeof(last));
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    arena_finish(&arena);
    return 0;
}

static struct slice mint(void)
{
    struct sandbox_token token = {
        .agent_id = SLICE("agent-1"),
        .stream = SLICE("arbe-thread-1"),
        .epoch = 1700000000123,
        .issued_s = NOW_S,
        .expires_s = NOW_S + 60,
    };
    struct buf out;
    payload_types_add(&token.types, PAYLOAD_CHAT);
    payload_types_add(&token.types, PAYLOAD_PI_CHUNK);
    buf_init_fixed(&out, memory, sizeof(memory));
    assert_true(sandbox_token_mint(key, &token, &out));
    return buf_slice(&out);
}

/* A token of this header and these claims, signed with `secret` by `digest` (NULL: not signed). */
static struct slice sign(const char *header, const char *claims, const unsigned char *secret,
                         const EVP_MD *digest)
{
    char *at = memory;
    unsigned char mac[EVP_MAX_MD_SIZE];
    unsigned len = 0;
    at += base64url_encode(at, slice_of(header));
    *at++ = '.';
    at += base64url_encode(at, slice_of(claims));
    if (digest) {
        assert_non_null(HMAC(digest, secret, SANDBOX_KEY_BYTES, (const unsigned char *)memory,
                             (size_t)(at - memory), mac, &len));
    }
    *at++ = '.';
    at += base64url_encode(at, (struct slice){(const char *)mac, len});
    return (struct slice){memory, (size_t)(at - memory)};
}

#define HEADER "{\"alg\":\"HS256\",\"typ\":\"JWT\"}"

static void assert_refused(struct slice text, int64_t now_ms, const char *message)
{
    struct sandbox_token token = {.issued_s = 99};
    int code = sandbox_token_verify(key, text, now_ms, &arena, &token, &last);
    if (code != -1) {
        fail_msg("%.*s was taken", (int)text.len, text.ptr);
    }
    assert_int_equal(token.issued_s, 99);
    assert_int_equal(last.code, API_UNAUTHENTICATED);
    if (message) {
        assert_string_equal(last.message, message);
    }
    assert_true(slice_starts_with(slice_of(last.message), SLICE("the sandbox token ")));
    assert_int_equal(sandbox_token_verify(key, text, now_ms, &arena, &token, NULL), -1);
}

/* What was minted is read again, with nothing added. */
static void test_good(void **state)
{
    struct slice text = mint();
    struct sandbox_token token;
    (void)state;
    assert_int_equal(sandbox_token_verify(key, text, NOW_MS, &arena, &token, &last), 0);
    assert_true(slice_equal(token.agent_id, SLICE("agent-1")));
    assert_true(slice_equal(token.stream, SLICE("arbe-thread-1")));
    assert_true(token.epoch == 1700000000123);
    assert_true(token.issued_s == NOW_S);
    assert_true(token.expires_s == NOW_S + 60);
    for (enum payload_type i = 0; i < PAYLOAD_TYPE_COUNT; i++) {
        assert_int_equal(payload_types_has(token.types, i),
                         i == PAYLOAD_CHAT || i == PAYLOAD_PI_CHUNK);
    }
    assert_int_equal(sandbox_token_check_stream(&token, SLICE("arbe-thread-1"), &last), 0);
    assert_int_equal(sandbox_token_check_stream(&token, SLICE("arbe-thread-12"), &last), -1);
    assert_int_equal(last.code, API_FORBIDDEN);
    assert_string_equal(last.message,
                        "the sandbox token is for the stream arbe-thread-1, not for this one");
}

/* The longest names, in characters that need escapes, and all types fit. */
static void test_longest(void **state)
{
    char agent[ENTRY_AUTHOR_BYTES_MAX];
    char stream[STREAM_NAME_BYTES_MAX];
    struct sandbox_token token = {.agent_id = {agent, sizeof(agent)},
                                  .stream = {stream, sizeof(stream)},
                                  .types = sandbox_types_default(),
                                  .issued_s = NOW_S,
                                  .expires_s = NOW_S + SANDBOX_SECONDS_MAX};
    struct sandbox_token again;
    struct buf out;
    (void)state;
    memset(agent, '\x01', sizeof(agent));
    memset(stream, '"', sizeof(stream));
    buf_init_fixed(&out, memory, sizeof(memory));
    assert_true(sandbox_token_mint(key, &token, &out));
    assert_true(out.len <= SANDBOX_TOKEN_BYTES_MAX);
    assert_int_equal(sandbox_token_verify(key, buf_slice(&out), NOW_MS, &arena, &again, &last), 0);
    assert_true(slice_equal(again.agent_id, token.agent_id));
    assert_true(slice_equal(again.stream, token.stream));
    assert_true(again.types.bits == token.types.bits);
}

/* It is good from its second on, and until the second at which it ends. */
static void test_times(void **state)
{
    struct slice text = mint();
    struct sandbox_token token;
    (void)state;
    assert_int_equal(sandbox_token_verify(key, text, NOW_S * 1000, &arena, &token, &last), 0);
    assert_int_equal(sandbox_token_verify(key, text, NOW_S * 1000 + 59999, &arena, &token, &last),
                     0);
    assert_refused(text, NOW_S * 1000 + 60000, "the sandbox token has expired");
    assert_true(last.suggestion[0] != '\0');
    assert_refused(text, NOW_S * 1000 - 1, "the sandbox token is not good yet");
    assert_refused(text, 0, "the sandbox token is not good yet");
}

/* Any byte changed, left out or added makes it no token of ours; so does another key. */
static void test_tampered(void **state)
{
    struct slice text = mint();
    char bad[SANDBOX_TOKEN_BYTES_MAX];
    struct sandbox_token token;
    (void)state;
    for (size_t i = 0; i < text.len; i++) {
        memcpy(bad, text.ptr, text.len);
        bad[i] = bad[i] == 'A' ? 'B' : 'A';
        assert_refused((struct slice){bad, text.len}, NOW_MS, NULL);
        bad[i] = '\0';
        assert_refused((struct slice){bad, text.len}, NOW_MS, NULL);
        assert_refused((struct slice){text.ptr, i}, NOW_MS, NULL);
    }
    memcpy(bad, text.ptr, text.len);
    bad[text.len] = '=';
    assert_refused((struct slice){bad, text.len + 1}, NOW_MS,
                   "the sandbox token has a signature that is not this server's");
    assert_int_equal(sandbox_token_verify(other_key, text, NOW_MS, &arena, &token, &last), -1);
    assert_string_equal(last.message,
                        "the sandbox token has a signature that is not this server's");
}

/* What is no token at all. */
static void test_nonsense(void **state)
{
    static const char *const texts[] = {"",    ".",     "..",         "...",     "a",
                                        "a.b", "a.b.c", "\xff.\xff.", "arbe_00", "e30.e30."};
    char lengthy[SANDBOX_TOKEN_BYTES_MAX + 1];
    (void)state;
    for (size_t i = 0; i < ARRAY_COUNT(texts); i++) {
        assert_refused(slice_of(texts[i]), NOW_MS, NULL);
    }
    assert_refused((struct slice){NULL, 0}, NOW_MS, "the sandbox token is no JSON Web Token");
    memset(lengthy, '.', sizeof(lengthy));
    assert_refused((struct slice){lengthy, sizeof(lengthy)}, NOW_MS,
                   "the sandbox token is no JSON Web Token");
}

#define CLAIMS(iss, aud, sub, stream, types, iat, nbf, exp)                                   \
    "{\"iss\":" iss ",\"aud\":" aud ",\"sub\":" sub ",\"stream\":" stream ",\"types\":" types \
    ",\"epoch\":0,\"iat\":" iat ",\"nbf\":" nbf ",\"exp\":" exp "}"
#define GOOD_CLAIMS                                                                               \
    CLAIMS("\"arbe\"", "\"sandbox\"", "\"a\"", "\"s\"", "[\"chat\"]", "1700000000", "1700000000", \
           "1700000060")

/* No other algorithm, and none, however it is signed. */
static void test_algorithms(void **state)
{
    static const char *const headers[] = {
        "{\"alg\":\"none\",\"typ\":\"JWT\"}",
        "{\"alg\":\"None\"}",
        "{\"alg\":\"HS384\"}",
        "{\"alg\":\"HS512\"}",
        "{\"alg\":\"RS256\"}",
        "{\"alg\":\"ES256\"}",
        "{\"alg\":7}",
        "{}",
        "[]",
        "",
        "{\"alg\":\"HS256\"",
    };
    struct sandbox_token token;
    (void)state;
    assert_int_equal(sandbox_token_verify(key, sign(HEADER, GOOD_CLAIMS, key, EVP_sha256()), NOW_MS,
                                          &arena, &token, &last),
                     0);
    for (size_t i = 0; i < ARRAY_COUNT(headers); i++) {
        assert_refused(sign(headers[i], GOOD_CLAIMS, key, NULL), NOW_MS, NULL);
        assert_refused(sign(headers[i], GOOD_CLAIMS, key, EVP_sha256()), NOW_MS, NULL);
        assert_refused(sign(headers[i], GOOD_CLAIMS, key, EVP_sha384()), NOW_MS, NULL);
        assert_refused(sign(headers[i], GOOD_CLAIMS, key, EVP_sha512()), NOW_MS, NULL);
    }
    assert_refused(sign(HEADER, GOOD_CLAIMS, key, NULL), NOW_MS, NULL);
    assert_refused(sign(HEADER, GOOD_CLAIMS, key, EVP_sha512()), NOW_MS, NULL);
    assert_refused(sign(HEADER, GOOD_CLAIMS, other_key, EVP_sha256()), NOW_MS, NULL);
}

/* Claims under our own key that nobody minted: each must be there, once, of its kind. */
static void test_claims(void **state)
{
#define TIMES "\"epoch\":7,\"iat\":1700000000,\"nbf\":1700000000,\"exp\":1700000060"
#define NAMES "\"iss\":\"arbe\",\"aud\":\"sandbox\",\"sub\":\"a\",\"stream\":\"s\""
    static const struct {
        const char *claims;
        const char *message;
    } cases[] = {
        {"", NULL},
        {"null", NULL},
        {"[]", NULL},
        {"{}", "the sandbox token has no claim \"iss\" that is a text"},
        {"{\"aud\":\"sandbox\",\"sub\":\"a\",\"stream\":\"s\",\"types\":[]," TIMES "}",
         "the sandbox token has no claim \"iss\" that is a text"},
        {"{\"iss\":\"arbe\",\"sub\":\"a\",\"stream\":\"s\",\"types\":[]," TIMES "}",
         "the sandbox token has no claim \"aud\" that is a text"},
        {"{\"iss\":\"arbe\",\"aud\":\"sandbox\",\"stream\":\"s\",\"types\":[]," TIMES "}",
         "the sandbox token has no claim \"sub\" that is a text"},
        {"{\"iss\":\"arbe\",\"aud\":\"sandbox\",\"sub\":\"a\",\"types\":[]," TIMES "}",
         "the sandbox token has no claim \"stream\" that is a text"},
        {"{" NAMES "," TIMES "}", "the sandbox token has no claim \"types\" that is an array"},
        {"{" NAMES ",\"types\":\"chat\"," TIMES "}",
         "the sandbox token has no claim \"types\" that is an array"},
        {"{" NAMES ",\"types\":[7]," TIMES "}",
         "the sandbox token has a claim \"types\" with something else than names"},
        {"{" NAMES ",\"types\":[],\"iat\":1700000000,\"nbf\":1700000000,\"exp\":1700000060}",
         "the sandbox token has no claim \"epoch\" that is a number"},
        {"{" NAMES ",\"types\":[],\"epoch\":-1,"
         "\"iat\":1700000000}",
         "the sandbox token has no claim \"epoch\" that is a number"},
        {"{" NAMES ",\"types\":[],\"epoch\":7,\"nbf\":1700000000,\"exp\":1700000060}",
         "the sandbox token has no claim \"iat\" that is a number of seconds"},
        {"{" NAMES ",\"types\":[],\"epoch\":7,\"iat\":1700000000,\"exp\":1700000060}",
         "the sandbox token has no claim \"nbf\" that is a number of seconds"},
        {"{" NAMES ",\"types\":[],\"epoch\":7,\"iat\":1700000000,\"nbf\":1700000000}",
         "the sandbox token has no claim \"exp\" that is a number of seconds"},
        {"{" NAMES
         ",\"types\":[],\"epoch\":7,\"iat\":1700000000,\"nbf\":1700000000,\"exp\":\"1700000060\"}",
         "the sandbox token has no claim \"exp\" that is a number of seconds"},
        {"{" NAMES ",\"types\":[],\"epoch\":7,\"iat\":1700000000,\"nbf\":-1,\"exp\":1700000060}",
         "the sandbox token has no claim \"nbf\" that is a number of seconds"},
        {"{" NAMES
         ",\"types\":[],\"epoch\":7,\"iat\":1700000000,\"nbf\":1700000001,\"exp\":1700000060}",
         "the sandbox token is not good yet"},
        {"{" NAMES
         ",\"types\":[],\"epoch\":7,\"iat\":1700000001,\"nbf\":1700000000,\"exp\":1700000060}",
         "the sandbox token is not good yet"},
        {"{" NAMES
         ",\"types\":[],\"epoch\":7,\"iat\":1699999000,\"nbf\":1699999000,\"exp\":1700000000}",
         "the sandbox token has expired"},
        {"{" NAMES
         ",\"types\":[],\"epoch\":7,\"iat\":1700000000,\"nbf\":1700000000,\"exp\":1700086401}",
         "the sandbox token is good for longer than a day"},
        {CLAIMS("\"other\"", "\"sandbox\"", "\"a\"", "\"s\"", "[]", "1", "1", "1700000060"),
         "the sandbox token is not for sandboxes"},
        {CLAIMS("\"arbe\"", "\"api\"", "\"a\"", "\"s\"", "[]", "1", "1", "1700000060"),
         "the sandbox token is not for sandboxes"},
        {CLAIMS("\"arbe\"", "[\"sandbox\"]", "\"a\"", "\"s\"", "[]", "1", "1", "1700000060"),
         "the sandbox token has no claim \"aud\" that is a text"},
        {CLAIMS("\"arbe\"", "\"sandbox\"", "\"\"", "\"s\"", "[]", "1", "1", "1700000060"),
         "the sandbox token has no claim \"sub\" that is a text"},
        {"{" NAMES ",\"sub\":\"b\",\"types\":[]," TIMES "}",
         "the sandbox token has no claim \"sub\" that is a text"},
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
        assert_refused(sign(HEADER, cases[i].claims, key, EVP_sha256()), NOW_MS, cases[i].message);
    }
#undef TIMES
#undef NAMES
}

/* Types of a later version are left out of the set. */
static void test_unknown_types(void **state)
{
    struct sandbox_token token;
    (void)state;
    assert_int_equal(sandbox_token_verify(key,
                                          sign(HEADER,
                                               CLAIMS("\"arbe\"", "\"sandbox\"", "\"a\"", "\"s\"",
                                                      "[\"later.kind\",\"pi.chunk\",\"pi.*\"]",
                                                      "1700000000", "1700000000", "1700000060"),
                                               key, EVP_sha256()),
                                          NOW_MS, &arena, &token, &last),
                     0);
    assert_true(token.types.bits == UINT64_C(1) << PAYLOAD_PI_CHUNK);
}

/* Where memory ends, that is told, and no good token is called bad for it. */
static void test_no_memory(void **state)
{
    struct slice text = mint();
    struct sandbox_token token;
    struct sandbox_token small = {.agent_id = SLICE("a"), .stream = SLICE("s"), .expires_s = 1};
    struct arena tiny;
    struct buf out;
    char few[20];
    (void)state;
    arena_init(&tiny, 10);
    assert_int_equal(sandbox_token_verify(key, text, NOW_MS, &tiny, &token, &last), -1);
    assert_int_equal(last.code, API_INTERNAL);
    arena_finish(&tiny);
    buf_init_fixed(&out, few, sizeof(few));
    assert_false(sandbox_token_mint(key, &small, &out));
}

static int read_asked(const char *array, struct payload_types *types)
{
    struct slice value;
    assert_int_equal(json_text_read(slice_of(array), &value, NULL), 0);
    return sandbox_types_read(value, types, &last);
}

/* Names and families of what sandboxes may write, and nothing else. */
static void test_types(void **state)
{
    static const struct {
        const char *array;
        const char *field;
    } bad[] = {
        {"{}", "types"},
        {"[]", "types"},
        {"[7]", "types[0]"},
        {"[\"chat\",\"signal.house.created\"]", "types[1]"},
        {"[\"signal.house.*\"]", "types[0]"},
        {"[\"later.kind\"]", "types[0]"},
        {"[\"*\"]", "types[0]"},
        {"[\".*\"]", "types[0]"},
        {"[\"\"]", "types[0]"},
        {"[\"pi*\"]", "types[0]"},
        {"[\"chat.*\"]", "types[0]"},
    };
    struct payload_types types = {0};
    (void)state;
    assert_int_equal(read_asked("[\"chat\",\"pi.chunk\"]", &types), 0);
    assert_true(types.bits == (UINT64_C(1) << PAYLOAD_CHAT | UINT64_C(1) << PAYLOAD_PI_CHUNK));
    assert_int_equal(read_asked("[\"pi.*\",\"signal.*\"]", &types), 0);
    assert_true(types.bits == sandbox_types_default().bits);
    assert_false(payload_types_has(types, PAYLOAD_CHAT));
    assert_int_equal(read_asked("[\"signal.thread.*\"]", &types), 0);
    assert_int_equal(__builtin_popcountll(types.bits), 3);
    for (size_t i = 0; i < ARRAY_COUNT(bad); i++) {
        types.bits = 99;
        assert_int_equal(read_asked(bad[i].array, &types), -1);
        assert_int_equal(types.bits, 99);
        assert_int_equal(last.code, API_INVALID_INPUT);
        assert_string_equal(last.field, bad[i].field);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_good, setup, teardown),
        cmocka_unit_test_setup_teardown(test_longest, setup, teardown),
        cmocka_unit_test_setup_teardown(test_times, setup, teardown),
        cmocka_unit_test_setup_teardown(test_tampered, setup, teardown),
        cmocka_unit_test_setup_teardown(test_nonsense, setup, teardown),
        cmocka_unit_test_setup_teardown(test_algorithms, setup, teardown),
        cmocka_unit_test_setup_teardown(test_claims, setup, teardown),
        cmocka_unit_test_setup_teardown(test_unknown_types, setup, teardown),
        cmocka_unit_test_setup_teardown(test_no_memory, setup, teardown),
        cmocka_unit_test(test_types),
    };
    return UNIT_RUN(tests);
}
