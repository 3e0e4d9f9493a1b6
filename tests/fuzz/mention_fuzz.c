/* Any bytes as a name and as a text. A handle is its own handle and is mentioned by itself; each
 * mention is a handle. */
#include "thread/mention.h"

#include "base/utf8.h"

#include <assert.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_handle(struct slice handle)
{
    char again[MENTION_HANDLE_BYTES];
    assert(handle.len > 0 && handle.len < MENTION_HANDLE_BYTES && utf8_valid(handle));
    assert(mention_handle(handle, again) == handle.len);
    assert(slice_equal((struct slice){again, handle.len}, handle));
}

static int on_mention(void *context, struct slice handle)
{
    assert(mention_has(*(const struct slice *)context, handle));
    check_handle(handle);
    return 1; /* a text has many mentions, each of which is looked for */
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct slice text = size == 0 ? SLICE("") : (struct slice){(const char *)data, size};
    char handle[MENTION_HANDLE_BYTES];
    char mention[MENTION_HANDLE_BYTES + 1] = "@";
    (void)mention_each(text, on_mention, &text); /* 1 or 0 */
    size_t len = mention_handle(text, handle);
    if (len > 0) {
        check_handle((struct slice){handle, len});
        memcpy(mention + 1, handle, len);
        assert(mention_has((struct slice){mention, len + 1}, (struct slice){handle, len}));
    }
    return 0;
}
