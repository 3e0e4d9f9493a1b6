/* Terminals do not agree on the width of graphemes of several characters, nor of newer pictures.
 * Where one is disputed, the columns that it is to have are blanked first, and the cursor is put
 * behind them afterwards: whatever the terminal makes of it, the rest of the line stands where it
 * should. */
#include "cli/paint.h"

#include <assert.h>

struct brush {
    struct buf *out;
    bool colour;
    unsigned style; /* in force */
};

static void set_style(struct brush *b, unsigned style)
{
    if (!b->colour) {
        style &= CELL_BOLD | CELL_DIM | CELL_REVERSE;
    }
    if (style == b->style) {
        return;
    }
    buf_append(b->out, SLICE("\033[0"));
    buf_append(b->out, (style & CELL_BOLD) != 0 ? SLICE(";1") : SLICE(""));
    buf_append(b->out, (style & CELL_DIM) != 0 ? SLICE(";2") : SLICE(""));
    buf_append(b->out, (style & CELL_REVERSE) != 0 ? SLICE(";7") : SLICE(""));
    if (CELL_COLOUR(style) != 0) {
        buf_append_format(b->out, ";%u", 30 + CELL_COLOUR(style));
    }
    buf_append_char(b->out, 'm');
    b->style = style;
}

static void move_to(struct brush *b, int row, int column)
{
    buf_append_format(b->out, "\033[%d;%dH", row + 1, column + 1);
}

/* Whether terminals may differ about it: more than one character, or a picture. */
static bool is_disputed(const struct cell *cell)
{
    const unsigned char *byte = (const unsigned char *)cell->bytes;
    size_t first = byte[0] < 0x80 ? 1 : byte[0] < 0xe0 ? 2 : byte[0] < 0xf0 ? 3 : 4;

    return cell->len > first || (cell->len == 4 && byte[0] == 0xf0 && byte[1] == 0x9f) ||
           (cell->width == 2 && byte[0] == 0xe2);
}

static void add_cell(struct brush *b, int row, int column, const struct cell *cell)
{
    struct slice bytes = {cell->bytes, cell->len};

    set_style(b, cell->style);
    if (cell->len == 0) {
        buf_append_char(b->out, ' ');
    } else if (is_disputed(cell)) {
        buf_append(b->out, cell->width == 2 ? SLICE("  ") : SLICE(" "));
        move_to(b, row, column);
        buf_append(b->out, bytes);
        move_to(b, row, column + cell->width);
    } else {
        buf_append(b->out, bytes);
    }
}

static bool is_blank(const struct cell *cell)
{
    return cell->len == 0 && cell->width == 1 && cell->style == CELL_PLAIN;
}

/* Adds the columns from `start` to before `end`; blanks that reach the edge are erased as one. */
static void add_run(struct brush *b, const struct cells *cells, int row, int start, int end)
{
    int blanks = cells->columns;

    while (blanks > start && is_blank(cells_at(cells, row, blanks - 1))) {
        blanks--;
    }
    move_to(b, row, start);
    for (int column = start; column < end && column < blanks; column++) {
        const struct cell *cell = cells_at(cells, row, column);

        if (cell->width > 0) {
            add_cell(b, row, column, cell);
        }
    }
    if (blanks < end) {
        set_style(b, CELL_PLAIN);
        buf_append(b->out, SLICE("\033[K"));
    }
}

static bool same(const struct cell *a, const struct cell *b)
{
    return a->len == b->len && a->width == b->width && a->style == b->style &&
           memcmp(a->bytes, b->bytes, a->len) == 0;
}

/* Which columns of a row are to be written: none if it is the same. */
static void find_run(const struct cells *before, const struct cells *after, int row, int *ret_start,
                     int *ret_end)
{
    int start = 0;
    int end = after->columns;

    while (start < end && same(cells_at(before, row, start), cells_at(after, row, start))) {
        start++;
    }
    while (end > start && same(cells_at(before, row, end - 1), cells_at(after, row, end - 1))) {
        end--;
    }
    *ret_start = start;
    *ret_end = end;
}

/* Half of a wide one cannot be written, nor does half of an old one stay. Behind one that is
 * disputed the terminal may have lost what stood there. */
static void widen_run(const struct cells *before, const struct cells *after, int row, int *start,
                      int *end)
{
    while (*start > 0 && (cells_at(after, row, *start)->width == 0 ||
                          cells_at(before, row, *start)->width == 0)) {
        --*start;
    }
    while (*end < after->columns &&
           (cells_at(after, row, *end)->width == 0 || cells_at(before, row, *end)->width == 0)) {
        ++*end;
    }
    for (int column = *start; column < *end; column++) {
        if (is_disputed(cells_at(after, row, column))) {
            *end = after->columns;
        }
    }
}

static void paint_row(struct brush *b, const struct cells *before, const struct cells *after,
                      int row)
{
    int start = 0;
    int end = after->columns;

    if (before != NULL) {
        find_run(before, after, row, &start, &end);
    }
    if (start < end) {
        if (before != NULL) {
            widen_run(before, after, row, &start, &end);
        }
        add_run(b, after, row, start, end);
    }
}

void paint(struct buf *out, const struct cells *before, const struct cells *after, bool colour)
{
    struct brush b = {.out = out, .colour = colour};

    assert(before == NULL || (before->rows == after->rows && before->columns == after->columns));
    if (before == NULL) {
        buf_append(out, SLICE("\033[0m\033[2J"));
    }
    for (int row = 0; row < after->rows; row++) {
        paint_row(&b, before, after, row);
    }
    set_style(&b, CELL_PLAIN);
}
