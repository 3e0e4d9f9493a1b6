/* arbe board where nobody looks at a terminal: lines, as they come or once.
 *
 * What waits to be printed is kept as rows, not as lines, while stdout takes nothing; the hosts are
 * read on all the while. */
#include "cli/board_call.h"

#include "base/err.h"
#include "base/limits.h"
#include "cli/board_lines.h"
#include "cli/board_view.h"
#include "cli/command.h"
#include "cli/interrupt.h"

#include <stdio.h>
#include <sys/random.h>
#include <unistd.h>

#define PIECE_BYTES    (8u * KIB) /* so much is made into lines at a time */
#define LINE_BYTES_MAX (4u * MIB)

struct follow {
    struct board_call *call;
    struct board_lines lines;
    struct buf piece;
    bool failed; /* memory ran out */
};

/* What is said of a host on stderr. */
static void tell_host(const struct t3_watch_host *host)
{
    char text[BOARD_HOST_TEXT_BYTES];
    char memory[2 * BOARD_HOST_TEXT_BYTES];
    struct buf line;

    board_view_host_text(text, host);
    buf_init_fixed(&line, memory, sizeof(memory));
    cells_clean(&line, slice_of(host->label));
    buf_append(&line, SLICE(": "));
    cells_clean(&line, slice_of(text));
    (void)fprintf(stderr, "arbe board: %.*s\n", (int)line.len, line.ptr);
}

static void on_row(void *context, const struct t3_board_row *row, int gone)
{
    struct follow *f = context;

    if (board_lines_row(&f->lines, row, gone != 0) != 0) {
        f->failed = true;
    }
}

static void on_host(void *context, const struct t3_watch_host *host)
{
    struct follow *f = context;

    if (f->lines.form == BOARD_PLAIN) {
        tell_host(host);
    }
    if (board_lines_host(&f->lines, host) != 0) {
        f->failed = true;
    }
}

/* How many hosts there are in that state. */
static size_t count_hosts(const struct t3_watch *watch, enum t3_reader_state state)
{
    size_t count = 0;

    for (size_t i = 0; i < t3_watch_host_count(watch); i++) {
        count += t3_watch_host_at(watch, i)->state == state ? 1 : 0;
    }
    return count;
}

/* Makes lines of what waits, if stdout has taken the ones before. */
static void refill(struct follow *f)
{
    struct out *o = &f->call->out;

    while (o->whole < PIECE_BYTES) {
        buf_clear(&f->piece);
        if (!board_lines_take(&f->lines, &f->piece)) {
            return;
        }
        if (f->piece.failed || f->piece.len == 0) {
            f->failed = true;
            return;
        }
        out_add_json(o, (struct slice){f->piece.ptr, f->piece.len - 1});
        out_add(o, SLICE("\n"));
        out_end_message(o);
    }
}

/* Whether somebody still reads stdout: a closed pipe ends the command, too, if nothing changes. */
static bool is_read(const struct pollfd *out)
{
    return (out->revents & (POLLERR | POLLHUP | POLLNVAL)) == 0;
}

static int run(struct follow *f)
{
    struct board_call *call = f->call;
    struct t3_watch *watch = call->watch;
    bool closed = false;

    while (!closed && !f->failed && !out_is_over(&call->out)) {
        refill(f);
        bool idle = call->out.whole == 0;

        if (idle && count_hosts(watch, T3_READER_REFUSED) == t3_watch_host_count(watch)) {
            return board_fail("there is no host left to read from");
        }
        struct pollfd fds[] = {
            {.fd = t3_watch_fd(watch), .events = POLLIN},
            {.fd = STDOUT_FILENO, .events = idle ? 0 : POLLOUT},
        };

        if (interrupt_poll(fds, 2, -1) > 0) {
            if ((fds[1].revents & POLLOUT) != 0) {
                out_flush_some(&call->out);
            } else {
                closed = !is_read(&fds[1]);
            }
            if (fds[0].revents != 0) {
                t3_watch_step(watch, 0);
            }
        }
    }
    if (interrupt_signal() != 0) {
        return COMMAND_INTERRUPTED + interrupt_signal();
    }
    if (closed) {
        interrupt_end_broken_pipe();
    }
    return f->failed ? board_fail(err_text(ERR_NOMEM)) : COMMAND_FAILED;
}

static void begin(struct follow *f, struct board_call *call)
{
    uint64_t seed = 0;

    *f = (struct follow){.call = call};
    if (getrandom(&seed, sizeof(seed), 0) != (ssize_t)sizeof(seed)) {
        seed = (uint64_t)(uintptr_t)f; /* as good as can be had; maps only get slower */
    }
    board_lines_init(&f->lines, call->set.json != 0 ? BOARD_JSON : BOARD_PLAIN, seed);
    buf_init(&f->piece, LINE_BYTES_MAX);
    call->out.lines = true;
}

static void finish(struct follow *f)
{
    board_lines_finish(&f->lines);
    buf_finish(&f->piece);
}

int board_follow(struct board_call *call)
{
    struct follow f;
    struct t3_watch_options options = {.row = on_row, .host = on_host, .context = &f};

    begin(&f, call);
    int code = board_open(call, &options);

    code = code == 0 ? run(&f) : code;
    finish(&f);
    return code;
}

/* ------------------------------------------------------------------ once */

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

static int print_row(void *context, const struct t3_board_row *row)
{
    struct follow *f = context;
    struct out *o = &f->call->out;

    buf_clear(&f->piece);
    board_lines_format_row(&f->piece, f->lines.form, row, false);
    if (f->piece.failed) {
        return T3_BOARD_ERROR_MEMORY;
    }
    out_add_json(o, (struct slice){f->piece.ptr, f->piece.len - 1});
    out_add(o, SLICE("\n"));
    out_end_message(o);
    return out_is_over(o) ? -1 : 0;
}

static void print_hosts(struct follow *f)
{
    const struct t3_watch *watch = f->call->watch;

    for (size_t i = 0; i < t3_watch_host_count(watch); i++) {
        const struct t3_watch_host *host = t3_watch_host_at(watch, i);

        if (f->lines.form == BOARD_JSON) {
            buf_clear(&f->piece);
            board_lines_format_host(&f->piece, host);
            out_add(&f->call->out, buf_slice(&f->piece));
            out_end_message(&f->call->out);
        } else if (host->state != T3_READER_LIVE) {
            tell_host(host);
        }
    }
}

static int print(struct follow *f)
{
    struct t3_watch *watch = f->call->watch;
    struct pollfd fd = {.fd = t3_watch_fd(watch), .events = POLLIN};

    while (count_hosts(watch, T3_READER_CONNECTING) + count_hosts(watch, T3_READER_CATCHING_UP) >
           0) {
        if (interrupt_poll(&fd, 1, -1) > 0) {
            t3_watch_step(watch, 0);
        } else if (interrupt_signal() != 0) {
            return COMMAND_INTERRUPTED + interrupt_signal();
        }
    }
    if (t3_board_each(t3_watch_board(watch), print_row, f) == T3_BOARD_ERROR_MEMORY) {
        return board_fail(err_text(ERR_NOMEM));
    }
    print_hosts(f);
    return count_hosts(watch, T3_READER_LIVE) == t3_watch_host_count(watch) ? COMMAND_GOOD
                                                                            : COMMAND_FAILED;
}

int board_print(struct board_call *call)
{
    struct follow f;
    struct t3_watch_options options = {.row = ignore_row, .host = ignore_host, .context = &f};

    begin(&f, call);
    int code = board_open(call, &options);

    code = code == 0 ? print(&f) : code;
    finish(&f);
    return code;
}
