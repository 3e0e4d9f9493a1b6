/* The board as server-sent events: what changed since the reader was last told, then what changes.
 * On the exchange's worker. */
#ifndef ARBE_APP_BOARD_STREAM_H
#define ARBE_APP_BOARD_STREAM_H

#include "app/board_cursor.h"
#include "app/board_keeper.h"
#include "serve/exchange.h"

/* Answers a GET or HEAD, whose head is in place, with the events of `keeper`'s board behind `from`;
 * NULL: the reader knows nothing yet. Ends when the session says so. False: there is no memory, and
 * nothing was answered. */
bool board_stream_begin(struct board_keeper *keeper, struct exchange *x,
                        const struct board_cursor *from) MUST_USE;

#endif
