/* Numbers, sizes, durations: what is taken prints as it came, and parsers agree where they meet. */
#include "base/number.h"

#include "base/buf.h"

#include <assert.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_number(struct slice text)
{
    uint64_t value = 7;
    uint64_t loose = 7;
    bool strict = number_parse_u64(text, UINT64_MAX, false, &value);

    if (strict) {
        struct buf printed;

        buf_init(&printed, 100);
        buf_append_u64(&printed, value);
        assert(slice_equal(buf_slice(&printed), text));
        buf_finish(&printed);
        assert(number_parse_u64(text, value, true, &loose));
        assert(loose == value);
        assert(value == 0 || !number_parse_u64(text, value - 1, true, &loose));
        assert(number_parse_size(text, &loose));
        assert(loose == value);
        assert(!number_parse_duration(text, &loose));
    } else {
        assert(value == 7);
    }
}

static void check_units(struct slice text)
{
    uint64_t bytes = 7;
    uint64_t ms = 7;
    bool is_size = number_parse_size(text, &bytes);
    bool is_duration = number_parse_duration(text, &ms);

    assert(!(is_size && is_duration));
    assert(is_size || bytes == 7);
    assert(is_duration || ms == 7);
    if (is_size || is_duration) {
        assert(text.ptr[0] >= '0');
        assert(text.ptr[0] <= '9');
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct slice text = {(const char *)data, size};

    check_number(text);
    check_units(text);
    return 0;
}
