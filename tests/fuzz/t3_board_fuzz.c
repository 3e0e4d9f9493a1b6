/* What a board makes of whatever a server sends: each line of the input is a text of one of two
 * hosts in turn. Told changes must add up to the rows that are there, and what is shown must hold
 * to its bounds. */
#include "arbe/t3_board.h"

#include "base/limits.h"
#include "base/utf8.h"
#include "t3/instant.h"

#include <assert.h>
#include <stdint.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define GRAPHEMES 7
#define ROWS_MAX  20

static void check_text(struct t3_board_text text, size_t most)
{
    if (text.data == NULL) {
        assert(text.len == 0);
        return;
    }
    assert(text.len <= most && text.data[text.len] == '\0');
    assert(utf8_valid((struct slice){text.data, text.len}));
}

static void check_row(const struct t3_board_row *row)
{
    check_text(row->host, 1);
    check_text(row->thread_id, T3_ID_BYTES_MAX);
    check_text(row->title, T3_TITLE_BYTES_MAX);
    check_text(row->state, T3_STATE_BYTES_MAX);
    check_text(row->last_turn_at, T3_INSTANT_BYTES - 1);
    check_text(row->last_message_snippet, GRAPHEMES * T3_GRAPHEME_BYTES_MAX);
    assert(row->thread_id.len > 0);
    assert(row->asks == 0 || row->asks == 1);
}

/* Rows that there must be, from what was told. */
struct tally {
    size_t count;
    size_t born; /* there before this apply and told again, or new: told at most once */
};

static void count_change(void *context, const struct t3_board_row *row, int gone)
{
    struct tally *tally = context;

    check_row(row);
    tally->count -= (size_t)(gone != 0);
    tally->born += gone == 0;
}

static void check_operation(void *context, const struct t3_board_row *row, int gone)
{
    (void)gone;
    assert(row->host.data == NULL);
    check_row(row);
    (*(size_t *)context)++;
}

static int count_row(void *context, const struct t3_board_row *row)
{
    check_row(row);
    (*(size_t *)context)++;
    return 0;
}

static void fold(struct t3_board *board, const char *host, struct slice text)
{
    size_t before = t3_board_count(board);
    size_t rows = 0;
    size_t operations = 0;
    struct tally tally = {.count = before};
    struct t3_board_counts counts;
    struct t3_board_counts same;
    struct t3_board_error error;
    int code = t3_board_apply(board, host, text.ptr, text.len, count_change, &tally, &counts,
                              &error);
    int other = t3_board_normalize(NULL, text.ptr, text.len, check_operation, &operations, &same,
                                   &error);

    assert(code == other || (code == T3_BOARD_ERROR_LIMIT && other == T3_BOARD_OK));
    assert(counts.applied == same.applied && counts.skipped == same.skipped);
    assert(tally.count <= t3_board_count(board));
    assert(t3_board_count(board) <= tally.count + tally.born);
    assert(t3_board_count(board) <= ROWS_MAX && tally.born <= operations);
    assert(t3_board_each(board, count_row, &rows) == 0);
    assert(rows == t3_board_count(board));

    /* What was told once is not told again. */
    if (code == T3_BOARD_OK && operations == 1 && counts.applied == 1 && counts.skipped == 0) {
        tally = (struct tally){.count = t3_board_count(board)};
        assert(t3_board_apply(board, host, text.ptr, text.len, count_change, &tally, NULL, NULL) ==
               T3_BOARD_OK);
        assert(tally.born == 0 && tally.count == t3_board_count(board));
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const hosts[] = {"a", "b"};
    struct slice text = {(const char *)data, size};
    struct slice line;
    struct t3_board_options options;
    struct t3_board *board;
    size_t count = 0;

    t3_board_options_init(&options);
    options.snippet_graphemes = GRAPHEMES;
    options.max_rows = ROWS_MAX;
    if (size == 0 || t3_board_new(&options, &board, NULL) != T3_BOARD_OK) {
        return 0;
    }
    while (slice_split(&text, '\n', &line)) {
        fold(board, hosts[count++ % 2], line.len == 0 ? SLICE("") : line);
    }
    t3_board_free(board);
    return 0;
}
