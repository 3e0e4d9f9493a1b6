/* Walks over a stream in steps of the caller's own size: what is left of the piece at hand, then
 * the next one. For copies, which compare two streams whose pieces differ. One thread. */
#ifndef ARBE_CLI_CURSOR_H
#define ARBE_CLI_CURSOR_H

#include "arbe/stream_client.h"
#include "base/slice.h"

#include <stdbool.h>

struct cursor {
    struct stream_reader *reader; /* owned */
    struct slice rest;            /* of the piece at hand; borrowed until it is used up */
    const char *next_offset;      /* behind `rest`; NULL: not known */
    bool up_to_date;              /* behind `rest` was the tail */
    bool closed;                  /* behind `rest` is the end of a closed stream */
};

/* Begins at `offset`. A code of stream_error.h. */
int cursor_begin(struct cursor *c, struct stream_client *client, const char *name,
                 const struct stream_read_options *options, struct stream_error *ret_error);

/* Frees. Accepts a zeroed cursor. */
void cursor_finish(struct cursor *c);

/* Has `rest` hold something: STREAM_OK, STREAM_END at the end, or an error. Does nothing while
 * something is left. `wait` false: STREAM_WAIT instead of blocking. A STREAM_OK with an empty rest
 * tells of an offset or the tail. */
int cursor_fill(struct cursor *c, bool wait, struct stream_error *ret_error);

/* Uses up `count` bytes of the rest. */
void cursor_use(struct cursor *c, size_t count);

/* Whether all of a JSON message is the same in both, white space between tokens aside. */
bool cursor_same_json(struct slice a, struct slice b);

#endif
