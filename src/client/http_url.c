/* libcurl reads the base URL; names are escaped here, since what must be escaped in a path is less
 * than what libcurl would. */
#include "client/http_url.h"

#include "client/call.h"

#include <curl/curl.h>
#include <stdlib.h>

static const char hex[] = "0123456789ABCDEF";

static const char no_memory[] = "out of memory";

/* The part `what` of `url`, NULL when it has none, in *ret_part; to be given back by curl_free.
 * False when memory is out. */
static bool part_of(CURLU *url, CURLUPart what, unsigned flags, char **ret_part)
{
    *ret_part = NULL;
    return curl_url_get(url, what, ret_part, flags) != CURLUE_OUT_OF_MEMORY;
}

static const char *refusal_of(CURLU *url)
{
    static const struct {
        CURLUPart part;
        const char *why;
    } unwanted[] = {
        {CURLUPART_USER, "it must not hold a user name"},
        {CURLUPART_PASSWORD, "it must not hold a password"},
        {CURLUPART_QUERY, "it must not have a query ('?')"},
        {CURLUPART_FRAGMENT, "it must not have a fragment ('#')"},
    };
    char *scheme;

    if (!part_of(url, CURLUPART_SCHEME, 0, &scheme)) {
        return no_memory;
    }
    bool known = scheme != NULL && (strcmp(scheme, "http") == 0 || strcmp(scheme, "https") == 0);

    curl_free(scheme);
    if (!known) {
        return "it must begin with http:// or https://";
    }
    for (size_t i = 0; i < ARRAY_COUNT(unwanted); i++) {
        char *part;

        if (!part_of(url, unwanted[i].part, 0, &part)) {
            return no_memory;
        }
        curl_free(part);
        if (part != NULL) {
            return unwanted[i].why;
        }
    }
    return NULL;
}

/* A copy that ends with a slash; NULL when memory is out. */
static char *with_slash(const char *url)
{
    size_t len = strlen(url);
    char *copy = malloc(len + 2);

    if (copy != NULL) {
        memcpy(copy, url, len);
        copy[len] = '/';
        copy[len + (len > 0 && url[len - 1] == '/' ? 0 : 1)] = '\0';
    }
    return copy;
}

static int read_parts(struct http_base *base, CURLU *parsed, struct stream_error *ret_error)
{
    char *whole;
    char *path;
    char *host;
    char *port;

    /* What memory was out for is NULL. */
    (void)part_of(parsed, CURLUPART_URL, 0, &whole);
    (void)part_of(parsed, CURLUPART_PATH, 0, &path);
    (void)part_of(parsed, CURLUPART_HOST, 0, &host);
    (void)part_of(parsed, CURLUPART_PORT, CURLU_DEFAULT_PORT, &port);
    if (whole != NULL && path != NULL && host != NULL && port != NULL) {
        struct buf name;

        buf_init(&name, HTTP_BASE_BYTES_MAX);
        buf_append_format(&name, "%s:%s", host, port);
        buf_append_char(&name, '\0');
        base->host = name.failed ? NULL : name.ptr;
        if (name.failed) {
            buf_finish(&name);
        }
        base->url = with_slash(whole);
        if (base->url != NULL) {
            size_t len = strlen(path) + (path[strlen(path) - 1] == '/' ? 0 : 1);

            base->path = (struct slice){base->url + strlen(base->url) - len, len};
        }
    }
    curl_free(whole);
    curl_free(path);
    curl_free(host);
    curl_free(port);
    if (base->url == NULL || base->host == NULL) {
        http_base_finish(base);
        return call_error_set(ret_error, STREAM_ERROR_MEMORY, "%s", no_memory);
    }
    return STREAM_OK;
}

int http_base_init(struct http_base *base, const char *url, struct stream_error *ret_error)
{
    *base = (struct http_base){0};
    if (strlen(url) > HTTP_BASE_BYTES_MAX) {
        return call_error_set(ret_error, STREAM_ERROR_ARGUMENT,
                              "the base URL has more than %u bytes", HTTP_BASE_BYTES_MAX);
    }
    CURLU *parsed = curl_url();

    if (parsed == NULL) {
        return call_error_set(ret_error, STREAM_ERROR_MEMORY, "%s", no_memory);
    }
    CURLUcode code = curl_url_set(parsed, CURLUPART_URL, url, CURLU_NON_SUPPORT_SCHEME);
    const char *why = code != CURLUE_OK ? curl_url_strerror(code) : refusal_of(parsed);
    int rc = STREAM_OK;

    if (code == CURLUE_OUT_OF_MEMORY || why == no_memory) {
        rc = call_error_set(ret_error, STREAM_ERROR_MEMORY, "%s", no_memory);
    } else if (why != NULL) {
        /* It may hold a password, so it is not repeated here. */
        rc = call_error_set(ret_error, STREAM_ERROR_ARGUMENT, "the base URL is not good: %s", why);
    } else {
        rc = read_parts(base, parsed, ret_error);
    }
    curl_url_cleanup(parsed);
    return rc;
}

void http_base_finish(struct http_base *base)
{
    free(base->url);
    free(base->host);
    *base = (struct http_base){0};
}

static bool is_unreserved(unsigned char c)
{
    if ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9')) {
        return true;
    }
    return c == '-' || c == '.' || c == '_' || c == '~';
}

static void append_escaped(struct buf *out, unsigned char c)
{
    const char text[3] = {'%', hex[c >> 4], hex[c & 15]};

    buf_append(out, (struct slice){text, 3});
}

void http_append_name(struct buf *out, struct slice name)
{
    for (size_t i = 0; i < name.len; i++) {
        unsigned char c = (unsigned char)name.ptr[i];
        struct slice rest = {name.ptr + i, name.len - i};
        bool kept = rest.len >= 3 &&
                    (slice_equal_nocase((struct slice){rest.ptr, 3}, SLICE("%2F")) ||
                     slice_equal((struct slice){rest.ptr, 3}, SLICE("%25")));
        bool plain = is_unreserved(c) || (c != '\0' && strchr("!$&'()*+,;=:@/", c) != NULL);

        if (plain || kept) {
            buf_append_char(out, (char)c);
        } else {
            append_escaped(out, c);
        }
    }
}

void http_append_query(struct buf *out, struct slice text)
{
    for (size_t i = 0; i < text.len; i++) {
        unsigned char c = (unsigned char)text.ptr[i];

        if (is_unreserved(c)) {
            buf_append_char(out, (char)c);
        } else {
            append_escaped(out, c);
        }
    }
}
