/* Boards in tests: texts are JSON with ' for ", and @05:30 for a time of half past five minutes;
 * rows are lines of thread, title, state, time and snippet, with ~ for what is not there, and asks
 * behind them where somebody is asked. */
#ifndef ARBE_TESTS_UNIT_T3_BOARD_H
#define ARBE_TESTS_UNIT_T3_BOARD_H

#include "unit/base/unit.h"

#include "arbe/t3_board.h"
#include "base/buf.h"

#include <stdio.h>
#include <stdlib.h>

#define DAY "2026-11-05T00:"

/* The JSON that a short text stands for. */
static inline void spell(const char *text, struct buf *out)
{
    for (const char *at = text; *at != '\0'; at++) {
        if (*at == '\'') {
            buf_append_char(out, '"');
        } else if (*at == '@') {
            buf_append_format(out, "\"" DAY "%.5s.000Z\"", at + 1);
            at += 5;
        } else {
            buf_append_char(out, *at);
        }
    }
}

static inline void show_text(struct buf *out, struct t3_board_text text)
{
    struct slice bytes = {text.data, text.len};

    if (text.data == NULL) {
        buf_append_char(out, '~');
    } else if (slice_starts_with(bytes, SLICE(DAY)) && text.len == 24) {
        buf_append_format(out, "@%.5s", text.data + strlen(DAY));
    } else {
        buf_append(out, bytes);
    }
}

static inline int show_row(void *context, const struct t3_board_row *row)
{
    struct buf *out = context;
    const struct t3_board_text texts[] = {row->thread_id, row->title, row->state, row->last_turn_at,
                                          row->last_message_snippet};

    for (size_t i = 0; i < 5; i++) {
        buf_append(out, i == 0 ? SLICE("") : SLICE("|"));
        show_text(out, texts[i]);
    }
    buf_append(out, row->asks ? SLICE("|asks\n") : SLICE("\n"));
    return 0;
}

/* A change: the row, behind + or -. */
static inline void show_change(void *context, const struct t3_board_row *row, int gone)
{
    buf_append_char(context, gone ? '-' : '+');
    (void)show_row(context, row);
}

static inline void assert_shown(struct buf *shown, const char *want)
{
    buf_append_char(shown, '\0');
    assert_string_equal(shown->ptr, want);
    buf_finish(shown);
}

static inline void assert_rows(const struct t3_board *board, const char *want)
{
    struct buf shown;

    buf_init(&shown, 1u << 20);
    assert_int_equal(t3_board_each(board, show_row, &shown), 0);
    assert_shown(&shown, want);
}

static inline struct t3_board *new_board(void)
{
    struct t3_board *board = NULL;

    assert_int_equal(t3_board_new(NULL, &board, NULL), T3_BOARD_OK);
    return board;
}

/* Folds a text, and returns how many items were skipped. */
static inline size_t fold_host(struct t3_board *board, const char *host, const char *text,
                               struct buf *changes)
{
    struct buf json;
    struct t3_board_counts counts;
    struct t3_board_error error = {.code = T3_BOARD_OK};

    buf_init(&json, 64u << 20);
    spell(text, &json);
    if (t3_board_apply(board, host, json.ptr, json.len, changes ? show_change : NULL, changes,
                       &counts, &error) != T3_BOARD_OK) {
        fail_msg("%s: %s", text, error.message);
    }
    buf_finish(&json);
    return counts.skipped;
}

#define HOST "h"

/* Folds one text into a board, where all of it is good. */
static inline void feed(struct t3_board *board, const char *text)
{
    assert_int_equal(fold_host(board, HOST, text, NULL), 0);
}

/* The same, and the changes must be these. */
static inline void assert_changes(struct t3_board *board, const char *text, const char *want)
{
    struct buf changes;

    buf_init(&changes, 1u << 20);
    (void)fold_host(board, HOST, text, &changes);
    assert_shown(&changes, want);
}

/* What each of some texts makes of a board of its own, in that order. */
#define ASSERT_FOLDS(want, ...)                                           \
    do {                                                                  \
        const char *const texts_[] = {__VA_ARGS__};                       \
        struct t3_board *board_ = new_board();                            \
                                                                          \
        for (size_t i_ = 0; i_ < sizeof(texts_) / sizeof(char *); i_++) { \
            feed(board_, texts_[i_]);                                     \
        }                                                                 \
        assert_rows(board_, want);                                        \
        t3_board_free(board_);                                            \
    } while (0)

/* Items. */
#define SHELL(threads) SHELL_BOTH(threads, "")
#define SHELL_BOTH(threads, old)                                                          \
    "[{'kind':'snapshot','snapshot':{'schemaVersion':2,'projects':[],'threads':[" threads \
    "],'archivedThreads':[" old "]}}]"
#define EVENT_OF(thread, type, payload)                                                          \
    "[{'kind':'event','sequence':7,'event':{'id':'e','threadId':'" thread "','type':'" type "'," \
    "'occurredAt':@59:59,'payload':" payload "}}]"
#define EVENT(type, payload) EVENT_OF("t", type, payload)
#define UPDATED(rest)        "[{'kind':'thread.updated','sequence':8,'thread':{'id':'t'," rest "}]"
#define REMOVED(id)          "[{'kind':'thread.removed','threadId':'" id "','location':'active'}]"
#define PROJECTION(rest)                                                                  \
    "[{'kind':'snapshot','projection':{'thread':{'id':'t','title':'P','archivedAt':null," \
    "'deletedAt':null}," rest "}}]"

#endif
