/* Patterns over stream names (PROTOCOL.md 6.2): "*" stands for one segment, "**" for any number of
 * them, none included; everything else, also a "*" inside a segment, stands for itself. "%2A" and
 * "%2A%2A" are segments of stars that stand for themselves.
 *
 * A canonical pattern is made of segments as canonical names are, except that a segment of one or
 * two literal stars is written escaped, which no canonical name is. Pure. */
#ifndef ARBE_STREAM_GLOB_H
#define ARBE_STREAM_GLOB_H

#include "base/err.h"
#include "base/limits.h"
#include "base/slice.h"

/* Most bytes of a canonical pattern: a name whose every segment is a literal "**". */
#define GLOB_BYTES_MAX (STREAM_NAME_BYTES_MAX + 4 * GLOB_SEGMENTS_MAX)

/* What a segment of a canonical pattern stands for. */
enum glob_segment {
    GLOB_LITERAL, /* one segment with these bytes */
    GLOB_ONE,     /* any one segment */
    GLOB_ANY,     /* any number of segments */
};

/* Makes the canonical form of `raw`, as a client wrote it, in `out`. ERR_INVALID, also for what no
 * stream name may have, since it would never match; `msg` says what was wrong. */
int glob_parse(struct slice raw, char out[static GLOB_BYTES_MAX], size_t *ret_len,
               struct errmsg *msg) MUST_USE;

/* What one segment of a canonical pattern means; ret_literal is set for GLOB_LITERAL, and lives as
 * long as the pattern, or for ever. */
enum glob_segment glob_segment_read(struct slice segment, struct slice *ret_literal);

/* Whether a canonical pattern matches a canonical name. Time grows with the product of the lengths
 * at most, however many "**" there are; no allocation, no recursion. */
bool glob_matches(struct slice pattern, struct slice name);

#endif
