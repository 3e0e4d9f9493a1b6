/* DIR/keys/keys.pem, text, its lines in this order:
 *
 *     arbe keys 1
 *     <a line for whoever opens it>
 *     token <64 hexadecimal digits>
 *     key <kid> made <ms since 1970> signs <ms since 1970>      one or more, `signs` ascending,
 *     -----BEGIN PRIVATE KEY-----                               each followed by its PKCS #8 form
 *     ...                                                       (RFC 8410)
 *     -----END PRIVATE KEY-----
 *     sha256 <64 hexadecimal digits of all bytes before this line>
 *
 * The file is replaced as a whole, so a crash leaves the old one or the new one. It is good when
 * the last line proves the rest and every key has the id that its public half gives. */
#include "serve/keys_file.h"

#include "base/base64.h"
#include "base/number.h"

#include <openssl/crypto.h>
#include <openssl/err.h>
#include <openssl/evp.h>

#include <assert.h>

#define DIGEST_BYTES 32u
#define FIRST_LINE   "arbe keys 1\n"
#define NOTICE_LINE \
    "The secrets of a streams server: for its eyes only. arbe streams rotate-key changes them.\n"
#define PEM_BEGIN "-----BEGIN PRIVATE KEY-----\n"
#define PEM_END   "\n-----END PRIVATE KEY-----\n"

/* RFC 8410 section 7: of an Ed25519 key all but the seed is always the same. So no parser is
 * needed, which would ask for passwords and tell damage from want of memory by guessing. */
static const uint8_t pkcs8[16] = {0x30, 0x2e, 0x02, 0x01, 0x00, 0x30, 0x05, 0x06,
                                  0x03, 0x2b, 0x65, 0x70, 0x04, 0x22, 0x04, 0x20};

#define PKCS8_BYTES    (sizeof(pkcs8) + KEYS_SEED_BYTES)
#define PEM_LINE_BYTES BASE64_LEN(PKCS8_BYTES) /* no padding: 48 is divisible by 3 */

/* base64url with a NUL. `out` holds BASE64_LEN, and that. */
static void encode_url(char *out, struct slice bytes)
{
    out[base64url_encode(out, bytes)] = '\0';
}

static void encode_hex(char *out, const uint8_t *bytes, size_t len)
{
    static const char digits[] = "0123456789abcdef";

    for (size_t i = 0; i < len; i++) {
        out[2 * i] = digits[bytes[i] >> 4];
        out[2 * i + 1] = digits[bytes[i] & 15];
    }
}

/* Lower case only, as encode_hex writes it. */
static bool decode_hex(struct slice text, uint8_t *out, size_t len)
{
    if (text.len != 2 * len) {
        return false;
    }
    for (size_t i = 0; i < text.len; i++) {
        char c = text.ptr[i];
        int digit = c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;

        if (digit < 0) {
            return false;
        }
        out[i / 2] = (uint8_t)(i % 2 == 0 ? digit << 4 : out[i / 2] | digit);
    }
    return true;
}

static int digest(struct slice bytes, uint8_t out[static DIGEST_BYTES])
{
    unsigned len = DIGEST_BYTES;

    return EVP_Digest(bytes.ptr, bytes.len, out, &len, EVP_sha256(), NULL) == 1 ? 0 : ERR_NOMEM;
}

static EVP_PKEY *key_of(const struct keys_pair *pair)
{
    return EVP_PKEY_new_raw_private_key(EVP_PKEY_ED25519, NULL, pair->seed, sizeof(pair->seed));
}

int keys_pair_init(struct keys_pair *pair, const uint8_t seed[static KEYS_SEED_BYTES],
                   int64_t made_ms, int64_t signs_ms)
{
    uint8_t public[32];
    uint8_t print[DIGEST_BYTES];
    size_t len = sizeof(public);
    char jwk[128];
    char text[BASE64_LEN(DIGEST_BYTES) + 1];

    memcpy(pair->seed, seed, sizeof(pair->seed));
    pair->made_ms = made_ms;
    pair->signs_ms = signs_ms;
    EVP_PKEY *key = key_of(pair);

    if (key == NULL || EVP_PKEY_get_raw_public_key(key, public, &len) != 1) {
        EVP_PKEY_free(key);
        ERR_clear_error();
        return ERR_NOMEM;
    }
    EVP_PKEY_free(key);
    assert(len == sizeof(public));
    encode_url(text, (struct slice){(const char *)public, sizeof(public)});
    memcpy(pair->x, text, sizeof(pair->x));

    /* RFC 7638: the required members in the order of their names, without spaces. */
    int jwk_len = snprintf(jwk, sizeof(jwk), "{\"crv\":\"Ed25519\",\"kty\":\"OKP\",\"x\":\"%s\"}",
                           pair->x);

    assert(jwk_len > 0 && (size_t)jwk_len < sizeof(jwk));
    if (digest((struct slice){jwk, (size_t)jwk_len}, print) != 0) {
        return ERR_NOMEM;
    }
    encode_url(text, (struct slice){(const char *)print, sizeof(print)});
    memcpy(pair->kid, "ds_", 3);
    memcpy(pair->kid + 3, text, sizeof(pair->kid) - 3);
    return 0;
}

int keys_pair_sign(const struct keys_pair *pair, struct slice bytes, char out[static 87])
{
    uint8_t signature[64];
    size_t len = sizeof(signature);
    char text[BASE64_LEN(sizeof(signature)) + 1];
    EVP_PKEY *key = key_of(pair);
    EVP_MD_CTX *ctx = EVP_MD_CTX_new();
    bool good = key != NULL && ctx != NULL && EVP_DigestSignInit(ctx, NULL, NULL, NULL, key) == 1 &&
                EVP_DigestSign(ctx, signature, &len, (const uint8_t *)bytes.ptr, bytes.len) == 1;

    EVP_MD_CTX_free(ctx);
    EVP_PKEY_free(key);
    if (!good) {
        ERR_clear_error();
        return ERR_NOMEM; /* nothing else can be wrong with a key that was read */
    }
    encode_url(text, (struct slice){(const char *)signature, sizeof(signature)});
    memcpy(out, text, 87);
    return 0;
}

void keys_set_wipe(struct keys_set *set)
{
    OPENSSL_cleanse(set, sizeof(*set));
}

static void append_pem(const struct keys_pair *pair, struct buf *out)
{
    uint8_t bytes[PKCS8_BYTES];
    char line[PEM_LINE_BYTES];

    memcpy(bytes, pkcs8, sizeof(pkcs8));
    memcpy(bytes + sizeof(pkcs8), pair->seed, KEYS_SEED_BYTES);
    (void)base64_encode(line, (struct slice){(const char *)bytes, sizeof(bytes)}); /* all of it */
    buf_append(out, SLICE(PEM_BEGIN));
    buf_append(out, (struct slice){line, sizeof(line)});
    buf_append(out, SLICE(PEM_END));
    OPENSSL_cleanse(bytes, sizeof(bytes));
    OPENSSL_cleanse(line, sizeof(line));
}

void keys_set_encode(const struct keys_set *set, struct buf *out)
{
    char hex[2 * DIGEST_BYTES];
    uint8_t sum[DIGEST_BYTES];

    encode_hex(hex, set->token, sizeof(set->token));
    buf_append(out, SLICE(FIRST_LINE NOTICE_LINE "token "));
    buf_append(out, (struct slice){hex, sizeof(hex)});
    buf_append_char(out, '\n');
    OPENSSL_cleanse(hex, sizeof(hex));
    for (unsigned i = 0; i < set->count; i++) {
        const struct keys_pair *pair = &set->pairs[i];

        buf_append_format(out, "key %s made %lld signs %lld\n", pair->kid, (long long)pair->made_ms,
                          (long long)pair->signs_ms);
        append_pem(pair, out);
    }
    if (out->failed || digest(buf_slice(out), sum) != 0) {
        out->failed = true;
        return;
    }
    encode_hex(hex, sum, sizeof(sum));
    buf_append(out, SLICE("sha256 "));
    buf_append(out, (struct slice){hex, sizeof(hex)});
    buf_append_char(out, '\n');
}

/* Takes `literal` off the front. */
static bool take(struct slice *rest, struct slice literal)
{
    if (!slice_starts_with(*rest, literal)) {
        return false;
    }
    rest->ptr += literal.len;
    rest->len -= literal.len;
    return true;
}

/* Takes what stands before `end`, and it, which is one character. */
static bool take_until(struct slice *rest, char end, struct slice *ret_word)
{
    const char *at = rest->len > 0 ? memchr(rest->ptr, end, rest->len) : NULL;

    if (at == NULL) {
        return false;
    }
    *ret_word = (struct slice){rest->ptr, (size_t)(at - rest->ptr)};
    rest->len -= ret_word->len + 1;
    rest->ptr = at + 1;
    return true;
}

static bool take_time(struct slice *rest, char end, int64_t *ret_ms)
{
    struct slice word;
    uint64_t ms = 0;

    if (!take_until(rest, end, &word) || !number_parse_u64(word, NUMBER_JS_MAX, false, &ms)) {
        return false;
    }
    *ret_ms = (int64_t)ms;
    return true;
}

/* Takes a PEM block and gives the Ed25519 seed in it. */
static bool take_pem(struct slice *rest, uint8_t seed[static KEYS_SEED_BYTES])
{
    char line[PEM_LINE_BYTES];
    uint8_t bytes[PEM_LINE_BYTES]; /* more than it needs, as the decoder wants */
    size_t len = 0;

    if (!take(rest, SLICE(PEM_BEGIN)) || rest->len < sizeof(line)) {
        return false;
    }
    for (size_t i = 0; i < sizeof(line); i++) { /* from base64 to base64url */
        char c = rest->ptr[i];

        line[i] = (char)(c == '+' ? '-' : c == '/' ? '_' : c == '-' || c == '_' ? '?' : c);
    }
    *rest = (struct slice){rest->ptr + sizeof(line), rest->len - sizeof(line)};
    bool good = take(rest, SLICE(PEM_END)) &&
                base64url_decode((struct slice){line, sizeof(line)}, (char *)bytes, &len) &&
                len == PKCS8_BYTES && memcmp(bytes, pkcs8, sizeof(pkcs8)) == 0;

    if (good) {
        memcpy(seed, bytes + sizeof(pkcs8), KEYS_SEED_BYTES);
    }
    OPENSSL_cleanse(bytes, sizeof(bytes));
    OPENSSL_cleanse(line, sizeof(line));
    return good;
}

static int take_pair(struct slice *rest, struct keys_set *set, struct errmsg *msg)
{
    struct keys_pair *pair = &set->pairs[set->count];
    struct slice kid;
    uint8_t seed[KEYS_SEED_BYTES];
    int64_t made_ms = 0;
    int64_t signs_ms = 0;

    if (!take(rest, SLICE("key ")) || !take_until(rest, ' ', &kid) || !take(rest, SLICE("made ")) ||
        !take_time(rest, ' ', &made_ms) || !take(rest, SLICE("signs ")) ||
        !take_time(rest, '\n', &signs_ms)) {
        return err_set(msg, ERR_CORRUPT, "key %u has no line of its own", set->count + 1);
    }
    if (set->count > 0 && signs_ms <= set->pairs[set->count - 1].signs_ms) {
        return err_set(msg, ERR_CORRUPT, "key %u is out of order", set->count + 1);
    }
    if (!take_pem(rest, seed)) {
        return err_set(msg, ERR_CORRUPT, "key %u is no Ed25519 key in PEM", set->count + 1);
    }
    int rc = keys_pair_init(pair, seed, made_ms, signs_ms);

    OPENSSL_cleanse(seed, sizeof(seed));
    if (rc == 0 && !slice_equal(kid, slice_of(pair->kid))) {
        return err_set(msg, ERR_CORRUPT, "key %u does not belong to its id", set->count + 1);
    }
    set->count++;
    return rc;
}

/* Takes off the last line, which must prove what stands before it. */
static int check_sum(struct slice *text, struct errmsg *msg)
{
    static const size_t line = 7 + 2 * DIGEST_BYTES + 1;
    uint8_t sum[DIGEST_BYTES];
    uint8_t said[DIGEST_BYTES];

    if (text->len < line) {
        return err_set(msg, ERR_CORRUPT, "it is cut short");
    }
    struct slice body = {text->ptr, text->len - line};
    struct slice last = {text->ptr + body.len, line};

    if (!take(&last, SLICE("sha256 ")) || last.ptr[last.len - 1] != '\n' ||
        !decode_hex((struct slice){last.ptr, last.len - 1}, said, sizeof(said))) {
        return err_set(msg, ERR_CORRUPT, "it does not end in its checksum");
    }
    int rc = digest(body, sum);

    if (rc == 0 && memcmp(sum, said, sizeof(sum)) != 0) {
        return err_set(msg, ERR_CORRUPT, "its bytes do not match their checksum");
    }
    *text = body;
    return rc;
}

static int decode(struct slice text, struct keys_set *set, struct errmsg *msg)
{
    struct slice word;
    int rc = check_sum(&text, msg);

    if (rc != 0) {
        return rc;
    }
    if (!take(&text, SLICE(FIRST_LINE)) || !take_until(&text, '\n', &word)) {
        return err_set(msg, ERR_CORRUPT, "it does not begin with \"arbe keys 1\"");
    }
    if (!take(&text, SLICE("token ")) || !take_until(&text, '\n', &word) ||
        !decode_hex(word, set->token, sizeof(set->token))) {
        return err_set(msg, ERR_CORRUPT, "it holds no key of tokens");
    }
    while (rc == 0 && text.len > 0) {
        if (set->count == KEYS_MAX) {
            return err_set(msg, ERR_CORRUPT, "it holds more than %u keys", KEYS_MAX);
        }
        rc = take_pair(&text, set, msg);
    }
    return rc == 0 && set->count == 0 ? err_set(msg, ERR_CORRUPT, "it holds no signing key") : rc;
}

int keys_set_decode(struct slice text, struct keys_set *ret_set, struct errmsg *msg)
{
    struct keys_set set = {.count = 0};
    int rc = decode(text, &set, msg);

    if (rc == 0) {
        *ret_set = set;
    }
    keys_set_wipe(&set);
    return rc;
}
