/* Tokens: what they hold, and that nothing but the very text that was minted is taken. */
#include "stream/token.c"

#include "unit/base/unit.h"

static const unsigned char key[TOKEN_KEY_BYTES] = "0123456789abcdef0123456789abcde";
static const unsigned char other_key[TOKEN_KEY_BYTES] = "0123456789abcdef0123456789abcdf";

#define NOW INT64_C(1700000000999)

static char memory[TOKEN_BYTES_MAX + 1];

static struct slice mint(struct slice subscription, uint64_t generation)
{
    struct token t = {.subscription = subscription, .generation = generation, .now_ms = NOW};
    struct buf out;

    memset(t.jti, 0xfb, sizeof(t.jti));
    buf_init_fixed(&out, memory, sizeof(memory));
    token_mint(&out, key, &t);
    assert_false(out.failed);
    return buf_slice(&out);
}

static enum token_verdict check(struct slice text, struct slice subscription, int64_t now_ms)
{
    uint64_t generation = 99;
    enum token_verdict verdict = token_check(text, key, subscription, now_ms, &generation);

    assert_int_equal(generation, verdict == TOKEN_INVALID ? 99 : 7);
    return verdict;
}

/* A token is good for its subscription, tells its generation, and holds the four claims. */
static void test_good(void **state)
{
    struct slice text = mint(SLICE("sub/1"), 7);
    struct slice rest = text;
    struct slice first;
    char claims[200];
    size_t len = 0;

    (void)state;
    assert_int_equal(check(text, SLICE("sub/1"), NOW), TOKEN_GOOD);
    assert_true(slice_split(&rest, '.', &first));
    assert_true(base64url_decode(first, claims, &len));
    claims[len] = '\0';
    assert_string_equal(claims, "{\"sub\":\"subscription:sub/1\",\"epoch\":7,\"exp\":1700003600,"
                                "\"jti\":\"-_v7-_v7-_v7-_v7\"}");
}

/* It is too old an hour later, to the second, and only for its own subscription. */
static void test_expired(void **state)
{
    struct slice text = mint(SLICE("s"), 7);

    (void)state;
    assert_int_equal(check(text, SLICE("s"), NOW + TOKEN_LIFE_MS - 1000), TOKEN_GOOD);
    assert_int_equal(check(text, SLICE("s"), NOW + TOKEN_LIFE_MS), TOKEN_EXPIRED);
    assert_int_equal(check(text, SLICE("t"), NOW + TOKEN_LIFE_MS), TOKEN_INVALID);
    assert_int_equal(check(text, SLICE("s"), 0), TOKEN_GOOD);
}

/* Another subscription, though it begins or ends alike, and another key. */
static void test_other(void **state)
{
    struct slice text = mint(SLICE("sub"), 7);
    uint64_t generation;

    (void)state;
    assert_int_equal(check(text, SLICE("su"), NOW), TOKEN_INVALID);
    assert_int_equal(check(text, SLICE("sub1"), NOW), TOKEN_INVALID);
    assert_int_equal(check(text, SLICE(""), NOW), TOKEN_INVALID);
    assert_int_equal(token_check(text, other_key, SLICE("sub"), NOW, &generation), TOKEN_INVALID);
}

/* Any one byte changed, left out or added makes it no token. */
static void test_tampered(void **state)
{
    struct slice text = mint(SLICE("sub"), 7);
    char bad[TOKEN_BYTES_MAX + 1];

    (void)state;
    for (size_t i = 0; i < text.len; i++) {
        memcpy(bad, text.ptr, text.len);
        bad[i] = bad[i] == 'A' ? 'B' : 'A';
        assert_int_equal(check((struct slice){bad, text.len}, SLICE("sub"), NOW), TOKEN_INVALID);
        bad[i] = '\0';
        assert_int_equal(check((struct slice){bad, text.len}, SLICE("sub"), NOW), TOKEN_INVALID);
        assert_int_equal(check((struct slice){text.ptr, i}, SLICE("sub"), NOW), TOKEN_INVALID);
    }
    memcpy(bad, text.ptr, text.len);
    bad[text.len] = '=';
    assert_int_equal(check((struct slice){bad, text.len + 1}, SLICE("sub"), NOW), TOKEN_INVALID);
}

/* What is no token at all. */
static void test_nonsense(void **state)
{
    static const char *const texts[] = {"",     ".",
                                        "a",    "a.b",
                                        "..",   "e30.AAAAAAAAAAAAAAAAAAAAAAA",
                                        "\xff", "e30.AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"};
    char lengthy[TOKEN_BYTES_MAX + 1];

    (void)state;
    for (size_t i = 0; i < ARRAY_COUNT(texts); i++) {
        assert_int_equal(check(slice_of(texts[i]), SLICE("s"), NOW), TOKEN_INVALID);
    }
    assert_int_equal(check((struct slice){NULL, 0}, SLICE("s"), NOW), TOKEN_INVALID);
    memset(lengthy, 'a', sizeof(lengthy));
    lengthy[sizeof(lengthy) - MAC_TEXT_BYTES - 1] = '.';
    assert_int_equal(check((struct slice){lengthy, sizeof(lengthy)}, SLICE("s"), NOW),
                     TOKEN_INVALID);
}

/* Texts with a MAC of ours that nobody minted, as after a change of versions, are not believed. */
static void test_strange_claims(void **state)
{
    static const char *const claims[] = {
        "",
        "null",
        "[]",
        "{}",
        "{\"sub\":\"subscription:s\"}",
        "{\"sub\":\"subscription:s\",\"epoch\":7}",
        "{\"sub\":\"subscription:s\",\"epoch\":\"7\",\"exp\":9999999999}",
        "{\"sub\":\"subscription:s\",\"epoch\":7,\"exp\":null}",
        "{\"sub\":\"s\",\"epoch\":7,\"exp\":9999999999}",
        "{\"sub\":[\"subscription:s\"],\"epoch\":7,\"exp\":9999999999}",
        "{\"sub\":\"subscription:s\",\"epoch\":7,\"exp\":9999999999}x",
        "{\"sub\":\"subscription:s\",\"epoch\":7,\"epoch\":7,\"exp\":9999999999}",
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_COUNT(claims); i++) {
        char text[300];
        struct slice first = {text, base64url_encode(text, slice_of(claims[i]))};

        assert_true(make_mac(key, first, text + first.len + 1));
        text[first.len] = '.';
        struct slice whole = {text, first.len + 1 + MAC_TEXT_BYTES};

        assert_int_equal(check(whole, SLICE("s"), NOW), TOKEN_INVALID);
    }
    char odd[100] = "{not base64}";
    assert_true(make_mac(key, SLICE("{not base64}"), odd + 13));
    odd[12] = '.';
    assert_int_equal(check((struct slice){odd, 13 + MAC_TEXT_BYTES}, SLICE("s"), NOW),
                     TOKEN_INVALID);
}

/* The longest id, all of it escapes, and the greatest generation fit. */
static void test_longest(void **state)
{
    char id[SUBSCRIPTION_ID_BYTES_MAX];
    uint64_t generation = 0;

    (void)state;
    memset(id, 1, sizeof(id));
    struct slice text = mint((struct slice){id, sizeof(id)}, NUMBER_JS_MAX);

    assert_int_equal(token_check(text, key, (struct slice){id, sizeof(id)}, NOW, &generation),
                     TOKEN_GOOD);
    assert_true(generation == NUMBER_JS_MAX);
}

/* A buffer that is too small is failed. */
static void test_full(void **state)
{
    struct token t = {.subscription = SLICE("s"), .now_ms = NOW};
    struct buf out;

    (void)state;
    buf_init_fixed(&out, memory, 50);
    token_mint(&out, key, &t);
    assert_true(out.failed);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_good),     cmocka_unit_test(test_expired),
        cmocka_unit_test(test_other),    cmocka_unit_test(test_tampered),
        cmocka_unit_test(test_nonsense), cmocka_unit_test(test_strange_claims),
        cmocka_unit_test(test_longest),  cmocka_unit_test(test_full),
    };

    return UNIT_RUN(tests);
}
