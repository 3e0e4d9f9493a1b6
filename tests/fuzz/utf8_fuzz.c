/* UTF-8: the valid prefix, by decoding each character and judging its number. */
#include "base/utf8.h"

#include <assert.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* The length of the character at `at` by the table of RFC 3629 section 3, or 0. */
static size_t decode(const uint8_t *at, size_t left)
{
    static const uint32_t smallest[] = {0, 0, 0x80, 0x800, 0x10000};
    unsigned ones = 0;
    uint32_t number;

    if (at[0] < 0x80) {
        return 1;
    }
    while (ones < 8 && (at[0] & 0x80u >> ones) != 0) {
        ones++;
    }
    if (ones < 2 || ones > 4 || ones > left) {
        return 0;
    }
    number = at[0] & (0x7fu >> ones);
    for (unsigned i = 1; i < ones; i++) {
        if ((at[i] & 0xc0) != 0x80) {
            return 0;
        }
        number = number << 6 | (at[i] & 0x3fu);
    }
    if (number < smallest[ones] || number > 0x10ffff || number >> 11 == 0xd800 >> 11) {
        return 0;
    }
    return ones;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct slice all = {(const char *)data, size};
    size_t at = 0;
    size_t run = 0;
    size_t step;

    while (at < size && (step = decode(data + at, size - at)) > 0) {
        run += run == at && step > 1 ? step : 0;
        at += step;
    }
    assert(utf8_valid_prefix(all) == at);
    assert(utf8_valid(all) == (at == size));
    assert(utf8_multibyte_prefix(all) == run);
    return 0;
}
