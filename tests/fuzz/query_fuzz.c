/* Any bytes as a target: it is split, its query walked, every value decoded; and as an
 * If-None-Match list. */
#include <assert.h>
#include <stdint.h>
#include <stdlib.h>

#include "http/request.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static bool is_inside(struct slice part, struct slice whole)
{
    return part.ptr >= whole.ptr && part.ptr + part.len <= whole.ptr + whole.len;
}

/* Decodes into a block of exactly the promised size. */
static void decode(struct slice value)
{
    char *out = malloc(value.len);
    long len;

    if (out == NULL) {
        return;
    }
    len = http_percent_decode(value, out);
    assert(len == ERR_INVALID || (len >= 0 && (size_t)len <= value.len));
    if (len >= 0 && (value.len == 0 || memchr(value.ptr, '%', value.len) == NULL)) {
        assert((size_t)len == value.len);
    }
    free(out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct slice target = {(const char *)data, size};
    struct slice path;
    struct slice query;
    struct slice name;
    struct slice value;
    size_t walked = 0;

    if (size == 0) {
        return 0;
    }
    http_target_split(target, &path, &query);
    assert(path.len + query.len + (query.ptr != NULL) == size);
    decode(path);
    while (http_query_next(&query, &name, &value)) {
        assert(is_inside(name, target));
        assert(value.ptr == NULL || is_inside(value, target));
        assert(name.len + value.len > 0 || value.ptr != NULL);
        walked += name.len + value.len + (value.ptr != NULL) + 1;
        decode(name);
        decode(value);
    }
    assert(walked <= size + 1);
    (void)http_etag_matches(target, SLICE("\"a,b\""));
    (void)http_etag_matches(SLICE("\"x\", \"a\""), target);
    return 0;
}
