/* libjwt writes the tokens and reads them, but the signature is compared here first, and as text:
 * in constant time whichever libjwt there is, with one spelling of a good token, and no parser sees
 * what has not proved to be ours. */
#include "thread/sandbox_token.h"

#include <assert.h>
#include <errno.h>
#include <jwt.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <stdlib.h>

#include "base/base64.h"
#include "base/json.h"
#include "base/json_value.h"
#include "base/limits.h"
#include "base/number.h"
#include "thread/authorship.h"

#define MAC_BYTES      32u
#define MAC_TEXT_BYTES BASE64URL_LEN(MAC_BYTES)

#define ISSUER   SLICE("arbe")
#define AUDIENCE SLICE("sandbox")

/* -------------------------------------------------------------------------------------- minting */

static void append_member(struct buf *out, const char *name, struct slice text)
{
    buf_append_format(out, ",\"%s\":", name);
    json_append_string(out, text);
}

static void append_claims(struct buf *out, const struct sandbox_token *t)
{
    bool first = true;
    buf_append(out, SLICE("{\"iss\":"));
    json_append_string(out, ISSUER);
    append_member(out, "aud", AUDIENCE);
    append_member(out, "sub", t->agent_id);
    append_member(out, "stream", t->stream);
    buf_append(out, SLICE(",\"types\":["));
    for (enum payload_type type = 0; type < PAYLOAD_TYPE_COUNT; type++) {
        if (payload_types_has(t->types, type)) {
            buf_append(out, first ? SLICE("") : SLICE(","));
            json_append_string(out, slice_of(payload_type_text(type)));
            first = false;
        }
    }
    buf_append_format(out, "],\"epoch\":%lld,\"iat\":%lld,\"nbf\":%lld,\"exp\":%lld}",
                      (long long)t->epoch, (long long)t->issued_s, (long long)t->issued_s,
                      (long long)t->expires_s);
}

/* The token of these claims, to be freed; NULL when memory ran out. */
static char *encode(const unsigned char key[static SANDBOX_KEY_BYTES], const char *claims)
{
    jwt_t *jwt = NULL;
    char *text = NULL;
    if (jwt_new(&jwt) == 0 && jwt_add_grants_json(jwt, claims) == 0 &&
        jwt_set_alg(jwt, JWT_ALG_HS256, key, SANDBOX_KEY_BYTES) == 0) {
        text = jwt_encode_str(jwt);
    }
    jwt_free(jwt);
    return text;
}

bool sandbox_token_mint(const unsigned char key[static SANDBOX_KEY_BYTES],
                        const struct sandbox_token *token, struct buf *out)
{
    struct buf claims;
    char *text = NULL;
    assert(token->agent_id.len > 0 && token->agent_id.len <= ENTRY_AUTHOR_BYTES_MAX);
    assert(token->stream.len > 0 && token->stream.len <= STREAM_NAME_BYTES_MAX);
    assert(token->issued_s >= 0 && token->expires_s > token->issued_s);
    assert(token->expires_s - token->issued_s <= SANDBOX_SECONDS_MAX);
    buf_init(&claims, SANDBOX_TOKEN_BYTES_MAX);
    append_claims(&claims, token);
    buf_append_char(&claims, '\0');
    if (!claims.failed) {
        text = encode(key, claims.ptr);
    }
    if (text) {
        buf_append(out, slice_of(text));
    }
    bool good = text && !out->failed;
    free(text);
    buf_finish(&claims);
    return good;
}

/* ------------------------------------------------------------------------------------ verifying */

static int refuse(struct api_error *e, const char *said)
{
    return api_error_set(e, API_UNAUTHENTICATED, "the sandbox token %s", said);
}

static int no_memory(struct api_error *e)
{
    return api_error_set(e, API_INTERNAL, "out of memory");
}

/* Whether the last of three parts is the MAC of the first two, under our key. */
static int check_mac(const unsigned char key[static SANDBOX_KEY_BYTES], struct slice text,
                     struct api_error *e)
{
    unsigned char mac[EVP_MAX_MD_SIZE];
    char wanted[BASE64_LEN(MAC_BYTES)];
    unsigned len = 0;
    const char *dot = text.len > 0 ? memrchr(text.ptr, '.', text.len) : NULL;
    if (!dot || text.len > SANDBOX_TOKEN_BYTES_MAX ||
        !memchr(text.ptr, '.', (size_t)(dot - text.ptr))) {
        return refuse(e, "is no JSON Web Token");
    }
    struct slice signing = {text.ptr, (size_t)(dot - text.ptr)};
    struct slice given = {dot + 1, text.len - signing.len - 1};
    if (!HMAC(EVP_sha256(), key, SANDBOX_KEY_BYTES, (const unsigned char *)signing.ptr, signing.len,
              mac, &len)) {
        return no_memory(e);
    }
    assert(len == MAC_BYTES);
    (void)base64url_encode(wanted, (struct slice){(const char *)mac, len}); /* MAC_TEXT_BYTES */
    return slice_equal_constant_time(given, (struct slice){wanted, MAC_TEXT_BYTES})
               ? 0
               : refuse(e, "has a signature that is not this server's");
}

/* Whether libjwt takes it as a token of HS256 under our key. */
static int check_token(const unsigned char key[static SANDBOX_KEY_BYTES], const char *token,
                       struct api_error *e)
{
    jwt_t *jwt = NULL;
    int code = jwt_decode(&jwt, token, key, SANDBOX_KEY_BYTES);
    if (code == ENOMEM) {
        return no_memory(e);
    }
    bool good = code == 0 && jwt_get_alg(jwt) == JWT_ALG_HS256;
    jwt_free(jwt);
    return good ? 0 : refuse(e, "is no JSON Web Token of HS256");
}

/* The claims as a JSON object in the arena. They are taken from the text, since libjwt lets a claim
 * stand twice. */
static int decode(const unsigned char key[static SANDBOX_KEY_BYTES], struct slice text,
                  struct arena *arena, struct slice *ret_claims, struct api_error *e)
{
    struct slice rest = text;
    struct slice part;
    size_t len = 0;
    const char *token = arena_try_copy(arena, text); /* ends with NUL */
    char *claims = arena_try_alloc(arena, text.len);
    if (!token || !claims) {
        return no_memory(e);
    }
    if (check_token(key, token, e) < 0) {
        return -1;
    }
    (void)slice_split(&rest, '.', &part); /* the header */
    (void)slice_split(&rest, '.', &part); /* there are two dots: check_mac */
    if (!base64url_decode(part, claims, &len) ||
        json_text_read((struct slice){claims, len}, ret_claims, NULL) < 0 ||
        json_kind(*ret_claims) != JSON_OBJECT) {
        return refuse(e, "has no claims");
    }
    return 0;
}

static int read_text(struct slice claims, const char *name, size_t max, struct arena *arena,
                     struct slice *ret_text, struct api_error *e)
{
    int found = payload_string(claims, slice_of(name), arena, ret_text);
    if (found < 0) {
        return no_memory(e);
    }
    return found == 1 && ret_text->len > 0 && ret_text->len <= max
               ? 0
               : api_error_set(e, API_UNAUTHENTICATED,
                               "the sandbox token has no claim \"%s\" that is a text", name);
}

static int read_seconds(struct slice claims, const char *name, int64_t *ret_seconds,
                        struct api_error *e)
{
    struct slice value;
    uint64_t seconds;
    if (json_object_find(claims, slice_of(name), &value, NULL) != 1 ||
        !json_number_u64(value, NUMBER_JS_MAX / 1000, &seconds)) {
        return api_error_set(e, API_UNAUTHENTICATED,
                             "the sandbox token has no claim \"%s\" that is a number of seconds",
                             name);
    }
    *ret_seconds = (int64_t)seconds;
    return 0;
}

static int read_epoch(struct slice claims, int64_t *ret_epoch, struct api_error *e)
{
    struct slice value;
    uint64_t epoch;
    if (json_object_find(claims, SLICE("epoch"), &value, NULL) != 1 ||
        !json_number_u64(value, NUMBER_JS_MAX, &epoch)) {
        return refuse(e, "has no claim \"epoch\" that is a number");
    }
    *ret_epoch = (int64_t)epoch;
    return 0;
}

static int read_types(struct slice claims, struct payload_types *ret_types, struct api_error *e)
{
    struct payload_types types = {0};
    struct slice array;
    struct slice one;
    struct json_walk w;
    if (json_object_find(claims, SLICE("types"), &array, NULL) != 1 ||
        json_kind(array) != JSON_ARRAY) {
        return refuse(e, "has no claim \"types\" that is an array");
    }
    json_walk_begin(&w, array);
    while (json_walk_element(&w, &one)) {
        if (json_kind(one) != JSON_STRING) {
            return refuse(e, "has a claim \"types\" with something else than names");
        }
        /* No name of ours needs an escape. */
        enum payload_type type = payload_type_parse((struct slice){one.ptr + 1, one.len - 2});
        if (type != PAYLOAD_UNKNOWN) {
            payload_types_add(&types, type);
        }
    }
    *ret_types = types;
    return 0;
}

static int check_times(struct slice claims, int64_t now_s, struct sandbox_token *token,
                       struct api_error *e)
{
    int64_t not_before = 0;
    if (read_seconds(claims, "iat", &token->issued_s, e) < 0 ||
        read_seconds(claims, "nbf", &not_before, e) < 0 ||
        read_seconds(claims, "exp", &token->expires_s, e) < 0) {
        return -1;
    }
    if (not_before > now_s || token->issued_s > now_s) {
        return refuse(e, "is not good yet");
    }
    if (token->expires_s <= now_s) {
        (void)refuse(e, "has expired");
        return api_error_suggest(e, "ask for a new one: POST /api/threads/:id/sandbox-tokens");
    }
    return token->expires_s - token->issued_s <= SANDBOX_SECONDS_MAX
               ? 0
               : refuse(e, "is good for longer than a day");
}

int sandbox_token_verify(const unsigned char key[static SANDBOX_KEY_BYTES], struct slice text,
                         int64_t now_ms, struct arena *arena, struct sandbox_token *ret_token,
                         struct api_error *ret_error)
{
    struct sandbox_token token = {.issued_s = 0};
    struct api_error *e = ret_error;
    struct slice claims;
    struct slice issuer;
    struct slice audience;
    if (check_mac(key, text, e) < 0 || decode(key, text, arena, &claims, e) < 0 ||
        read_text(claims, "iss", SIZE_MAX, arena, &issuer, e) < 0 ||
        read_text(claims, "aud", SIZE_MAX, arena, &audience, e) < 0 ||
        read_text(claims, "sub", ENTRY_AUTHOR_BYTES_MAX, arena, &token.agent_id, e) < 0 ||
        read_text(claims, "stream", STREAM_NAME_BYTES_MAX, arena, &token.stream, e) < 0 ||
        read_types(claims, &token.types, e) < 0 || read_epoch(claims, &token.epoch, e) < 0) {
        return -1;
    }
    if (!slice_equal(issuer, ISSUER) || !slice_equal(audience, AUDIENCE)) {
        return refuse(e, "is not for sandboxes");
    }
    if (check_times(claims, now_ms / 1000, &token, e) < 0) {
        return -1;
    }
    *ret_token = token;
    return 0;
}

int sandbox_token_check_stream(const struct sandbox_token *token, struct slice stream,
                               struct api_error *ret_error)
{
    return slice_equal(token->stream, stream)
               ? 0
               : api_error_set(ret_error, API_FORBIDDEN,
                               "the sandbox token is for the stream %.*s, not for this one",
                               (int)token->stream.len, token->stream.ptr);
}

/* ---------------------------------------------------------------------------- types, on request */

struct payload_types sandbox_types_default(void)
{
    struct payload_types types = {0};
    for (enum payload_type type = 0; type < PAYLOAD_TYPE_COUNT; type++) {
        if (type != PAYLOAD_CHAT && authorship_sandbox_may(type)) {
            payload_types_add(&types, type);
        }
    }
    return types;
}

/* Adds the types that a JSON string names: one, or a family "x.*". False when a sandbox may write
 * none of them. */
static bool add_named(struct slice name, struct payload_types *types)
{
    struct slice text = {name.ptr + 1, name.len - 2};
    bool family = text.len > 2 && memcmp(text.ptr + text.len - 2, ".*", 2) == 0;
    bool found = false;
    text.len -= family ? 1 : 0; /* the dot stays */
    for (enum payload_type type = 0; type < PAYLOAD_TYPE_COUNT; type++) {
        struct slice one = slice_of(payload_type_text(type));
        bool named = family ? slice_starts_with(one, text) : slice_equal(one, text);
        if (named && authorship_sandbox_may(type)) {
            payload_types_add(types, type);
            found = true;
        }
    }
    return found;
}

int sandbox_types_read(struct slice array, struct payload_types *ret_types,
                       struct api_error *ret_error)
{
    struct payload_types types = {0};
    struct json_walk w;
    struct slice one;
    size_t index = 0;
    if (json_kind(array) != JSON_ARRAY) {
        (void)api_error_set(ret_error, API_INVALID_INPUT, "types must be an array of names, not %s",
                            json_kind_text(json_kind(array)));
        return api_error_set_field(ret_error, "types");
    }
    json_walk_begin(&w, array);
    for (; json_walk_element(&w, &one); index++) {
        if (json_kind(one) != JSON_STRING || !add_named(one, &types)) {
            (void)api_error_set(ret_error, API_INVALID_INPUT,
                                "types[%zu] must be a type that sandboxes may write, such as chat, "
                                "pi.assistant or signal.files.*",
                                index);
            return api_error_set_field(ret_error, "types[%zu]", index);
        }
    }
    if (index == 0) {
        (void)api_error_set(ret_error, API_INVALID_INPUT, "types must name a type at least");
        return api_error_set_field(ret_error, "types");
    }
    *ret_types = types;
    return 0;
}
