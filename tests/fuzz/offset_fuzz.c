/* Any bytes as an offset: refused, a sentinel, beyond everything, or a position whose token is
 * exactly what was parsed. */
#include <assert.h>
#include <stdint.h>

#include "base/limits.h"
#include "stream/offset.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct slice text = {(const char *)data, size};
    struct offset offset;
    if (!offset_parse(text, &offset) || offset.kind != OFFSET_AT) {
        return 0;
    }
    assert(size == OFFSET_TOKEN_BYTES);
    if (offset.position != OFFSET_BEYOND) {
        char token[OFFSET_TOKEN_BYTES];
        assert(offset.position <= STREAM_OFFSET_MAX);
        offset_format(token, offset.position);
        assert(slice_equal(text, (struct slice){token, sizeof(token)}));
    }
    return 0;
}
