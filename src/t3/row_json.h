/* A row of the board as JSON, as commands and the API show it. */
#ifndef ARBE_T3_ROW_JSON_H
#define ARBE_T3_ROW_JSON_H

#include "arbe/t3_board.h"
#include "base/buf.h"

/* Appends an object with thread_id, title, state, last_turn_at, last_message_snippet and host; what
 * is absent is null. "asks":true follows where a person is asked, and nothing where none is.
 * Failure sticks to the buffer. */
void t3_row_json(struct buf *out, const struct t3_board_row *row);

/* Appends an object with the row's key alone: thread_id and host. Likewise. */
void t3_row_key_json(struct buf *out, const struct t3_board_row *row);

#endif
