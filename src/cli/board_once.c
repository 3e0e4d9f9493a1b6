/* arbe board --once: waits until every host is live, or known not to be; then all rows, the newest
 * activity first. */
#include "cli/board_call.h"

#include "base/err.h"
#include "base/limits.h"
#include "cli/board_lines.h"
#include "cli/command.h"
#include "cli/interrupt.h"
#include "t3/instant.h"

#include <stdlib.h>

#define LINE_BYTES_MAX (4u * MIB) /* far above what a row can be */

struct dated_row {
    struct t3_board_row row; /* borrowed from the board */
    struct t3_instant active;
    size_t at; /* its place by host and thread id */
};

struct once {
    struct board_call *call;
    enum board_form form;
    struct dated_row *rows; /* `count` of them; owned */
    size_t count;
    struct buf piece;
};

static void ignore_row(void *context, const struct t3_board_row *row, int gone)
{
    (void)context;
    (void)row;
    (void)gone;
}

static void ignore_host(void *context, const struct t3_watch_host *host)
{
    (void)context;
    (void)host;
}

/* ------------------------------------------------------------------ rows */

static int add_row(void *context, const struct t3_board_row *row)
{
    struct once *o = context;
    const struct slice time = {row->last_turn_at.data, row->last_turn_at.len};

    o->rows[o->count] = (struct dated_row){*row, t3_instant_of(time), o->count};
    o->count++;
    return 0;
}

/* As the API has them: what has no activity comes last; then by host and thread id. */
static int compare(const void *left, const void *right)
{
    const struct dated_row *a = left;
    const struct dated_row *b = right;
    int order = t3_instant_compare(&b->active, &a->active);

    return order != 0 ? order : a->at < b->at ? -1 : 1;
}

static int collect(struct once *o)
{
    const struct t3_board *board = t3_watch_board(o->call->watch);

    o->rows = calloc(t3_board_count(board) + 1, sizeof(*o->rows));
    if (o->rows == NULL || t3_board_each(board, add_row, o) != 0) {
        return ERR_NOMEM;
    }
    qsort(o->rows, o->count, sizeof(*o->rows), compare);
    return 0;
}

static int print_rows(struct once *o)
{
    struct out *out = &o->call->out;

    for (size_t i = 0; i < o->count && !out_is_over(out); i++) {
        buf_clear(&o->piece);
        board_lines_format_dated(&o->piece, o->form, &o->rows[i].row);
        if (o->piece.failed) {
            return ERR_NOMEM;
        }
        out_add_json(out, (struct slice){o->piece.ptr, o->piece.len - 1});
        out_add(out, SLICE("\n"));
        out_end_message(out);
    }
    return 0;
}

/* ------------------------------------------------------------------ hosts */

static void print_hosts(struct once *o)
{
    const struct t3_watch *watch = o->call->watch;

    for (size_t i = 0; i < t3_watch_host_count(watch); i++) {
        const struct t3_watch_host *host = t3_watch_host_at(watch, i);

        if (o->form == BOARD_JSON) {
            buf_clear(&o->piece);
            board_lines_format_host(&o->piece, host);
            out_add(&o->call->out, buf_slice(&o->piece));
            out_end_message(&o->call->out);
        } else if (host->state != T3_READER_LIVE || host->full) {
            board_tell_host(o->call, host);
        }
    }
}

/* Whether all hosts are either live or known not to be. */
static bool is_settled(const struct t3_watch *watch)
{
    return board_count_hosts(watch, T3_READER_CONNECTING) +
               board_count_hosts(watch, T3_READER_CATCHING_UP) ==
           0;
}

static int print(struct once *o)
{
    struct t3_watch *watch = o->call->watch;
    struct pollfd fd = {.fd = t3_watch_fd(watch), .events = POLLIN};

    while (!is_settled(watch)) {
        if (interrupt_poll(&fd, 1, -1) > 0) {
            t3_watch_step(watch, 0);
        } else if (interrupt_signal() != 0) {
            return COMMAND_INTERRUPTED + interrupt_signal();
        }
    }
    if (collect(o) != 0 || print_rows(o) != 0) {
        return board_fail(err_text(ERR_NOMEM));
    }
    print_hosts(o);
    return board_count_hosts(watch, T3_READER_LIVE) == t3_watch_host_count(watch) ? COMMAND_GOOD
                                                                                  : COMMAND_FAILED;
}

int board_print(struct board_call *call)
{
    struct once o = {.call = call, .form = call->set.json != 0 ? BOARD_JSON : BOARD_PLAIN};
    struct t3_watch_options options = {.row = ignore_row, .host = ignore_host, .context = &o};

    buf_init(&o.piece, LINE_BYTES_MAX);
    call->out.lines = true;
    int code = board_open(call, &options);

    code = code == 0 ? print(&o) : code;
    buf_finish(&o.piece);
    free(o.rows);
    return code;
}
