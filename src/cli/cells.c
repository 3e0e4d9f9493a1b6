/* Text is taken grapheme by grapheme (UAX 29, by utf8proc), each made harmless first:
 *
 *   white space and what ends a line       a space
 *   other control characters, broken UTF-8 '?'
 *   invisible format characters            nothing: they reorder or hide text; but joiners within a
 *                                          grapheme stay
 *   marks without a letter                 nothing: a terminal would put them on the cell before
 *
 * Terminals do not agree how wide some graphemes are; paint.c sees to that. */
#include "cli/cells.h"

#include "base/err.h"

#include <assert.h>
#include <stdlib.h>
#include <utf8proc.h>

#define ZWNJ         0x200c
#define ZWJ          0x200d
#define EMOJI_STYLE  0xfe0f /* asks for the picture, which is wide */
#define FLAG_FIRST   0x1f1e6
#define FLAG_LAST    0x1f1ff
#define WORD_COLUMNS 24 /* a word that is longer is cut, to fill a line */

/* A grapheme, ready to be shown. */
struct glyph {
    char bytes[CELL_BYTES];
    size_t len;
    int width; /* 0: there is nothing to show */
};

/* ------------------------------------------------------------------ graphemes */

/* The next character: its length; what is no UTF-8 is one byte, and -1. */
static size_t take(struct slice text, utf8proc_int32_t *ret_c)
{
    utf8proc_ssize_t len = 1;

    if ((unsigned char)text.ptr[0] < 0x80) {
        *ret_c = text.ptr[0];
        return 1;
    }
    len = utf8proc_iterate((const utf8proc_uint8_t *)text.ptr, (utf8proc_ssize_t)text.len, ret_c);
    if (len <= 0) {
        *ret_c = -1;
        return 1;
    }
    return (size_t)len;
}

static bool is_space(utf8proc_int32_t c)
{
    if (c < 0x80) {
        return c == ' ' || (c >= '\t' && c <= '\r');
    }
    utf8proc_category_t category = utf8proc_category(c);

    return c == 0x85 || category == UTF8PROC_CATEGORY_ZS || category == UTF8PROC_CATEGORY_ZL ||
           category == UTF8PROC_CATEGORY_ZP;
}

/* How many bytes of `text` are its first grapheme. */
static size_t grapheme_len(struct slice text)
{
    utf8proc_int32_t before;
    utf8proc_int32_t c;
    utf8proc_int32_t state = 0;
    size_t len = take(text, &before);

    while (before >= 0 && len < text.len) {
        size_t next = take((struct slice){text.ptr + len, text.len - len}, &c);

        if (c < 0 || (before < 0x80 && c < 0x80) ||
            utf8proc_grapheme_break_stateful(before, c, &state)) {
            break;
        }
        before = c;
        len += next;
    }
    return len;
}

static void set_glyph(struct glyph *g, const char *bytes, size_t len, int width)
{
    memmove(g->bytes, bytes, len);
    g->len = len;
    g->width = width;
}

/* How wide a character is where others of its grapheme stand before it. */
static int width_of(utf8proc_int32_t c, const struct glyph *g)
{
    if (c >= FLAG_FIRST && c <= FLAG_LAST) {
        return g->len > 0 ? 2 : 1;
    }
    if (c == EMOJI_STYLE) {
        return g->len > 0 ? 2 : 0;
    }
    if (utf8proc_category(c) == UTF8PROC_CATEGORY_CN) {
        return 1;
    }
    return utf8proc_charwidth(c);
}

/* Adds a character to the glyph, if it may be shown. */
static void add_character(struct glyph *g, utf8proc_int32_t c, struct slice bytes)
{
    utf8proc_category_t category = utf8proc_category(c);
    bool joiner = (c == ZWJ || c == ZWNJ) && g->len > 0;
    int width = width_of(c, g);

    if ((category == UTF8PROC_CATEGORY_CF && !joiner) || (g->len == 0 && width == 0) ||
        g->len + bytes.len > sizeof(g->bytes)) {
        return;
    }
    memcpy(g->bytes + g->len, bytes.ptr, bytes.len);
    g->len += bytes.len;
    g->width = width > g->width ? width : g->width;
}

/* Takes the first grapheme of `text`, which is not empty, and makes it harmless. Returns its
 * length. */
static size_t take_glyph(struct slice text, bool ascii, struct glyph *ret_glyph)
{
    struct glyph g = {.len = 0};
    size_t len = grapheme_len(text);
    utf8proc_int32_t c;

    (void)take(text, &c);
    if (c >= 0 && is_space(c)) {
        set_glyph(&g, " ", 1, 1);
    } else if (c < 0 || utf8proc_category(c) == UTF8PROC_CATEGORY_CC) {
        set_glyph(&g, "?", 1, 1);
    } else {
        for (size_t at = 0; at < len;) {
            size_t one = take((struct slice){text.ptr + at, len - at}, &c);

            add_character(&g, c, (struct slice){text.ptr + at, one});
            at += one;
        }
        if (ascii && g.len > 0 && ((unsigned char)g.bytes[0] >= 0x80 || g.len > 1)) {
            set_glyph(&g, (unsigned char)g.bytes[0] < 0x80 ? g.bytes : "?", 1, 1);
        }
    }
    *ret_glyph = g;
    return len;
}

/* ------------------------------------------------------------------ the screen */

static int bounded(int value, int max)
{
    return value < 1 ? 1 : value > max ? max : value;
}

int cells_make(struct cells *cells, int columns, int rows)
{
    columns = bounded(columns, CELLS_COLUMNS_MAX);
    rows = bounded(rows, CELLS_ROWS_MAX);
    struct cell *list = calloc((size_t)columns * (size_t)rows, sizeof(*list));

    if (list == NULL) {
        return ERR_NOMEM;
    }
    free(cells->list);
    cells->list = list;
    cells->rows = rows;
    cells->columns = columns;
    cells_clear(cells);
    return 0;
}

void cells_finish(struct cells *cells)
{
    free(cells->list);
    *cells = (struct cells){.list = NULL};
}

void cells_clear(struct cells *cells)
{
    const struct cell blank = {.width = 1};

    for (int i = 0; i < cells->rows * cells->columns; i++) {
        cells->list[i] = blank;
    }
}

struct cell *cells_at(const struct cells *cells, int row, int column)
{
    assert(row >= 0 && row < cells->rows && column >= 0 && column < cells->columns);
    return &cells->list[row * cells->columns + column];
}

/* What is there goes, with the other half if it is one. */
static void blank(struct cells *cells, int row, int column)
{
    struct cell *cell = cells_at(cells, row, column);

    if (cell->width == 0) {
        cell[-1] = (struct cell){.width = 1};
    } else if (cell->width == 2) {
        cell[1] = (struct cell){.width = 1};
    }
    *cell = (struct cell){.width = 1};
}

static void put_glyph(struct cells *cells, int row, int column, unsigned style,
                      const struct glyph *g)
{
    for (int i = 0; i < g->width; i++) {
        blank(cells, row, column + i);
    }
    struct cell *cell = cells_at(cells, row, column);

    cell->style = (uint8_t)style;
    cell->width = (uint8_t)g->width;
    if (g->len != 1 || g->bytes[0] != ' ') {
        memcpy(cell->bytes, g->bytes, g->len);
        cell->len = (uint8_t)g->len;
    }
    if (g->width == 2) {
        cell[1] = (struct cell){.style = (uint8_t)style, .width = 0};
    }
}

/* How many bytes of `text` fit into `room` columns; ret_width says how many those take. */
static size_t fit(const struct cells *cells, struct slice text, int room, int *ret_width)
{
    struct glyph g;
    size_t at = 0;
    int width = 0;

    while (at < text.len) {
        size_t len = take_glyph((struct slice){text.ptr + at, text.len - at}, cells->ascii, &g);

        if (width + g.width > room) {
            break;
        }
        width += g.width;
        at += len;
    }
    *ret_width = width;
    return at;
}

/* Puts what is known to fit. */
static int put_all(struct cells *cells, int row, int column, unsigned style, struct slice text)
{
    struct glyph g;

    while (text.len > 0) {
        size_t len = take_glyph(text, cells->ascii, &g);

        if (g.width > 0) {
            put_glyph(cells, row, column, style, &g);
        }
        column += g.width;
        text = (struct slice){text.ptr + len, text.len - len};
    }
    return column;
}

int cells_put(struct cells *cells, int row, int column, int end, unsigned style, struct slice text)
{
    int width;

    end = end > cells->columns ? cells->columns : end;
    if (row < 0 || row >= cells->rows || column < 0 || column >= end) {
        return column;
    }
    if (fit(cells, text, end - column, &width) == text.len) {
        return put_all(cells, row, column, style, text);
    }
    text.len = fit(cells, text, end - column - 1, &width);
    while (text.len > 0 && text.ptr[text.len - 1] == ' ') {
        text.len--;
    }
    column = put_all(cells, row, column, style, text);
    return put_all(cells, row, column, style, cells->ascii ? SLICE("~") : SLICE("\u2026"));
}

int cells_put_right(struct cells *cells, int row, int column, int end, unsigned style,
                    struct slice text)
{
    int start;

    end = end > cells->columns ? cells->columns : end;
    start = end - cells_width(cells, text);
    start = start < column ? column : start;
    (void)cells_put(cells, row, start, end, style, text);
    return start;
}

/* Where a line of at most `len` bytes had better end: at the last space, unless that is far. */
static size_t break_at(struct slice text, size_t len)
{
    if (len == text.len) {
        return len;
    }
    for (size_t back = 0; back < len && back < WORD_COLUMNS; back++) {
        if (text.ptr[len - back] == ' ') {
            return len - back;
        }
    }
    return len;
}

int cells_put_lines(struct cells *cells, struct cells_area area, unsigned style, struct slice text)
{
    int row = area.row;
    int last = row + area.rows - 1;
    int end = area.end > cells->columns ? cells->columns : area.end;
    int width;

    for (; row < last && text.len > 0 && area.column < end; row++) {
        size_t len = break_at(text, fit(cells, text, end - area.column, &width));

        if (len == 0) {
            break; /* not one grapheme fits */
        }
        (void)cells_put(cells, row, area.column, end, style, (struct slice){text.ptr, len});
        text = (struct slice){text.ptr + len, text.len - len};
        while (text.len > 0 && text.ptr[0] == ' ') {
            text = (struct slice){text.ptr + 1, text.len - 1};
        }
    }
    if (row == last && text.len > 0) {
        (void)cells_put(cells, row, area.column, end, style, text);
        row++;
    }
    return row;
}

void cells_add_style(struct cells *cells, int row, int column, int end, unsigned style)
{
    end = end > cells->columns ? cells->columns : end;
    for (; row >= 0 && row < cells->rows && column < end; column++) {
        struct cell *cell = cells_at(cells, row, column);

        cell->style = (uint8_t)(cell->style | style);
    }
}

int cells_width(const struct cells *cells, struct slice text)
{
    int width;

    (void)fit(cells, text, CELLS_COLUMNS_MAX, &width);
    return width;
}

void cells_row_text(const struct cells *cells, int row, struct buf *out)
{
    int end = cells->columns;

    while (end > 0 && cells_at(cells, row, end - 1)->len == 0 &&
           cells_at(cells, row, end - 1)->width == 1) {
        end--;
    }
    for (int column = 0; column < end; column++) {
        const struct cell *cell = cells_at(cells, row, column);

        if (cell->width > 0) {
            buf_append(out, cell->len > 0 ? (struct slice){cell->bytes, cell->len} : SLICE(" "));
        }
    }
}

void cells_clean(struct buf *out, struct slice text)
{
    struct glyph g;

    while (text.len > 0) {
        size_t len = take_glyph(text, false, &g);

        buf_append(out, (struct slice){g.bytes, g.len});
        text = (struct slice){text.ptr + len, text.len - len};
    }
}
