/* Strict where a lenient reader would connect to somewhere else than was meant: what a URL may not
 * hold is refused, not dropped. */
#include "t3/rpc_url.h"

#include "base/buf.h"
#include "base/limits.h"
#include "base/number.h"
#include "t3/rpc_error.h"

#include <arpa/inet.h>
#include <stdlib.h>

static const struct {
    const char *name;
    bool tls;
} schemes[] = {
    {"http://", false},
    {"https://", true},
    {"ws://", false},
    {"wss://", true},
};

/* The parts, borrowed from the text. */
struct parts {
    bool tls;
    struct slice host; /* without brackets */
    bool bracketed;
    struct slice port; /* empty: none */
    struct slice path; /* with its slash, or empty */
    struct slice query;
    bool has_query;
};

static int refuse(struct t3_rpc_error *error, const char *why)
{
    return rpc_error_set(error, T3_RPC_ERROR_ARGUMENT, "the URL of the server is not good: %s",
                         why);
}

static bool take_scheme(struct slice *text, struct parts *parts)
{
    for (size_t i = 0; i < ARRAY_COUNT(schemes); i++) {
        size_t len = strlen(schemes[i].name);

        if (text->len >= len && slice_equal_nocase((struct slice){text->ptr, len},
                                                   (struct slice){schemes[i].name, len})) {
            parts->tls = schemes[i].tls;
            *text = (struct slice){text->ptr + len, text->len - len};
            return true;
        }
    }
    return false;
}

static size_t find_any(struct slice text, const char *bytes)
{
    size_t i = 0;

    while (i < text.len && strchr(bytes, text.ptr[i]) == NULL) {
        i++;
    }
    return i;
}

static struct slice behind(struct slice text, size_t offset)
{
    return (struct slice){text.ptr + offset, text.len - offset};
}

/* Host and port; the sentence that says what is wrong, or NULL. */
static const char *take_authority(struct slice text, struct parts *parts)
{
    if (memchr(text.ptr, '@', text.len) != NULL) {
        return "it must not hold a user name or a password";
    }
    struct slice rest;

    if (text.len > 0 && text.ptr[0] == '[') {
        size_t end = find_any(text, "]");

        if (end == text.len) {
            return "'[' is not closed";
        }
        parts->bracketed = true;
        parts->host = (struct slice){text.ptr + 1, end - 1};
        rest = behind(text, end + 1);
    } else {
        size_t end = find_any(text, ":");

        parts->host = (struct slice){text.ptr, end};
        rest = behind(text, end);
    }
    if (rest.len > 0 && rest.ptr[0] != ':') {
        return "what follows the host must be ':' and a port";
    }
    parts->port = rest.len > 0 ? behind(rest, 1) : rest;
    return rest.len == 1 ? "the port is missing behind ':'" : NULL;
}

static bool is_name_byte(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
           c == '.' || c == '_';
}

static const char *check_host(const struct parts *parts)
{
    if (parts->host.len == 0) {
        return "the host is missing";
    }
    if (parts->host.len > T3_URL_HOST_BYTES_MAX) {
        return "the host is too long";
    }
    for (size_t i = 0; i < parts->host.len && !parts->bracketed; i++) {
        if (!is_name_byte(parts->host.ptr[i])) {
            return "the host must be a name, an IPv4 address, or an IPv6 address in brackets";
        }
    }
    return NULL;
}

/* What a request line can carry. */
static bool is_target(struct slice text)
{
    for (size_t i = 0; i < text.len; i++) {
        if (text.ptr[i] <= ' ' || text.ptr[i] > '~') {
            return false;
        }
    }
    return true;
}

static const char *take_parts(struct slice text, struct parts *parts)
{
    if (text.len > T3_URL_BYTES_MAX) {
        return "it is too long";
    }
    if (!take_scheme(&text, parts)) {
        return "it must begin with http://, https://, ws:// or wss://";
    }
    if (find_any(text, "#") < text.len) {
        return "it must not have a fragment ('#')";
    }
    size_t end = find_any(text, "/?");
    const char *why = take_authority((struct slice){text.ptr, end}, parts);
    struct slice rest = behind(text, end);

    end = find_any(rest, "?");
    parts->path = (struct slice){rest.ptr, end};
    parts->has_query = end < rest.len;
    parts->query = parts->has_query ? behind(rest, end + 1) : SLICE("");
    why = why != NULL ? why : check_host(parts);
    if (why == NULL && (!is_target(parts->path) || !is_target(parts->query))) {
        why = "its path and query must be escaped as URLs are";
    }
    return why;
}

/* Whether the query has the parameter that says our protocol: then it is the user's. */
static bool tells_protocol(struct slice query)
{
    static const struct slice name = {"orchestrationProtocol=", 22};
    struct slice part;

    while (slice_split(&query, '&', &part)) {
        if (slice_starts_with(part, name)) {
            return true;
        }
    }
    return false;
}

/* The buffer's bytes with a NUL behind them, or NULL when memory was out. */
static char *take_text(struct buf *b)
{
    buf_append_char(b, '\0');
    if (b->failed) {
        buf_finish(b);
        return NULL;
    }
    return b->ptr;
}

static char *make_target(const struct parts *parts)
{
    bool no_path = parts->path.len == 0 || slice_equal(parts->path, SLICE("/"));
    struct buf b;

    buf_init(&b, (size_t)2 * T3_URL_BYTES_MAX);
    buf_append(&b, no_path ? SLICE("/ws") : parts->path);
    buf_append_char(&b, '?');
    buf_append(&b, parts->query);
    if (!tells_protocol(parts->query)) {
        buf_append(&b, parts->query.len > 0 ? SLICE("&orchestrationProtocol=2")
                                            : SLICE("orchestrationProtocol=2"));
    }
    return take_text(&b);
}

static char *make_place(const struct parts *parts, uint16_t port)
{
    struct buf b;

    buf_init(&b, (size_t)2 * T3_URL_HOST_BYTES_MAX);
    buf_append_format(&b, parts->bracketed ? "[%.*s]:%u" : "%.*s:%u", (int)parts->host.len,
                      parts->host.ptr, (unsigned)port);
    return take_text(&b);
}

static char *make_host(const struct parts *parts)
{
    struct buf b;

    buf_init(&b, (size_t)2 * T3_URL_HOST_BYTES_MAX);
    buf_append(&b, parts->host);
    return take_text(&b);
}

int rpc_url_init(struct rpc_url *url, const char *text, struct t3_rpc_error *ret_error)
{
    struct parts parts = {0};
    const char *why = take_parts(slice_of(text), &parts);
    uint64_t port = parts.tls ? 443 : 80;
    unsigned char address[sizeof(struct in6_addr)];

    if (why == NULL && parts.port.len > 0 &&
        (!number_parse_u64(parts.port, UINT16_MAX, false, &port) || port == 0)) {
        why = "the port must be a number from 1 to 65535";
    }
    if (why != NULL) {
        return refuse(ret_error, why);
    }
    *url = (struct rpc_url){.tls = parts.tls,
                            .port = (uint16_t)port,
                            .host = make_host(&parts),
                            .place = make_place(&parts, (uint16_t)port),
                            .target = make_target(&parts)};
    if (url->host == NULL || url->place == NULL || url->target == NULL) {
        rpc_url_finish(url);
        return rpc_error_set(ret_error, T3_RPC_ERROR_MEMORY, "out of memory");
    }
    url->literal = inet_pton(parts.bracketed ? AF_INET6 : AF_INET, url->host, address) == 1;
    if (parts.bracketed && !url->literal) {
        rpc_url_finish(url);
        return refuse(ret_error, "what stands in brackets is no IPv6 address");
    }
    return T3_RPC_OK;
}

void rpc_url_finish(struct rpc_url *url)
{
    free(url->host);
    free(url->place);
    free(url->target);
    *url = (struct rpc_url){0};
}
