/* URLs of streams: a base URL, checked once, and what comes behind it. Pure but for the memory it
 * takes. */
#ifndef ARBE_CLIENT_HTTP_URL_H
#define ARBE_CLIENT_HTTP_URL_H

#include "arbe/stream_error.h"
#include "base/buf.h"

#define HTTP_BASE_BYTES_MAX 4096u /* of a base URL; longer ones are an argument error */
#define HTTP_URL_BYTES_MAX  8192u /* of a request; likewise */

struct http_base {
    char *url;         /* "http://host/v1/stream/": ends with a slash; owned */
    struct slice path; /* of it: "/v1/stream/"; borrowed from url */
    char *host;        /* "host:port", for sentences; owned */
};

/* Checks and normalises. ARGUMENT with a sentence, MEMORY. */
int http_base_init(struct http_base *base, const char *url, struct stream_error *ret_error);

/* Frees it; accepts a zeroed one. */
void http_base_finish(struct http_base *base);

/* Appends a name as a path. "%2F" and "%25" stay, since names hold a slash or a percent sign that
 * is none in that form; every other byte that a path does not take is escaped. */
void http_append_name(struct buf *out, struct slice name);

/* Appends bytes as the value or the name of a query parameter. */
void http_append_query(struct buf *out, struct slice text);

#endif
