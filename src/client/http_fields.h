/* Header fields and query parameters that a program's callback adds to a request. */
#ifndef ARBE_CLIENT_HTTP_FIELDS_H
#define ARBE_CLIENT_HTTP_FIELDS_H

#include "arbe/stream_client.h"
#include "base/buf.h"

#include <curl/curl.h>

struct stream_headers {
    struct curl_slist *lines; /* header fields; owned until taken */
    struct buf *query;        /* parameters go here instead; NULL: header fields are wanted */
    bool has_authorization;
    bool no_memory;
    char bad[64]; /* the name of the first that is not possible; empty: all are */
};

/* Appends a line; false when memory is out. */
bool http_add_line(struct curl_slist **list, const char *line);

#endif
