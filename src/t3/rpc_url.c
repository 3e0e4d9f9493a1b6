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

static bool take_scheme(struct slice *text, bool *ret_tls)
{
    for (size_t i = 0; i < ARRAY_COUNT(schemes); i++) {
        size_t len = strlen(schemes[i].name);

        if (text->len >= len && slice_equal_nocase((struct slice){text->ptr, len},
                                                   (struct slice){schemes[i].name, len})) {
            *ret_tls = schemes[i].tls;
            *text = (struct slice){text->ptr + len, text->len - len};
            return true;
        }
    }
    return false;
}

/* What stands before the first of these bytes, which is cut off. */
static struct slice take_until(struct slice *text, const char *bytes)
{
    size_t len = 0;

    while (len < text->len && strchr(bytes, text->ptr[len]) == NULL) {
        len++;
    }
    struct slice before = {text->ptr, len};

    *text = (struct slice){text->ptr + len, text->len - len};
    return before;
}

static bool is_name(struct slice host)
{
    for (size_t i = 0; i < host.len; i++) {
        char c = host.ptr[i];

        if (!((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
              c == '-' || c == '.' || c == '_')) {
            return false;
        }
    }
    return true;
}

/* A host that is not empty. */
static const char *check_host(struct rpc_url_parts *parts)
{
    char text[T3_URL_HOST_BYTES_MAX + 1] = "";
    struct in6_addr *address = &parts->address;

    if (parts->host.len > T3_URL_HOST_BYTES_MAX) {
        return "the host is too long";
    }
    memcpy(text, parts->host.ptr, parts->host.len);
    if (parts->bracketed) {
        parts->literal = inet_pton(AF_INET6, text, address) == 1;
        return parts->literal ? NULL : "what stands in brackets is no IPv6 address";
    }
    if (!is_name(parts->host)) {
        return "the host must be a name, an IPv4 address, or an IPv6 address in brackets";
    }
    parts->literal = inet_pton(AF_INET, text, &address->s6_addr[12]) == 1;
    if (parts->literal) {
        address->s6_addr[10] = address->s6_addr[11] = 0xff;
    }
    return NULL;
}

static const char *take_port(struct slice text, struct rpc_url_parts *parts)
{
    uint64_t port = parts->tls ? 443 : 80;

    if (text.len > 0 && text.ptr[0] != ':') {
        return "what follows the host must be ':' and a port";
    }
    if (text.len == 1) {
        return "the port is missing behind ':'";
    }
    if (text.len > 0 &&
        (!number_parse_u64((struct slice){text.ptr + 1, text.len - 1}, UINT16_MAX, false, &port) ||
         port == 0)) {
        return "the port must be a number from 1 to 65535";
    }
    parts->port = (uint16_t)port;
    return NULL;
}

static const char *take_authority(struct slice text, struct rpc_url_parts *parts)
{
    parts->authority = text;
    if (memchr(text.ptr, '@', text.len) != NULL) {
        return "it must not hold a user name or a password";
    }
    parts->bracketed = text.len > 0 && text.ptr[0] == '[';
    parts->host = take_until(&text, parts->bracketed ? "]" : ":");
    if (parts->bracketed) {
        if (text.len == 0) {
            return "'[' is not closed";
        }
        parts->host = (struct slice){parts->host.ptr + 1, parts->host.len - 1};
        text = (struct slice){text.ptr + 1, text.len - 1};
    }
    const char *why = parts->host.len == 0 ? "the host is missing" : take_port(text, parts);

    return why != NULL ? why : check_host(parts);
}

/* Whether a request line can carry it, and people can be shown it. */
static bool is_escaped(struct slice text)
{
    for (size_t i = 0; i < text.len; i++) {
        if (text.ptr[i] <= ' ' || text.ptr[i] > '~' || strchr("\"<>\\^`{|}", text.ptr[i]) != NULL) {
            return false;
        }
    }
    return true;
}

const char *rpc_url_cut(struct slice text, struct rpc_url_parts *ret_parts)
{
    struct rpc_url_parts parts = {.tls = false};

    if (!take_scheme(&text, &parts.tls)) {
        return "it must begin with http://, https://, ws:// or wss://";
    }
    const char *why = take_authority(take_until(&text, "/?#"), &parts);

    parts.path = take_until(&text, "?#");
    parts.query = take_until(&text, "#");
    parts.has_query = parts.query.len > 0;
    if (parts.has_query) {
        parts.query = (struct slice){parts.query.ptr + 1, parts.query.len - 1};
    }
    if (why == NULL && text.len > 0) {
        why = "it must not have a fragment ('#')";
    }
    if (why == NULL && (!is_escaped(parts.path) || !is_escaped(parts.query))) {
        why = "its path and query must be escaped as URLs are";
    }
    if (why == NULL) {
        *ret_parts = parts;
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

static char *make_target(const struct rpc_url_parts *parts)
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

static char *make_place(const struct rpc_url_parts *parts)
{
    struct buf b;

    buf_init(&b, (size_t)2 * T3_URL_HOST_BYTES_MAX);
    buf_append_format(&b, parts->bracketed ? "[%.*s]:%u" : "%.*s:%u", (int)parts->host.len,
                      parts->host.ptr, (unsigned)parts->port);
    return take_text(&b);
}

static char *make_host(const struct rpc_url_parts *parts)
{
    struct buf b;

    buf_init(&b, (size_t)2 * T3_URL_HOST_BYTES_MAX);
    buf_append(&b, parts->host);
    return take_text(&b);
}

int rpc_url_init(struct rpc_url *url, const char *text, struct t3_rpc_error *ret_error)
{
    struct rpc_url_parts parts;
    const char *why = strlen(text) > T3_URL_BYTES_MAX ? "it is too long"
                                                      : rpc_url_cut(slice_of(text), &parts);

    if (why != NULL) {
        return rpc_error_set(ret_error, T3_RPC_ERROR_ARGUMENT,
                             "the URL of the server is not good: %s", why);
    }
    *url = (struct rpc_url){.tls = parts.tls,
                            .port = parts.port,
                            .literal = parts.literal,
                            .host = make_host(&parts),
                            .place = make_place(&parts),
                            .target = make_target(&parts)};
    if (url->host == NULL || url->place == NULL || url->target == NULL) {
        rpc_url_finish(url);
        return rpc_error_set(ret_error, T3_RPC_ERROR_MEMORY, "out of memory");
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
