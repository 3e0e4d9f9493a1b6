/* arbe board on a terminal: changes of hosts, keys, signals of the terminal and the time, each of
 * which may ask for another picture. There are at most so many pictures in a second, however much
 * changes; what is typed is shown at once. */
#include "cli/board_call.h"

#include "base/err.h"
#include "base/limits.h"
#include "cli/board_view.h"
#include "cli/command.h"
#include "cli/interrupt.h"
#include "cli/paint.h"
#include "cli/terminal.h"

#include <signal.h>
#include <stdio.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>

#define FRAME_MS        50    /* between two pictures */
#define AGES_MS         10000 /* ages grow without anybody telling */
#define ESCAPE_MS       50    /* what follows an escape within that belongs to it */
#define PAINT_BYTES_MAX (64u * MIB)
#define TYPED_BYTES     (4u * KIB) /* as many as are read at a time, and what is left of a key */

struct live {
    struct board_call *call;
    struct terminal terminal;
    char typed_bytes[TYPED_BYTES];
    struct board_view view;
    struct cells next;  /* the picture that is being made */
    struct cells shown; /* the one that the terminal shows */
    struct buf bytes;   /* on their way to it */
    struct buf typed;   /* and from it, as far as no key was made of it; in `typed_bytes` */
    int64_t typed_ms;   /* when the last of that came */
    bool known;         /* `shown` is what it shows */
    bool stale;         /* there is something new to show, by the next picture that is due */
    bool at_once;       /* somebody waits for a picture: it is due now, new or not */
    int64_t drawn_ms;   /* when it was last drawn */
    int columns;        /* of the terminal when it was last drawn */
    int rows;           /* likewise */
    int code;           /* the exit code; -1: it goes on */
    const char *why;    /* a sentence for it, once the terminal is given back; NULL: none */
};

static int64_t clock_ms(clockid_t clock)
{
    struct timespec now = {.tv_sec = 0};

    (void)clock_gettime(clock, &now); /* fails for no clock that there is */
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static void fail(struct live *l, const char *why)
{
    l->code = COMMAND_FAILED;
    l->why = why;
}

/* Memory ran out: what is shown would be wrong from now on. */
static void run_out(struct live *l)
{
    fail(l, err_text(ERR_NOMEM));
}

static void on_row(void *context, const struct t3_board_row *row, int gone)
{
    struct live *l = context;

    l->stale = true;
    if (board_rows_change(&l->view.rows, row, gone != 0) != 0) {
        run_out(l);
    }
}

static void on_host(void *context, const struct t3_watch_host *host)
{
    struct live *l = context;

    (void)host; /* the view looks at all of them */
    l->stale = true;
}

/* ------------------------------------------------------------------ drawing */

static int fit_screen(struct live *l)
{
    int columns;
    int rows;

    terminal_size(&columns, &rows);
    if (l->known && l->columns == columns && l->rows == rows) {
        return 0;
    }
    l->known = false;
    l->columns = columns;
    l->rows = rows;
    return cells_make(&l->next, columns, rows) != 0 || cells_make(&l->shown, columns, rows) != 0
               ? ERR_NOMEM
               : 0;
}

static void draw(struct live *l)
{
    struct cells drawn;

    if (fit_screen(l) != 0) {
        run_out(l);
        return;
    }
    board_view_draw(&l->view, &l->next, clock_ms(CLOCK_REALTIME));
    buf_clear(&l->bytes);
    paint(&l->bytes, l->known ? &l->shown : NULL, &l->next, l->terminal.colour);
    if (l->bytes.failed) {
        run_out(l);
    } else if (terminal_write(buf_slice(&l->bytes)) == ERR_IO) {
        fail(l, "the terminal cannot be written to");
    }
    drawn = l->next;
    l->next = l->shown;
    l->shown = drawn;
    l->known = true;
    l->stale = false;
    l->at_once = false;
    l->drawn_ms = clock_ms(CLOCK_MONOTONIC);
}

/* How long until the next picture is due: 0 if it is. */
static int until_draw(const struct live *l)
{
    int64_t since = clock_ms(CLOCK_MONOTONIC) - l->drawn_ms;
    int64_t every = l->stale ? FRAME_MS : AGES_MS;

    return l->at_once || since >= every || since < 0 ? 0 : (int)(every - since);
}

/* ------------------------------------------------------------------ typing */

static void obey(struct live *l, const struct keypress *key)
{
    switch (board_view_key(&l->view, key)) {
    case BOARD_VIEW_QUIT:
        l->code = COMMAND_GOOD;
        break;
    case BOARD_VIEW_RETRY:
        t3_watch_retry(l->call->watch, NULL);
        break;
    case BOARD_VIEW_REPAINT:
        l->known = false;
        break;
    case BOARD_VIEW_GO_ON:
        break;
    }
    l->at_once = true;
}

/* Makes keys of what was typed. */
static void take_keys(struct live *l, bool whole)
{
    struct keypress key;
    size_t done = 0;
    size_t len;

    do {
        len = keypress_take((struct slice){l->typed.ptr + done, l->typed.len - done}, whole, &key);
        done += len;
        if (len > 0) {
            obey(l, &key);
        }
    } while (len > 0 && l->code < 0);
    buf_consume(&l->typed, done);
}

/* For how long the rest of a key that has only begun is waited for: 0 if that is over. */
static int until_whole(const struct live *l, int64_t now_ms)
{
    int64_t since = now_ms - l->typed_ms;

    return since >= ESCAPE_MS ? 0 : since < 0 ? ESCAPE_MS : (int)(ESCAPE_MS - since);
}

/* Once all that is there has been read: what has begun is a key only when its time is over,
 * whatever else ended the waiting. */
static void heed_typing(struct live *l, bool readable, int64_t now_ms)
{
    if (readable) {
        if (terminal_read(&l->typed) != 0) {
            l->code = COMMAND_INTERRUPTED + SIGHUP; /* whose terminal has gone */
        }
        l->typed_ms = now_ms;
        take_keys(l, false);
    } else if (l->typed.len > 0 && until_whole(l, now_ms) == 0) {
        take_keys(l, true);
    }
}

/* ------------------------------------------------------------------ the loop */

static void heed_terminal(struct live *l)
{
    enum terminal_event event = terminal_take_signal(&l->terminal);

    if (event == TERMINAL_QUIT) {
        l->code = COMMAND_INTERRUPTED + SIGQUIT;
    } else if (event == TERMINAL_REPAINT) {
        l->known = false;
        l->at_once = true;
    }
}

/* Waits for whatever comes first, and sees to it. */
static void wait_and_see(struct live *l)
{
    struct pollfd fds[] = {
        {.fd = t3_watch_fd(l->call->watch), .events = POLLIN},
        {.fd = l->terminal.signals, .events = POLLIN},
        {.fd = STDIN_FILENO, .events = POLLIN},
    };
    int64_t now_ms = clock_ms(CLOCK_MONOTONIC);
    int due = until_draw(l);

    if (l->typed.len > 0 && until_whole(l, now_ms) < due) {
        due = until_whole(l, now_ms);
    }
    int ready = interrupt_poll(fds, ARRAY_COUNT(fds), due);

    if (interrupt_signal() != 0) {
        l->code = COMMAND_INTERRUPTED + interrupt_signal();
        return;
    }
    if (ready > 0 && fds[1].revents != 0) {
        heed_terminal(l);
    }
    if (ready >= 0) { /* else nobody looked whether there is more */
        heed_typing(l, ready > 0 && fds[2].revents != 0, clock_ms(CLOCK_MONOTONIC));
    }
    if (ready > 0 && fds[0].revents != 0) {
        t3_watch_step(l->call->watch, 0);
    }
}

static int run(struct live *l)
{
    l->at_once = true;
    while (l->code < 0) {
        if (until_draw(l) == 0) {
            draw(l);
        }
        if (l->code < 0) {
            wait_and_see(l);
        }
    }
    return l->code;
}

static int begin(struct live *l)
{
    const struct t3_watch *watch = l->call->watch;

    l->view.known = &l->call->hosts;
    for (size_t i = 0; i < t3_watch_host_count(watch); i++) {
        if (board_view_add_host(&l->view, t3_watch_host_at(watch, i)) != 0) {
            return board_fail(err_text(ERR_NOMEM));
        }
    }
    if (terminal_begin(&l->terminal) != 0) {
        return board_fail("the terminal cannot be used");
    }
    l->next.ascii = l->terminal.ascii;
    l->shown.ascii = l->terminal.ascii;
    return 0;
}

int board_live(struct board_call *call)
{
    struct live l = {.call = call, .code = -1, .terminal = {.signals = -1}};
    struct t3_watch_options options = {.row = on_row, .host = on_host, .context = &l};
    uint64_t seed = 0;

    if (getrandom(&seed, sizeof(seed), 0) != (ssize_t)sizeof(seed)) {
        seed = (uint64_t)(uintptr_t)&l; /* as good as can be had; maps only get slower */
    }
    board_view_init(&l.view, seed);
    buf_init(&l.bytes, PAINT_BYTES_MAX);
    buf_init_fixed(&l.typed, l.typed_bytes, sizeof(l.typed_bytes));
    int code = board_open(call, &options);

    code = code == 0 ? begin(&l) : code;
    if (code == 0) {
        code = run(&l);
        terminal_end(&l.terminal);
        code = l.why != NULL ? board_fail(l.why) : code;
    }
    board_view_finish(&l.view);
    cells_finish(&l.next);
    cells_finish(&l.shown);
    buf_finish(&l.bytes);
    return code;
}
