/* Server-sent events as PROTOCOL.md 5.8 frames them: each data event is followed by its control
 * event, each line is "data:" and the line, with a space between when the line begins with one, so
 * that a reader, which strips one space, gets the line back. CR, LF and CRLF in the payload all end
 * a line, so that nothing in it can forge an event. Builders into a buffer. */
#ifndef ARBE_HTTP_SSE_H
#define ARBE_HTTP_SSE_H

#include "base/buf.h"

enum sse_encoding {
    SSE_TEXT,   /* text/...: lines as they are, but for bytes that are not UTF-8: U+FFFD */
    SSE_JSON,   /* application/json: '[', stored bytes without the last comma, ']' */
    SSE_BASE64, /* everything else */
};

/* The encoding of a stream's content type (PROTOCOL.md 5.8): media type compared without case and
 * parameters. */
enum sse_encoding sse_encoding_of(struct slice content_type);

/* A data event over the concatenation of `pieces`, which for JSON are stored bytes ending with a
 * comma. Nothing at all when they are empty. */
void sse_append_data(struct buf *out, enum sse_encoding encoding, const struct slice *pieces,
                     size_t piece_count);

struct sse_control {
    struct slice next; /* offset token */
    uint64_t cursor;   /* left out when closed */
    bool up_to_date;
    bool closed;
};

/* A control event. */
void sse_append_control(struct buf *out, const struct sse_control *control);

/* A comment line that keeps proxies from closing a quiet connection. */
void sse_append_heartbeat(struct buf *out);

#endif
