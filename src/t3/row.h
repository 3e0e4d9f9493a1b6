/* A thread of the board: what is shown of it, and what tells the newest run and message from older
 * ones, so that a late event about one of those cannot take their place. The caller's memory; one
 * thread. */
#ifndef ARBE_T3_ROW_H
#define ARBE_T3_ROW_H

#include "arbe/t3_board.h"
#include "t3/item.h"

enum t3_text {
    T3_TEXT_TITLE,
    T3_TEXT_STATE,      /* of the run, whether archived or not */
    T3_TEXT_SNIPPET,    /* of the message */
    T3_TEXT_RUN_ID,     /* of the newest run; none: not known */
    T3_TEXT_ATTEMPT,    /* of that run, the active one */
    T3_TEXT_MESSAGE_ID, /* of the newest message */
    T3_TEXT_REQUEST,    /* id of the newest that waits for an answer; none: none does */
    T3_TEXT_COUNT,
};

struct t3_row {
    struct t3_board_text texts[T3_TEXT_COUNT]; /* owned */
    bool archived;                             /* shown in the place of the state */
    bool plan;                                 /* there is one that a person is to accept */
    uint64_t run_ordinal;                      /* 0: not known */
    struct t3_instant run_times[T3_RUN_TIME_COUNT];
    struct t3_instant turn_activity; /* of that run's turns, the latest */
    struct t3_instant message_created;
    struct t3_instant message_updated;
};

/* An empty row is a zeroed one. Frees what it holds; it is empty then. */
void t3_row_finish(struct t3_row *row);

/* Takes in an upsert. 0, or ERR_NOMEM: the row is as it was. `scratch` is room for texts. */
int t3_row_merge(struct t3_row *row, const struct t3_op *op, size_t snippet_graphemes,
                 struct buf *scratch) MUST_USE;

/* What is shown, but for host and thread id, which are not known here. Borrowed from the row. */
struct t3_board_row t3_row_shown(const struct t3_row *row);

#endif
