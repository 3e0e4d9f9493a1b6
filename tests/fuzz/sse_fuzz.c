/* Any bytes as the payload of an event, in up to three pieces, read back by the rules of the HTML
 * standard (section 9.2.6): one event of the right type whose data is the payload, line ends and
 * bytes that are not UTF-8 aside. The first byte picks the encoding, the next two the cuts. */
#include <assert.h>
#include <stdint.h>
#include <stdlib.h>

#include "base/base64.h"
#include "base/utf8.h"
#include "http/sse.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* The payload with all line ends as LF, which is what a reader sees. */
static size_t normalise(char *to, struct slice from)
{
    size_t len = 0;

    for (size_t i = 0; i < from.len; i++) {
        if (from.ptr[i] == '\n' && i > 0 && from.ptr[i - 1] == '\r') {
            continue;
        }
        to[len++] = from.ptr[i] == '\r' ? '\n' : from.ptr[i];
    }
    return len;
}

/* `from` with U+FFFD for each byte that belongs to no character. */
static size_t mend(char *to, struct slice from)
{
    size_t len = 0;

    while (from.len > 0) {
        size_t run = utf8_valid_prefix(from);

        memcpy(to + len, from.ptr, run);
        len += run;
        if (run < from.len) {
            memcpy(to + len, "\xef\xbf\xbd", 3);
            len += 3;
            run++;
        }
        from = (struct slice){from.ptr + run, from.len - run};
    }
    return len;
}

/* What stands in the data lines of `frame`, joined by LF; all of it must be one data event. */
static size_t read_data(struct slice frame, char *to)
{
    struct slice rest = frame;
    struct slice line;
    size_t len = 0;
    bool first = true;

    assert(memchr(frame.ptr, '\r', frame.len) == NULL);
    assert(slice_split(&rest, '\n', &line));
    assert(slice_equal(line, SLICE("event: data")));
    while (slice_split(&rest, '\n', &line) && line.len > 0) {
        assert(slice_starts_with(line, SLICE("data:")));
        size_t skip = slice_starts_with(line, SLICE("data: ")) ? 6 : 5;

        if (!first) {
            to[len++] = '\n';
        }
        first = false;
        memcpy(to + len, line.ptr + skip, line.len - skip);
        len += line.len - skip;
    }
    assert(rest.ptr != NULL && rest.len == 0);
    return len;
}

/* What a reader must get. */
static size_t expected(enum sse_encoding encoding, struct slice payload, char *to)
{
    if (encoding == SSE_BASE64) {
        return base64_encode(to, payload);
    }
    if (encoding == SSE_TEXT) {
        char *lines = malloc(payload.len);

        assert(lines != NULL);
        size_t mended = mend(to, (struct slice){lines, normalise(lines, payload)});

        free(lines);
        return mended;
    }
    if (payload.ptr[payload.len - 1] == ',') {
        payload.len--;
    }
    to[0] = '[';
    size_t len = normalise(to + 1, payload) + 1;
    to[len] = ']';
    return len + 1;
}

static void check(enum sse_encoding encoding, struct slice payload, size_t a, size_t b)
{
    const struct slice pieces[] = {
        {payload.ptr, a}, {payload.ptr + a, b - a}, {payload.ptr + b, payload.len - b}};
    char *wanted = malloc(payload.len * 3 + 8);
    char *got = malloc(payload.len * 3 + 8);
    struct buf out;
    size_t len;

    buf_init(&out, payload.len * 10 + 64);
    if (wanted != NULL && got != NULL) {
        sse_append_data(&out, encoding, pieces, 3);
        assert(!out.failed);
        len = read_data(buf_slice(&out), got);
        assert(len == expected(encoding, payload, wanted));
        assert(memcmp(got, wanted, len) == 0);
    }
    buf_finish(&out);
    free(got);
    free(wanted);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct slice payload;
    size_t a;
    size_t b;

    if (size < 4) {
        return 0;
    }
    payload = (struct slice){(const char *)data + 3, size - 3};
    a = data[1] % (payload.len + 1);
    b = a + data[2] % (payload.len - a + 1);
    check((enum sse_encoding)(data[0] % 3), payload, a, b);
    return 0;
}
