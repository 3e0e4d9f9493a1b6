/* Entries of the past that are held back until all of them are known, since a later one may say
 * that an earlier one is deleted. What is too much to hold is let go early. Copies. */
#ifndef ARBE_CLI_BACKLOG_H
#define ARBE_CLI_BACKLOG_H

#include "arbe/scoped_client.h"
#include "base/slice.h"

#include <stdbool.h>

#define BACKLOG_BYTES_MAX (64u * 1024u * 1024u)

/* All zeros is an empty one. */
struct backlog {
    /* private */
    struct slice *entries; /* JSON of each; owned */
    size_t count;
    size_t room;
    size_t bytes;
    char (*deleted)[SCOPED_ID_BYTES]; /* ids */
    size_t deleted_count;
    size_t deleted_room;
};

/* Called for each entry, which lives until it returns. */
typedef void (*backlog_fn)(void *context, const struct scoped_entry *entry, bool deleted);

/* Keeps a copy of the entry. False when there is no room: it is to be released first. */
bool backlog_add(struct backlog *b, const struct scoped_entry *entry);

/* Hands out what is held, oldest first, and is empty then; what is deleted stays known. */
void backlog_release(struct backlog *b, backlog_fn each, void *context);

/* Frees. Accepts a zeroed one. */
void backlog_finish(struct backlog *b);

#endif
