/* The head of an HTTP answer, line by line as libcurl hands it out, made into the result of a
 * call. Pure. */
#ifndef ARBE_CLIENT_HTTP_HEAD_H
#define ARBE_CLIENT_HTTP_HEAD_H

#include "client/call.h"

struct http_head {
    int status;
    bool whole;           /* the empty line came */
    bool is_json;         /* content type application/json or ...+json */
    bool is_event_stream; /* text/event-stream */
    bool is_text;         /* text/plain */
    bool has_retry_after;
    char retry_after[64];  /* as it was sent */
    char date[64];         /* as it was sent; empty: none */
    size_t bytes;          /* of all lines so far */
    const char *malformed; /* a field that the protocol does not allow: its name; NULL: none */
};

/* Takes one line with its CR LF. Interim answers are forgotten when the next head begins. Fills
 * call->result; false when the head is too long. */
bool http_head_line(struct http_head *head, struct call *call, struct slice line);

/* Milliseconds that Retry-After asks for, seconds or a date; -1 when it says nothing that can be
 * understood. `now_s`: seconds since 1970, where the answer bears no Date. */
long http_head_retry_after(const struct http_head *head, int64_t now_s);

#endif
