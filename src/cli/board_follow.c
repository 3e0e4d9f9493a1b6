/* arbe board where nobody looks at a terminal: lines, as they come.
 *
 * What waits to be printed is kept as rows, not as lines, while stdout takes nothing; the hosts are
 * read on all the while. */
#include "cli/board_call.h"

#include "base/err.h"
#include "base/limits.h"
#include "cli/board_lines.h"
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
        board_tell_host(f->call, host);
    }
    if (board_lines_host(&f->lines, host) != 0) {
        f->failed = true;
    }
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

    for (;;) {
        refill(f); /* and what fails in it is not to wait for anything */
        if (closed || f->failed || out_is_over(&call->out)) {
            break;
        }
        bool idle = call->out.whole == 0;

        if (idle && board_count_hosts(watch, T3_READER_REFUSED) == t3_watch_host_count(watch)) {
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
