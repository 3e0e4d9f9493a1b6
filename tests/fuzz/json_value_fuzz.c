/* Any bytes as JSON: a text that is taken is walked to its last value, and what comes out by pieces
 * is what went in. The same functions get the bytes unscanned, which must be safe. */
#include "base/json_value.h"

#include "base/json.h"
#include "base/utf8.h"

#include <assert.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define DEPTH_MAX 16

static bool is_inside(struct slice part, struct slice whole)
{
    return part.ptr >= whole.ptr && part.ptr + part.len <= whole.ptr + whole.len;
}

/* A string that can be decoded is equal to what it says, also once written anew. */
static void check_string(struct slice value)
{
    struct buf text;
    struct buf again;

    buf_init(&text, 64u << 20);
    buf_init(&again, 64u << 20);
    if (json_string_decode(value, &text) == 0) {
        size_t len = 0;

        assert(json_string_equal(value, buf_slice(&text)));
        assert(json_string_len(value, &len) == 0 && len == text.len);
        json_string_decode_lossy(value, &again);
        assert(slice_equal(buf_slice(&again), buf_slice(&text)));
        buf_clear(&again);
        json_append_string(&again, buf_slice(&text));
        assert(json_string_equal(buf_slice(&again), buf_slice(&text)) ==
               utf8_valid(buf_slice(&text)));
    }
    buf_clear(&again);
    json_string_decode_lossy(value, &again);
    buf_finish(&text);
    buf_finish(&again);
}

static void check_number(struct slice value)
{
    uint64_t number = 0;
    uint64_t again = 0;
    double as_double = 0;

    if (json_number_double(value, &as_double)) {
        assert(value.len <= JSON_DOUBLE_BYTES_MAX);
    }
    if (json_number_u64(value, UINT64_MAX, &number)) {
        assert(json_number_u64(value, number, &again));
        assert(again == number);
        assert(number == 0 || !json_number_u64(value, number - 1, &again));
    }
}

static void check_value(struct slice value, unsigned depth)
{
    struct json_walk w;
    struct slice name;
    struct slice one;
    struct slice found;

    check_string(value);
    check_number(value);
    (void)json_depth(value); /* safe on anything */
    if (depth == DEPTH_MAX) {
        return;
    }
    json_walk_begin(&w, value);
    if (json_kind(value) == JSON_ARRAY) {
        while (json_walk_element(&w, &one)) {
            assert(is_inside(one, value));
            check_value(one, depth + 1);
        }
        return;
    }
    while (json_walk_member(&w, &name, &one)) {
        assert(is_inside(name, value) && is_inside(one, value));
        check_value(name, DEPTH_MAX);
        check_value(one, depth + 1);
        found = one;
        if (json_object_find(value, SLICE("a"), &found, NULL) == 1) {
            assert(is_inside(found, value));
        }
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct slice text = size == 0 ? SLICE("") : (struct slice){(const char *)data, size};
    struct slice value;

    if (size > 4096) {
        return 0; /* objects in objects are walked again at each level */
    }
    if (json_text_read(text, &value, NULL) == 0) {
        assert(is_inside(value, text) && utf8_valid(value));
    }
    check_value(text, 0);
    return 0;
}
