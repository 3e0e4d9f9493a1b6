/* The status codes and methods this server knows, once each. Static storage, any thread. */
#ifndef ARBE_HTTP_STATUS_H
#define ARBE_HTTP_STATUS_H

#include "base/slice.h"

#define HTTP_STATUS_LIST(X)                   \
    X(100, "Continue")                        \
    X(200, "OK")                              \
    X(201, "Created")                         \
    X(204, "No Content")                      \
    X(304, "Not Modified")                    \
    X(400, "Bad Request")                     \
    X(401, "Unauthorized")                    \
    X(403, "Forbidden")                       \
    X(404, "Not Found")                       \
    X(405, "Method Not Allowed")              \
    X(408, "Request Timeout")                 \
    X(409, "Conflict")                        \
    X(410, "Gone")                            \
    X(413, "Content Too Large")               \
    X(414, "URI Too Long")                    \
    X(415, "Unsupported Media Type")          \
    X(417, "Expectation Failed")              \
    X(429, "Too Many Requests")               \
    X(431, "Request Header Fields Too Large") \
    X(500, "Internal Server Error")           \
    X(501, "Not Implemented")                 \
    X(503, "Service Unavailable")             \
    X(505, "HTTP Version Not Supported")      \
    X(507, "Insufficient Storage")

#define HTTP_METHOD_LIST(X) \
    X(GET)                  \
    X(HEAD)                 \
    X(PUT)                  \
    X(POST)                 \
    X(DELETE)               \
    X(PATCH)                \
    X(OPTIONS)

enum http_method {
    HTTP_OTHER, /* a valid token that is none of ours */
#define X(name) HTTP_##name,
    HTTP_METHOD_LIST(X)
#undef X
};

enum {
#define X(name) +1
    HTTP_METHOD_COUNT = 1 HTTP_METHOD_LIST(X), /* of enum http_method */
#undef X
#define X(code, reason) +1
    HTTP_STATUS_COUNT = 0 HTTP_STATUS_LIST(X)
#undef X
};

/* The method as in a request; "other" for HTTP_OTHER. */
const char *http_method_name(enum http_method method);

/* The place of a status in the list, from 0; HTTP_STATUS_COUNT for one that is not in it. */
unsigned http_status_index(int status);

/* The status at a place below HTTP_STATUS_COUNT. */
int http_status_at(unsigned index);

/* The reason phrase; "Unknown" for codes not in the list. */
const char *http_status_reason(int status);

/* Case-sensitive (RFC 9110 section 9.1). */
enum http_method http_method_of(struct slice token);

#endif
