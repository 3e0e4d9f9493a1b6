/* The layout is that of the reference server, whose suite builds tokens of this form. */
#include "stream/offset.h"

#include <assert.h>

#include "base/limits.h"
#include "base/number.h"

#define HALF_DIGITS 16

void offset_format(char out[static OFFSET_TOKEN_BYTES], uint64_t position)
{
    assert(position <= STREAM_OFFSET_MAX);
    memset(out, '0', OFFSET_TOKEN_BYTES);
    out[HALF_DIGITS] = '_';
    for (size_t i = OFFSET_TOKEN_BYTES; position > 0; position /= 10) {
        out[--i] = (char)('0' + position % 10);
    }
}

/* Every position has exactly one token (PROTOCOL.md section 8, unique), so only the full width is
 * read. A first half other than zero would be a later generation: nothing lies there yet. */
static bool parse_token(struct slice text, struct offset *ret_offset)
{
    if (text.len != OFFSET_TOKEN_BYTES || text.ptr[HALF_DIGITS] != '_') {
        return false;
    }
    uint64_t generation;
    uint64_t position;
    struct slice high = {text.ptr, HALF_DIGITS};
    struct slice low = {text.ptr + HALF_DIGITS + 1, HALF_DIGITS};
    if (!number_parse_u64(high, STREAM_OFFSET_MAX, true, &generation) ||
        !number_parse_u64(low, STREAM_OFFSET_MAX, true, &position)) {
        return false;
    }
    *ret_offset = (struct offset){OFFSET_AT, generation > 0 ? OFFSET_BEYOND : position};
    return true;
}

bool offset_parse(struct slice text, struct offset *ret_offset)
{
    if (slice_equal(text, SLICE("-1"))) {
        *ret_offset = (struct offset){OFFSET_START, 0};
        return true;
    }
    if (slice_equal(text, SLICE("now"))) {
        *ret_offset = (struct offset){OFFSET_NOW, 0};
        return true;
    }
    return parse_token(text, ret_offset);
}
