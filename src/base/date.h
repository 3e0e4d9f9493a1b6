/* Dates of RFC 3339 and of HTTP (RFC 9110 section 5.6.7), in milliseconds since 1970 UTC. Pure. */
#ifndef ARBE_BASE_DATE_H
#define ARBE_BASE_DATE_H

#include "base/attr.h"
#include "base/slice.h"

#define DATE_RFC3339_BYTES 25 /* "2026-11-30T13:10:00.000Z" and its NUL */
#define DATE_HTTP_BYTES    30 /* "Mon, 30 Nov 2026 13:10:00 GMT" and its NUL */

/* The last millisecond of the year 9999. */
#define DATE_MS_MAX INT64_C(253402300799999)

/* Parses an RFC 3339 timestamp with any offset and any number of fraction digits (cut to
 * milliseconds), between 1970 and 9999 in UTC. A leap second, 23:59:60 UTC, counts as the second
 * after. False when it is anything else. */
bool date_parse_rfc3339(struct slice text, int64_t *ret_ms) MUST_USE;

/* Writes `ms` in UTC, with milliseconds, NUL-terminated. Times outside 0..DATE_MS_MAX are written
 * as the nearest one inside. */
void date_format_rfc3339(char out[static DATE_RFC3339_BYTES], int64_t ms);

/* Writes `ms` as an HTTP date, NUL-terminated, with the same bounds. */
void date_format_http(char out[static DATE_HTTP_BYTES], int64_t ms);

#endif
