/* The HTTP/1.1 request head parser, strict by RFC 9112: what could be read in two ways is
 * refused, since that is how requests are smuggled. Bytes in, slices out: no descriptor, clock
 * or allocation. All slices of a request lie within the bytes of its head. */
#ifndef ARBE_HTTP_REQUEST_H
#define ARBE_HTTP_REQUEST_H

#include "base/err.h"
#include "base/limits.h"
#include "base/slice.h"
#include "http/status.h"

struct http_header {
    struct slice name;  /* as sent */
    struct slice value; /* without surrounding white space */
};

enum http_body_kind {
    HTTP_BODY_NONE,    /* no body */
    HTTP_BODY_LENGTH,  /* content_length bytes follow, possibly 0 */
    HTTP_BODY_CHUNKED, /* chunks follow, see chunk.h */
};

struct http_request {
    enum http_method method;
    struct slice method_token;
    struct slice target; /* as sent; of an absolute form its path and query, "?query" or "/" */
    int minor_version;   /* 0 or 1 */
    enum http_body_kind body;
    uint64_t content_length;
    bool keep_alive;      /* by version and Connection */
    bool expect_continue; /* Expect: 100-continue */
    size_t header_count;
    struct http_header headers[HTTP_HEADERS_MAX];
};

/* Why a head was refused: the status to answer before closing, and a sentence. */
struct http_refusal {
    int status;
    const char *sentence; /* static */
};

/* Parses a whole head at the start of `input`, one leading empty line allowed (RFC 9112 section
 * 2.2). Above 0: bytes consumed; 0: more is needed; ERR_INVALID: malformed or over a cap, with
 * the answer in *ret_refusal. *ret_request holds nothing of use unless the result is above 0.
 * `scanned` (in and out, 0 to begin, 0 again once a head is consumed) remembers how far the end
 * of the head was looked for, so that a head that comes byte by byte costs linear time. An input
 * buffer must be able to hold HTTP_HEAD_BYTES_MAX bytes: at that size the answer is never
 * "more". */
long http_request_parse(struct slice input, size_t *scanned, struct http_request *ret_request,
                        struct http_refusal *ret_refusal) MUST_USE;

/* Copies `bytes`, the head that `r` was parsed from, to `copy`, which has room for them, and `r` to
 * *ret_request with its slices pointing there. */
void http_request_copy(const struct http_request *r, struct slice bytes, char *copy,
                       struct http_request *ret_request);

/* The value of the only header of that name (case-insensitive); ptr NULL when absent. ret_count,
 * when not NULL, tells how many there are; then the first is returned. */
struct slice http_request_header(const struct http_request *r, struct slice name,
                                 size_t *ret_count);

/* The path and the query of a target: an empty path is "/", the query has ptr NULL when there is no
 * '?'. */
void http_target_split(struct slice target, struct slice *ret_path, struct slice *ret_query);

/* Decodes percent escapes of one query value or path into `out` (at least `in.len` bytes). '+'
 * stays. The length, or ERR_INVALID for a broken escape. */
long http_percent_decode(struct slice in, char *out) MUST_USE;

/* Steps through "a=b&c=d": false at the end. Raw, not decoded; a name without '=' has value.ptr
 * NULL. */
bool http_query_next(struct slice *rest, struct slice *ret_name, struct slice *ret_value);

/* Whether an If-None-Match value matches `etag` (with its quotes) by weak comparison (RFC 9110
 * sections 8.8.3.2 and 13.1.2): lists, W/ prefixes and "*". */
bool http_etag_matches(struct slice if_none_match, struct slice etag);

#endif
