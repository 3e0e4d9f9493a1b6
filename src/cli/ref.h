/* References to records, as people type them: a whole id, the beginning of one (8 characters or
 * more), a name, or an agent's "@handle". Candidates are offered one by one, in any order and
 * perhaps twice; those that are meant are kept, so that an ambiguous reference can list them.
 * Pure, but for the memory of what is kept. */
#ifndef ARBE_CLI_REF_H
#define ARBE_CLI_REF_H

#include "base/arena.h"
#include "base/slice.h"

#include <stdbool.h>

#define REF_PREFIX_BYTES_MIN 8u
#define REF_FOUND_MAX        10u /* that are kept; more are counted */

/* Texts that are not there are empty. */
struct ref_candidate {
    const char *kind; /* "thread"; static */
    struct slice id;
    struct slice name;
    struct slice handle; /* of an agent, without the "@" */
};

struct ref_search {
    struct slice text;                         /* the reference */
    struct ref_candidate found[REF_FOUND_MAX]; /* the first `count` of them, in `memory` */
    size_t count;                              /* that are meant: 0 none, 1 good, else ambiguous */
    bool failed;                               /* out of memory */
    struct arena *memory;                      /* private */
};

/* Whether `text` is a whole id, for which nothing has to be searched. */
bool ref_is_id(struct slice text);

/* Whether it may be the beginning of an id: enough of what ids consist of. */
bool ref_is_prefix(struct slice text);

/* Begins a search; `text` and `memory` live as long. */
void ref_begin(struct ref_search *s, struct slice text, struct arena *memory);

/* Keeps a copy of the candidate if it is meant. */
void ref_offer(struct ref_search *s, const struct ref_candidate *candidate);

#endif
