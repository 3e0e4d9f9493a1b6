/* What stands on a screen after something was put there, whatever it was. */
#include "cli/cells.c"

#include "unit/base/unit.h"

#include <stdio.h>

/* Row 0 of a screen so wide, after `text` was put there. */
static const char *shown(const char *text, size_t len, int columns, bool ascii)
{
    static char memory[400];
    struct cells cells = {.ascii = ascii};
    struct buf out;

    assert_int_equal(cells_make(&cells, columns, 1), 0);
    (void)cells_put(&cells, 0, 0, columns, CELL_PLAIN, (struct slice){text, len});
    buf_init_fixed(&out, memory, sizeof(memory));
    cells_row_text(&cells, 0, &out);
    memory[out.len] = '\0';
    cells_finish(&cells);
    return memory;
}

#define SHOWN(text, columns)           shown(text, sizeof(text) - 1, columns, false)
#define assert_shown(text, columns, w) assert_string_equal(SHOWN(text, columns), w)

/* What fits is shown as it is; what does not ends with an ellipsis. */
static void texts_are_cut(void **state)
{
    (void)state;
    assert_shown("hello", 5, "hello");
    assert_shown("hello", 4, "hel\u2026");
    assert_shown("hello", 1, "\u2026");
    assert_shown("h", 1, "h");
    assert_shown("", 1, "");
}

/* A wide character is not cut in half. */
static void wide_characters(void **state)
{
    (void)state;
    assert_shown("\u4f60\u597d", 4, "\u4f60\u597d");
    assert_shown("\u4f60\u597d", 3, "\u4f60\u2026");
    assert_shown("\u4f60\u597d", 2, "\u2026");
    assert_shown("\u4f60", 1, "\u2026");
    assert_shown("a\u4f60", 2, "a\u2026");
}

/* A grapheme is one cell, or two, whatever it is made of. */
static void graphemes(void **state)
{
    (void)state;
    assert_shown("e\u0301e\u0301", 2, "e\u0301e\u0301");
    assert_shown("\U0001f469\u200d\U0001f4bb!", 3, "\U0001f469\u200d\U0001f4bb!");
    assert_shown("\U0001f1e9\U0001f1ea\U0001f1eb\U0001f1f7", 4,
                 "\U0001f1e9\U0001f1ea\U0001f1eb\U0001f1f7");
    assert_shown("\U0001f1e9\U0001f1ea\U0001f1eb\U0001f1f7", 3, "\U0001f1e9\U0001f1ea\u2026");
    assert_shown("\u2764\ufe0fx", 3, "\u2764\ufe0fx");
    assert_shown("\u2764\ufe0fx", 2, "\u2026");
}

/* No control character, of ASCII or above it, goes through; nor what reorders or hides text. */
static void nothing_to_obey(void **state)
{
    (void)state;
    assert_shown("a\033[31mb", 20, "a?[31mb");
    assert_shown("a\302\233b\177c", 20, "a?b?c");
    assert_shown("a\tb\nc\r\nd\u2028e", 20, "a b c  d e");
    assert_shown("a\u202eb\u2066c\u200fd\u200be\ufefff", 20, "abcdef");
    assert_shown("\200\377a\342\202", 20, "??a??");
    assert_shown("a\0b", 20, "a?b");
    assert_shown("\u0301\u0302", 20, "");
}

/* Marks on one letter are bounded. */
static void many_marks(void **state)
{
    char text[1 + 2 * 100];

    (void)state;
    text[0] = 'z';
    for (size_t i = 0; i < 100; i++) {
        text[1 + 2 * i] = '\314';
        text[2 + 2 * i] = '\201';
    }
    assert_int_equal(strlen(shown(text, sizeof(text), 3, false)), 1 + 2 * ((CELL_BYTES - 1) / 2));
}

/* A terminal that shows only ASCII is sent nothing else. */
static void only_ascii(void **state)
{
    (void)state;
    assert_string_equal(shown("a\u4f60e\u0301\u2026", 10, 20, true), "a?e?");
    assert_string_equal(shown("hello", 5, 3, true), "he~");
}

/* What lies beyond the screen is left out, and what lies under something is gone, with its other
 * half. */
static void edges_and_overlaps(void **state)
{
    struct cells cells = {.list = NULL};
    char memory[100];
    struct buf out;

    (void)state;
    assert_int_equal(cells_make(&cells, 6, 2), 0);
    assert_int_equal(cells_put(&cells, 2, 0, 6, 0, SLICE("x")), 0);
    assert_int_equal(cells_put(&cells, -1, 0, 6, 0, SLICE("x")), 0);
    assert_int_equal(cells_put(&cells, 0, 6, 9, 0, SLICE("x")), 6);
    assert_int_equal(cells_put(&cells, 0, 4, 9, 0, SLICE("xyz")), 6);
    assert_int_equal(cells_put(&cells, 1, 0, 6, 0, SLICE("\u4f60\u4f60\u4f60")), 6);
    assert_int_equal(cells_put(&cells, 1, 1, 6, 0, SLICE("ab")), 3);
    assert_int_equal(cells_put_right(&cells, 0, 0, 4, 0, SLICE("r")), 3);
    buf_init_fixed(&out, memory, sizeof(memory));
    cells_row_text(&cells, 0, &out);
    buf_append_char(&out, '|');
    cells_row_text(&cells, 1, &out);
    assert_true(slice_equal(buf_slice(&out), SLICE("   rx\u2026| ab \u4f60")));
    cells_finish(&cells);
}

/* Long text goes over lines, and breaks at spaces where there are some. */
static void lines(void **state)
{
    struct cells cells = {.list = NULL};
    char memory[100];
    struct buf out;

    (void)state;
    assert_int_equal(cells_make(&cells, 8, 4), 0);
    assert_int_equal(cells_put_lines(&cells, (struct cells_area){0, 3, 1, 8}, 0,
                                     SLICE("one two three four five")),
                     3);
    buf_init_fixed(&out, memory, sizeof(memory));
    for (int i = 0; i < 4; i++) {
        cells_row_text(&cells, i, &out);
        buf_append_char(&out, '|');
    }
    assert_true(slice_equal(buf_slice(&out), SLICE(" one two| three| four f\u2026||")));
    cells_finish(&cells);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(texts_are_cut),      cmocka_unit_test(wide_characters),
        cmocka_unit_test(graphemes),          cmocka_unit_test(nothing_to_obey),
        cmocka_unit_test(many_marks),         cmocka_unit_test(only_ascii),
        cmocka_unit_test(edges_and_overlaps), cmocka_unit_test(lines),
    };

    return UNIT_RUN(tests);
}
