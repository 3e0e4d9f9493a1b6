/* What commands of the API say. Sentences may hold names that others chose, so control characters
 * never reach the terminal. */
#include "cli/app_call.h"

#include "base/json.h"
#include "base/limits.h"
#include "base/utf8.h"
#include "cli/command.h"
#include "cli/exit_code.h"
#include "cli/interrupt.h"

#include <stdarg.h>
#include <stdio.h>
#include <unistd.h>

#define LINE_BYTES_MAX (64u * KIB)

/* Appends a text in which every character that is harmful to a terminal is a '?'. */
static void append_shown(struct buf *out, struct slice text)
{
    for (struct slice rest = text; rest.len > 0;) {
        size_t harmful = utf8_harmful(rest);
        size_t len = harmful > 0 ? harmful : 1;

        buf_append(out, harmful > 0 ? SLICE("?") : (struct slice){rest.ptr, 1});
        rest = (struct slice){rest.ptr + len, rest.len - len};
    }
}

static void append_member(struct buf *out, const char *name, const char *text)
{
    if (text != NULL && text[0] != '\0') {
        buf_append_format(out, ",\"%s\":", name);
        json_append_string(out, slice_of(text));
    }
}

static void append_object(struct buf *out, const struct scoped_error *error)
{
    buf_append(out, SLICE("{\"error\":{\"code\":"));
    json_append_string(out, slice_of(error->code));
    append_member(out, "message", error->message);
    append_member(out, "suggestion", error->suggestion);
    buf_append_format(out, ",\"recoverable\":%s", error->recoverable ? "true" : "false");
    if (error->field[0] != '\0') {
        buf_append(out, SLICE(",\"context\":{\"field\":"));
        json_append_string(out, slice_of(error->field));
        buf_append_char(out, '}');
    }
    buf_append(out, SLICE("}}\n"));
}

static void say(const struct app_call *call, const struct scoped_error *error)
{
    struct buf line;

    buf_init(&line, LINE_BYTES_MAX);
    if (call->set.json) {
        append_object(&line, error);
    } else {
        buf_append(&line, SLICE("error: "));
        append_shown(&line, slice_of(error->message));
        if (error->outcome_unknown) {
            buf_append(&line, SLICE(" (it may have taken effect)"));
        }
        if (error->suggestion[0] != '\0') {
            buf_append(&line, SLICE("\n→ "));
            append_shown(&line, slice_of(error->suggestion));
        }
        buf_append_char(&line, '\n');
    }
    (void)fwrite(line.ptr, 1, line.len, stderr);
    buf_finish(&line);
}

/* What helps where the API has no advice of its own. */
static void suggest(const struct app_call *call, struct scoped_error *error)
{
    if (error->suggestion[0] != '\0') {
        return;
    }
    if (error->kind == STREAM_ERROR_UNAUTHORIZED) {
        (void)snprintf(error->suggestion, sizeof(error->suggestion),
                       "arbe auth login, with a key that is good");
    } else if (error->kind == STREAM_ERROR_NETWORK && error->status == 0) {
        (void)snprintf(error->suggestion, sizeof(error->suggestion),
                       "is arbe serve running at %.180s?", call->url);
    }
}

/* The exit code for an answer. A value that the server refuses is as wrong as a flag that is none:
 * who asks again in the same way fails again. */
static int exit_code(const struct scoped_error *error)
{
    int code = exit_code_of(error->kind);

    if (code != COMMAND_FAILED) {
        return code;
    }
    return error->status == 400 ? COMMAND_USAGE : error->status == 409 ? COMMAND_CONFLICT : code;
}

int app_call_fail(const struct app_call *call, const struct scoped_error *error)
{
    if (interrupt_signal() == 0) {
        struct scoped_error shown = *error;

        suggest(call, &shown);
        say(call, &shown);
    }
    return exit_code(error);
}

int app_call_refuse(const struct app_call *call, int exit, const char *code, const char *suggestion,
                    const char *format, ...)
{
    struct scoped_error error = {.code = ""};
    va_list args;

    va_start(args, format);
    (void)vsnprintf(error.message, sizeof(error.message), format, args);
    va_end(args);
    (void)snprintf(error.code, sizeof(error.code), "%s", code);
    (void)snprintf(error.suggestion, sizeof(error.suggestion), "%s",
                   suggestion == NULL ? "" : suggestion);
    say(call, &error);
    return exit;
}

static void append_candidate(const struct app_call *call, const struct ref_candidate *one,
                             struct buf *out)
{
    if (call->set.json) {
        buf_append_format(out, "{\"kind\":\"%s\",\"id\":", one->kind);
        json_append_string(out, one->id);
        buf_append(out, SLICE(",\"name\":"));
        json_append_string(out, one->name);
        buf_append_char(out, '}');
    } else {
        buf_append_format(out, "  %-6s ", one->kind);
        append_shown(out, one->id);
        buf_append_char(out, ' ');
        append_shown(out, one->name);
        buf_append_char(out, '\n');
    }
}

int app_call_ambiguous(const struct app_call *call, const struct ref_search *search)
{
    char text[200];
    struct buf line;

    (void)snprintf(text, sizeof(text), "\"%.*s\" means %zu records",
                   search->text.len > 80 ? 80 : (int)search->text.len, search->text.ptr,
                   search->count);
    buf_init(&line, LINE_BYTES_MAX);
    if (call->set.json) {
        buf_append(&line, SLICE("{\"error\":{\"code\":\"client.ref_ambiguous\",\"message\":"));
        json_append_string(&line, slice_of(text));
        buf_append(&line, SLICE(",\"recoverable\":false,\"context\":{\"candidates\":["));
    } else {
        buf_append(&line, SLICE("error: "));
        append_shown(&line, slice_of(text));
        buf_append(&line, SLICE("\n→ say which by its id:\n"));
    }
    for (size_t i = 0; i < search->count && i < REF_FOUND_MAX; i++) {
        if (call->set.json && i > 0) {
            buf_append_char(&line, ',');
        }
        append_candidate(call, &search->found[i], &line);
    }
    buf_append(&line, call->set.json                  ? SLICE("]}}}\n")
                      : search->count > REF_FOUND_MAX ? SLICE("  and more\n")
                                                      : SLICE(""));
    (void)fwrite(line.ptr, 1, line.len, stderr);
    buf_finish(&line);
    return COMMAND_USAGE;
}

int app_call_cannot(const struct app_call *call, const struct errmsg *msg)
{
    return app_call_refuse(call, COMMAND_FAILED, "client.failed", NULL, "%s", msg->text);
}

static void PRINTF_LIKE(2, 0) say_line(struct slice before, const char *format, va_list args)
{
    char text[1024];
    struct buf line;

    (void)vsnprintf(text, sizeof(text), format, args);
    buf_init(&line, LINE_BYTES_MAX);
    buf_append(&line, before);
    append_shown(&line, slice_of(text));
    buf_append_char(&line, '\n');
    (void)fwrite(line.ptr, 1, line.len, stderr);
    buf_finish(&line);
}

void app_call_tell(const struct app_call *call, const char *format, ...)
{
    va_list args;

    if (!call->set.json && isatty(STDERR_FILENO) == 1) {
        va_start(args, format);
        say_line(SLICE(""), format, args);
        va_end(args);
    }
}

void app_call_warn(const struct app_call *call, const char *format, ...)
{
    va_list args;

    if (!call->set.json) {
        va_start(args, format);
        say_line(SLICE("warning: "), format, args);
        va_end(args);
    }
}

void app_call_print_json(struct app_call *call, struct slice record)
{
    out_add_json(&call->out, record);
    out_add(&call->out, SLICE("\n"));
    out_end_message(&call->out);
}

void app_call_print_field(struct app_call *call, const char *name, struct slice text)
{
    struct out *o = &call->out;

    if (text.len > 0) {
        out_format(o, "%s%s:%s ", out_dim(o), name, out_plain(o));
        out_add_shown(o, text);
        out_add(o, SLICE("\n"));
        out_end_message(o);
    }
}

void app_call_print_cell(struct app_call *call, struct slice text, size_t width)
{
    out_add_shown(&call->out, text);
    for (size_t i = text.len; i < width + 1; i++) {
        out_add(&call->out, SLICE(" "));
    }
    if (text.len > width) {
        out_add(&call->out, SLICE(" "));
    }
}
