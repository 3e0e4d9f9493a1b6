/* A screen as cells of characters. What is put there is cut at its edges, and nothing in it is
 * anything that a terminal would obey: no control character, no escape sequence, nothing that turns
 * the direction of writing. A cell holds a grapheme, which may be two columns wide. Pure, but for
 * memory. One thread. */
#ifndef ARBE_CLI_CELLS_H
#define ARBE_CLI_CELLS_H

#include "base/attr.h"
#include "base/buf.h"

#include <stdbool.h>
#include <stdint.h>

/* How a cell looks: some of these, and at most one colour. */
enum cell_style {
    CELL_PLAIN = 0,
    CELL_BOLD = 1,
    CELL_DIM = 2,
    CELL_REVERSE = 4,
    CELL_RED = 1 << 3,
    CELL_GREEN = 2 << 3,
    CELL_YELLOW = 3 << 3,
    CELL_BLUE = 4 << 3,
    CELL_MAGENTA = 5 << 3,
    CELL_CYAN = 6 << 3,
};

#define CELL_COLOUR(style) ((unsigned)(style) >> 3) /* 0: none, else as in SGR 30 to 37 */
#define CELL_BYTES         40u                      /* of a grapheme; marks beyond are left out */

/* Those that are blank, or the second half of a wide one, hold no bytes; unused bytes are 0. */
struct cell {
    char bytes[CELL_BYTES]; /* UTF-8 */
    uint8_t len;            /* of them in use */
    uint8_t width;          /* columns: 1, 2; 0: the second half of the cell before */
    uint8_t style;
};

struct cells {
    struct cell *list; /* owned; rows times columns, row by row */
    int rows;
    int columns;
    bool ascii; /* the terminal shows no others: they become '?' */
};

#define CELLS_ROWS_MAX    512
#define CELLS_COLUMNS_MAX 1024

/* Makes a blank screen of that size, 1 to the maximum each; one outside is made the nearest.
 * `cells` is zeroed, or was made so before. ERR_NOMEM: it is as it was. */
int cells_make(struct cells *cells, int columns, int rows) MUST_USE;

/* Frees. Accepts a zeroed struct. */
void cells_finish(struct cells *cells);

/* Blanks all. */
void cells_clear(struct cells *cells);

/* The cell there, which is on the screen. */
struct cell *cells_at(const struct cells *cells, int row, int column);

/* Puts `text` between two columns of a row, and returns the column behind it. Text that is too long
 * ends with an ellipsis. What lies beyond the screen is left out. */
int cells_put(struct cells *cells, int row, int column, int end, unsigned style, struct slice text);

/* Likewise, so that it ends before column `end`, but not before `column`. Returns where it
 * begins. */
int cells_put_right(struct cells *cells, int row, int column, int end, unsigned style,
                    struct slice text);

/* A part of the screen. */
struct cells_area {
    int row;    /* the first */
    int rows;   /* how many */
    int column; /* the first */
    int end;    /* the column behind the last */
};

/* Puts `text` on as many of the area's rows as it needs, cut at spaces where there are some, and
 * returns the row behind it. */
int cells_put_lines(struct cells *cells, struct cells_area area, unsigned style, struct slice text);

/* Adds a style to a part of a row. */
void cells_add_style(struct cells *cells, int row, int column, int end, unsigned style);

/* How many columns `text` takes. */
int cells_width(const struct cells *cells, struct slice text);

/* Appends a row as text, without the blanks at its end. */
void cells_row_text(const struct cells *cells, int row, struct buf *out);

/* Appends a text for people, on one line, as cells_put would show it but in full. */
void cells_clean(struct buf *out, struct slice text);

#endif
