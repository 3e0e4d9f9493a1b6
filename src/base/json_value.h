/* Reading JSON values by need: members, elements, strings, whole numbers. Nothing is built: a
 * value is the slice of its text, and what is asked of it is found by scanning that slice again.
 *
 * All functions but json_text_read take a value that has been scanned, without white space around
 * it, such as json_text_read and the functions here hand out; on anything else they are memory
 * safe, and their answers mean nothing. Linear time each, no recursion, no allocation. Pure. */
#ifndef ARBE_BASE_JSON_VALUE_H
#define ARBE_BASE_JSON_VALUE_H

#include "base/attr.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/slice.h"

enum json_kind {
    JSON_NULL,
    JSON_FALSE,
    JSON_TRUE,
    JSON_NUMBER,
    JSON_STRING,
    JSON_ARRAY,
    JSON_OBJECT,
};

/* Validates the whole of `text` as one value with white space around it. ret_value borrows from
 * it. ERR_INVALID with a reason. */
int json_text_read(struct slice text, struct slice *ret_value, struct errmsg *msg) MUST_USE;

/* By the first byte, which tells. */
enum json_kind json_kind(struct slice value);

/* The name of a kind for sentences, with its article: "a string", "null". Static storage. */
const char *json_kind_text(enum json_kind kind);

/* A walk over the members of an object or the elements of an array. */
struct json_walk {
    struct slice rest; /* private */
};

/* Begins a walk over an object or an array; any other value has nothing to walk over. */
void json_walk_begin(struct json_walk *w, struct slice value);

/* The next element. False at the end. */
bool json_walk_element(struct json_walk *w, struct slice *ret_value);

/* The next member; ret_name is a string value, with its quotes and escapes. False at the end. */
bool json_walk_member(struct json_walk *w, struct slice *ret_name, struct slice *ret_value);

/* The member of an object with that name (plain bytes; names are compared after decoding): 1 and
 * the value, or 0. ERR_INVALID with a sentence when there are two, since readers of JSON disagree
 * on which counts. */
int json_object_find(struct slice object, struct slice name, struct slice *ret_value,
                     struct errmsg *msg) MUST_USE;

/* Whether a string value says `text` once decoded. */
bool json_string_equal(struct slice value, struct slice text);

/* Appends the decoded string: UTF-8, and NUL where "\u0000" stood. ERR_INVALID when it has a lone
 * surrogate, which no UTF-8 can hold; ERR_NOMEM when `out` failed. */
int json_string_decode(struct slice value, struct buf *out) MUST_USE;

/* The same, but half of a surrogate pair becomes U+FFFD, as browsers show it. Failure sticks to the
 * buffer. */
void json_string_decode_lossy(struct slice value, struct buf *out);

/* How many bytes the decoded string has. ERR_INVALID when it has a lone surrogate. */
int json_string_len(struct slice value, size_t *ret_len) MUST_USE;

/* A number value that is whole, not negative, and at most `max`, as JavaScript would read it: "7",
 * "7.0", "70e-1" and "-0" are whole. */
bool json_number_u64(struct slice value, uint64_t max, uint64_t *ret_number) MUST_USE;

/* A number value as the nearest double. False for one beyond all doubles, or of more than
 * JSON_DOUBLE_BYTES_MAX bytes, which no program writes. */
bool json_number_double(struct slice value, double *ret_number) MUST_USE;

#define JSON_DOUBLE_BYTES_MAX 63u

/* How deeply arrays and objects are nested: 0 for any other value, 1 for [] and [1]. */
unsigned json_depth(struct slice value);

#endif
