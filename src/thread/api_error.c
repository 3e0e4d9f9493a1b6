/* The tables of codes, and the one envelope that all refusals come in. */
#include "thread/api_error.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>

#include "base/json.h"
#include "base/utf8.h"

static const struct {
    const char *code;
    const char *text; /* the default sentence */
    int status;
    bool recoverable;
} codes[] = {
#define X(name, code, status, recoverable, text) [API_##name] = {code, text, status, recoverable},
    API_ERROR_LIST(X)
#undef X
};

/* Formats into `out` of `size` bytes; what does not fit is cut between characters. */
static void PRINTF_LIKE(3, 0) format_text(char *out, size_t size, const char *format, va_list args)
{
    int len = vsnprintf(out, size, format, args);
    assert(len >= 0);
    if ((size_t)len >= size) {
        out[utf8_valid_prefix((struct slice){out, size - 1})] = '\0';
    }
}

static void PRINTF_LIKE(3, 4) cut_format(char *out, size_t size, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    format_text(out, size, format, args);
    va_end(args);
}

int api_error_set(struct api_error *e, enum api_code code, const char *format, ...)
{
    va_list args;
    assert(code < API_CODE_COUNT);
    if (e) {
        e->code = code;
        e->suggestion[0] = '\0';
        e->field[0] = '\0';
        va_start(args, format);
        format_text(e->message, sizeof(e->message), format, args);
        va_end(args);
    }
    return -1;
}

int api_error_set_field(struct api_error *e, const char *format, ...)
{
    va_list args;
    if (e) {
        va_start(args, format);
        format_text(e->field, sizeof(e->field), format, args);
        va_end(args);
    }
    return -1;
}

int api_error_prefix(struct api_error *e, const char *format, ...)
{
    char prefix[API_FIELD_BYTES];
    va_list args;
    if (!e || e->field[0] == '\0') {
        return -1;
    }
    struct api_error old = *e;
    va_start(args, format);
    format_text(prefix, sizeof(prefix), format, args);
    va_end(args);
    (void)api_error_set_field(e, "%s%s", prefix, old.field);
    if (slice_starts_with(slice_of(old.message), slice_of(old.field))) {
        cut_format(e->message, sizeof(e->message), "%s%s", prefix, old.message);
    }
    return -1;
}

int api_error_suggest(struct api_error *e, const char *format, ...)
{
    va_list args;
    if (e) {
        va_start(args, format);
        format_text(e->suggestion, sizeof(e->suggestion), format, args);
        va_end(args);
    }
    return -1;
}

const char *api_error_code_text(enum api_code code)
{
    assert(code < API_CODE_COUNT);
    return codes[code].code;
}

int api_error_status(enum api_code code)
{
    assert(code < API_CODE_COUNT);
    return codes[code].status;
}

bool api_error_recoverable(enum api_code code)
{
    assert(code < API_CODE_COUNT);
    return codes[code].recoverable;
}

void api_error_format(struct buf *out, const struct api_error *e)
{
    const char *message = e->message[0] != '\0' ? e->message : codes[e->code].text;
    buf_append(out, SLICE("{\"error\":{\"code\":"));
    json_append_string(out, slice_of(api_error_code_text(e->code)));
    buf_append(out, SLICE(",\"message\":"));
    json_append_string(out, slice_of(message));
    if (e->suggestion[0] != '\0') {
        buf_append(out, SLICE(",\"suggestion\":"));
        json_append_string(out, slice_of(e->suggestion));
    }
    buf_append(out, api_error_recoverable(e->code) ? SLICE(",\"recoverable\":true")
                                                   : SLICE(",\"recoverable\":false"));
    if (e->field[0] != '\0') {
        buf_append(out, SLICE(",\"context\":{\"field\":"));
        json_append_string(out, slice_of(e->field));
        buf_append_char(out, '}');
    }
    buf_append(out, SLICE("}}"));
}
