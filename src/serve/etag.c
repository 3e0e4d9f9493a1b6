/* "<stream id>:<start>:<next>" in hex and decimal, ":c" behind it at the end of a closed stream. */
#include "serve/etag.h"

#include <inttypes.h>

struct slice etag_format(char out[static ETAG_BYTES_MAX], uint64_t salt,
                         const struct stream_page *page)
{
    struct buf text;

    buf_init_fixed(&text, out, ETAG_BYTES_MAX);
    buf_append_format(&text, "\"%" PRIx64 ":%" PRIu64 ":%" PRIu64 "%s\"", page->stream_id ^ salt,
                      page->start, page->next, page->closed ? ":c" : "");
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
