/* One place gives every error its words, so that each names what was wanted, and of which stream.
 * A sentence never shows a URL: query parameters may be secrets. */
#include "client/call.h"

#include "base/limits.h"
#include "base/utf8.h"

#include <assert.h>
#include <stdio.h>

#define NAME_SHOWN_MAX  160    /* bytes of a stream's name in a sentence */
#define VALUE_BYTES_MAX 16000u /* of a field, its name included */

static const char *const verbs[] = {
    [CALL_CREATE] = "create", [CALL_APPEND] = "append to",  [CALL_DELETE] = "delete",
    [CALL_HEAD] = "look at",  [CALL_READ] = "read",         [CALL_LONG_POLL] = "follow",
    [CALL_SSE] = "follow",    [CALL_LIST] = "list streams", [CALL_REQUEST] = "request",
};

static const struct stream_error no_error = {
    .retry_after_ms = -1,
    .current_epoch = -1,
    .expected_seq = -1,
};

bool call_writes(const struct call *call)
{
    if (call->verb == CALL_REQUEST) {
        return strcmp(call->method, "GET") != 0 && strcmp(call->method, "HEAD") != 0;
    }
    return call->verb == CALL_CREATE || call->verb == CALL_APPEND || call->verb == CALL_DELETE;
}

void call_begin(struct call *call)
{
    call->result = (struct call_result){
        .info = {.ttl_seconds = -1, .producer_epoch = -1, .producer_seq = -1},
        .error = no_error,
    };
    if (call->answer != NULL) {
        buf_clear(call->answer);
    }
    if (call->refusal != NULL) {
        *call->refusal = (struct refusal){.present = false};
    }
}

void call_what(const struct call *call, char *out, size_t size)
{
    size_t len = call->name.len < NAME_SHOWN_MAX ? call->name.len : NAME_SHOWN_MAX;
    bool cut = len < call->name.len;
    bool is_close = call->verb == CALL_APPEND && call->close && call->body.len == 0;

    if (call->what != NULL) {
        (void)snprintf(out, size, "%s", call->what);
        return;
    }
    len = utf8_valid_prefix((struct slice){call->name.ptr, len});
    if (call->verb == CALL_LIST && len == 0) {
        (void)snprintf(out, size, "cannot %s", verbs[call->verb]);
        return;
    }
    (void)snprintf(out, size, "cannot %s \"%.*s%s\"", is_close ? "close" : verbs[call->verb],
                   (int)len, len > 0 ? call->name.ptr : "", cut ? "..." : "");
}

void call_clean_text(char *text)
{
    size_t len = strlen(text);

    len = utf8_valid_prefix((struct slice){text, len});
    text[len] = '\0';
    for (size_t i = 0; i < len; i++) {
        size_t control = utf8_control((struct slice){text + i, len - i});

        memset(text + i, ' ', control);
        i += control > 0 ? control - 1 : 0;
    }
}

PRINTF_LIKE(4, 0)
static void set(struct stream_error *error, enum stream_error_code code, const char *what,
                const char *format, va_list args)
{
    int len = snprintf(error->message, sizeof(error->message), "%s%s", what,
                       what[0] != '\0' ? ": " : "");

    assert(len >= 0 && (size_t)len < sizeof(error->message));
    (void)vsnprintf(error->message + len, sizeof(error->message) - (size_t)len, format, args);
    call_clean_text(error->message);
    error->code = code;
}

void call_fail(struct call *call, enum stream_error_code code, const char *format, ...)
{
    char what[NAME_SHOWN_MAX + 64];
    va_list args;

    call_what(call, what, sizeof(what));
    va_start(args, format);
    set(&call->result.error, code, what, format, args);
    va_end(args);
    call->result.error.status = call->result.info.status;
}

int call_error_set(struct stream_error *error, enum stream_error_code code, const char *format, ...)
{
    va_list args;

    if (error != NULL) {
        *error = no_error;
        va_start(args, format);
        set(error, code, "", format, args);
        va_end(args);
    }
    return (int)code;
}

/* A 409 has as many meanings as the protocol has rules. */
static enum stream_error_code code_of_conflict(const struct call *call)
{
    if (call->result.info.closed && call->verb == CALL_APPEND) {
        return STREAM_ERROR_CLOSED;
    }
    if (call->verb == CALL_APPEND && (call->result.error.expected_seq >= 0 || call->seq != NULL)) {
        return STREAM_ERROR_SEQUENCE;
    }
    return call_writes(call) && call->verb != CALL_REQUEST ? STREAM_ERROR_EXISTS
                                                           : STREAM_ERROR_REJECTED;
}

static enum stream_error_code code_of(const struct call *call, int status)
{
    switch (status) {
    case 401:
        return STREAM_ERROR_UNAUTHORIZED;
    case 403:
        return call->result.info.producer_epoch >= 0 ? STREAM_ERROR_FENCED : STREAM_ERROR_FORBIDDEN;
    case 404:
        return STREAM_ERROR_NOT_FOUND;
    case 409:
        return code_of_conflict(call);
    case 410:
        return STREAM_ERROR_GONE;
    case 429:
    case 503:
    case 507:
        return STREAM_ERROR_BUSY;
    default:
        break;
    }
    if (status >= 400 && status < 500) {
        return STREAM_ERROR_REJECTED;
    }
    return status >= 500 && status < 600 ? STREAM_ERROR_SERVER : STREAM_ERROR_FORMAT;
}

/* What is said where the server said nothing. */
static const char *sentence_of(const struct call *call, enum stream_error_code code)
{
    switch (code) {
    case STREAM_ERROR_UNAUTHORIZED:
        return "the server wants a valid token";
    case STREAM_ERROR_FORBIDDEN:
        return "the server does not allow it";
    case STREAM_ERROR_NOT_FOUND:
        return call->verb == CALL_LIST ? "the server offers no listing"
               : call->what != NULL    ? "there is none"
                                       : "there is no such stream";
    case STREAM_ERROR_GONE:
        return "it was deleted, or the offset is no longer kept";
    case STREAM_ERROR_EXISTS:
        return "it exists with another configuration";
    case STREAM_ERROR_CLOSED:
        return "the stream is closed";
    case STREAM_ERROR_SEQUENCE:
        return "the sequence number does not fit";
    case STREAM_ERROR_FENCED:
        return "another producer of this id has a newer epoch";
    case STREAM_ERROR_BUSY:
        return "the server cannot do it now";
    case STREAM_ERROR_REJECTED:
        return "the server refuses the request";
    case STREAM_ERROR_SERVER:
        return "the server failed";
    default:
        return "the protocol knows no such answer";
    }
}

void call_fail_status(struct call *call, int status, bool refused, struct slice sentence)
{
    enum stream_error_code code = code_of(call, status);
    struct call_result *r = &call->result;
    bool may_have_acted = status >= 500 && status != 501 && status != 507 && !refused;

    r->info.status = status;
    if (sentence.len > 0) {
        call_fail(call, code, "%.*s (status %d)",
                  (int)(sentence.len < STREAM_ERROR_MESSAGE_BYTES ? sentence.len
                                                                  : STREAM_ERROR_MESSAGE_BYTES),
                  sentence.ptr, status);
    } else {
        call_fail(call, code, "%s (status %d)", sentence_of(call, code), status);
    }
    if (code == STREAM_ERROR_FENCED) {
        r->error.current_epoch = r->info.producer_epoch;
    }
    r->transient = status == 429 || status == 500 || status == 502 || status == 503 ||
                   status == 504;
    r->error.outcome_unknown = may_have_acted && call_writes(call);
}

bool call_repeatable(const struct call *call)
{
    if (!call->result.error.outcome_unknown) {
        return true;
    }
    if (call->verb == CALL_REQUEST) {
        return call->repeatable;
    }
    return call->verb != CALL_APPEND || call->producer_id != NULL || call->body.len == 0;
}

const char *call_name_refusal(struct slice name)
{
    struct slice rest = name;
    struct slice segment;

    if (name.len == 0) {
        return "a stream's name must not be empty";
    }
    if (name.ptr[0] == '/') {
        return "a stream's name must not begin with a slash";
    }
    if (name.len > CLIENT_NAME_BYTES_MAX) {
        return "a stream's name must not be longer than 2000 bytes";
    }
    if (!utf8_valid(name)) {
        return "a stream's name must be valid UTF-8";
    }
    for (size_t i = 0; i < name.len; i++) {
        if ((unsigned char)name.ptr[i] < 0x20 || name.ptr[i] == 0x7f) {
            return "a stream's name must not hold control characters";
        }
    }
    while (slice_split(&rest, '/', &segment)) {
        if (slice_equal(segment, SLICE(".")) || slice_equal(segment, SLICE(".."))) {
            return "a stream's name must not have the segments \".\" and \"..\"";
        }
    }
    return NULL;
}

bool call_value_good(const char *text)
{
    for (const char *p = text; *p != '\0'; p++) {
        if (((unsigned char)*p < 0x20 && *p != '\t') || *p == 0x7f) {
            return false;
        }
    }
    return true;
}

bool call_check_value(struct call *call, const char *name, const char *value)
{
    /* libcurl would leave out a field whose value is blank. */
    if (slice_trim(slice_of(value)).len > 0 && strlen(name) + strlen(value) < VALUE_BYTES_MAX &&
        call_value_good(value)) {
        return true;
    }
    call_fail(call, STREAM_ERROR_ARGUMENT,
              "%s must not be empty, very long, or hold control characters", name);
    return false;
}
