/* Any bytes as a chunked body, cut in two ways: data, end and verdict must agree. The first byte is
 * the length of the parts. */
#include <assert.h>
#include <stdint.h>
#include <stdlib.h>

#include "base/err.h"
#include "http/chunk.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct outcome {
    long rc;     /* below 0: refused; else whether it is done */
    size_t used; /* bytes */
    size_t len;  /* of the data */
    char *data;  /* room for the whole input */
};

static void run(struct slice input, size_t part_bytes, struct outcome *out)
{
    struct chunk_decoder d;
    bool done = false;

    chunk_decoder_init(&d);
    while (out->used < input.len && !done) {
        size_t left = input.len - out->used;
        struct slice part = {input.ptr + out->used, left < part_bytes ? left : part_bytes};
        struct slice data;
        long rc = chunk_decode(&d, part, &data, &done);

        if (rc < 0) {
            assert(rc == ERR_INVALID || rc == ERR_TOOBIG);
            out->rc = rc;
            return;
        }
        assert(rc > 0 && (size_t)rc <= part.len);
        if (data.len > 0) {
            assert(data.ptr >= part.ptr && data.ptr + data.len <= part.ptr + rc);
            memcpy(out->data + out->len, data.ptr, data.len);
            out->len += data.len;
        }
        out->used += (size_t)rc;
    }
    out->rc = done;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct outcome whole = {0};
    struct outcome parts = {0};
    struct slice input;

    if (size < 2) {
        return 0;
    }
    input = (struct slice){(const char *)data + 1, size - 1};
    whole.data = malloc(size);
    parts.data = malloc(size);
    if (whole.data != NULL && parts.data != NULL) {
        run(input, input.len, &whole);
        run(input, (size_t)data[0] % 16 + 1, &parts);
        assert(whole.rc == parts.rc);
        if (whole.rc >= 0) {
            assert(whole.used == parts.used);
            assert(whole.len == parts.len);
            assert(memcmp(whole.data, parts.data, whole.len) == 0);
        }
    }
    free(whole.data);
    free(parts.data);
    return 0;
}
