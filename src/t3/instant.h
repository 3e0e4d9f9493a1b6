/* Times of the wire: shown as they came, compared as the instants that they are. Plain memory.
 * Pure. */
#ifndef ARBE_T3_INSTANT_H
#define ARBE_T3_INSTANT_H

#include "base/slice.h"

#define T3_INSTANT_BYTES 48 /* of text, with its NUL; what is longer is no time */

struct t3_instant {
    int64_t ms;                  /* since 1970, UTC */
    uint32_t picoseconds;        /* beyond the millisecond; finer digits do not count */
    uint8_t len;                 /* of the text; 0: no time */
    char text[T3_INSTANT_BYTES]; /* as it came, NUL-terminated */
};

/* Reads a JSON value; anything but a string with an RFC 3339 time between 1970 and 9999 is no
 * time. */
struct t3_instant t3_instant_read(struct slice value);

/* The same of the text itself, as t3_instant_text gives it. */
struct t3_instant t3_instant_of(struct slice text);

/* Below 0, 0, above 0, as strcmp; no time is before all times. */
int t3_instant_compare(const struct t3_instant *a, const struct t3_instant *b);

/* Puts `other` in the place of `latest` if it is later. */
void t3_instant_advance(struct t3_instant *latest, const struct t3_instant *other);

/* The text; ptr NULL for no time. Borrowed from `t`. */
struct slice t3_instant_text(const struct t3_instant *t);

#endif
