/* A borrowed run of bytes. It owns nothing and is not NUL-terminated; whoever returns one says
 * until when it lives. Passed by value. All functions are pure. */
#ifndef ARBE_BASE_SLICE_H
#define ARBE_BASE_SLICE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct slice {
    const char *ptr; /* may be NULL when len is 0 */
    size_t len;      /* bytes */
};

/* A slice over a string literal, without its NUL. */
#define SLICE(literal) ((struct slice){(literal), sizeof(literal) - 1})

/* A slice over the NUL-terminated `text`, valid as long as `text` is. */
static inline struct slice slice_of(const char *text)
{
    return (struct slice){text, strlen(text)};
}

/* Byte equality. */
static inline bool slice_equal(struct slice a, struct slice b)
{
    return a.len == b.len && (a.len == 0 || memcmp(a.ptr, b.ptr, a.len) == 0);
}

/* ASCII case-insensitive equality; other bytes, such as a dotless i, never fold. */
bool slice_equal_nocase(struct slice a, struct slice b);

/* Byte order, a shorter prefix first: below 0, 0, above 0. */
int slice_compare(struct slice a, struct slice b);

/* Whether `s` begins with `prefix`. */
bool slice_starts_with(struct slice s, struct slice prefix);

/* `s` without spaces and tabs at both ends (RFC 9110 OWS); borrows from `s`. */
struct slice slice_trim(struct slice s);

/* Splits off what stands before the first `separator`: true and the part in ret_part, the rest in
 * *rest; when there is none, the whole of *rest and *rest becomes empty with ptr NULL. False when
 * *rest was already used up (ptr NULL). */
bool slice_split(struct slice *rest, char separator, struct slice *ret_part);

/* Equality in time that depends on the lengths alone, for secrets. */
bool slice_equal_constant_time(struct slice a, struct slice b);

/* A 64-bit hash of the bytes under `seed`; not for hostile collisions unless the seed is secret. */
uint64_t slice_hash(struct slice s, uint64_t seed);

#endif
