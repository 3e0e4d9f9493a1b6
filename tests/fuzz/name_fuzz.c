/* Any bytes as what follows the root in a path: a name that is taken is valid UTF-8 without control
 * characters, and its escaped form names it again. */
#include "stream/name.h"

#include "base/utf8.h"

#include <assert.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_name(struct slice name)
{
    char again[STREAM_NAME_BYTES_MAX];
    size_t len = 0;
    struct buf escaped;

    assert(name.len > 0 && name.len <= STREAM_NAME_BYTES_MAX && utf8_valid(name));
    buf_init(&escaped, 3 * STREAM_NAME_BYTES_MAX);
    name_append_escaped(&escaped, name);
    assert(!escaped.failed);
    assert(name_parse(buf_slice(&escaped), again, &len, NULL) == 0);
    assert(slice_equal((struct slice){again, len}, name));
    buf_finish(&escaped);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct slice raw = size == 0 ? SLICE("") : (struct slice){(const char *)data, size};
    struct errmsg msg = {.text = ""};
    char name[STREAM_NAME_BYTES_MAX];
    size_t len = 0;
    int code = name_parse(raw, name, &len, &msg);

    assert(code == 0 || code == ERR_NOTFOUND || code == ERR_TOOBIG || code == ERR_INVALID);
    assert((code == 0) == (msg.text[0] == '\0'));
    if (code == 0) {
        check_name((struct slice){name, len});
    }
    (void)name_is_stream_path(raw);
    return 0;
}
