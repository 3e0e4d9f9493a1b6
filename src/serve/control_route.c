/* The tree is small and fixed:
 *
 *   jwks.json
 *   streams
 *   subscriptions/:id
 *   subscriptions/:id/streams
 *   subscriptions/:id/streams/:path     the path may hold slashes, escaped or not
 *   subscriptions/:id/callback | claim | ack | release */
#include "serve/control_route.h"

#include "base/limits.h"
#include "base/utf8.h"
#include "http/request.h"
#include "stream/name.h"

#define RESERVED "__ds"

static const struct {
    const char *word; /* the last segment, where the path ends with one */
    const char *allow;
    enum http_method methods[3]; /* HTTP_OTHER: none */
} resources[CONTROL_RESOURCE_COUNT] = {
    [CONTROL_NOTHING] = {NULL, "", {HTTP_OTHER}},
    [CONTROL_COLLECTION] = {"subscriptions", "", {HTTP_OTHER}},
    [CONTROL_JWKS] = {"jwks.json", "GET, HEAD, OPTIONS", {HTTP_GET}},
    [CONTROL_LISTING] = {"streams", "GET, HEAD, OPTIONS", {HTTP_GET}},
    [CONTROL_SUBSCRIPTION] = {NULL,
                              "GET, HEAD, PUT, DELETE, OPTIONS",
                              {HTTP_GET, HTTP_PUT, HTTP_DELETE}},
    [CONTROL_MEMBERS] = {"streams", "POST, OPTIONS", {HTTP_POST}},
    [CONTROL_MEMBER] = {NULL, "DELETE, OPTIONS", {HTTP_DELETE}},
    [CONTROL_CALLBACK] = {"callback", "POST, OPTIONS", {HTTP_POST}},
    [CONTROL_CLAIM] = {"claim", "POST, OPTIONS", {HTTP_POST}},
    [CONTROL_ACK] = {"ack", "POST, OPTIONS", {HTTP_POST}},
    [CONTROL_RELEASE] = {"release", "POST, OPTIONS", {HTTP_POST}},
};

bool control_allows(enum control_resource resource, enum http_method method)
{
    enum http_method wanted = method == HTTP_HEAD ? HTTP_GET : method;

    for (size_t i = 0; i < ARRAY_COUNT(resources[0].methods); i++) {
        if (wanted != HTTP_OTHER && resources[resource].methods[i] == wanted) {
            return true;
        }
    }
    return false;
}

struct slice control_allow(enum control_resource resource)
{
    return slice_of(resources[resource].allow);
}

/* What follows the root of streams. */
static struct slice below_root(struct slice path)
{
    const size_t root_len = sizeof(NAME_ROOT) - 1;

    return (struct slice){path.ptr + root_len, path.len - root_len};
}

bool control_is_path(struct slice path)
{
    char decoded[3 * (sizeof(RESERVED) - 1)]; /* each byte may be escaped */
    struct slice first;

    if (!name_is_stream_path(path)) {
        return false;
    }
    struct slice rest = below_root(path);

    if (!slice_split(&rest, '/', &first) || first.len > sizeof(decoded)) {
        return false;
    }
    long len = http_percent_decode(first, decoded);

    return len > 0 && slice_equal((struct slice){decoded, (size_t)len}, SLICE(RESERVED));
}

/* Decodes `raw` to *memory and moves that on. */
static int decode(struct slice raw, char **memory, struct slice *ret_decoded, struct errmsg *msg)
{
    long len = http_percent_decode(raw, *memory);

    if (len < 0) {
        return err_set(msg, ERR_INVALID, "a '%%' in a path must be followed by two hex digits");
    }
    *ret_decoded = (struct slice){*memory, (size_t)len};
    *memory += len;
    return 0;
}

/* The resource among [first, last] that is called `word`, or CONTROL_NOTHING. */
static enum control_resource resource_of(struct slice word, enum control_resource first,
                                         enum control_resource last)
{
    for (enum control_resource i = first; i <= last; i++) {
        if (resources[i].word != NULL && slice_equal(word, slice_of(resources[i].word))) {
            return i;
        }
    }
    return CONTROL_NOTHING;
}

/* An id becomes a part of URLs again, so it is text, and nothing that a client would fold away. */
static int check_id(struct slice id, struct errmsg *msg)
{
    bool control = false;

    for (size_t i = 0; i < id.len; i++) {
        unsigned char c = (unsigned char)id.ptr[i];

        control = control || c < 0x20 || c == 0x7f;
    }
    if (control || !utf8_valid(id)) {
        return err_set(msg, ERR_INVALID,
                       "a subscription id is UTF-8 text without control characters");
    }
    if (slice_equal(id, SLICE(".")) || slice_equal(id, SLICE(".."))) {
        return err_set(msg, ERR_INVALID, "a subscription id may not be \".\" or \"..\"");
    }
    if (id.len > SUBSCRIPTION_ID_BYTES_MAX) {
        return err_set(msg, ERR_INVALID,
                       "a subscription id has at most %u bytes after percent-decoding",
                       SUBSCRIPTION_ID_BYTES_MAX);
    }
    return 0;
}

/* What follows "subscriptions/". */
static int parse_subscription(struct slice rest, char *memory, struct control_route *route,
                              struct errmsg *msg)
{
    struct slice raw;
    struct slice word;

    if (!slice_split(&rest, '/', &raw) || raw.len == 0) {
        route->resource = rest.ptr == NULL ? CONTROL_COLLECTION : CONTROL_NOTHING;
        return 0;
    }
    int code = decode(raw, &memory, &route->id, msg);

    code = code == 0 ? check_id(route->id, msg) : code;
    if (code != 0) {
        return code;
    }
    if (!slice_split(&rest, '/', &raw)) {
        route->resource = CONTROL_SUBSCRIPTION;
        return 0;
    }
    code = decode(raw, &memory, &word, msg);
    if (code != 0) {
        return code;
    }
    enum control_resource resource = resource_of(word, CONTROL_MEMBERS, CONTROL_RELEASE);

    if (rest.ptr == NULL) {
        route->resource = resource;
    } else if (resource == CONTROL_MEMBERS && rest.len > 0) {
        route->resource = CONTROL_MEMBER;
        route->path = rest;
    }
    return 0;
}

int control_route_parse(struct slice path, char *memory, struct control_route *ret_route,
                        struct errmsg *msg)
{
    struct control_route route = {.resource = CONTROL_NOTHING};
    struct slice rest = below_root(path);
    struct slice raw;
    struct slice word;

    if (!slice_split(&rest, '/', &raw) || !slice_split(&rest, '/', &raw)) {
        *ret_route = route;
        return 0;
    }
    int code = decode(raw, &memory, &word, msg);

    if (code == 0 && rest.ptr == NULL) {
        route.resource = resource_of(word, CONTROL_COLLECTION, CONTROL_LISTING);
    } else if (code == 0 && slice_equal(word, slice_of(resources[CONTROL_COLLECTION].word))) {
        code = parse_subscription(rest, memory, &route, msg);
    }
    if (code == 0) {
        *ret_route = route;
    }
    return code;
}
