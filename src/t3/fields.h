/* Members of an object by a table of names, in one pass, and elements of an array. json_value.h
 * scans an object once more for each name asked for; a shell snapshot has thousands of records with
 * dozens of members each, most of which nobody wants.
 *
 * All take values that have been scanned (json_text_read). Linear time, no recursion, no
 * allocation. Pure. */
#ifndef ARBE_T3_FIELDS_H
#define ARBE_T3_FIELDS_H

#include "base/attr.h"
#include "base/slice.h"

/* The members that somebody wants. */
struct t3_wanted {
    const struct slice *names; /* in plain bytes */
    size_t count;
};

#define T3_WANTED(table) (&(const struct t3_wanted){table, ARRAY_COUNT(table)})

/* Puts the values of the members that are wanted into ret_values, in the order of their names,
 * borrowed from `object`; ptr is NULL where there is none. False when `object` is none, or has one
 * of the members twice: readers of JSON disagree on which counts. ret_values then means nothing. */
bool t3_fields_read(struct slice object, const struct t3_wanted *wanted,
                    struct slice *ret_values) MUST_USE;

/* A walk over the elements of an array. */
struct t3_elements {
    struct slice rest; /* private */
};

/* Begins it; any other value has no elements. */
void t3_elements_begin(struct t3_elements *e, struct slice array);

/* The next element. False at the end. */
bool t3_elements_next(struct t3_elements *e, struct slice *ret_value);

/* The next element, and of it what t3_fields_read would read: 1; -1 when that would be false; 0 at
 * the end. The text is looked at once instead of twice. */
int t3_elements_read(struct t3_elements *e, const struct t3_wanted *wanted,
                     struct slice *ret_values, struct slice *ret_value) MUST_USE;

/* Whether there is a value, and not null. */
bool t3_field_given(struct slice value);

/* Whether there is a value, and it is null. */
bool t3_field_null(struct slice value);

/* Whether it is a string. */
bool t3_field_string(struct slice value);

/* Whether it is an array. */
bool t3_field_array(struct slice value);

/* Whether it is an id: a string of 1 to T3_ID_BYTES_MAX bytes that UTF-8 can hold. */
bool t3_field_id(struct slice value);

#endif
