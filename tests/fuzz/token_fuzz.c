/* Any bytes as a token: never good, unless they are the one that was minted. The input also is an
 * id and the claims of a text that carries our MAC. */
#include "stream/token.h"

#include "base/base64.h"
#include "base/number.h"
#include "base/utf8.h"

#include <assert.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const unsigned char key[TOKEN_KEY_BYTES] = {1};

/* A token for an id of these bytes is good for it, and what is made of it by a change is not. */
static void check_mint(struct slice id)
{
    struct token t = {.subscription = id, .generation = 7, .now_ms = 1000};
    char memory[TOKEN_BYTES_MAX + 1];
    struct buf out;
    uint64_t generation = 0;

    buf_init_fixed(&out, memory, sizeof(memory));
    token_mint(&out, key, &t);
    assert(!out.failed);
    assert(token_check(buf_slice(&out), key, id, 1000, &generation) == TOKEN_GOOD);
    assert(generation == 7);
    memory[id.len % out.len] ^= 1;
    assert(token_check(buf_slice(&out), key, id, 1000, &generation) == TOKEN_INVALID);
}

/* Claims that nobody minted: read to the end, believed or not. */
static void check_claims(struct slice claims)
{
    char text[BASE64_LEN(1024) + 1 + BASE64_LEN(32)];
    unsigned char mac[EVP_MAX_MD_SIZE];
    unsigned mac_len = 0;
    uint64_t generation = 0;
    size_t len = base64url_encode(text, claims);

    HMAC(EVP_sha256(), key, sizeof(key), (const unsigned char *)text, len, mac, &mac_len);
    text[len++] = '.';
    len += base64url_encode(text + len, (struct slice){(const char *)mac, mac_len});
    if (token_check((struct slice){text, len}, key, SLICE("s"), 0, &generation) != TOKEN_INVALID) {
        assert(generation <= NUMBER_JS_MAX);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct slice input = size == 0 ? SLICE("") : (struct slice){(const char *)data, size};
    uint64_t generation = 0;

    assert(token_check(input, key, SLICE("s"), 0, &generation) == TOKEN_INVALID);
    if (size <= SUBSCRIPTION_ID_BYTES_MAX && utf8_valid(input)) {
        check_mint(input);
    }
    if (size <= 1024) {
        check_claims(input);
    }
    return 0;
}
