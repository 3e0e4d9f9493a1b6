/* The objects that T3's contract knows, by the object they stand in, and whether each is one or an
 * array of such. What has another kind is not what the contract means: its names may be data.
 *
 * Pure. Any thread. */
#ifndef ARBE_CLI_SHAPE_KNOWN_H
#define ARBE_CLI_SHAPE_KNOWN_H

#include "base/slice.h"

/* What is shown of an object. */
enum shape_view {
    VIEW_NONE,   /* not even its names */
    VIEW_NAMES,  /* its names, and nothing of what is in there */
    VIEW_RECORD, /* as a thread, a run, ... */
    VIEW_EVENT,
    VIEW_TOP, /* as an item of a stream, what a snapshot holds, a projection */
};

/* What stands at a place. */
struct shape_known {
    enum shape_view view; /* VIEW_NONE: nothing that is known */
    bool array;           /* of such objects, which hold no arrays in between; else one */
};

/* What the member `name` of an object that is shown as `in` is known to be. */
struct shape_known shape_known_member(enum shape_view in, struct slice name);

#endif
