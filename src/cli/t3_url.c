/* Cut by t3/rpc_url.h, as for the connection: what is taken here connects there. */
#include "cli/t3_url.h"

#include "http/request.h"
#include "t3/rpc_url.h"

#include <stdio.h>
#include <string.h>

static bool cut_end(struct slice *path, struct slice end)
{
    if (path->len < end.len || memcmp(path->ptr + path->len - end.len, end.ptr, end.len) != 0) {
        return false;
    }
    path->len -= end.len;
    return true;
}

/* The parts of a URL, its path without "/ws" or "/" at its end. False, and none, of a bad one. */
static bool cut(const char *url, struct rpc_url_parts *parts)
{
    *parts = (struct rpc_url_parts){.tls = false};
    if (rpc_url_cut(slice_of(url), parts) != NULL) {
        return false;
    }
    (void)(cut_end(&parts->path, SLICE("/ws")) || cut_end(&parts->path, SLICE("/"))); /* or none */
    return true;
}

const char *t3_url_check(const char *url)
{
    struct rpc_url_parts parts;
    const char *why = rpc_url_cut(slice_of(url), &parts);

    if (why == NULL && strlen(url) >= T3_URL_BYTES) {
        why = "it is too long";
    }
    if (why == NULL && parts.has_query) {
        why = "it must have no \"?\" and nothing after it: what stands there may be a secret, and "
              "a URL is shown";
    }
    return why;
}

bool t3_url_is_meant(const char *word)
{
    return strstr(word, "://") != NULL;
}

/* T3 Code's hosted page takes a credential to the server that its link names as "host", with or
 * without a scheme. `query` has its '?'. Empty: none is named; false: one that cannot be. */
static bool hosted_base(struct slice query, char out[static T3_URL_BYTES])
{
    struct slice name;
    struct slice value;
    char host[T3_URL_BYTES];

    out[0] = '\0';
    query = query.len == 0 ? query : (struct slice){query.ptr + 1, query.len - 1};
    while (http_query_next(&query, &name, &value)) {
        if (!slice_equal(name, SLICE("host")) || value.len == 0) {
            continue;
        }
        long len = value.len < sizeof(host) ? http_percent_decode(value, host) : ERR_INVALID;

        if (len <= 0 || memchr(host, '\0', (size_t)len) != NULL) {
            return false;
        }
        host[len] = '\0';
        len -= host[len - 1] == '/' ? 1 : 0;
        int written = snprintf(out, T3_URL_BYTES, "%s%.*s", t3_url_is_meant(host) ? "" : "https://",
                               (int)len, host);

        return written > 0 && (size_t)written < T3_URL_BYTES && t3_url_check(out) == NULL;
    }
    return true;
}

bool t3_url_pairing_base(const char *link, char *out, size_t size, const char **ret_token)
{
    struct rpc_url_parts parts;
    size_t len = strcspn(link, "?#");
    struct slice query = {link + len, strcspn(link + len, "#")};
    const char *token = strstr(link + len, "token=");
    char hosted[T3_URL_BYTES];

    if (token == NULL || rpc_url_cut((struct slice){link, len}, &parts) != NULL) {
        return false;
    }
    (void)cut_end(&parts.path, SLICE("/")); /* or none */
    if (!cut_end(&parts.path, SLICE("/pair")) || !hosted_base(query, hosted)) {
        return false;
    }
    struct slice base = {link, (size_t)(parts.path.ptr + parts.path.len - link)};

    base = hosted[0] != '\0' ? slice_of(hosted) : base;
    if (base.len >= size) {
        return false;
    }
    *ret_token = token + strlen("token=");
    (void)snprintf(out, size, "%.*s", (int)base.len, base.ptr);
    return true;
}

static bool same_host(const struct rpc_url_parts *a, const struct rpc_url_parts *b)
{
    return a->literal && b->literal ? memcmp(&a->address, &b->address, sizeof(a->address)) == 0
                                    : slice_equal_nocase(a->host, b->host);
}

/* Whether a server that is started for this machine alone is usually reached by that. */
static bool is_home(const struct rpc_url_parts *parts)
{
    static const struct in6_addr v6 = IN6ADDR_LOOPBACK_INIT;
    static const struct in6_addr v4 = {{{[10] = 0xff, [11] = 0xff, [12] = 127, [15] = 1}}};

    return slice_equal_nocase(parts->host, SLICE("localhost")) ||
           memcmp(&parts->address, &v4, sizeof(v4)) == 0 ||
           memcmp(&parts->address, &v6, sizeof(v6)) == 0;
}

static bool same(const char *a, const char *b, bool homes_are_one)
{
    struct rpc_url_parts x;
    struct rpc_url_parts y;

    return cut(a, &x) && cut(b, &y) && x.tls == y.tls && x.port == y.port &&
           slice_equal(x.path, y.path) && slice_equal(x.query, y.query) &&
           (same_host(&x, &y) || (homes_are_one && is_home(&x) && is_home(&y)));
}

bool t3_url_same(const char *a, const char *b)
{
    return same(a, b, false);
}

bool t3_url_same_server(const char *a, const char *b)
{
    return same(a, b, true);
}

void t3_url_http(const char *url, const char *path, char *out, size_t size)
{
    struct rpc_url_parts parts;

    (void)cut(url, &parts); /* a good one */
    (void)snprintf(out, size, "%s://%.*s%.*s%s", parts.tls ? "https" : "http",
                   (int)parts.authority.len, parts.authority.ptr, (int)parts.path.len,
                   parts.path.ptr, path);
}

void t3_url_authority(const char *url, char *out, size_t size)
{
    struct rpc_url_parts parts;

    (void)cut(url, &parts);
    (void)snprintf(out, size, "%.*s", (int)parts.authority.len, parts.authority.ptr);
}

bool t3_url_is_exposed(const char *url)
{
    struct rpc_url_parts parts;

    (void)cut(url, &parts);
    return !parts.tls && !slice_equal_nocase(parts.host, SLICE("localhost")) &&
           !IN6_IS_ADDR_LOOPBACK(&parts.address) &&
           !(IN6_IS_ADDR_V4MAPPED(&parts.address) && parts.address.s6_addr[12] == 127);
}
