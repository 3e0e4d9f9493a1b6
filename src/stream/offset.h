/* Offsets as clients see them: "0000000000000000_" and a position of 16 digits, 33 characters of
 * URL-safe text whose byte order is the order of positions (PROTOCOL.md section 8). The first half
 * is reserved for a retention generation and is zero. Nothing outside this file looks into a
 * token. Pure. */
#ifndef ARBE_STREAM_OFFSET_H
#define ARBE_STREAM_OFFSET_H

#include <stdint.h>

#include "base/attr.h"
#include "base/slice.h"

#define OFFSET_TOKEN_BYTES 33 /* without a NUL */

enum offset_kind {
    OFFSET_START, /* "-1" */
    OFFSET_NOW,   /* "now" */
    OFFSET_AT,    /* a token */
};

struct offset {
    enum offset_kind kind;
    uint64_t position; /* for OFFSET_AT; OFFSET_BEYOND when no stream can be that long */
};

/* A well-formed token that lies beyond every stream. */
#define OFFSET_BEYOND UINT64_MAX

/* Parses a token or sentinel. False when it is neither. */
bool offset_parse(struct slice text, struct offset *ret_offset) MUST_USE;

/* Writes the token of `position`, at most STREAM_OFFSET_MAX, without a NUL. */
void offset_format(char out[static OFFSET_TOKEN_BYTES], uint64_t position);

#endif
