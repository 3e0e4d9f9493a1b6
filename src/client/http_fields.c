/* What a callback hands over is checked as if it were hostile: a token with a line break in it must
 * not become a second header field. */
#include "client/http_fields.h"

#include "client/call.h"
#include "client/http_url.h"

#include <stdio.h>

#define LINE_BYTES_MAX 16384u

bool http_add_line(struct curl_slist **list, const char *line)
{
    struct curl_slist *longer = curl_slist_append(*list, line);

    *list = longer != NULL ? longer : *list;
    return longer != NULL;
}

/* A token (RFC 9110 section 5.6.2) that does not decide where the request ends. */
static bool name_good(const char *name)
{
    static const char *const ours[] = {
        "Content-Length", "Transfer-Encoding", "Connection", "Expect", "Upgrade", "TE", "Trailer"};

    for (const char *p = name; *p != '\0'; p++) {
        bool plain = (*p >= 'a' && *p <= 'z') || (*p >= 'A' && *p <= 'Z') ||
                     (*p >= '0' && *p <= '9') || strchr("!#$%&'*+-.^_`|~", *p) != NULL;

        if (!plain) {
            return false;
        }
    }
    for (size_t i = 0; i < ARRAY_COUNT(ours); i++) {
        if (slice_equal_nocase(slice_of(name), slice_of(ours[i]))) {
            return false;
        }
    }
    return name[0] != '\0';
}

/* Keeps a name for the sentence, as far as it can be shown. */
static void refuse(struct stream_headers *h, const char *name)
{
    if (h->bad[0] == '\0') {
        (void)snprintf(h->bad, sizeof(h->bad), "\"%.50s\"", name);
    }
}

static void add_parameter(struct buf *query, const char *name, const char *value)
{
    buf_append_char(query, '&');
    http_append_query(query, slice_of(name));
    buf_append_char(query, '=');
    http_append_query(query, slice_of(value));
}

void stream_headers_add(struct stream_headers *h, const char *name, const char *value)
{
    char memory[LINE_BYTES_MAX];
    struct buf line;

    if (h->query != NULL) {
        if (name[0] == '\0' || !call_value_good(name) || !call_value_good(value)) {
            refuse(h, name);
        } else {
            add_parameter(h->query, name, value);
        }
        return;
    }
    buf_init_fixed(&line, memory, sizeof(memory));
    buf_append(&line, slice_of(name));
    /* libcurl takes "Name;" for a field without a value. */
    buf_append(&line, value[0] != '\0' ? SLICE(": ") : SLICE(";"));
    buf_append(&line, slice_of(value));
    if (!name_good(name) || !call_value_good(value) || line.failed) {
        refuse(h, name);
        return;
    }
    memory[line.len] = '\0';
    h->no_memory = h->no_memory || !http_add_line(&h->lines, memory);
    h->has_authorization = h->has_authorization ||
                           slice_equal_nocase(slice_of(name), SLICE("Authorization"));
}
