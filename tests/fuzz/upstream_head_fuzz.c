/* Any bytes as the head of another server's answer. What a client is told of it is a status line
 * and fields, one a line, none of them between two hops, none with the secret, and not two
 * lengths. */
#include <assert.h>
#include <stdint.h>
#include <stdlib.h>

#include "app/upstream_head.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define SECRET SLICE("hush")

static int feed(struct upstream_head *h, struct slice rest)
{
    struct slice line;
    int code = 0;

    while (code == 0 && !h->whole && slice_split(&rest, '\n', &line)) {
        /* libcurl's lines come with their ends. */
        line.len += rest.ptr != NULL;
        code = upstream_head_line(h, line);
    }
    return code;
}

static void check_field(struct slice line, unsigned *lengths)
{
    struct slice value = line;
    struct slice name;

    assert(slice_split(&value, ':', &name) && value.ptr != NULL && name.len > 0);
    assert(!slice_equal_nocase(name, SLICE("connection")));
    assert(!slice_equal_nocase(name, SLICE("transfer-encoding")));
    assert(!slice_equal_nocase(name, SLICE("set-cookie")));
    *lengths += slice_equal_nocase(name, SLICE("content-length"));
}

static void check_whole(const struct upstream_head *h)
{
    struct slice rest = buf_slice(&h->out);
    struct slice line;
    unsigned lengths = 0;
    bool first = true;

    assert(h->status >= 200 && h->status <= 599);
    assert(memmem(rest.ptr, rest.len, SECRET.ptr, SECRET.len) == NULL);
    assert(rest.len >= 2 && memcmp(rest.ptr + rest.len - 2, "\r\n", 2) == 0);
    while (slice_split(&rest, '\n', &line) && rest.ptr != NULL) {
        assert(line.len > 1 && line.ptr[line.len - 1] == '\r');
        line.len--;
        assert(memchr(line.ptr, '\r', line.len) == NULL);
        assert(memchr(line.ptr, '\0', line.len) == NULL);
        if (first) {
            assert(slice_starts_with(line, SLICE("HTTP/1.1 ")));
        } else {
            check_field(line, &lengths);
        }
        first = false;
    }
    assert(lengths == (h->has_length && h->status != 204));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct upstream_head h;

    upstream_head_init(&h, SECRET);
    int code = feed(&h, (struct slice){(const char *)data, size});

    assert(code == 0 || code == ERR_INVALID || code == ERR_TOOBIG);
    if (code == 0 && h.whole) {
        check_whole(&h);
    }
    upstream_head_finish(&h);
    return 0;
}
