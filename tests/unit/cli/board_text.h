/* Rows of a board for tests, written in one line each. */
#ifndef ARBE_TESTS_UNIT_CLI_BOARD_TEXT_H
#define ARBE_TESTS_UNIT_CLI_BOARD_TEXT_H

#include "arbe/t3_board.h"

#include <string.h>

/* A text; NULL: there is none. */
static inline struct t3_board_text text_of(const char *text)
{
    return (struct t3_board_text){text, text == NULL ? 0 : strlen(text)};
}

/* A row; what is NULL is not there. */
static inline struct t3_board_row row_of(const char *host, const char *id, const char *title,
                                         const char *state, const char *time, const char *snippet)
{
    return (struct t3_board_row){text_of(host),
                                 text_of(id),
                                 text_of(title),
                                 text_of(state),
                                 text_of(time),
                                 text_of(snippet),
                                 0};
}

/* The same row, of a thread that asks somebody something. */
static inline struct t3_board_row asking(struct t3_board_row row)
{
    row.asks = 1;
    return row;
}

#endif
