/* One line for each request, at debug level only: method, path without its query, status, bytes of
 * the body, duration, remote address. Neither query nor headers are told: they may hold what only
 * some may know. At other levels a request costs one look at the level. */
#ifndef ARBE_SERVE_ACCESS_H
#define ARBE_SERVE_ACCESS_H

#include "serve/exchange.h"

/* A request that will have a line. */
struct access {
    uint64_t begun_us; /* monotonic */
    uint64_t bytes;    /* of the body of the answer, so far */
    size_t path_len;
    char remote[64];
    char path[LOGGER_FIELD_BYTES_MAX + 1]; /* one more than is shown, so that a cut shows */
};

/* The exchange has begun; its head is there, or there was none that could be read. Without memory
 * there is no line. */
void access_begin(struct exchange *x);

/* The exchange ends: writes the line, if there is to be one. */
void access_end(struct exchange *x);

#endif
