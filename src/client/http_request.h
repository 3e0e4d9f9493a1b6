/* A call as an HTTP request: method, URL, header fields. */
#ifndef ARBE_CLIENT_HTTP_REQUEST_H
#define ARBE_CLIENT_HTTP_REQUEST_H

#include "client/call.h"
#include "client/http_fields.h"
#include "client/http_url.h"

/* What all requests of a client have in common; borrowed. */
struct http_settings {
    struct http_base base;
    struct stream_client_options options; /* without its texts, which are the next ones */
    char *authorization;                  /* a whole header line; NULL: none */
    char *user_agent;
    char *ca_file; /* NULL: the system's certificates */
};

struct http_request {
    const char *method;
    struct buf url;           /* NUL-terminated; owned */
    struct curl_slist *lines; /* owned */
};

/* Composes it, and asks the program's callbacks. On failure the call is failed, and false. */
bool http_request_init(struct http_request *request, const struct http_settings *settings,
                       struct call *call);

/* Whether the request of a call has a body, be it empty. */
bool http_request_has_body(const struct call *call);

/* Frees it; accepts a zeroed one. */
void http_request_finish(struct http_request *request);

#endif
