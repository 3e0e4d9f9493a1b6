/* Cut by hand into scheme, authority, path and query, as RFC 3986 has them. */
#include "cli/t3_url.h"

#include "base/number.h"
#include "base/slice.h"
#include "net/listener.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

struct parts {
    bool secure;
    struct slice host; /* IPv6 with its brackets */
    bool has_port;     /* there is a ':' for it */
    struct slice port; /* empty: the usual one */
    struct slice path; /* without a "/ws" or "/" at its end */
    struct slice query;
};

static const struct {
    const char *begin;
    bool secure;
} schemes[] = {{"http://", false}, {"https://", true}, {"ws://", false}, {"wss://", true}};

/* What stands behind the scheme; NULL when that is none of ours. */
static const char *behind_scheme(const char *url, bool *ret_secure)
{
    for (size_t i = 0; i < ARRAY_COUNT(schemes); i++) {
        size_t len = strlen(schemes[i].begin);

        if (strncasecmp(url, schemes[i].begin, len) == 0) {
            *ret_secure = schemes[i].secure;
            return url + len;
        }
    }
    return NULL;
}

static void split_authority(struct slice authority, struct parts *parts)
{
    const char *bracket = memchr(authority.ptr, ']', authority.len);
    const char *from = bracket == NULL ? authority.ptr : bracket;
    const char *colon = memchr(from, ':', authority.len - (size_t)(from - authority.ptr));

    parts->host = authority;
    parts->has_port = colon != NULL;
    parts->port = (struct slice){"", 0};
    if (colon != NULL) {
        parts->host.len = (size_t)(colon - authority.ptr);
        parts->port = (struct slice){colon + 1, authority.len - parts->host.len - 1};
    }
}

static bool cut_end(struct slice *path, const char *end)
{
    size_t len = strlen(end);

    if (path->len < len || memcmp(path->ptr + path->len - len, end, len) != 0) {
        return false;
    }
    path->len -= len;
    return true;
}

/* False where there is no scheme of ours. */
static bool split(const char *url, struct parts *parts)
{
    const char *at = behind_scheme(url, &parts->secure);

    if (at == NULL) {
        return false;
    }
    split_authority((struct slice){at, strcspn(at, "/?#")}, parts);
    at += strcspn(at, "/?#");
    parts->path = (struct slice){at, strcspn(at, "?#")};
    at += parts->path.len;
    parts->query = slice_of(at);
    (void)(cut_end(&parts->path, "/ws") || cut_end(&parts->path, "/")); /* either may be missing */
    return true;
}

/* A host's name or IPv4 address, or an IPv6 address in brackets. */
static bool host_is_good(struct slice host)
{
    if (host.len > 2 && host.ptr[0] == '[' && host.ptr[host.len - 1] == ']') {
        return strspn(host.ptr + 1, "0123456789abcdefABCDEF:.") == host.len - 2;
    }
    for (size_t i = 0; i < host.len; i++) {
        if (!isalnum((unsigned char)host.ptr[i]) && strchr("-._", host.ptr[i]) == NULL) {
            return false;
        }
    }
    return host.len > 0;
}

/* As t3_rpc_connect has it. */
static bool port_is_good(const struct parts *parts)
{
    uint64_t number;

    return !parts->has_port ||
           (number_parse_u64(parts->port, UINT16_MAX, false, &number) && number > 0);
}

int t3_url_check(const char *url, struct errmsg *msg)
{
    struct parts parts;

    if (!split(url, &parts)) {
        return err_set(msg, ERR_INVALID,
                       "a T3 server's URL begins with http://, https://, ws:// or wss://");
    }
    if (strlen(url) >= T3_URL_BYTES) {
        return err_set(msg, ERR_INVALID, "a URL has at most %u bytes", T3_URL_BYTES - 1);
    }
    for (const char *c = url; *c != '\0'; c++) {
        if (*c <= ' ' || *c > '~' || strchr("\"<>\\^`{|}#", *c) != NULL) {
            return err_set(msg, ERR_INVALID,
                           "a T3 server's URL is of visible ASCII, without spaces, quotes and #");
        }
    }
    if (!host_is_good(parts.host) || !port_is_good(&parts)) {
        return err_set(msg, ERR_INVALID,
                       "a T3 server's URL names a host, and perhaps a port, after its \"//\", and "
                       "neither user nor password");
    }
    if (parts.query.len > 0) {
        return err_set(msg, ERR_INVALID,
                       "a T3 server's URL has no \"?\" and nothing after it: what stands there may "
                       "be a secret, and a URL is shown");
    }
    return 0;
}

bool t3_url_is_meant(const char *word)
{
    return strstr(word, "://") != NULL;
}

bool t3_url_pairing_base(const char *link, char *out, size_t size, const char **ret_token)
{
    const char *at = strstr(link, "://");

    if (at == NULL) {
        return false;
    }
    at += 3 + strcspn(at + 3, "/?#"); /* a host may be called "pair" */
    struct slice path = {at, strcspn(at, "?#")};
    const char *end = path.ptr + path.len;

    (void)cut_end(&path, "/");
    size_t len = (size_t)(path.ptr - link);
    const char *token = strstr(end, "token=");

    if (!cut_end(&path, "/pair") || token == NULL || len + path.len >= size) {
        return false;
    }
    *ret_token = token + strlen("token=");
    (void)snprintf(out, size, "%.*s", (int)(len + path.len), link);
    return true;
}

static bool same_port(const struct parts *a, const struct parts *b)
{
    struct slice usual = a->secure ? SLICE("443") : SLICE("80");

    return slice_equal(a->port.len == 0 ? usual : a->port, b->port.len == 0 ? usual : b->port);
}

bool t3_url_same(const char *a, const char *b)
{
    struct parts x;
    struct parts y;

    return split(a, &x) && split(b, &y) && x.secure == y.secure && x.host.len == y.host.len &&
           strncasecmp(x.host.ptr, y.host.ptr, x.host.len) == 0 && same_port(&x, &y) &&
           slice_equal(x.path, y.path) && slice_equal(x.query, y.query);
}

void t3_url_http(const char *url, const char *path, char *out, size_t size)
{
    struct parts parts;

    if (!split(url, &parts)) {
        parts = (struct parts){.secure = false};
    }
    (void)snprintf(out, size, "%s://%.*s%s%.*s%.*s%s", parts.secure ? "https" : "http",
                   (int)parts.host.len, parts.host.ptr, parts.port.len == 0 ? "" : ":",
                   (int)parts.port.len, parts.port.ptr, (int)parts.path.len, parts.path.ptr, path);
}

void t3_url_authority(const char *url, char *out, size_t size)
{
    struct parts parts;

    if (!split(url, &parts)) {
        parts = (struct parts){.secure = false};
    }
    (void)snprintf(out, size, "%.*s%s%.*s", (int)parts.host.len, parts.host.ptr,
                   parts.port.len == 0 ? "" : ":", (int)parts.port.len, parts.port.ptr);
}

bool t3_url_is_exposed(const char *url)
{
    struct parts parts;
    char host[T3_URL_BYTES + 2]; /* with some port, as an address is looked at */

    if (!split(url, &parts) || parts.secure) {
        return false;
    }
    (void)snprintf(host, sizeof(host), "%.*s:1", (int)parts.host.len, parts.host.ptr);
    return strcasecmp(host, "localhost:1") != 0 && !listener_is_loopback(host);
}
