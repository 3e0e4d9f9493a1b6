/* A terminal that is sent what paint says shows what it should, whatever it showed before: held
 * against a small terminal of our own, which joins no characters to graphemes but marks. */
#include "cli/paint.c"

#include "unit/base/unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define COLUMNS 12
#define ROWS    3

/* What stands in a column; characters without a width join the one before. */
struct place {
    char bytes[64];
    unsigned style;
};

struct screen {
    struct place at[ROWS][COLUMNS];
    int row;
    int column;
    unsigned style;
};

static void erase_to_end(struct screen *s)
{
    for (int i = s->column; i < COLUMNS; i++) {
        s->at[s->row][i] = (struct place){.bytes = " "};
    }
}

static void set_look(struct screen *s, const char *numbers)
{
    static const unsigned styles[] = {[1] = CELL_BOLD, [2] = CELL_DIM, [7] = CELL_REVERSE};

    s->style = 0;
    for (const char *at = numbers; *at != 'm';) {
        char *end;
        long number = strtol(at, &end, 10);

        s->style |= number >= 30 ? (unsigned)(number - 30) << 3 : number == 0 ? 0 : styles[number];
        at = *end == ';' ? end + 1 : end;
    }
}

static size_t obey(struct screen *s, const char *bytes)
{
    size_t len = 2;

    assert_int_equal(bytes[1], '[');
    while (strchr("0123456789;?", bytes[len]) != NULL) {
        len++;
    }
    if (bytes[len] == 'H') {
        assert_int_equal(sscanf(bytes + 2, "%d;%d", &s->row, &s->column), 2);
        s->row--;
        s->column--;
    } else if (bytes[len] == 'K') {
        erase_to_end(s);
    } else if (bytes[len] == 'J') {
        memset(s->at, 0, sizeof(s->at));
        for (s->row = ROWS - 1; s->row >= 0; s->row--) {
            s->column = 0;
            erase_to_end(s);
        }
        s->row = 0;
    } else {
        assert_int_equal(bytes[len], 'm');
        set_look(s, bytes + 2);
    }
    return len + 1;
}

static void show(struct screen *s, struct slice character)
{
    struct cells one = {.list = NULL};
    int width = cells_width(&one, character);

    if (width == 0 && s->column > 0) {
        char *bytes = s->at[s->row][s->column - 1].bytes;

        (void)snprintf(bytes + strlen(bytes), 64 - strlen(bytes), "%.*s", (int)character.len,
                       character.ptr);
        return;
    }
    s->column = s->column >= COLUMNS ? COLUMNS - 1 : s->column; /* no wrapping */
    struct place *place = &s->at[s->row][s->column];

    (void)snprintf(place->bytes, sizeof(place->bytes), "%.*s", (int)character.len, character.ptr);
    place->style = s->style;
    if (width == 2 && s->column + 1 < COLUMNS) {
        place[1] = (struct place){.bytes = "", .style = s->style};
    }
    s->column += width;
}

static void write_to(struct screen *s, struct slice bytes)
{
    for (size_t i = 0; i < bytes.len;) {
        unsigned char first = (unsigned char)bytes.ptr[i];
        size_t len = first < 0x80 ? 1 : first < 0xe0 ? 2 : first < 0xf0 ? 3 : 4;

        if (first == '\033') {
            len = obey(s, bytes.ptr + i);
        } else {
            show(s, (struct slice){bytes.ptr + i, len});
        }
        i += len;
    }
}

/* All columns are as they should; of disputed graphemes it is enough that what follows them is. */
static void assert_shows(const struct screen *s, const struct cells *cells)
{
    for (int row = 0; row < ROWS; row++) {
        for (int column = 0; column < COLUMNS; column++) {
            const struct cell *cell = cells_at(cells, row, column);
            const struct place *place = &s->at[row][column];

            if (cell->width == 0 || is_disputed(cell)) {
                continue;
            }
            char want[64] = " ";

            if (cell->len > 0) {
                (void)snprintf(want, sizeof(want), "%.*s", (int)cell->len, cell->bytes);
            }
            assert_string_equal(place->bytes, want);
            assert_int_equal(place->style, cell->style);
        }
    }
}

static uint32_t below(uint32_t *seed, uint32_t n)
{
    *seed = *seed * 1664525u + 1013904223u;
    return (*seed >> 8) % n;
}

static void fill(struct cells *cells, uint32_t *seed, bool disputed)
{
    static const char *const words[] = {
        "a",       "bc",          "  ",        "\u4f60\u597d",
        "\u00e9",  "x\u4f60y",    "long word", "\U0001f469\u200d\U0001f4bb",
        "e\u0301", "\u2764\ufe0f"};
    static const unsigned styles[] = {0, CELL_BOLD, CELL_DIM | CELL_RED, CELL_REVERSE, CELL_CYAN};

    for (int i = 0; i < 4; i++) {
        (void)cells_put(cells, (int)below(seed, ROWS), (int)below(seed, COLUMNS), COLUMNS,
                        styles[below(seed, ARRAY_COUNT(styles))],
                        slice_of(words[below(seed, disputed ? ARRAY_COUNT(words) : 7)]));
    }
}

static void run(bool disputed)
{
    for (uint32_t round = 1; round <= 3000; round++) {
        struct screen screen = {.row = 0};
        struct cells before = {.list = NULL};
        struct cells after = {.list = NULL};
        struct buf out;
        uint32_t seed = round;

        assert_int_equal(cells_make(&before, COLUMNS, ROWS), 0);
        assert_int_equal(cells_make(&after, COLUMNS, ROWS), 0);
        buf_init(&out, 65536);
        fill(&before, &seed, disputed);
        paint(&out, NULL, &before, true);
        write_to(&screen, buf_slice(&out));
        assert_shows(&screen, &before);
        memcpy(after.list, before.list, sizeof(struct cell) * COLUMNS * ROWS);
        if (below(&seed, 2) == 0) {
            cells_clear(&after);
        }
        fill(&after, &seed, disputed);
        buf_clear(&out);
        paint(&out, &before, &after, true);
        write_to(&screen, buf_slice(&out));
        assert_shows(&screen, &after);
        buf_finish(&out);
        cells_finish(&before);
        cells_finish(&after);
    }
}

static void shows_what_it_should(void **state)
{
    (void)state;
    run(false);
}

/* Nothing shifts where the terminal takes a grapheme for wider or narrower than we do. */
static void disputed_widths(void **state)
{
    (void)state;
    run(true);
}

/* What is the same is not written again, and colours are left out for those who want none. */
static void only_what_differs(void **state)
{
    struct cells before = {.list = NULL};
    struct cells after = {.list = NULL};
    struct buf out;

    (void)state;
    assert_int_equal(cells_make(&before, COLUMNS, ROWS), 0);
    assert_int_equal(cells_make(&after, COLUMNS, ROWS), 0);
    buf_init(&out, 65536);
    (void)cells_put(&before, 1, 0, COLUMNS, 0, SLICE("age 3m rest"));
    (void)cells_put(&after, 1, 0, COLUMNS, 0, SLICE("age 4m rest"));
    paint(&out, &before, &after, true);
    assert_true(slice_equal(buf_slice(&out), SLICE("\033[2;5H4")));
    buf_clear(&out);
    paint(&out, &after, &after, true);
    assert_int_equal(out.len, 0);
    cells_clear(&after);
    (void)cells_put(&after, 1, 0, COLUMNS, CELL_RED | CELL_BOLD, SLICE("a"));
    paint(&out, &before, &after, false);
    assert_true(slice_equal(buf_slice(&out), SLICE("\033[2;1H\033[0;1ma\033[0m\033[K")));
    buf_finish(&out);
    cells_finish(&before);
    cells_finish(&after);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(shows_what_it_should),
        cmocka_unit_test(disputed_widths),
        cmocka_unit_test(only_what_differs),
    };

    return UNIT_RUN(tests);
}
