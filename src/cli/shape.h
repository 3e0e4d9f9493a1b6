/* The shape of JSON values: names of members and types, merged over all values that are added, and
 * nothing of what they hold.
 *
 * Names can be data too, such as ids in a map, or what tools and people put somewhere. So names
 * are shown in those objects alone that T3's contract knows (cli/shape_known.h), each where it
 * stands in the contract, one or an array of such as it has there, and what is added is taken for
 * an item of a stream or a projection. Of other objects only that they are there is shown. Also a
 * known one is taken for a map, whose keys are not kept and of whose values only types are, as soon
 * as one key is no plain name (letters, digits and '_', no capital first, at most two digits, at
 * most SHAPE_NAME_BYTES_MAX bytes) or there are too many of them (SHAPE_NAMES_EACH,
 * SHAPE_NAMES_MAX).
 *
 * Memory is bounded whatever is added: what is beyond SHAPE_DEPTH_MAX and SHAPE_PLACES_MAX is shown
 * as "...". Pure but for its memory. One thread. */
#ifndef ARBE_CLI_SHAPE_H
#define ARBE_CLI_SHAPE_H

#include "base/buf.h"

struct shape;

/* An empty shape; NULL when memory is out. */
struct shape *shape_create(void);

/* Frees it. Accepts NULL. */
void shape_destroy(struct shape *shape);

/* Merges a JSON value that has been scanned. */
void shape_add(struct shape *shape, struct slice value);

/* Merges the elements of an array that has been scanned. */
void shape_add_each(struct shape *shape, struct slice array);

/* Appends it for people, without a line end behind it: "string | null", "[number]", "{string: T}"
 * for a map, objects with a member on each line, '?' behind the name of one that not every object
 * has. Lines but the first are indented by `indent` spaces. "nothing" when nothing was added.
 * Failure sticks to the buffer: also that memory ran out while something was added. */
void shape_print(const struct shape *shape, unsigned indent, struct buf *out);

/* Appends it as a JSON object: "types", an array of names as typeof and "array", "null" say them;
 * "elements" and "values" of a map, shapes; "members", an array of {name, optional, shape}; "cut":
 * true where something is not shown. Likewise. */
void shape_json(const struct shape *shape, struct buf *out);

#endif
