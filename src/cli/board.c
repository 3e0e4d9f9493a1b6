/* arbe board: what threads of T3 Code are doing. */
#include "arbe/t3_board.h"

#include "base/limits.h"
#include "cli/command.h"
#include "cli/group.h"
#include "cli/interrupt.h"
#include "cli/out.h"

#include <stdio.h>
#include <unistd.h>

#define READ_BYTES   (64u * KIB)
#define HOST_DEFAULT "local"

struct board_settings {
    const char *host;
    uint64_t snippet_length;
};

struct board_call {
    struct board_settings set;
    struct out out;
    struct t3_board *board;
    struct buf input;  /* what was read and not folded */
    size_t line;       /* number of the one at hand */
    size_t skipped;    /* items, in all */
    size_t first_line; /* of those lines that are no items at all; 0: none */
    char why[T3_BOARD_MESSAGE_BYTES];
};

static int fail(const char *sentence)
{
    (void)fprintf(stderr, "arbe board fold: %s\n", sentence);
    return COMMAND_FAILED;
}

/* ------------------------------------------------------------------ rows */

static void add_member(struct out *o, struct slice name, struct t3_board_text text)
{
    out_add_string(o, name);
    out_add(o, SLICE(":"));
    if (text.data == NULL) {
        out_add(o, SLICE("null"));
    } else {
        out_add_string(o, (struct slice){text.data, text.len});
    }
}

static int print_row(void *context, const struct t3_board_row *row)
{
    const struct {
        struct slice name;
        struct t3_board_text text;
    } members[] = {
        {SLICE("thread_id"), row->thread_id},
        {SLICE("title"), row->title},
        {SLICE("state"), row->state},
        {SLICE("last_turn_at"), row->last_turn_at},
        {SLICE("last_message_snippet"), row->last_message_snippet},
        {SLICE("host"), row->host},
    };
    struct out *o = context;

    for (size_t i = 0; i < ARRAY_COUNT(members); i++) {
        out_add(o, i == 0 ? SLICE("{") : SLICE(","));
        add_member(o, members[i].name, members[i].text);
    }
    out_add(o, SLICE("}\n"));
    out_end_message(o);
    return out_is_over(o);
}

/* ------------------------------------------------------------------ lines */

static void skip_line(struct board_call *call, const char *why)
{
    call->skipped++;
    if (call->first_line == 0) {
        call->first_line = call->line;
        (void)snprintf(call->why, sizeof(call->why), "%s", why);
    }
}

static bool is_blank(struct slice line)
{
    size_t at = 0;

    while (at < line.len && strchr(" \t\r", line.ptr[at]) != NULL && line.ptr[at] != '\0') {
        at++;
    }
    return at == line.len;
}

/* Folds a line. 0, or an exit code. */
static int fold_line(struct board_call *call, struct slice line)
{
    struct t3_board_counts counts;
    struct t3_board_error error = {.code = T3_BOARD_OK};

    call->line++;
    if (is_blank(line)) {
        return 0;
    }
    int code = t3_board_apply(call->board, call->set.host, line.ptr, line.len, NULL, NULL, &counts,
                              &error);

    call->skipped += counts.skipped;
    if (code == T3_BOARD_ERROR_FORMAT) {
        skip_line(call, error.message);
        return 0;
    }
    if (code != T3_BOARD_OK) {
        (void)fprintf(stderr, "arbe board fold: line %zu: %s\n", call->line, error.message);
        return COMMAND_FAILED;
    }
    return 0;
}

/* Folds the lines that are whole. */
static int fold_lines(struct board_call *call, size_t fresh)
{
    size_t done = 0;
    size_t from = call->input.len - fresh; /* there is no line end before */
    int code = 0;

    while (code == 0 && from < call->input.len) {
        const char *end = memchr(call->input.ptr + from, '\n', call->input.len - from);

        if (end == NULL) {
            break;
        }
        size_t at = (size_t)(end - call->input.ptr);

        code = fold_line(call, (struct slice){call->input.ptr + done, at - done});
        done = at + 1;
        from = done;
    }
    buf_consume(&call->input, done);
    return code;
}

static int fold_stdin(struct board_call *call)
{
    int code = 0;

    while (code == 0) {
        char *room = buf_reserve(&call->input, READ_BYTES);

        if (room == NULL) {
            return fail("a line of stdin is longer than 256 MiB, or memory ran out");
        }
        ssize_t len = read(STDIN_FILENO, room, READ_BYTES);

        if (interrupt_signal() != 0) {
            return COMMAND_INTERRUPTED + interrupt_signal();
        }
        if (len < 0) {
            return fail("stdin could not be read");
        }
        if (len == 0) {
            break;
        }
        buf_advance(&call->input, (size_t)len);
        code = fold_lines(call, (size_t)len);
    }
    return code == 0 && call->input.len > 0 ? fold_line(call, buf_slice(&call->input)) : code;
}

static void tell_skipped(const struct board_call *call)
{
    if (call->skipped == 0) {
        return;
    }
    (void)fprintf(stderr, "arbe board fold: %zu item%s skipped", call->skipped,
                  call->skipped == 1 ? "" : "s");
    if (call->first_line > 0) {
        (void)fprintf(stderr, "; line %zu: %s", call->first_line, call->why);
    }
    (void)fprintf(stderr, "\n");
}

static int run_fold(struct board_call *call)
{
    struct t3_board_options options;
    struct t3_board_error error;

    t3_board_options_init(&options);
    options.snippet_graphemes = (int)call->set.snippet_length;
    if (t3_board_new(&options, &call->board, &error) != T3_BOARD_OK) {
        return fail(error.message);
    }
    buf_init(&call->input, STDIN_BYTES_MAX);
    int code = fold_stdin(call);

    if (code == 0) {
        tell_skipped(call);
        if (t3_board_each(call->board, print_row, &call->out) == T3_BOARD_ERROR_MEMORY) {
            code = fail(err_text(ERR_NOMEM));
        }
    }
    buf_finish(&call->input);
    t3_board_free(call->board);
    return code;
}

/* ------------------------------------------------------------------ the table */

static const struct flag fold_flags[] = {
    {"host", "HOST", HOST_DEFAULT, "label of the T3 installation", NULL, FLAG_TEXT,
     offsetof(struct board_settings, host), 0, 0},
    {"snippet-length", "N", "160", "graphemes of a message that are shown", NULL, FLAG_COUNT,
     offsetof(struct board_settings, snippet_length), 1, T3_BOARD_SNIPPET_GRAPHEMES_MAX},
};

static const struct group_row rows[] = {
    {"fold",
     "",
     0,
     0,
     NULL,
     {.board = run_fold},
     fold_flags,
     ARRAY_COUNT(fold_flags),
     "fold recorded chunks from stdin, and print the rows",
     "Reads what T3 Code's streams told from stdin: a line each for a chunk (a JSON array of\n"
     "stream items) or a bare projection, in the order in which they came. Prints the rows that\n"
     "come of them, as JSON, one a line, sorted by host and thread id. Items that are broken are\n"
     "skipped, and counted on stderr.\n"},
};

int command_board(int argc, char **argv)
{
    const struct group group = {
        .name = "board",
        .operands = "",
        .about = "Shows what threads of T3 Code are doing: a row for each thread of each host.\n",
        .end = "Exit codes: 0 good, 1 it could not be done, 2 wrong usage.\n",
        .rows = rows,
        .row_count = ARRAY_COUNT(rows),
    };
    struct board_call call = {.board = NULL};
    struct group_choice choice;
    struct errmsg msg = {{0}};
    int code = group_choose(&group, argc, argv, &call.set, &choice, &msg);

    if (choice.row == NULL || code != 0) {
        if (msg.text[0] != '\0') {
            (void)fprintf(stderr, "arbe board%s%s: %s\n", choice.row == NULL ? "" : " ",
                          choice.row == NULL ? "" : choice.row->name, msg.text);
        }
        return code;
    }
    if (strlen(call.set.host) == 0 || strlen(call.set.host) > T3_HOST_BYTES_MAX) {
        (void)fprintf(stderr, "arbe board fold: --host takes a label of 1 to 255 bytes\n");
        return COMMAND_USAGE;
    }
    interrupt_begin();
    out_init(&call.out);
    code = choice.row->run.board(&call);
    return out_finish(&call.out) || code != 0 ? code : COMMAND_FAILED;
}
