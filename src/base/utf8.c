/* Runs of ASCII and runs of longer characters take turns; each has its own loop. */
#include "base/utf8.h"

#include "base/bytes.h"

#include <stdbool.h>

static bool continues(unsigned char byte)
{
    return (byte & 0xc0) == 0x80;
}

/* The length of the character of two to four bytes at `at`, or 0 when there is none. The second
 * byte decides about overlong forms, surrogates and the upper end (RFC 3629 section 4). */
static size_t multibyte_length(const unsigned char *at, size_t left)
{
    unsigned char lead = at[0];
    unsigned char second;

    if (lead < 0xc2 || lead > 0xf4 || left < 2 || !continues(at[1])) {
        return 0;
    }
    if (lead < 0xe0) {
        return 2;
    }
    second = at[1];
    if (left < 3 || !continues(at[2])) {
        return 0;
    }
    if (lead < 0xf0) {
        bool overlong = lead == 0xe0 && second < 0xa0;
        bool surrogate = lead == 0xed && second >= 0xa0;

        return overlong || surrogate ? 0 : 3;
    }
    if (left < 4 || !continues(at[3])) {
        return 0;
    }
    if ((lead == 0xf0 && second < 0x90) || (lead == 0xf4 && second >= 0x90)) {
        return 0;
    }
    return 4;
}

size_t utf8_multibyte_prefix(struct slice s)
{
    const unsigned char *bytes = (const unsigned char *)s.ptr;
    size_t at = 0;

    while (at < s.len && bytes[at] >= 0x80) {
        size_t len = multibyte_length(bytes + at, s.len - at);

        if (len == 0) {
            break;
        }
        at += len;
    }
    return at;
}

static size_t ascii_prefix(struct slice s)
{
    size_t at = 0;

    while (s.len - at >= 8) {
        uint64_t high = bytes_get_u64(s.ptr + at) & UINT64_C(0x8080808080808080);

        if (high != 0) {
            return at + (size_t)__builtin_ctzll(high) / 8;
        }
        at += 8;
    }
    while (at < s.len && (unsigned char)s.ptr[at] < 0x80) {
        at++;
    }
    return at;
}

size_t utf8_valid_prefix(struct slice s)
{
    size_t at = 0;
    size_t step;

    if (s.len == 0) {
        return 0;
    }
    do {
        step = ascii_prefix((struct slice){s.ptr + at, s.len - at});
        step += utf8_multibyte_prefix((struct slice){s.ptr + at + step, s.len - at - step});
        at += step;
    } while (step > 0 && at < s.len);
    return at;
}

size_t utf8_control(struct slice s)
{
    const unsigned char *at = (const unsigned char *)s.ptr;

    if (s.len > 0 && (at[0] < 0x20 || at[0] == 0x7f)) {
        return 1;
    }
    return s.len > 1 && at[0] == 0xc2 && at[1] >= 0x80 && at[1] < 0xa0 ? 2 : 0;
}

size_t utf8_reorders(struct slice s)
{
    const unsigned char *at = (const unsigned char *)s.ptr;

    if (s.len > 1 && at[0] == 0xd8 && at[1] == 0x9c) {
        return 2;
    }
    if (s.len < 3 || at[0] != 0xe2) {
        return 0;
    }
    bool found = at[1] == 0x80 ? at[2] == 0x8e || at[2] == 0x8f || (at[2] >= 0xa8 && at[2] <= 0xae)
                               : at[1] == 0x81 && at[2] >= 0xa6 && at[2] <= 0xa9;

    return found ? 3 : 0;
}

size_t utf8_harmful(struct slice s)
{
    size_t control = utf8_control(s);

    return control > 0 ? control : utf8_reorders(s);
}
