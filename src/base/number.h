/* Strict numbers, sizes and durations in text: what the protocol and the flags accept, and nothing
 * that a lenient parser would let through ("+1", " 1", "1e3", "0x10"). Pure. */
#ifndef ARBE_BASE_NUMBER_H
#define ARBE_BASE_NUMBER_H

#include "base/attr.h"
#include "base/slice.h"

/* The largest integer that JavaScript holds exactly (PROTOCOL.md 5.2.1). */
#define NUMBER_JS_MAX ((UINT64_C(1) << 53) - 1)

/* Decimal digits only, value at most `max`; leading zeros are accepted when `zeros` is true.
 * False for anything else, the empty text included. */
bool number_parse_u64(struct slice text, uint64_t max, bool zeros, uint64_t *ret_value) MUST_USE;

/* "64MiB", "4 KiB" is refused: digits followed by nothing, "KiB", "MiB" or "GiB". Bytes. */
bool number_parse_size(struct slice text, uint64_t *ret_bytes) MUST_USE;

/* "20ms", "30s", "5m", "1h": digits followed by a unit. Milliseconds. */
bool number_parse_duration(struct slice text, uint64_t *ret_ms) MUST_USE;

#endif
