/* Dates of RFC 3339 and of HTTP (RFC 9110 section 5.6.7), in milliseconds since 1970 UTC. Pure. */
#ifndef ARBE_BASE_DATE_H
#define ARBE_BASE_DATE_H

#include "base/attr.h"
#include "base/slice.h"

#define DATE_RFC3339_BYTES 25 /* "2026-11-30T13:10:00.000Z" and its NUL */
#define DATE_HTTP_BYTES    30 /* "Mon, 30 Nov 2026 13:10:00 GMT" and its NUL */

/* Parses an RFC 3339 timestamp with any offset and any number of fraction digits, years 1970 to
 * 9999, a leap second counting as the second after. False when it is anything else. */
bool date_parse_rfc3339(struct slice text, int64_t *ret_ms) MUST_USE;

/* Writes `ms` in UTC, with milliseconds, NUL-terminated. */
void date_format_rfc3339(char out[static DATE_RFC3339_BYTES], int64_t ms);

/* Writes `ms` as an HTTP date, NUL-terminated. */
void date_format_http(char out[static DATE_HTTP_BYTES], int64_t ms);

#endif
