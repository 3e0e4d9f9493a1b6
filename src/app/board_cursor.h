/* Words of the API for places on the board: how much of it somebody has seen, and where a page
 * ends. Both are opaque to clients. Pure. */
#ifndef ARBE_APP_BOARD_CURSOR_H
#define ARBE_APP_BOARD_CURSOR_H

#include "app/board_state.h"

#include "base/buf.h"

#define BOARD_CURSOR_BYTES 40u /* with the NUL */

/* What somebody has seen: all changes of one life of the server, up to a number. */
struct board_cursor {
    uint64_t epoch; /* of that life */
    uint64_t number;
};

/* Writes "9f2c61d05be8a347-12", NUL-terminated. */
void board_cursor_format(const struct board_cursor *cursor, char out[static BOARD_CURSOR_BYTES]);

/* False for any text that board_cursor_format does not write. */
bool board_cursor_parse(struct slice text, struct board_cursor *ret_cursor) MUST_USE;

#define BOARD_PLACE_BYTES_MAX 1024u /* of its text */

/* Appends a text for the place of a row. Failure sticks to the buffer. */
void board_place_format(const struct board_place *place, struct buf *out);

/* Reads it; host and thread id stand in `memory`, of BOARD_PLACE_BYTES_MAX bytes. False for what
 * board_place_format cannot have written. */
bool board_place_parse(struct slice text, char *memory, struct board_place *ret_place) MUST_USE;

#endif
