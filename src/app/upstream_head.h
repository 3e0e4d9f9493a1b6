/* The head of another server's answer, line by line as it comes, made into the head that a client
 * of ours is given: all of it, but for what is between two hops only (RFC 9110 section 7.6.1), and
 * for what could tell or set secrets. How long the body is and how it is framed is ours to say
 * again, so a head that could be read in two ways is refused. Bytes in, bytes out. */
#ifndef ARBE_APP_UPSTREAM_HEAD_H
#define ARBE_APP_UPSTREAM_HEAD_H

#include "base/attr.h"
#include "base/buf.h"
#include "base/err.h"

struct upstream_head {
    bool whole;      /* all of it is there; what follows of lines is trailers */
    int status;      /* 200 to 599 */
    bool has_length; /* Content-Length is there, and counts */
    uint64_t length; /* its value */
    struct buf out;  /* status line and fields, each with its CRLF; without the empty line */

    /* private */
    struct buf lines;    /* as they came */
    struct slice secret; /* of the other server; borrowed */
};

/* Begins one. `secret` (empty: none) must not get out, and lives as long as the head. */
void upstream_head_init(struct upstream_head *h, struct slice secret);

/* Takes the next line, with its end. Interim answers (1xx) are passed over. ERR_TOOBIG above
 * UPSTREAM_HEAD_BYTES_MAX, ERR_INVALID, ERR_NOMEM: then there is nothing of use in it. */
int upstream_head_line(struct upstream_head *h, struct slice line) MUST_USE;

/* Whether the answer to GET has a body by its status. */
bool upstream_head_has_body(const struct upstream_head *h);

/* Frees what it holds; accepts a zeroed one. */
void upstream_head_finish(struct upstream_head *h);

#endif
