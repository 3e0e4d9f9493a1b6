/* A table of fields and what each sets. Of a field that comes twice the first counts, which is
 * what an intermediary that looked at it most likely went by. */
#include "client/http_head.h"

#include "base/limits.h"
#include "base/number.h"

#include <curl/curl.h>

#define NUMBER_TEXT_MAX 32u

/* Copies a field to a text of the result; what is too long, or not visible ASCII, is malformed. */
static bool copy(char *out, size_t size, struct slice value)
{
    if (value.len >= size) {
        return false;
    }
    for (size_t i = 0; i < value.len; i++) {
        if ((unsigned char)value.ptr[i] < 0x20 || value.ptr[i] == 0x7f) {
            return false;
        }
    }
    if (out[0] == '\0') {
        memcpy(out, value.ptr, value.len);
        out[value.len] = '\0';
    }
    return true;
}

static bool take_number(int64_t *out, struct slice value)
{
    uint64_t number;

    if (!number_parse_u64(value, NUMBER_JS_MAX, true, &number)) {
        return false;
    }
    *out = *out < 0 ? (int64_t)number : *out;
    return true;
}

/* "true", in any case; every other value counts as none (PROTOCOL.md 4.1). */
static bool is_true(struct slice value)
{
    return slice_equal_nocase(value, SLICE("true"));
}

static bool take_content_type(struct http_head *head, struct call *call, struct slice value)
{
    struct slice rest = value;
    struct slice type = value;

    (void)slice_split(&rest, ';', &type);
    type = slice_trim(type);
    head->is_json = slice_equal_nocase(type, SLICE("application/json")) ||
                    slice_equal_nocase(type, SLICE("application/problem+json"));
    head->is_event_stream = slice_equal_nocase(type, SLICE("text/event-stream"));
    head->is_text = slice_equal_nocase(type, SLICE("text/plain"));
    return copy(call->result.info.content_type, sizeof(call->result.info.content_type), value);
}

#define TEXT(field) copy(call->result.info.field, sizeof(call->result.info.field), value)

static bool take_producer_field(struct call *call, struct slice name, struct slice value)
{
    int64_t expected = call->result.error.expected_seq;
    bool good = true;

    if (slice_equal_nocase(name, SLICE("Producer-Epoch"))) {
        good = take_number(&call->result.info.producer_epoch, value);
    } else if (slice_equal_nocase(name, SLICE("Producer-Seq"))) {
        good = take_number(&call->result.info.producer_seq, value);
    } else if (slice_equal_nocase(name, SLICE("Producer-Expected-Seq"))) {
        good = take_number(&expected, value);
        call->result.error.expected_seq = expected;
    }
    return good;
}

/* False for a value that the protocol does not allow. */
static bool take_stream_field(struct call *call, struct slice name, struct slice value)
{
    struct call_result *r = &call->result;

    if (slice_equal_nocase(name, SLICE("Stream-Next-Offset"))) {
        return value.len > 0 && TEXT(next_offset);
    }
    if (slice_equal_nocase(name, SLICE("Stream-Cursor"))) {
        return TEXT(cursor);
    }
    if (slice_equal_nocase(name, SLICE("Stream-Closed"))) {
        r->info.closed = r->info.closed || is_true(value);
    } else if (slice_equal_nocase(name, SLICE("Stream-Up-To-Date"))) {
        r->up_to_date = r->up_to_date || is_true(value);
    } else if (slice_equal_nocase(name, SLICE("Stream-SSE-Data-Encoding"))) {
        r->base64 = slice_equal_nocase(value, SLICE("base64"));
        return r->base64;
    } else if (slice_equal_nocase(name, SLICE("Stream-TTL"))) {
        return take_number(&r->info.ttl_seconds, value);
    } else if (slice_equal_nocase(name, SLICE("Stream-Expires-At"))) {
        return TEXT(expires_at);
    }
    return true;
}

/* The name of a field that is malformed; NULL: all is well. */
static const char *take_field(struct http_head *head, struct call *call, struct slice name,
                              struct slice value)
{
    if (slice_equal_nocase(name, SLICE("Content-Type"))) {
        return take_content_type(head, call, value) ? NULL : "Content-Type";
    }
    if (slice_equal_nocase(name, SLICE("ETag"))) {
        (void)TEXT(etag); /* only shown: one that is too long is none */
    } else if (slice_equal_nocase(name, SLICE("Retry-After"))) {
        head->has_retry_after = copy(head->retry_after, sizeof(head->retry_after), value);
    } else if (slice_equal_nocase(name, SLICE("Date"))) {
        (void)copy(head->date, sizeof(head->date), value); /* a date of another form is none */
    } else if (name.len > 7 && slice_equal_nocase((struct slice){name.ptr, 7}, SLICE("Stream-"))) {
        return take_stream_field(call, name, value) ? NULL : "a Stream- field";
    } else if (name.len > 9 &&
               slice_equal_nocase((struct slice){name.ptr, 9}, SLICE("Producer-"))) {
        return take_producer_field(call, name, value) ? NULL : "a Producer- field";
    }
    return NULL;
}

/* "HTTP/1.1 200 OK": libcurl has looked at it before. */
static int status_of(struct slice line)
{
    const char *space = memchr(line.ptr, ' ', line.len);
    size_t at = space != NULL ? (size_t)(space - line.ptr) + 1 : line.len;
    int status = 0;

    for (size_t i = at; i < line.len && i < at + 3; i++) {
        if (line.ptr[i] < '0' || line.ptr[i] > '9') {
            return 0;
        }
        status = status * 10 + (line.ptr[i] - '0');
    }
    return status;
}

bool http_head_line(struct http_head *head, struct call *call, struct slice line)
{
    struct slice name;
    struct slice rest;

    while (line.len > 0 && (line.ptr[line.len - 1] == '\n' || line.ptr[line.len - 1] == '\r')) {
        line.len--;
    }
    head->bytes += line.len;
    if (head->bytes > CLIENT_HEAD_BYTES_MAX) {
        return false;
    }
    if (line.len == 0) {
        head->whole = head->status >= 200;
        return true;
    }
    if (head->whole) {
        return true; /* a trailer */
    }
    if (slice_starts_with(line, SLICE("HTTP/"))) {
        size_t bytes = head->bytes;

        *head = (struct http_head){.status = status_of(line), .bytes = bytes};
        call_begin(call);
        call->result.info.status = head->status;
        return true;
    }
    rest = line;
    (void)slice_split(&rest, ':', &name);
    if (rest.ptr != NULL) {
        const char *malformed = take_field(head, call, name, slice_trim(rest));

        head->malformed = head->malformed != NULL ? head->malformed : malformed;
    }
    return true;
}

long http_head_retry_after(const struct http_head *head, int64_t now_s)
{
    uint64_t seconds;

    if (!head->has_retry_after) {
        return -1;
    }
    if (number_parse_u64(slice_of(head->retry_after), 1000000, true, &seconds)) {
        return (long)seconds * 1000;
    }
    int64_t at = curl_getdate(head->retry_after, NULL);
    int64_t from = head->date[0] != '\0' ? curl_getdate(head->date, NULL) : -1;

    from = from >= 0 ? from : now_s;
    if (at < 0) {
        return -1;
    }
    int64_t pause = at > from ? at - from : 0;

    return (long)(pause < 1000000 ? pause : 1000000) * 1000;
}
