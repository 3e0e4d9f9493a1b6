/* Changes of a board on their way to whoever reads lines. One that changes again before it was read
 * is told once, as it is by then: what waits is bounded by rows, however slow the reader is.
 *
 * Pure, but for memory. One thread. */
#ifndef ARBE_CLI_BOARD_LINES_H
#define ARBE_CLI_BOARD_LINES_H

#include "arbe/t3_board.h"
#include "base/attr.h"
#include "base/buf.h"
#include "base/list.h"
#include "base/map.h"
#include "t3/watch.h"

#include <stdbool.h>

enum board_form {
    BOARD_PLAIN, /* HOST  STATE  TITLE - SNIPPET, without hosts' states */
    BOARD_JSON,
};

struct board_lines {
    enum board_form form;
    struct list queue; /* private: of those that wait, the first one first */
    struct list known; /* private: all */
    struct map map;    /* private: the same by their keys */
    uint64_t seed;     /* private */
};

/* None. `seed` is secret, lest hosts choose ids that collide. */
void board_lines_init(struct board_lines *lines, enum board_form form, uint64_t seed);

/* Frees. */
void board_lines_finish(struct board_lines *lines);

/* Takes a change as t3_board_apply tells it. ERR_NOMEM. */
int board_lines_row(struct board_lines *lines, const struct t3_board_row *row, bool gone) MUST_USE;

/* Takes the state of a host, which comes behind all that waits by now. In the plain form nothing
 * happens. ERR_NOMEM. */
int board_lines_host(struct board_lines *lines, const struct t3_watch_host *host) MUST_USE;

/* Appends the first line that waits to `out`, with its line end: true, or false when none does.
 * Failure sticks to the buffer. */
bool board_lines_take(struct board_lines *lines, struct buf *out);

/* Appends a row, or that it is gone, with a line end. */
void board_lines_format_row(struct buf *out, enum board_form form, const struct t3_board_row *row,
                            bool gone);

/* The same of a row that is there, with the time of its activity where the form is plain:
 * HOST  STATE  TIME  TITLE - SNIPPET; "-": there was none. */
void board_lines_format_dated(struct buf *out, enum board_form form,
                              const struct t3_board_row *row);

/* Appends the state of a host as JSON, with its error if it has one, and a line end. */
void board_lines_format_host(struct buf *out, const struct t3_watch_host *host);

#endif
