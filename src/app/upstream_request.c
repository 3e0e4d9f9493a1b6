/* A list of what is passed on, rather than of what is not: of a new field nobody knows whether it
 * is between two hops only, or tells a secret. */
#include "app/upstream_request.h"

#include "base/limits.h"
#include "base/version.h"

#define LINE_BYTES_MAX (HTTP_HEAD_BYTES_MAX + 8u)

static bool is_passed_on(struct slice name)
{
    static const char *const names[] = {
        "Accept",
        "Accept-Encoding",
        "Accept-Language",
        "Cache-Control",
        "If-Match",
        "If-Range",
        "If-Modified-Since",
        "If-None-Match",
        "Last-Event-ID",
        "If-Unmodified-Since",
        "Pragma",
        "Range",
    };

    for (size_t i = 0; i < ARRAY_COUNT(names); i++) {
        if (slice_equal_nocase(name, slice_of(names[i]))) {
            return true;
        }
    }
    return name.len > 7 && slice_equal_nocase((struct slice){name.ptr, 7}, SLICE("Stream-"));
}

static bool add_line(struct upstream_request *r, const char *line)
{
    struct curl_slist *longer = curl_slist_append(r->lines, line);

    r->lines = longer != NULL ? longer : r->lines;
    return longer != NULL;
}

/* libcurl reads "name:" as a field that is not to be sent. */
static bool add_field(struct upstream_request *r, const struct http_header *field)
{
    struct buf line;

    buf_init(&line, LINE_BYTES_MAX);
    buf_append(&line, field->name);
    buf_append(&line, field->value.len > 0 ? SLICE(": ") : SLICE(";"));
    buf_append(&line, field->value);
    buf_append_char(&line, '\0');
    bool good = !line.failed && add_line(r, line.ptr);

    buf_finish(&line);
    return good;
}

bool upstream_request_init(struct upstream_request *r, const struct upstream_question *q)
{
    bool good;

    *r = (struct upstream_request){.lines = NULL};
    buf_init(&r->url, HTTP_BASE_BYTES_MAX + 3 * STREAM_NAME_BYTES_MAX + HTTP_TARGET_BYTES_MAX);
    buf_append(&r->url, slice_of(q->base->url));
    http_append_name(&r->url, q->name);
    if (q->query.ptr != NULL) {
        buf_append_char(&r->url, '?');
        buf_append(&r->url, q->query);
    }
    buf_append_char(&r->url, '\0');
    /* libcurl adds an Accept of its own, unless it is told that there is none. */
    good = http_request_header(q->head, SLICE("accept"), NULL).ptr != NULL ||
           add_line(r, "Accept:");
    good = good && add_line(r, "User-Agent: arbe/" ARBE_VERSION);
    if (q->authorization != NULL) {
        good = good && add_line(r, q->authorization);
    }
    for (size_t i = 0; good && i < q->head->header_count; i++) {
        const struct http_header *field = &q->head->headers[i];

        good = !is_passed_on(field->name) || add_field(r, field);
    }
    if (!good || r->url.failed) {
        upstream_request_finish(r);
        return false;
    }
    return true;
}

void upstream_request_finish(struct upstream_request *r)
{
    curl_slist_free_all(r->lines);
    buf_finish(&r->url);
    *r = (struct upstream_request){.lines = NULL};
}
