/* Entity tags of read answers (PROTOCOL.md 5.6 and 10.1): stream, range, and whether its end is
 * the end of a closed stream, so that closing alone changes the tag. Pure. */
#ifndef ARBE_SERVE_ETAG_H
#define ARBE_SERVE_ETAG_H

#include "http/request.h"
#include "stream/engine.h"

#define ETAG_BYTES_MAX 64

/* Writes the tag with its quotes and returns it, borrowed from `out`. `salt` tells apart the
 * stream ids of two lives of a server that begins to count anew. */
struct slice etag_format(char out[static ETAG_BYTES_MAX], uint64_t salt,
                         const struct stream_page *page);

/* Whether any If-None-Match of the request, several lines being one list, matches `etag`. */
bool etag_is_known(const struct http_request *request, struct slice etag);

#endif
