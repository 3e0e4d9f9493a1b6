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

struct fold {
    struct board_call *call;
    struct t3_board *board;
    struct buf input;  /* what was read and not folded; then a row that is printed */
    size_t line;       /* number of the one at hand */
    size_t good_lines; /* those that are a chunk or a projection with anything good in it */
    size_t skipped;    /* items, and lines that are neither */
    size_t first_line; /* of those; 0: none */
    char why[T3_BOARD_MESSAGE_BYTES];
};

static int fail(const char *sentence)
{
    (void)fprintf(stderr, "arbe board fold: %s\n", sentence);
    return COMMAND_FAILED;
}

/* ------------------------------------------------------------------ rows */

static int print_row(void *context, const struct t3_board_row *row)
{
    struct fold *f = context;
    struct out *o = &f->call->out;

    buf_clear(&f->input);
    t3_row_json(&f->input, row);
    buf_append_char(&f->input, '\n');
    if (f->input.failed) {
        return T3_BOARD_ERROR_MEMORY;
    }
    out_add(o, buf_slice(&f->input));
    out_end_message(o);
    return out_is_over(o);
}

/* ------------------------------------------------------------------ lines */

static void skip_line(struct fold *f, const char *why)
{
    f->skipped++;
    if (f->first_line == 0) {
        f->first_line = f->line;
        (void)snprintf(f->why, sizeof(f->why), "%s", why);
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
static int fold_line(struct fold *f, struct slice line)
{
    struct t3_board_counts counts;
    struct t3_board_error error = {.code = T3_BOARD_OK};

    f->line++;
    if (is_blank(line)) {
        return 0;
    }
    int code = t3_board_apply(f->board, f->call->set.host, line.ptr, line.len, NULL, NULL, &counts,
                              &error);

    f->skipped += counts.skipped;
    if (code == T3_BOARD_ERROR_FORMAT) {
        skip_line(f, error.message);
        return 0;
    }
    if (code != T3_BOARD_OK) {
        (void)fprintf(stderr, "arbe board fold: line %zu: %s\n", f->line, error.message);
        return COMMAND_FAILED;
    }
    f->good_lines += counts.applied > 0 || counts.skipped == 0 ? 1 : 0;
    return 0;
}

/* Folds the lines that are whole. */
static int fold_lines(struct fold *f, size_t fresh)
{
    size_t done = 0;
    size_t from = f->input.len - fresh; /* there is no line end before */
    int code = 0;

    while (code == 0 && from < f->input.len) {
        const char *end = memchr(f->input.ptr + from, '\n', f->input.len - from);

        if (end == NULL) {
            break;
        }
        size_t at = (size_t)(end - f->input.ptr);

        code = fold_line(f, (struct slice){f->input.ptr + done, at - done});
        done = at + 1;
        from = done;
    }
    buf_consume(&f->input, done);
    return code;
}

static int fold_stdin(struct fold *f)
{
    int code = 0;

    while (code == 0) {
        char *room = buf_reserve(&f->input, READ_BYTES);

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
        buf_advance(&f->input, (size_t)len);
        code = fold_lines(f, (size_t)len);
    }
    return code == 0 && f->input.len > 0 ? fold_line(f, buf_slice(&f->input)) : code;
}

/* Says what was left out. An exit code: it is no success where nothing is left. */
static int tell_skipped(const struct fold *f)
{
    if (f->skipped == 0) {
        return 0;
    }
    (void)fprintf(stderr, "arbe board fold: %zu item%s skipped", f->skipped,
                  f->skipped == 1 ? "" : "s");
    if (f->good_lines == 0) {
        (void)fprintf(stderr, ", and no line is a chunk or a projection of T3 Code");
    }
    if (f->first_line > 0) {
        (void)fprintf(stderr, "; line %zu: %s", f->first_line, f->why);
    }
    (void)fprintf(stderr, "\n");
    return f->good_lines > 0 ? 0 : COMMAND_FAILED;
}

/* Whether it was asked for in a way that makes sense. */
static bool usage_is_good(const struct board_call *call)
{
    const char *host = call->set.host;

    if (call->word != NULL) {
        (void)fprintf(stderr,
                      "arbe board fold: it reads stdin, not the file \"%.100s\": arbe board "
                      "fold <FILE\n",
                      call->word);
        return false;
    }
    if (host[0] == '\0' || strlen(host) > T3_HOST_BYTES_MAX) {
        (void)fprintf(stderr, "arbe board fold: --host takes a label of 1 to %u bytes\n",
                      T3_HOST_BYTES_MAX);
        return false;
    }
    return true;
}

int board_fold(struct board_call *call)
{
    struct fold f = {.call = call};
    struct t3_board_options options;
    struct t3_board_error error;

    if (!usage_is_good(call)) {
        return COMMAND_USAGE;
    }
    t3_board_options_init(&options);
    options.snippet_graphemes = (int)call->set.snippet_length;
    if (t3_board_new(&options, &f.board, &error) != T3_BOARD_OK) {
        return fail(error.message);
    }
    buf_init(&f.input, STDIN_BYTES_MAX);
    int code = fold_stdin(&f);

    code = code == 0 ? tell_skipped(&f) : code;
    if (code == 0 && t3_board_each(f.board, print_row, &f) == T3_BOARD_ERROR_MEMORY) {
        code = fail(err_text(ERR_NOMEM));
    }
    buf_finish(&f.input);
    t3_board_free(f.board);
    return code;
}
