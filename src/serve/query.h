/* The query of a read: offset, live and cursor, percent-decoded. Pure. */
#ifndef ARBE_SERVE_QUERY_H
#define ARBE_SERVE_QUERY_H

#include "base/err.h"
#include "serve/cursor.h"
#include "stream/offset.h"

enum query_live {
    QUERY_CATCH_UP,
    QUERY_LONG_POLL,
    QUERY_SSE,
};

struct query {
    struct offset offset; /* the start when it was not given */
    enum query_live live; /* QUERY_CATCH_UP when it was not given */
    struct cursor cursor; /* as the client sent it */
};

/* Parses what follows the '?', or an empty slice. Unknown parameters are ignored; ERR_INVALID
 * with a sentence for a known one that is doubled or malformed, and for live without offset. */
int query_parse(struct slice text, struct query *ret_query, struct errmsg *msg) MUST_USE;

#endif
