/* UUIDs of version 7 (RFC 9562): 48 bits of milliseconds, then what tells those of the same
 * millisecond apart. Their text sorts as they were made. Pure, but for the source, which any
 * number of threads may share. */
#ifndef ARBE_BASE_UUID_H
#define ARBE_BASE_UUID_H

#include <stdatomic.h>

#include "base/attr.h"
#include "base/slice.h"

#define UUID_TEXT_BYTES   37u /* 36 characters, NUL */
#define UUID_RANDOM_BYTES 10u

struct uuid {
    unsigned char bytes[16]; /* in the order of the text */
};

/* The UUID of `ms` since 1970 (its low 48 bits) with these random bits, of which six give way to
 * version and variant. */
struct uuid uuid_make_v7(uint64_t ms, const unsigned char random[static UUID_RANDOM_BYTES]);

/* Writes the text: lower case, NUL-terminated. */
void uuid_format(const struct uuid *u, char out[static UUID_TEXT_BYTES]);

/* Reads the canonical text of any version: lower case, hyphens, 36 bytes. False for another. */
bool uuid_parse(struct slice text, struct uuid *ret_uuid) MUST_USE;

/* Gives UUIDs each of which is greater than the one before, also within a millisecond and when the
 * clock is set back. All zeros is a new one; nothing to finish. */
struct uuid_source {
    _Atomic uint64_t last; /* private: milliseconds and the counter below them */
};

/* The next one at the wall clock's `ms`. Its other bits come from the kernel; ERR_IO when that has
 * none to give. Never blocks on another thread. */
int uuid_source_next(struct uuid_source *s, uint64_t ms, struct uuid *ret_uuid) MUST_USE;

#endif
