/* What the other server is asked: the stream's URL with the client's own query, the header fields
 * of the client that a read may depend on, and the secret. Nothing that says who the client is. */
#ifndef ARBE_APP_UPSTREAM_REQUEST_H
#define ARBE_APP_UPSTREAM_REQUEST_H

#include "base/attr.h"
#include "base/buf.h"
#include "client/http_url.h"
#include "http/request.h"

#include <curl/curl.h>

struct upstream_request {
    struct buf url; /* NUL-terminated */
    struct curl_slist *lines;
};

/* Of which it is composed; all is borrowed. */
struct upstream_question {
    const struct http_base *base;
    const char *authorization;       /* a whole line; NULL: none */
    const struct http_request *head; /* the client's */
    struct slice name;               /* of the stream */
    struct slice query;              /* the client's, raw; ptr NULL: none */
};

/* Composes it. False when memory is out. */
bool upstream_request_init(struct upstream_request *r, const struct upstream_question *q) MUST_USE;

/* Frees it; accepts a zeroed one. */
void upstream_request_finish(struct upstream_request *r);

#endif
