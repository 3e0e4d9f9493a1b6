/* scheme "://" host [":" port] [path] ["?" query], in ASCII.
 *
 * Browsers and fetch read 0x7f.1, 2130706433, 0177.0.0.1 and 127.1 as 127.0.0.1 (WHATWG URL, host
 * parser: "ends in a number"); others take them for names or read the octal differently. Such a
 * host must be four plain decimal numbers here, or it is refused. */
#include "serve/webhook_url.h"

#include "base/limits.h"
#include "base/number.h"
#include "serve/address.h"

#include <arpa/inet.h>
#include <netinet/in.h>

#define HOST_BYTES_MAX  253u /* RFC 1035, without the dot at the end */
#define LABEL_BYTES_MAX 63u

static bool is_alnum(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

static int refuse(struct errmsg *msg, const char *sentence)
{
    return err_set(msg, ERR_INVALID, "the webhook URL %s", sentence);
}

/* Characters that no URL holds as they are (RFC 3986), and the fragment, which is never sent. */
static int check_characters(struct slice url, struct errmsg *msg)
{
    for (size_t i = 0; i < url.len; i++) {
        char c = url.ptr[i];

        if ((unsigned char)c >= 0x80) {
            return refuse(msg, "must be ASCII: write a host as xn--..., the rest with percents");
        }
        if (c <= ' ' || c == 0x7f || strchr("\"<>\\^`{|}", c) != NULL) {
            return refuse(msg, "has a space, control character or one of \"<>\\^`{|} in it");
        }
        if (c == '#') {
            return refuse(msg, "must have no fragment (#...): it would never be sent");
        }
    }
    return 0;
}

/* Takes the scheme off. */
static int take_scheme(struct slice *rest, bool *ret_https, struct errmsg *msg)
{
    static const struct slice schemes[] = {{"http://", 7}, {"https://", 8}};

    for (size_t i = 0; i < ARRAY_COUNT(schemes); i++) {
        size_t len = schemes[i].len;

        if (rest->len >= len && slice_equal_nocase((struct slice){rest->ptr, len}, schemes[i])) {
            *ret_https = i == 1;
            *rest = (struct slice){rest->ptr + len, rest->len - len};
            return 0;
        }
    }
    return refuse(msg, "must begin with https://");
}

/* Takes host and port off; what is left begins with '/' or '?' or is empty. */
static int take_authority(struct slice *rest, struct slice *ret_host, struct slice *ret_port,
                          struct errmsg *msg)
{
    size_t len = 0;
    size_t host_len = 0;

    while (len < rest->len && rest->ptr[len] != '/' && rest->ptr[len] != '?') {
        len++;
    }
    struct slice all = {rest->ptr, len};

    if (len > 0 && memchr(all.ptr, '@', len) != NULL) {
        return refuse(msg, "must hold no user name or password");
    }
    if (len > 0 && all.ptr[0] == '[') {
        const char *end = memchr(all.ptr, ']', len);

        if (end == NULL) {
            return refuse(msg, "has a host that begins with [ and no ]");
        }
        host_len = (size_t)(end - all.ptr) + 1;
    } else {
        while (host_len < len && all.ptr[host_len] != ':') {
            host_len++;
        }
    }
    if (host_len == 0) {
        return refuse(msg, "has no host");
    }
    if (host_len < len && all.ptr[host_len] != ':') {
        return refuse(msg, "has something other than a port behind its host");
    }
    *ret_host = (struct slice){all.ptr, host_len};
    *ret_port = host_len < len ? (struct slice){all.ptr + host_len + 1, len - host_len - 1}
                               : (struct slice){NULL, 0};
    *rest = (struct slice){rest->ptr + len, rest->len - len};
    return 0;
}

static int parse_port(struct slice text, bool https, uint16_t *ret_port, struct errmsg *msg)
{
    uint64_t port = https ? 443 : 80;

    if (text.ptr != NULL && (!number_parse_u64(text, 65535, false, &port) || port == 0)) {
        return refuse(msg, "has a port that is none: it takes 1 to 65535");
    }
    *ret_port = (uint16_t)port;
    return 0;
}

/* Whether the last label is a number in the WHATWG sense: digits, or 0x and digits or nothing. */
static bool ends_in_number(struct slice host)
{
    size_t at = host.len;
    bool digits = true;
    bool hex = true;

    while (at > 0 && host.ptr[at - 1] != '.') {
        at--;
    }
    struct slice last = {host.ptr + at, host.len - at};
    bool prefixed = last.len >= 2 && last.ptr[0] == '0' && (last.ptr[1] | 0x20) == 'x';

    for (size_t i = 0; i < last.len; i++) {
        char c = last.ptr[i];
        char low = (char)(c | 0x20);
        bool digit = c >= '0' && c <= '9';

        digits = digits && digit;
        hex = hex && (i < 2 || digit || (low >= 'a' && low <= 'f'));
    }
    return last.len > 0 && (digits || (prefixed && hex));
}

static int check_name(struct slice host, struct errmsg *msg)
{
    size_t label = 0;

    if (host.len > HOST_BYTES_MAX) {
        return refuse(msg, "has a host of more than 253 characters");
    }
    if (host.ptr[host.len - 1] == '.') {
        return refuse(msg, "has a host with a dot at its end: leave it out");
    }
    for (size_t i = 0; i < host.len; i++) {
        char c = host.ptr[i];

        if (c == '.') {
            if (label == 0) {
                return refuse(msg, "has a host with an empty part between dots");
            }
            label = 0;
            continue;
        }
        if (!is_alnum(c) && c != '-' && c != '_') {
            return refuse(msg, "has a host with other characters than letters, digits, - and .");
        }
        if (++label > LABEL_BYTES_MAX) {
            return refuse(msg, "has a host with a part of more than 63 characters");
        }
    }
    return 0;
}

static bool is_local_name(struct slice host)
{
    static const struct slice suffix = {".localhost", 10};

    if (slice_equal_nocase(host, SLICE("localhost"))) {
        return true;
    }
    return host.len > suffix.len &&
           slice_equal_nocase((struct slice){host.ptr + host.len - suffix.len, suffix.len}, suffix);
}

/* An address as text; false when it is none in its plain form. */
static bool parse_literal(struct slice text, int family, struct sockaddr_storage *ret_address)
{
    char copy[INET6_ADDRSTRLEN];
    struct sockaddr_in ip4 = {.sin_family = AF_INET};
    struct sockaddr_in6 ip6 = {.sin6_family = AF_INET6};
    void *binary = family == AF_INET ? (void *)&ip4.sin_addr : (void *)&ip6.sin6_addr;

    if (text.len >= sizeof(copy)) {
        return false;
    }
    memcpy(copy, text.ptr, text.len);
    copy[text.len] = '\0';
    if (inet_pton(family, copy, binary) != 1) {
        return false;
    }
    if (family == AF_INET) {
        memcpy(ret_address, &ip4, sizeof(ip4));
    } else {
        memcpy(ret_address, &ip6, sizeof(ip6));
    }
    return true;
}

/* The host as an address: fills in what it says, and refuses those that are not public. */
static int check_literal(struct slice text, int family, bool allow_loopback,
                         struct webhook_url *url, bool *ret_loopback, struct errmsg *msg)
{
    struct sockaddr_storage address = {0};

    if (!parse_literal(text, family, &address)) {
        return refuse(msg, family == AF_INET
                               ? "has a host that ends in a number and is no address such as "
                                 "192.0.2.1, with four decimal numbers"
                               : "has a host in brackets that is no IPv6 address");
    }
    const struct sockaddr *generic = (const struct sockaddr *)&address;
    const char *what = address_refusal(generic, allow_loopback);

    if (what != NULL) {
        return err_set(msg, ERR_INVALID, "the webhook URL leads to %.*s, which is %s",
                       (int)text.len, text.ptr, what);
    }
    *ret_loopback = address_refusal(generic, false) != NULL;
    url->host = text;
    url->is_literal = true;
    return 0;
}

static int check_host(struct slice host, bool allow_loopback, struct webhook_url *url,
                      bool *ret_loopback, struct errmsg *msg)
{
    if (host.ptr[0] == '[') {
        return check_literal((struct slice){host.ptr + 1, host.len - 2}, AF_INET6, allow_loopback,
                             url, ret_loopback, msg);
    }
    int rc = check_name(host, msg);

    if (rc != 0) {
        return rc;
    }
    if (ends_in_number(host)) {
        return check_literal(host, AF_INET, allow_loopback, url, ret_loopback, msg);
    }
    bool local = is_local_name(host);

    if (local && !allow_loopback) {
        return err_set(msg, ERR_INVALID, "the webhook URL leads to %.*s, which is this machine",
                       (int)host.len, host.ptr);
    }
    *ret_loopback = local && host.len == 9;
    url->host = host;
    url->is_literal = false;
    return 0;
}

int webhook_url_parse(struct slice url, bool allow_loopback, struct webhook_url *ret_url,
                      struct errmsg *msg)
{
    struct webhook_url parts = {.https = false};
    struct slice rest = url;
    struct slice host = {NULL, 0};
    struct slice port = {NULL, 0};
    bool loopback = false;

    if (url.len > SUBSCRIPTION_URL_BYTES_MAX) {
        return refuse(msg, "is longer than 2048 bytes");
    }
    int rc = check_characters(url, msg);

    rc = rc != 0 ? rc : take_scheme(&rest, &parts.https, msg);
    rc = rc != 0 ? rc : take_authority(&rest, &host, &port, msg);
    rc = rc != 0 ? rc : parse_port(port, parts.https, &parts.port, msg);
    rc = rc != 0 ? rc : check_host(host, allow_loopback, &parts, &loopback, msg);
    if (rc != 0) {
        return rc;
    }
    if (!parts.https && !loopback) {
        return refuse(msg, allow_loopback
                               ? "must begin with https:// unless it leads to this machine"
                               : "must begin with https://");
    }
    *ret_url = parts;
    return 0;
}
