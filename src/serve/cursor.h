/* Stream-Cursor (PROTOCOL.md 10.1): the number of the 20-second interval since 2024-10-09,
 * which lets a CDN collapse readers, and which must move on when a client shows the one that it
 * was given, or a cached empty answer would come back for ever. Pure. */
#ifndef ARBE_SERVE_CURSOR_H
#define ARBE_SERVE_CURSOR_H

#include "base/slice.h"

/* What a client sent as cursor=. */
struct cursor {
    bool given;     /* false also for text that no server ever made: it is ignored */
    uint64_t value; /* the interval number */
};

/* Reads a decoded query value. Never fails: garbage is as good as none, and so is a number too
 * close to 2^64 to have a greater one. */
struct cursor cursor_parse(struct slice text);

/* The interval of `wall_ms`; 0 before the epoch. */
uint64_t cursor_current(int64_t wall_ms);

/* Whether the client needs a cursor of its own, beyond the current interval. */
bool cursor_is_ahead(const struct cursor *client, int64_t wall_ms);

/* The cursor to answer with: the current interval, or, when the client's is not below it, the
 * client's plus a jitter of 1 to 3600 seconds drawn from `random`. */
uint64_t cursor_next(const struct cursor *client, int64_t wall_ms, uint64_t random);

#endif
