/* The protocol's request headers, read strictly: a field that must be single and comes twice is
 * refused, as is a number that a lenient parser might read in two ways. Slices borrow from the
 * request. Pure. */
#ifndef ARBE_SERVE_FIELDS_H
#define ARBE_SERVE_FIELDS_H

#include "http/request.h"
#include "stream/engine.h"

/* The only value of a field; ptr NULL when absent. ERR_INVALID when it comes twice. */
int fields_single(const struct http_request *request, struct slice name, struct slice *ret_value,
                  struct errmsg *msg) MUST_USE;

/* Content-Type; empty when absent or empty. ERR_INVALID when doubled, too long or not a media
 * type. */
int fields_content_type(const struct http_request *request, struct slice *ret_type,
                        struct errmsg *msg) MUST_USE;

/* Stream-Closed: true, and nothing else, counts (PROTOCOL.md 4.1). */
int fields_closed(const struct http_request *request, bool *ret_closed,
                  struct errmsg *msg) MUST_USE;

/* Stream-TTL and Stream-Expires-At, at most one of them (PROTOCOL.md 5.1). */
int fields_expiry(const struct http_request *request, struct stream_expiry *ret_expiry,
                  struct errmsg *msg) MUST_USE;

/* Producer-Id, -Epoch and -Seq: all three or none (PROTOCOL.md 5.2.1). Without them the id is
 * empty. */
int fields_producer(const struct http_request *request, struct record_producer *ret_producer,
                    struct errmsg *msg) MUST_USE;

/* Stream-Seq (PROTOCOL.md 5.2). */
int fields_seq(const struct http_request *request, bool *ret_has_seq, struct slice *ret_seq,
               struct errmsg *msg) MUST_USE;

/* Stream-Forked-From, Stream-Fork-Offset and Stream-Fork-Sub-Offset (PROTOCOL.md 4.2) into the
 * fork fields of `ret_create`. The source's canonical name is written to `name`. ERR_NOTFOUND
 * for a source that no stream can have. */
int fields_fork(const struct http_request *request, char name[static STREAM_NAME_BYTES_MAX],
                struct stream_create_request *ret_create, struct errmsg *msg) MUST_USE;

#endif
