/* What a caller of the API is told when it is refused: a dotted code, a sentence, perhaps advice
 * and the place in the body. The one list below has every code with its HTTP status; codes are
 * only ever added.
 *
 * A function that refuses a user's input takes a struct api_error (NULL: nothing is told) and
 * returns 0 or -1. */
#ifndef ARBE_THREAD_API_ERROR_H
#define ARBE_THREAD_API_ERROR_H

#include "base/attr.h"
#include "base/buf.h"

/* Name, code, HTTP status, whether the same request may succeed later, default sentence. */
#define API_ERROR_LIST(X)                                                                          \
    X(INVALID_INPUT, "validation.invalid_input", 400, false, "the request is not valid")           \
    X(MALFORMED_JSON, "validation.malformed_json", 400, false, "the body is not valid JSON")       \
    X(TOO_LARGE, "validation.too_large", 413, false, "the request is too large")                   \
    X(UNSUPPORTED_MEDIA, "validation.unsupported_media", 415, false,                               \
      "the body must be application/json")                                                         \
    X(UNAUTHENTICATED, "auth.unauthenticated", 401, false, "a valid API key is needed")            \
    X(FORBIDDEN, "auth.forbidden", 403, false, "this is not allowed")                              \
    X(BAD_ORIGIN, "auth.bad_origin", 403, false, "the request came from another origin")           \
    X(AUTH_RATE_LIMITED, "auth.rate_limited", 429, true, "too many attempts to sign in")           \
    X(NOT_FOUND, "record.not_found", 404, false, "there is no such record")                        \
    X(CONFLICT, "record.conflict", 409, false, "the request conflicts with what is stored")        \
    X(LAST_OWNER, "house.last_owner", 409, false, "a house must keep an owner")                    \
    X(INVITE_UNUSABLE, "invite.unusable", 404, false, "the invite is unknown, used or expired")    \
    X(THREAD_PRIMARY, "thread.primary", 409, false, "a house keeps its primary thread")            \
    X(ILLEGAL_STATUS, "thread.illegal_status", 409, false, "the thread cannot take that status")   \
    X(THREAD_CLOSED, "thread.closed", 409, false, "the thread takes no more entries")              \
    X(NOT_DELETABLE, "entry.not_deletable", 409, false, "only a chat entry can be deleted")        \
    X(UNKNOWN_ROUTE, "request.unknown_route", 404, false, "there is no such route")                \
    X(METHOD_NOT_ALLOWED, "request.method_not_allowed", 405, false,                                \
      "the route does not know this method")                                                       \
    X(REQUEST_TIMEOUT, "request.timeout", 408, true, "the request came too slowly")                \
    X(RATE_LIMITED, "request.rate_limited", 429, true, "too many requests")                        \
    X(BUSY, "server.busy", 503, true, "the server is busy")                                        \
    X(DRAINING, "server.draining", 503, true, "the server is shutting down")                       \
    X(STORAGE_FULL, "server.storage_full", 507, true, "no space is left on the disk")              \
    X(STREAMS_UNAVAILABLE, "streams.unavailable", 503, true, "the streams cannot be reached")      \
    X(OUTCOME_UNKNOWN, "streams.outcome_unknown", 503, true, "it may or may not have been stored") \
    X(INTERNAL, "server.internal", 500, false, "something went wrong inside the server")

enum api_code {
#define X(name, code, status, recoverable, text) API_##name,
    API_ERROR_LIST(X)
#undef X
    API_CODE_COUNT
};

#define API_MESSAGE_BYTES    512u
#define API_SUGGESTION_BYTES 256u
#define API_FIELD_BYTES      160u

/* All zeros but the code is good: the default sentence is then told. */
struct api_error {
    enum api_code code;
    char message[API_MESSAGE_BYTES];       /* NUL-terminated UTF-8, as the others */
    char suggestion[API_SUGGESTION_BYTES]; /* what to do instead; empty for none */
    char field[API_FIELD_BYTES]; /* JSON path such as payload.content[0].text; empty for none */
};

/* Sets code and sentence, cut at its size between characters, and forgets suggestion and field.
 * Returns -1. `e` may be NULL. */
int api_error_set(struct api_error *e, enum api_code code, const char *format, ...)
    PRINTF_LIKE(3, 4);

/* Says where in the body the error is, after api_error_set. Returns -1. */
int api_error_set_field(struct api_error *e, const char *format, ...) PRINTF_LIKE(2, 3);

/* Puts a path such as "[2]." before the field, and before the sentence where that begins with the
 * field. Returns -1. */
int api_error_prefix(struct api_error *e, const char *format, ...) PRINTF_LIKE(2, 3);

/* Says what to do instead, after api_error_set. Returns -1. */
int api_error_suggest(struct api_error *e, const char *format, ...) PRINTF_LIKE(2, 3);

/* The dotted code, such as "auth.forbidden". Static storage. */
const char *api_error_code_text(enum api_code code);

/* The HTTP status of the code. */
int api_error_status(enum api_code code);

/* Whether the same request may succeed later, with nothing about it changed. */
bool api_error_recoverable(enum api_code code);

/* Appends {"error":{"code","message","suggestion"?,"recoverable","context":{"field"}?}}. Failure
 * sticks to the buffer. */
void api_error_format(struct buf *out, const struct api_error *e);

#endif
