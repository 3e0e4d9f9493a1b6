/* Status lines are constants made from the list; a header is one reservation and four copies. */
#include "http/response.h"

#include <assert.h>

/* A client must not be able to end a header and begin another (RFC 9110 section 5.5). */
static bool value_is_safe(struct slice value)
{
    unsigned bad = 0;

    /* Without an early exit, so that the compiler makes vector code of it. */
    for (size_t i = 0; i < value.len; i++) {
        bad |= (unsigned)(value.ptr[i] == '\r') | (unsigned)(value.ptr[i] == '\n') |
               (unsigned)(value.ptr[i] == '\0');
    }
    return bad == 0;
}

static struct slice status_line(int status)
{
    switch (status) {
#define X(code, reason) \
    case code:          \
        return SLICE("HTTP/1.1 " #code " " reason "\r\n");
        HTTP_STATUS_LIST(X)
#undef X
    default:
        return (struct slice){NULL, 0};
    }
}

void response_begin(struct buf *out, int status)
{
    struct slice line = status_line(status);

    assert(status >= 100 && status <= 599);
    if (line.ptr != NULL) {
        buf_append(out, line);
        return;
    }
    buf_append_format(out, "HTTP/1.1 %d %s\r\n", status, http_status_reason(status));
}

void response_header(struct buf *out, struct slice name, struct slice value)
{
    size_t len = name.len + value.len + 4;
    char *at;

    assert(name.len > 0);
    if (!value_is_safe(value)) {
        out->failed = true;
        return;
    }
    at = buf_reserve(out, len);
    if (at == NULL) {
        return;
    }
    memcpy(at, name.ptr, name.len);
    at += name.len;
    *at++ = ':';
    *at++ = ' ';
    if (value.len > 0) {
        memcpy(at, value.ptr, value.len);
        at += value.len;
    }
    *at++ = '\r';
    *at = '\n';
    buf_advance(out, len);
}

void response_header_u64(struct buf *out, struct slice name, uint64_t value)
{
    assert(name.len > 0);
    buf_append(out, name);
    buf_append(out, SLICE(": "));
    buf_append_u64(out, value);
    buf_append(out, SLICE("\r\n"));
}

void response_end_head(struct buf *out)
{
    buf_append(out, SLICE("\r\n"));
}
