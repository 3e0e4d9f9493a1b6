/* "<stream id>:<start>:<next>" in hex and decimal, ":c" behind it at the end of a closed stream. */
#include "serve/etag.h"

/* Without printf: every read pays for it. */
static void append_hex(struct buf *out, uint64_t value)
{
    static const char digits[] = "0123456789abcdef";
    char text[16];
    size_t at = sizeof(text);

    do {
        text[--at] = digits[value & 15];
        value >>= 4;
    } while (value > 0);
    buf_append(out, (struct slice){text + at, sizeof(text) - at});
}

struct slice etag_format(char out[static ETAG_BYTES_MAX], uint64_t salt,
                         const struct stream_page *page)
{
    struct buf text;

    buf_init_fixed(&text, out, ETAG_BYTES_MAX);
    buf_append_char(&text, '"');
    append_hex(&text, page->stream_id ^ salt);
    buf_append_char(&text, ':');
    buf_append_u64(&text, page->start);
    buf_append_char(&text, ':');
    buf_append_u64(&text, page->next);
    buf_append(&text, page->closed ? SLICE(":c\"") : SLICE("\""));
    return buf_slice(&text);
}

bool etag_is_known(const struct http_request *request, struct slice etag)
{
    for (size_t i = 0; i < request->header_count; i++) {
        const struct http_header *header = &request->headers[i];

        if (slice_equal_nocase(header->name, SLICE("if-none-match")) &&
            http_etag_matches(header->value, etag)) {
            return true;
        }
    }
    return false;
}
