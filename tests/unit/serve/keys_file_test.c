/* One set of keys and its text: RFC 8032's own example, the way there and back, each damage. */
#include "serve/keys_file.c"

#include <openssl/pem.h>
#include <stdio.h>
#include <stdlib.h>

#include "unit/base/unit.h"

/* RFC 8032 section 7.1, test 2. */
static const char seed_hex[] = "4ccd089b28ff96da9db6c346ec114e0f5b8a319f35aba624da8cf6ed4fb8a6fb";
static const char signature_hex[] =
    "92a009a9f0d4cab8720e820b5f642540a2b27b5416503f8fb3762223ebdb69da"
    "085ac1e43e15996e458f3613d0f11d8c387b2eaeb4302aeeb00d291612bb0c00";

static void fill(struct keys_set *set, unsigned count)
{
    uint8_t seed[KEYS_SEED_BYTES];

    *set = (struct keys_set){.count = count};
    memset(set->token, 0xa5, sizeof(set->token));
    for (unsigned i = 0; i < count; i++) {
        memset(seed, (int)(i + 1), sizeof(seed));
        assert_int_equal(keys_pair_init(&set->pairs[i], seed, 1000 * i, 1000 * i + 7), 0);
    }
}

static struct buf encode(const struct keys_set *set)
{
    struct buf out;

    buf_init(&out, KEYS_FILE_BYTES_MAX);
    keys_set_encode(set, &out);
    assert_false(out.failed);
    return out;
}

/* Key, signature and id are those of the documents that define them. */
static void test_example(void **state)
{
    (void)state;
    struct keys_pair pair;
    uint8_t seed[KEYS_SEED_BYTES];
    uint8_t signature[64];
    char text[87];
    char wanted[BASE64_LEN(64) + 1];

    assert_true(decode_hex(slice_of(seed_hex), seed, sizeof(seed)));
    assert_int_equal(keys_pair_init(&pair, seed, 1, 2), 0);
    assert_string_equal(pair.x, "PUAXw-hDiVqStwqnTRt-vJyYLM8uxJaMwM1V8Sr0Zgw");
    assert_int_equal(strncmp(pair.kid, "ds_", 3), 0);
    assert_int_equal(strlen(pair.kid), KEYS_KID_BYTES - 1);
    assert_int_equal(keys_pair_sign(&pair, SLICE("\x72"), text), 0);
    assert_true(decode_hex(slice_of(signature_hex), signature, sizeof(signature)));
    encode_url(wanted, (struct slice){(const char *)signature, sizeof(signature)});
    assert_string_equal(text, wanted);
}

/* RFC 8037 appendix A.3: the thumbprint of its example key. */
static void test_thumbprint(void **state)
{
    (void)state;
    struct keys_pair pair;
    uint8_t seed[KEYS_SEED_BYTES];

    assert_true(
        decode_hex(SLICE("9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60"), seed,
                   sizeof(seed)));
    assert_int_equal(keys_pair_init(&pair, seed, 1, 2), 0);
    assert_string_equal(pair.x, "11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo");
    assert_string_equal(pair.kid, "ds_kPrK_qmxVWaYVA9wwBF6Iuo3vVzz7TxHCTwXBygrS4k");
}

/* What is written is read, for one key and for as many as there may be. */
static void test_there_and_back(void **state)
{
    (void)state;
    for (unsigned count = 1; count <= KEYS_MAX; count++) {
        struct keys_set set;
        struct keys_set again = {.count = 0};
        struct errmsg msg = {{0}};

        fill(&set, count);
        struct buf text = encode(&set);

        assert_int_equal(keys_set_decode(buf_slice(&text), &again, &msg), 0);
        assert_int_equal(again.count, count);
        assert_memory_equal(again.token, set.token, sizeof(set.token));
        for (unsigned i = 0; i < count; i++) {
            assert_memory_equal(again.pairs[i].seed, set.pairs[i].seed, KEYS_SEED_BYTES);
            assert_string_equal(again.pairs[i].kid, set.pairs[i].kid);
            assert_int_equal(again.pairs[i].made_ms, 1000 * i);
            assert_int_equal(again.pairs[i].signs_ms, 1000 * i + 7);
        }
        buf_finish(&text);
    }
}

/* Other programs can read it: the first key is where PEM readers look for it. */
static void test_pem(void **state)
{
    (void)state;
    struct keys_set set;
    uint8_t seed[KEYS_SEED_BYTES];
    size_t len = sizeof(seed);

    fill(&set, 2);
    struct buf text = encode(&set);
    BIO *bio = BIO_new_mem_buf(text.ptr, (int)text.len);
    EVP_PKEY *key = PEM_read_bio_PrivateKey(bio, NULL, NULL, NULL);

    assert_non_null(key);
    assert_int_equal(EVP_PKEY_get_raw_private_key(key, seed, &len), 1);
    assert_memory_equal(seed, set.pairs[0].seed, sizeof(seed));
    EVP_PKEY_free(key);
    (void)BIO_free(bio);
    buf_finish(&text);
}

/* Any changed byte, and any missing end, is noticed. */
static void test_damage(void **state)
{
    (void)state;
    struct keys_set set;
    struct keys_set again = {.count = 0};

    fill(&set, 2);
    struct buf text = encode(&set);

    for (size_t i = 0; i < text.len; i++) {
        struct errmsg msg = {{0}};

        text.ptr[i] ^= 4;
        assert_int_equal(keys_set_decode(buf_slice(&text), &again, &msg), ERR_CORRUPT);
        text.ptr[i] ^= 4;
        assert_true(msg.text[0] != '\0');
        assert_int_equal(keys_set_decode((struct slice){text.ptr, i}, &again, &msg), ERR_CORRUPT);
    }
    assert_int_equal(again.count, 0);
    buf_finish(&text);
}

/* Encodes, lets `from` become `to` (of one length), and proves the result again. */
static int decode_changed(unsigned count, const char *from, const char *to)
{
    struct keys_set set;
    struct errmsg msg = {{0}};
    uint8_t sum[DIGEST_BYTES];

    fill(&set, count);
    struct buf text = encode(&set);
    char *at = memmem(text.ptr, text.len, from, strlen(from));

    assert_non_null(at);
    memcpy(at, to, strlen(to));
    size_t body = text.len - 7 - 2 * DIGEST_BYTES - 1;

    assert_int_equal(digest((struct slice){text.ptr, body}, sum), 0);
    encode_hex(text.ptr + body + 7, sum, sizeof(sum));
    int rc = keys_set_decode(buf_slice(&text), &set, &msg);

    keys_set_wipe(&set);
    buf_finish(&text);
    return rc;
}

/* A right checksum alone is not enough. */
static void test_contents(void **state)
{
    (void)state;
    assert_int_equal(decode_changed(2, "keys 1", "keys 1"), 0);
    assert_int_equal(decode_changed(2, "keys 1", "keys 2"), ERR_CORRUPT);
    assert_int_equal(decode_changed(2, "token a5", "token A5"), ERR_CORRUPT);
    assert_int_equal(decode_changed(2, "token a", "tokens "), ERR_CORRUPT);
    assert_int_equal(decode_changed(2, "key ds_", "kid ds_"), ERR_CORRUPT);
    assert_int_equal(decode_changed(2, "key ds_", "key dx_"), ERR_CORRUPT);
    assert_int_equal(decode_changed(2, "signs 1007", "signs 0007"), ERR_CORRUPT);
    assert_int_equal(decode_changed(3, "signs 2007", "signs 1007"), ERR_CORRUPT);
    assert_int_equal(decode_changed(2, "made 1000", "made 1e99"), ERR_CORRUPT);
    assert_int_equal(decode_changed(1, "BEGIN PRIVATE", "BEGIN PRIVATF"), ERR_CORRUPT);
    assert_int_equal(decode_changed(1, "MC4CAQAw", "MC4CAQAx"), ERR_CORRUPT);
    assert_int_equal(decode_changed(1, "-----END PRIVATE", "-----END PRIVATF"), ERR_CORRUPT);
}

/* A buffer that is too small fails as buffers do. */
static void test_no_room(void **state)
{
    (void)state;
    struct keys_set set;
    struct buf out;

    fill(&set, 2);
    struct buf whole = encode(&set);

    for (size_t max = 1; max < whole.len; max += 37) {
        buf_init(&out, max);
        keys_set_encode(&set, &out);
        assert_true(out.failed);
        buf_finish(&out);
    }
    buf_finish(&whole);
}

/* OpenSSL's memory runs out from the i-th allocation on. */
static long openssl_countdown = -1;

static bool openssl_due(void)
{
    openssl_countdown -= openssl_countdown > 0 ? 1 : 0;
    return openssl_countdown == 0;
}

static void *openssl_malloc(size_t size, const char *file, int line)
{
    (void)file, (void)line;
    return openssl_due() ? NULL : malloc(size);
}

static void *openssl_realloc(void *old, size_t size, const char *file, int line)
{
    (void)file, (void)line;
    return openssl_due() ? NULL : realloc(old, size);
}

static void openssl_free(void *old, const char *file, int line)
{
    (void)file, (void)line;
    free(old);
}

/* Wherever OpenSSL finds no memory, that is what is told: not that the file is damaged, which would
 * have somebody replace good keys. */
static void test_openssl_memory(void **state)
{
    (void)state;
    struct keys_set set;
    struct keys_set again;
    struct errmsg msg = {{0}};
    char signature[87];
    uint8_t seed[KEYS_SEED_BYTES] = {9};
    int codes[4] = {-1, -1, -1, -1};

    fill(&set, 2);
    struct buf text = encode(&set);

    for (unsigned step = 0; step < 4; step++) {
        for (long i = 1; codes[step] != 0; i++) {
            struct buf out;

            assert_true(i < 5000);
            buf_init(&out, KEYS_FILE_BYTES_MAX);
            openssl_countdown = i;
            switch (step) {
            case 0:
                codes[step] = keys_pair_init(&again.pairs[0], seed, 1, 2);
                break;
            case 1:
                codes[step] = keys_pair_sign(&set.pairs[0], SLICE("x"), signature);
                break;
            case 2:
                keys_set_encode(&set, &out);
                codes[step] = out.failed ? ERR_NOMEM : 0;
                break;
            default:
                codes[step] = keys_set_decode(buf_slice(&text), &again, &msg);
            }
            openssl_countdown = -1;
            buf_finish(&out);
            if (codes[step] != 0) {
                assert_int_equal(codes[step], ERR_NOMEM);
            }
        }
    }
    assert_int_equal(again.count, 2);
    buf_finish(&text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_example),
        cmocka_unit_test(test_thumbprint),
        cmocka_unit_test(test_there_and_back),
        cmocka_unit_test(test_damage),
        cmocka_unit_test(test_openssl_memory),
        cmocka_unit_test(test_contents),
        cmocka_unit_test(test_pem),
        cmocka_unit_test(test_no_room),
    };

    /* Before OpenSSL allocates anything. */
    if (CRYPTO_set_mem_functions(openssl_malloc, openssl_realloc, openssl_free) != 1) {
        return 1;
    }
    return UNIT_RUN(tests);
}
