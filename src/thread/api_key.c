/* Hexadecimal of random bytes. No salt: 256 random bits need none, and the hash is what a key is
 * found by. */
#include "thread/api_key.h"

#include <assert.h>
#include <openssl/evp.h>
#include <stdatomic.h>

_Static_assert(sizeof(API_KEY_PREFIX) - 1 + API_TOKEN_BYTES == API_KEY_BYTES, "the prefix fits");
_Static_assert(2 * API_KEY_RANDOM_BYTES + 1 == API_TOKEN_BYTES, "all bytes fit");

static void write_hex(const unsigned char *bytes, size_t count, char *out)
{
    static const char digits[] = "0123456789abcdef";
    for (size_t i = 0; i < count; i++) {
        *out++ = digits[bytes[i] >> 4];
        *out++ = digits[bytes[i] & 15];
    }
    *out = '\0';
}

void api_token_make(const unsigned char random[static API_KEY_RANDOM_BYTES],
                    char out[static API_TOKEN_BYTES])
{
    write_hex(random, API_KEY_RANDOM_BYTES, out);
}

void api_key_make(const unsigned char random[static API_KEY_RANDOM_BYTES],
                  char out[static API_KEY_BYTES])
{
    size_t prefix = sizeof(API_KEY_PREFIX) - 1;
    memcpy(out, API_KEY_PREFIX, prefix);
    write_hex(random, API_KEY_RANDOM_BYTES, out + prefix);
}

bool api_token_shape_good(struct slice text)
{
    if (text.len != API_TOKEN_BYTES - 1) {
        return false;
    }
    for (size_t i = 0; i < text.len; i++) {
        char c = text.ptr[i];
        if (!((c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'))) {
            return false;
        }
    }
    return true;
}

bool api_key_shape_good(struct slice text)
{
    size_t prefix = sizeof(API_KEY_PREFIX) - 1;
    return slice_starts_with(text, SLICE(API_KEY_PREFIX)) &&
           api_token_shape_good((struct slice){text.ptr + prefix, text.len - prefix});
}

/* Found once: OpenSSL would look for it by name each time. NULL: there is no memory. */
static const EVP_MD *find_sha256(void)
{
    static _Atomic(EVP_MD *) known;
    EVP_MD *none = NULL;
    EVP_MD *md = atomic_load(&known);
    if (md) {
        return md;
    }
    md = EVP_MD_fetch(NULL, "SHA256", NULL);
    if (md && !atomic_compare_exchange_strong(&known, &none, md)) {
        EVP_MD_free(md); /* another thread was faster */
        md = none;
    }
    return md;
}

bool api_key_hash(struct slice text, char out[static API_KEY_HASH_BYTES])
{
    unsigned char hash[EVP_MAX_MD_SIZE];
    unsigned len = 0;
    const EVP_MD *md = find_sha256();
    if (!md || EVP_Digest(text.len > 0 ? text.ptr : "", text.len, hash, &len, md, NULL) != 1) {
        return false;
    }
    assert(2 * len + 1 == API_KEY_HASH_BYTES);
    write_hex(hash, len, out);
    return true;
}
