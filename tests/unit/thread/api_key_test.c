/* Keys and tokens: their shape and their hash. */
#include "thread/api_key.c"

#include "unit/base/unit.h"

#define DIGITS "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1eff"

static void make_random(unsigned char random[static API_KEY_RANDOM_BYTES])
{
    for (unsigned i = 0; i < API_KEY_RANDOM_BYTES; i++) {
        random[i] = (unsigned char)i;
    }
    random[API_KEY_RANDOM_BYTES - 1] = 0xff;
}

/* A key is the prefix and the random bytes in hexadecimal, a token is those alone. */
static void test_make(void **state)
{
    unsigned char random[API_KEY_RANDOM_BYTES];
    char key[API_KEY_BYTES];
    char token[API_TOKEN_BYTES];
    (void)state;
    make_random(random);
    api_key_make(random, key);
    api_token_make(random, token);
    assert_string_equal(key, "arbe_" DIGITS);
    assert_string_equal(token, DIGITS);
    assert_true(api_key_shape_good(slice_of(key)));
    assert_true(api_token_shape_good(slice_of(token)));
    assert_false(api_key_shape_good(slice_of(token)));
    assert_false(api_token_shape_good(slice_of(key)));
}

/* Anything that was not made so has another shape. */
static void test_shape(void **state)
{
    static const char *const bad[] = {
        "",
        "arbe_",
        "arbe_0",
        "ARBE_" DIGITS,
        "arbe-" DIGITS,
        "arbe_" DIGITS "0",
        " arbe_" DIGITS,
        "arbe_000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1ef",
        "arbe_000102030405060708090A0b0c0d0e0f101112131415161718191a1b1c1d1eff",
        "arbe_000102030405060708090g0b0c0d0e0f101112131415161718191a1b1c1d1eff",
        "arbe_000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1ef\n",
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_COUNT(bad); i++) {
        assert_false(api_key_shape_good(slice_of(bad[i])));
    }
    assert_false(api_key_shape_good((struct slice){NULL, 0}));
    assert_false(api_token_shape_good((struct slice){NULL, 0}));
}

/* The hash is the SHA-256 of the whole text (FIPS 180-2, appendix B.1). */
static void test_hash(void **state)
{
    char hash[API_KEY_HASH_BYTES];
    (void)state;
    assert_true(api_key_hash(SLICE("abc"), hash));
    assert_string_equal(hash, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    assert_true(api_key_hash((struct slice){NULL, 0}, hash));
    assert_string_equal(hash, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_make),
        cmocka_unit_test(test_shape),
        cmocka_unit_test(test_hash),
    };
    return UNIT_RUN(tests);
}
