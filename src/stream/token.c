/* The MAC is over the text of the first part and is compared as text, so that there is one spelling
 * of a good token, and nothing in it is decoded before it has proved to be ours. */
#include "stream/token.h"

#include <assert.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>

#include "base/base64.h"
#include "base/json.h"
#include "base/json_value.h"
#include "base/number.h"

#define MAC_BYTES      32u
#define MAC_TEXT_BYTES BASE64URL_LEN(MAC_BYTES)
#define SUBJECT        "subscription:"

/* JSON of a token whose id is all escapes. */
#define CLAIMS_BYTES_MAX (128u + 6 * SUBSCRIPTION_ID_BYTES_MAX)

_Static_assert(TOKEN_BYTES_MAX >= BASE64_LEN(CLAIMS_BYTES_MAX) + 1 + BASE64_LEN(MAC_BYTES),
               "any token fits");

/* The text of the MAC over `bytes`; false when OpenSSL has no memory. */
static bool make_mac(const unsigned char key[static TOKEN_KEY_BYTES], struct slice bytes,
                     char out[static BASE64_LEN(MAC_BYTES)])
{
    unsigned char mac[EVP_MAX_MD_SIZE];
    unsigned len = 0;
    if (!HMAC(EVP_sha256(), key, TOKEN_KEY_BYTES, (const unsigned char *)bytes.ptr, bytes.len, mac,
              &len)) {
        return false;
    }
    assert(len == MAC_BYTES);
    (void)base64url_encode(out, (struct slice){(const char *)mac, len}); /* MAC_TEXT_BYTES */
    return true;
}

static void append_claims(struct buf *out, const struct token *t)
{
    char subject[sizeof(SUBJECT) + SUBSCRIPTION_ID_BYTES_MAX];
    char jti[BASE64_LEN(TOKEN_JTI_BYTES)];
    struct buf text;
    size_t jti_len = base64url_encode(jti, (struct slice){(const char *)t->jti, sizeof(t->jti)});
    buf_init_fixed(&text, subject, sizeof(subject));
    buf_append(&text, SLICE(SUBJECT));
    buf_append(&text, t->subscription);
    buf_append(out, SLICE("{\"sub\":"));
    json_append_string(out, buf_slice(&text));
    buf_append(out, SLICE(",\"epoch\":"));
    buf_append_u64(out, t->generation);
    buf_append(out, SLICE(",\"exp\":"));
    buf_append_u64(out, (uint64_t)(t->now_ms + TOKEN_LIFE_MS) / 1000);
    buf_append(out, SLICE(",\"jti\":"));
    json_append_string(out, (struct slice){jti, jti_len});
    buf_append_char(out, '}');
}

void token_mint(struct buf *out, const unsigned char key[static TOKEN_KEY_BYTES],
                const struct token *token)
{
    char memory[CLAIMS_BYTES_MAX + 1];
    char text[BASE64_LEN(CLAIMS_BYTES_MAX)];
    char mac[BASE64_LEN(MAC_BYTES)];
    struct buf claims;
    assert(token->subscription.len <= SUBSCRIPTION_ID_BYTES_MAX);
    assert(token->generation <= NUMBER_JS_MAX);
    assert(token->now_ms >= 0);
    buf_init_fixed(&claims, memory, sizeof(memory));
    append_claims(&claims, token);
    assert(!claims.failed);
    struct slice first = {text, base64url_encode(text, buf_slice(&claims))};
    if (!make_mac(key, first, mac)) {
        out->failed = true;
        return;
    }
    buf_append(out, first);
    buf_append_char(out, '.');
    buf_append(out, (struct slice){mac, MAC_TEXT_BYTES});
}

/* Whether "sub" names this subscription. */
static bool is_for(struct slice claims, struct slice subscription)
{
    char text[sizeof(SUBJECT) + SUBSCRIPTION_ID_BYTES_MAX];
    struct slice value;
    struct buf subject;
    buf_init_fixed(&subject, text, sizeof(text));
    buf_append(&subject, SLICE(SUBJECT));
    buf_append(&subject, subscription);
    return !subject.failed && json_object_find(claims, SLICE("sub"), &value, NULL) == 1 &&
           json_kind(value) == JSON_STRING && json_string_equal(value, buf_slice(&subject));
}

static bool read_number(struct slice claims, struct slice name, uint64_t *ret_number)
{
    struct slice value;
    return json_object_find(claims, name, &value, NULL) == 1 &&
           json_number_u64(value, NUMBER_JS_MAX, ret_number);
}

/* A text whose MAC is ours was written by token_mint, if perhaps by that of another version. */
static enum token_verdict judge(struct slice first, struct slice subscription, int64_t now_ms,
                                uint64_t *ret_generation)
{
    char bytes[TOKEN_BYTES_MAX];
    size_t len = 0;
    struct slice claims;
    uint64_t generation;
    uint64_t expires_s;
    if (!base64url_decode(first, bytes, &len) ||
        json_text_read((struct slice){bytes, len}, &claims, NULL) < 0 ||
        !is_for(claims, subscription) || !read_number(claims, SLICE("epoch"), &generation) ||
        !read_number(claims, SLICE("exp"), &expires_s)) {
        return TOKEN_INVALID;
    }
    *ret_generation = generation;
    return now_ms >= 0 && (uint64_t)now_ms / 1000 >= expires_s ? TOKEN_EXPIRED : TOKEN_GOOD;
}

enum token_verdict token_check(struct slice text, const unsigned char key[static TOKEN_KEY_BYTES],
                               struct slice subscription, int64_t now_ms, uint64_t *ret_generation)
{
    char mac[BASE64_LEN(MAC_BYTES)];
    struct slice first;
    struct slice rest = text;
    if (text.len > TOKEN_BYTES_MAX || text.len == 0 || !slice_split(&rest, '.', &first) ||
        first.len == 0 || rest.len != MAC_TEXT_BYTES || !make_mac(key, first, mac) ||
        !slice_equal_constant_time(rest, (struct slice){mac, MAC_TEXT_BYTES})) {
        return TOKEN_INVALID;
    }
    return judge(first, subscription, now_ms, ret_generation);
}
