/* arbe board fold: recorded chunks from stdin, and the rows that come of them. */
#include "cli/board_call.h"

#include "base/limits.h"
#include "cli/command.h"
#include "cli/interrupt.h"
#include "t3/row_json.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define READ_BYTES (64u * KIB)

static int fail(const char *sentence)
{
    (void)fprintf(stderr, "arbe board fold: %s\n", sentence);
    return COMMAND_FAILED;
}

/* ------------------------------------------------------------------ rows */

static int print_row(void *context, const struct t3_board_row *row)
{
    struct board_call *call = context;
    struct out *o = &call->out;

    buf_clear(&call->input);
    t3_row_json(&call->input, row);
    buf_append_char(&call->input, '\n');
    if (call->input.failed) {
        return T3_BOARD_ERROR_MEMORY;
    }
    out_add(o, buf_slice(&call->input));
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

int board_fold(struct board_call *call)
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
        if (t3_board_each(call->board, print_row, call) == T3_BOARD_ERROR_MEMORY) {
            code = fail(err_text(ERR_NOMEM));
        }
    }
    buf_finish(&call->input);
    t3_board_free(call->board);
    return code;
}
