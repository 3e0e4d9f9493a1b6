/* Each field stands where the protocol's section on its verb has it. A URL begins with all that is
 * ours; what a callback adds comes last. */
#include "client/http_request.h"

#include "base/limits.h"

#include <inttypes.h>
#include <stdio.h>

#define LINE_BYTES_MAX 16384u

static const char *const methods[] = {
    [CALL_CREATE] = "PUT", [CALL_APPEND] = "POST",   [CALL_DELETE] = "DELETE", [CALL_HEAD] = "HEAD",
    [CALL_READ] = "GET",   [CALL_LONG_POLL] = "GET", [CALL_SSE] = "GET",       [CALL_LIST] = "GET",
};

static bool is_read(const struct call *call)
{
    return call->verb == CALL_READ || call->verb == CALL_LONG_POLL || call->verb == CALL_SSE;
}

static void compose_url(struct buf *url, const struct http_settings *settings,
                        const struct call *call)
{
    buf_append(url, slice_of(settings->base.url));
    if (call->verb == CALL_LIST) {
        buf_append(url, SLICE("__ds/streams?prefix="));
        http_append_query(url, call->name);
        if (call->after != NULL && call->after[0] != '\0') {
            buf_append(url, SLICE("&after="));
            http_append_query(url, slice_of(call->after));
        }
        return;
    }
    if (call->verb == CALL_REQUEST) {
        buf_append(url, call->name);
        return;
    }
    http_append_name(url, call->name);
    if (!is_read(call)) {
        return;
    }
    buf_append(url, SLICE("?offset="));
    http_append_query(url, slice_of(call->offset != NULL ? call->offset : "-1"));
    if (call->verb != CALL_READ) {
        buf_append(url, call->verb == CALL_SSE ? SLICE("&live=sse") : SLICE("&live=long-poll"));
    }
    if (call->cursor != NULL && call->cursor[0] != '\0') {
        buf_append(url, SLICE("&cursor="));
        http_append_query(url, slice_of(call->cursor));
    }
}

/* Lets the callback add parameters; the first of all follows a '?', not an '&'. */
static bool add_query(struct buf *url, const struct stream_client_options *options,
                      struct call *call)
{
    struct stream_headers added = {.query = url};
    size_t before = url->len;
    bool first = before > 0 && memchr(url->ptr, '?', before) == NULL;

    if (options->add_query == NULL) {
        return true;
    }
    options->add_query(options->context, &added);
    if (added.bad[0] != '\0') {
        call_fail(call, STREAM_ERROR_ARGUMENT,
                  "the query parameter %s holds control characters or has no name", added.bad);
        return false;
    }
    if (first && !url->failed && url->len > before) {
        url->ptr[before] = '?';
    }
    return true;
}

/* Adds "name: value" when there is a value; false when it is not possible, and the call failed. */
static bool add_text(struct curl_slist **lines, struct call *call, const char *name,
                     const char *value)
{
    char memory[LINE_BYTES_MAX];

    if (value == NULL) {
        return true;
    }
    if (!call_check_value(call, name, value)) {
        return false;
    }
    (void)snprintf(memory, sizeof(memory), "%s: %s", name, value); /* it was checked to fit */
    if (!http_add_line(lines, memory)) {
        call_fail(call, STREAM_ERROR_MEMORY, "out of memory");
        return false;
    }
    return true;
}

static bool add_number(struct curl_slist **lines, struct call *call, const char *name,
                       int64_t value)
{
    char text[32];

    (void)snprintf(text, sizeof(text), "%" PRId64, value);
    return add_text(lines, call, name, text);
}

static bool add_fork(struct curl_slist **lines, const struct http_settings *settings,
                     struct call *call)
{
    const struct stream_create_options *create = call->create;
    const char *why = call_name_refusal(slice_of(create->fork_of));
    char memory[HTTP_BASE_BYTES_MAX + 3 * CLIENT_NAME_BYTES_MAX + 2];
    struct buf path;

    if (why != NULL) {
        call_fail(call, STREAM_ERROR_ARGUMENT, "fork_of: %s", why);
        return false;
    }
    buf_init_fixed(&path, memory, sizeof(memory));
    buf_append(&path, settings->base.path);
    http_append_name(&path, slice_of(create->fork_of));
    memory[path.len] = '\0'; /* there is room for the longest of both */
    return add_text(lines, call, "Stream-Forked-From", memory) &&
           add_text(lines, call, "Stream-Fork-Offset", create->fork_offset) &&
           (create->fork_sub_offset == 0 ||
            add_number(lines, call, "Stream-Fork-Sub-Offset", create->fork_sub_offset));
}

static bool add_create(struct curl_slist **lines, const struct http_settings *settings,
                       struct call *call)
{
    const struct stream_create_options *create = call->create;

    if (create == NULL) {
        return true;
    }
    return (create->ttl_seconds == 0 ||
            add_number(lines, call, "Stream-TTL", create->ttl_seconds)) &&
           add_text(lines, call, "Stream-Expires-At", create->expires_at) &&
           (create->fork_of == NULL || add_fork(lines, settings, call));
}

static bool add_producer(struct curl_slist **lines, struct call *call)
{
    return call->producer_id == NULL ||
           (add_text(lines, call, "Producer-Id", call->producer_id) &&
            add_number(lines, call, "Producer-Epoch", call->producer_epoch) &&
            add_number(lines, call, "Producer-Seq", call->producer_seq));
}

bool http_request_has_body(const struct call *call)
{
    if (call->verb == CALL_REQUEST) {
        return call->body.len > 0 || (call_writes(call) && strcmp(call->method, "DELETE") != 0);
    }
    return call->verb == CALL_CREATE || call->verb == CALL_APPEND;
}

/* libcurl would give a POST the content type of an HTML form. */
static bool add_content_type(struct curl_slist **lines, struct call *call)
{
    if (call->content_type != NULL) {
        return add_text(lines, call, "Content-Type", call->content_type);
    }
    if (!http_add_line(lines, "Content-Type:")) {
        call_fail(call, STREAM_ERROR_MEMORY, "out of memory");
        return false;
    }
    return true;
}

/* The protocol's own fields. */
static bool add_fields(struct curl_slist **lines, const struct http_settings *settings,
                       struct call *call)
{
    bool good = true;

    if (http_request_has_body(call)) {
        good = add_content_type(lines, call) &&
               (!call->close || add_text(lines, call, "Stream-Closed", "true"));
    }
    if (good && call->verb == CALL_CREATE) {
        good = add_create(lines, settings, call);
    }
    if (good && call->verb == CALL_APPEND) {
        good = add_text(lines, call, "Stream-Seq", call->seq) && add_producer(lines, call);
    }
    if (good && call->verb == CALL_SSE) {
        good = add_text(lines, call, "Accept", "text/event-stream");
    }
    return good;
}

/* The program's fields, and the token unless they hold one. */
static bool add_headers(struct curl_slist **lines, const struct http_settings *settings,
                        struct call *call)
{
    const struct stream_client_options *options = &settings->options;
    struct stream_headers added = {.lines = *lines};

    if (options->add_headers != NULL) {
        options->add_headers(options->context, &added);
    }
    *lines = added.lines;
    if (added.bad[0] != '\0') {
        call_fail(
            call, STREAM_ERROR_ARGUMENT,
            "the header field %s cannot be sent: its name is not allowed, or it holds control "
            "characters",
            added.bad);
        return false;
    }
    /* Without "Expect:" a large body would wait a second for a server that knows no 100. */
    if (added.no_memory || !http_add_line(lines, "Expect:") ||
        (settings->authorization != NULL && !added.has_authorization &&
         !http_add_line(lines, settings->authorization))) {
        call_fail(call, STREAM_ERROR_MEMORY, "out of memory");
        return false;
    }
    return true;
}

bool http_request_init(struct http_request *request, const struct http_settings *settings,
                       struct call *call)
{
    bool has_name = call->verb != CALL_LIST && call->verb != CALL_REQUEST;
    const char *why = has_name ? call_name_refusal(call->name) : NULL;

    *request = (struct http_request){.method = call->verb == CALL_REQUEST ? call->method
                                                                          : methods[call->verb]};
    buf_init(&request->url, HTTP_URL_BYTES_MAX);
    if (why != NULL) {
        call_fail(call, STREAM_ERROR_ARGUMENT, "%s", why);
        return false;
    }
    /* All of it at once: a later failure is then one of length. */
    if (buf_reserve(&request->url, HTTP_URL_BYTES_MAX) == NULL) {
        call_fail(call, STREAM_ERROR_MEMORY, "out of memory");
        return false;
    }
    compose_url(&request->url, settings, call);
    bool good = add_query(&request->url, &settings->options, call);

    buf_append_char(&request->url, '\0');
    if (good && request->url.failed) {
        call_fail(call, STREAM_ERROR_ARGUMENT, "the URL would be longer than %u bytes",
                  HTTP_URL_BYTES_MAX);
        good = false;
    }
    good = good && add_fields(&request->lines, settings, call) &&
           add_headers(&request->lines, settings, call);
    if (!good) {
        http_request_finish(request);
    }
    return good;
}

void http_request_finish(struct http_request *request)
{
    buf_finish(&request->url);
    curl_slist_free_all(request->lines);
    *request = (struct http_request){0};
}
