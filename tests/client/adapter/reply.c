/* Commas are placed by what stands before; the closing brace of the whole comes with the end. */
#include "client/adapter/reply.h"

#include "base/json.h"

#include <stdio.h>

static void begin(struct reply *r, const char *type, bool success)
{
    buf_clear(&r->out);
    buf_append_char(&r->out, '{');
    reply_text(r, "type", type);
    reply_flag(r, "success", success);
}

static void append_name(struct reply *r, const char *name)
{
    if (r->out.len > 0 && r->out.ptr[r->out.len - 1] != '{' && r->out.ptr[r->out.len - 1] != '[') {
        buf_append_char(&r->out, ',');
    }
    if (name != NULL) {
        json_append_string(&r->out, slice_of(name));
        buf_append_char(&r->out, ':');
    }
}

void reply_success(struct reply *r)
{
    begin(r, r->type, true);
}

/* The driver's words for what can go wrong. */
static const char *code_of(const struct stream_error *error, bool is_read)
{
    switch (error->code) {
    case STREAM_ERROR_ARGUMENT:
        return "INVALID_ARGUMENT";
    case STREAM_ERROR_TIMEOUT:
        return "TIMEOUT";
    case STREAM_ERROR_NETWORK:
    case STREAM_ERROR_TLS:
        return "NETWORK_ERROR";
    case STREAM_ERROR_NOT_FOUND:
    case STREAM_ERROR_GONE:
        return "NOT_FOUND";
    case STREAM_ERROR_EXISTS:
        return "CONFLICT";
    case STREAM_ERROR_CLOSED:
        return "STREAM_CLOSED";
    case STREAM_ERROR_SEQUENCE:
        return "SEQUENCE_CONFLICT";
    case STREAM_ERROR_FORMAT:
        return "PARSE_ERROR";
    case STREAM_ERROR_REJECTED:
        return is_read && error->status == 400 ? "INVALID_OFFSET" : "UNEXPECTED_STATUS";
    case STREAM_ERROR_UNAUTHORIZED:
    case STREAM_ERROR_FORBIDDEN:
    case STREAM_ERROR_FENCED:
    case STREAM_ERROR_BUSY:
    case STREAM_ERROR_SERVER:
        return "UNEXPECTED_STATUS";
    case STREAM_OK:
    case STREAM_ERROR_MEMORY:
    case STREAM_ERROR_ABORTED:
        break;
    }
    return "INTERNAL_ERROR";
}

void reply_error(struct reply *r, const struct stream_error *error, bool is_read)
{
    reply_refusal(r, code_of(error, is_read), error->message);
    if (error->status > 0) {
        reply_number(r, "status", error->status);
    }
    reply_open(r, "details", '{');
    reply_text(r, "name", stream_error_name(error->code));
    reply_flag(r, "outcomeUnknown", error->outcome_unknown != 0);
    if (error->current_epoch >= 0) {
        reply_number(r, "currentEpoch", error->current_epoch);
    }
    if (error->expected_seq >= 0) {
        reply_number(r, "expectedSeq", error->expected_seq);
    }
    if (error->retry_after_ms >= 0) {
        reply_number(r, "retryAfterMs", error->retry_after_ms);
    }
    reply_shut(r, '}');
}

void reply_refusal(struct reply *r, const char *code, const char *message)
{
    begin(r, "error", false);
    reply_text(r, "commandType", r->type);
    reply_text(r, "errorCode", code);
    reply_text(r, "message", message);
}

void reply_text(struct reply *r, const char *name, const char *text)
{
    reply_bytes(r, name, slice_of(text));
}

void reply_bytes(struct reply *r, const char *name, struct slice text)
{
    append_name(r, name);
    json_append_string(&r->out, text);
}

void reply_number(struct reply *r, const char *name, long long number)
{
    append_name(r, name);
    buf_append_format(&r->out, "%lld", number);
}

void reply_flag(struct reply *r, const char *name, bool flag)
{
    append_name(r, name);
    buf_append_format(&r->out, "%s", flag ? "true" : "false");
}

void reply_open(struct reply *r, const char *name, char bracket)
{
    append_name(r, name);
    buf_append_char(&r->out, bracket);
}

void reply_shut(struct reply *r, char bracket)
{
    buf_append_char(&r->out, bracket);
}

bool reply_send(struct reply *r)
{
    buf_append(&r->out, SLICE("}\n"));
    return !r->out.failed && fwrite(r->out.ptr, 1, r->out.len, stdout) == r->out.len &&
           fflush(stdout) == 0;
}
