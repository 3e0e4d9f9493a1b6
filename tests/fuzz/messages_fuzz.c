/* Any bytes as the answer to a read of a JSON stream, cut as the first byte says, judged a second
 * time as one JSON text that is at hand as a whole: the same messages, or an error where that sees
 * one. What breaks off must be the beginning of what is whole. */
#include "client/messages.h"

#include <assert.h>
#include <stdlib.h>

#include "base/json.h"
#include "base/limits.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int join(void *context, struct slice message)
{
    struct buf *joined = context;

    buf_append(joined, message);
    buf_append_char(joined, '\n');
    return 0;
}

/* What the splitter makes of `text` in pieces of `step` bytes: 1 whole, 0 not yet, or the error. */
static int split(struct slice text, size_t step, size_t max, struct buf *joined)
{
    struct messages m;
    int rc = 0;

    messages_init(&m, max);
    while (text.len > 0 && rc >= 0) {
        /* A block of its own: a read past the piece shows. */
        size_t len = text.len < step ? text.len : step;
        char *copy = malloc(len);
        struct slice piece = {copy, len};
        struct slice message;

        assert(copy != NULL);
        memcpy(copy, text.ptr, len);
        while ((rc = messages_take(&m, &piece, &message, NULL)) == 1) {
            assert(message.len > 0 && message.len <= max);
            (void)join(joined, message); /* checked at the end */
        }
        assert(rc < 0 || piece.len == 0);
        assert(m.part.len <= max);
        text = (struct slice){text.ptr + len, text.len - len};
        free(copy);
    }
    rc = rc < 0 ? rc : messages_done(&m);
    messages_finish(&m);
    return rc;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct slice text;
    struct buf want;
    struct buf got;
    struct buf small;
    size_t step;

    if (size < 2) {
        return 0;
    }
    step = data[0] + 1u;
    text = (struct slice){(const char *)data + 1, size - 1};
    buf_init(&want, 64u << 20);
    buf_init(&got, 64u << 20);
    buf_init(&small, 64u << 20);
    int rc = split(text, step, size, &got);
    int oracle = json_each_message(text, join, &want, NULL);
    size_t first = 0;

    while (first < text.len && strchr(" \t\r\n", text.ptr[first]) != NULL && text.ptr[first] != 0) {
        first++;
    }
    if (oracle == 0 && first < text.len && text.ptr[first] == '[') {
        assert(rc == 1 && slice_equal(buf_slice(&got), buf_slice(&want)));
    } else {
        /* Inside an array there is one level less: only nesting may tell them apart. */
        assert(rc != 1 || size > JSON_DEPTH_MAX);
    }
    /* A cap on messages changes nothing but that some are refused. */
    int capped = split(text, step, 8, &small);

    assert(slice_starts_with(buf_slice(&got), buf_slice(&small)));
    assert(capped == rc || capped == ERR_TOOBIG);
    buf_finish(&want);
    buf_finish(&got);
    buf_finish(&small);
    return 0;
}
