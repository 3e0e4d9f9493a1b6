/* A parsed request for tests: the head's lines joined as a client would send them. */
#ifndef ARBE_TESTS_UNIT_SERVE_REQUEST_OF_H
#define ARBE_TESTS_UNIT_SERVE_REQUEST_OF_H

#include "http/request.h"
#include "unit/base/unit.h"

#include <stdio.h>

/* Memory that the request's slices borrow from. */
struct request_of {
    struct http_request request;
    char text[4096];
};

/* Parses "POST /v1/stream/a" with `lines`, each ending with CRLF. */
static inline const struct http_request *request_of(struct request_of *r, const char *lines)
{
    size_t scanned = 0;
    struct http_refusal refusal = {.status = 0};
    int len = snprintf(r->text, sizeof(r->text),
                       "POST /v1/stream/a HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n%s\r\n",
                       lines);

    assert_true(http_request_parse((struct slice){r->text, (size_t)len}, &scanned, &r->request,
                                   &refusal) > 0);
    return &r->request;
}

#endif
