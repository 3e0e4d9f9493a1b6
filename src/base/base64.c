/* Eight characters a step, from one load: SSE frames of binary streams pass through here. */
#include "base/base64.h"

#include "base/bytes.h"

static const char alphabet[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

_Static_assert(sizeof(alphabet) == 64 + 1, "one character for each six bits");

/* Writes the top `count` groups of six bits of `bits`. */
static void put_groups(char *out, uint64_t bits, unsigned count)
{
    for (unsigned i = 0; i < count; i++) {
        out[i] = alphabet[bits >> (58 - 6 * i) & 63];
    }
}

size_t base64_encode(char *out, struct slice bytes)
{
    char *start = out;
    const char *at = bytes.ptr;
    size_t left = bytes.len;
    unsigned char last[8] = {0};

    /* Six bytes make eight characters; eight are loaded, so the loop ends two bytes early. */
    for (; left >= 8; at += 6, left -= 6, out += 8) {
        put_groups(out, bytes_get_u64_be(at), 8);
    }
    for (; left >= 3; at += 3, left -= 3, out += 4) {
        memcpy(last, at, 3);
        put_groups(out, bytes_get_u64_be(last), 4);
    }
    if (left > 0) {
        memset(last, 0, sizeof(last));
        memcpy(last, at, left);
        put_groups(out, bytes_get_u64_be(last), (unsigned)left + 1);
        out[2] = left == 1 ? '=' : out[2];
        out[3] = '=';
        out += 4;
    }
    return (size_t)(out - start);
}

size_t base64url_encode(char *out, struct slice bytes)
{
    size_t len = BASE64URL_LEN(bytes.len);

    (void)base64_encode(out, bytes); /* its length, with the padding */
    for (size_t i = 0; i < len; i++) {
        out[i] = out[i] == '+' ? '-' : out[i] == '/' ? '_' : out[i];
    }
    return len;
}

/* The six bits of a character of base64url, or 64 for any other. */
static unsigned bits_of(char c)
{
    if (c >= 'A' && c <= 'Z') {
        return (unsigned)(c - 'A');
    }
    if (c >= 'a' && c <= 'z') {
        return (unsigned)(c - 'a') + 26;
    }
    if (c >= '0' && c <= '9') {
        return (unsigned)(c - '0') + 52;
    }
    return c == '-' ? 62 : c == '_' ? 63 : 64;
}

bool base64url_decode(struct slice text, char *out, size_t *ret_len)
{
    size_t len = 0;
    uint32_t bits = 0;
    unsigned count = 0;

    for (size_t i = 0; i < text.len; i++) {
        unsigned six = bits_of(text.ptr[i]);

        if (six == 64) {
            return false;
        }
        bits = (bits << 6 | six) & 0xffff;
        count += 6;
        if (count >= 8) {
            count -= 8;
            out[len++] = (char)(bits >> count & 0xff);
        }
    }
    /* A last character alone holds no byte. */
    if (count == 6 || (bits & ((1u << count) - 1)) != 0) {
        return false;
    }
    *ret_len = len;
    return true;
}
