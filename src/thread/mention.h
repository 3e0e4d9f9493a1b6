/* Handles and mentions: "Archive Bot" is mentioned as @archive-bot. The one reading of mentions
 * that everything uses. Letters are ASCII ones, in any case, and what lies beyond ASCII but for
 * its usual spaces, punctuation and pictures, which is kept as it is. Pure. */
#ifndef ARBE_THREAD_MENTION_H
#define ARBE_THREAD_MENTION_H

#include "base/attr.h"
#include "base/limits.h"
#include "base/slice.h"

/* Room for the handle of any name, and a NUL. */
#define MENTION_HANDLE_BYTES (RECORD_NAME_BYTES_MAX + 1)

/* Writes the handle of a name, NUL-terminated, and returns its length: ASCII letters in lower case,
 * each run of what is neither letter nor digit as one hyphen, none at the ends. May be empty. A
 * name longer than RECORD_NAME_BYTES_MAX is cut. */
size_t mention_handle(struct slice name, char out[static MENTION_HANDLE_BYTES]);

/* Called for each mention in order with its handle, which lives until the call returns; a result
 * other than 0 ends the walk and is returned. */
typedef int (*mention_fn)(void *context, struct slice handle);

/* Walks over the mentions of a text: an "@" that no letter, digit or underscore precedes, and the
 * letters, digits, hyphens and underscores after it, as mention_handle writes them. */
int mention_each(struct slice text, mention_fn each, void *context);

/* Whether `handle`, not empty, is mentioned in the text. */
bool mention_has(struct slice text, struct slice handle);

#endif
