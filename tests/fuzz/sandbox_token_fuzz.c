/* Any bytes as a sandbox token: never good. The input also is the claims, and the header, of a
 * token that carries our MAC, and a list of types that somebody asks for. */
#include "thread/sandbox_token.h"

#include "base/base64.h"
#include "base/json_value.h"
#include "base/limits.h"
#include "base/utf8.h"

#include <assert.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const unsigned char key[SANDBOX_KEY_BYTES] = {1};

#define NOW_MS INT64_C(1700000000000)

static int verify(struct slice text, struct sandbox_token *ret_token, struct arena *arena)
{
    struct api_error e = {.code = API_BUSY};
    int code = sandbox_token_verify(key, text, NOW_MS, arena, ret_token, &e);
    assert((code == 0) == (e.message[0] == '\0'));
    assert(code == 0 || e.code == API_UNAUTHENTICATED);
    return code;
}

/* Under our own key: what is taken is within its bounds, and what is minted of it is taken. */
static void check_signed(struct slice header, struct slice claims)
{
    char text[2 * BASE64_LEN(1024) + 2 + BASE64_LEN(32)];
    unsigned char mac[EVP_MAX_MD_SIZE];
    unsigned mac_len = 0;
    struct sandbox_token token;
    struct sandbox_token again;
    struct arena arena;
    struct buf out;
    size_t len = base64url_encode(text, header);
    text[len++] = '.';
    len += base64url_encode(text + len, claims);
    HMAC(EVP_sha256(), key, sizeof(key), (const unsigned char *)text, len, mac, &mac_len);
    text[len++] = '.';
    len += base64url_encode(text + len, (struct slice){(const char *)mac, mac_len});
    arena_init(&arena, 1u << 20);
    if (verify((struct slice){text, len}, &token, &arena) == 0) {
        assert(token.expires_s > NOW_MS / 1000 && token.issued_s <= NOW_MS / 1000);
        assert(utf8_valid(token.agent_id) && utf8_valid(token.stream));
        buf_init(&out, SANDBOX_TOKEN_BYTES_MAX);
        if (!memchr(token.agent_id.ptr, '\0', token.agent_id.len) &&
            !memchr(token.stream.ptr, '\0', token.stream.len)) {
            assert(sandbox_token_mint(key, &token, &out));
            assert(verify(buf_slice(&out), &again, &arena) == 0);
            assert(slice_equal(token.agent_id, again.agent_id));
            assert(slice_equal(token.stream, again.stream));
            assert(token.types.bits == again.types.bits && token.epoch == again.epoch);
            assert(token.expires_s == again.expires_s);
        }
        buf_finish(&out);
    }
    arena_finish(&arena);
}

static void check_types(struct slice text)
{
    struct api_error e = {.code = API_BUSY};
    struct payload_types types = {0};
    struct slice value;
    if (json_text_read(text, &value, NULL) == 0) {
        int code = sandbox_types_read(value, &types, &e);
        assert((code == 0) == (types.bits != 0));
        assert((code == 0) == (e.field[0] == '\0'));
        assert(!payload_types_has(types, PAYLOAD_HOUSE_CREATED));
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct slice input = size == 0 ? SLICE("") : (struct slice){(const char *)data, size};
    struct sandbox_token token;
    struct arena arena;
    arena_init(&arena, 1u << 20);
    assert(verify(input, &token, &arena) == -1);
    arena_finish(&arena);
    if (size <= 1024) {
        check_signed(SLICE("{\"alg\":\"HS256\",\"typ\":\"JWT\"}"), input);
        check_signed(input, SLICE("{}"));
    }
    check_types(input);
    return 0;
}
