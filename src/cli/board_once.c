/* arbe board --once: waits until every host is live, or known not to be, or the time is up; then
 * all rows, the newest activity first. */
#include "cli/board_call.h"

#include "base/err.h"
#include "base/limits.h"
#include "cli/board_lines.h"
#include "cli/command.h"
#include "cli/interrupt.h"
#include "client/client.h"
#include "t3/instant.h"

#include <stdio.h>
#include <stdlib.h>

#define LINE_BYTES_MAX (4u * MIB) /* far above what a row can be */
#define TIMEOUT_MS     (30u * 1000)

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

/* Adds a line that is JSON, or has nothing in it that a terminal obeys. */
static void add_piece(struct once *o)
{
    struct out *out = &o->call->out;

    out_add_json(out, (struct slice){o->piece.ptr, o->piece.len - 1});
    out_add(out, SLICE("\n"));
    out_end_message(out);
}

static int print_rows(struct once *o)
{
    for (size_t i = 0; i < o->count && !out_is_over(&o->call->out); i++) {
        buf_clear(&o->piece);
        board_lines_format_dated(&o->piece, o->form, &o->rows[i].row);
        if (o->piece.failed) {
            return ERR_NOMEM;
        }
        add_piece(o);
    }
    return 0;
}

/* ------------------------------------------------------------------ hosts */

static bool is_late(const struct t3_watch_host *host)
{
    return host->state == T3_READER_CONNECTING || host->state == T3_READER_CATCHING_UP;
}

/* Prints how a host stands. Whether all of its rows were printed: if not, why is told on stderr,
 * whatever the form, and so is that some of what it told was broken. */
static bool print_host(struct once *o, const struct t3_watch_host *host)
{
    struct t3_watch_host shown = *host;
    bool live = host->state == T3_READER_LIVE && !host->full;
    bool told = true;

    if (is_late(host)) {
        shown.error.code = T3_RPC_ERROR_TIMEOUT;
        (void)snprintf(shown.error.message, sizeof(shown.error.message), "no snapshot in time");
    }
    if (o->form == BOARD_JSON) {
        buf_clear(&o->piece);
        board_lines_format_host(&o->piece, &shown);
        if (o->piece.failed) {
            (void)board_fail(err_text(ERR_NOMEM));
            told = false;
        } else {
            add_piece(o);
        }
    }
    if (!live || host->skipped > 0) {
        board_tell_host(o->call, &shown);
    }
    return live && told;
}

static int print_hosts(struct once *o)
{
    const struct t3_watch *watch = o->call->watch;
    bool whole = true;

    for (size_t i = 0; i < t3_watch_host_count(watch); i++) {
        whole = print_host(o, t3_watch_host_at(watch, i)) && whole;
    }
    return whole ? COMMAND_GOOD : COMMAND_FAILED;
}

/* Whether all hosts are either live or known not to be. */
static bool is_settled(const struct t3_watch *watch)
{
    return board_count_hosts(watch, T3_READER_CONNECTING) +
               board_count_hosts(watch, T3_READER_CATCHING_UP) ==
           0;
}

/* False: a signal came. */
static bool await_hosts(struct t3_watch *watch, uint64_t timeout_ms)
{
    struct pollfd fd = {.fd = t3_watch_fd(watch), .events = POLLIN};
    uint64_t now = client_now_ms();
    uint64_t end = now + timeout_ms;

    while (now < end && !is_settled(watch)) {
        if (interrupt_poll(&fd, 1, (int)(end - now)) > 0) {
            t3_watch_step(watch, 0);
        } else if (interrupt_signal() != 0) {
            return false;
        }
        now = client_now_ms();
    }
    return true;
}

static int print(struct once *o)
{
    uint64_t timeout_ms = o->call->set.timeout_ms;

    if (!await_hosts(o->call->watch, timeout_ms == 0 ? TIMEOUT_MS : timeout_ms)) {
        return COMMAND_INTERRUPTED + interrupt_signal();
    }
    if (collect(o) != 0 || print_rows(o) != 0) {
        return board_fail(err_text(ERR_NOMEM));
    }
    return print_hosts(o);
}

int board_print(struct board_call *call)
{
    struct once o = {.call = call, .form = call->set.json != 0 ? BOARD_JSON : BOARD_PLAIN};
    struct t3_watch_options options = {.row = NULL}; /* the board is read when all are there */

    buf_init(&o.piece, LINE_BYTES_MAX);
    call->out.lines = true;
    int code = board_open(call, &options);

    code = code == 0 ? print(&o) : code;
    buf_finish(&o.piece);
    free(o.rows);
    return code;
}
