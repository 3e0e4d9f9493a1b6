/* Paths are compared segment by segment, after percent-decoding, so that no spelling of a path
 * slips by what another spelling is guarded by. */
#include "app/route.h"

#include "base/attr.h"
#include "http/request.h"

#include <stdio.h>

#define SEGMENTS_MAX 6u

/* The decoded segments of a path. */
struct segments {
    struct slice at[SEGMENTS_MAX];
    size_t count;
    bool bad_escape;
    bool good; /* not too many */
};

static void split(struct slice path, char *memory, struct segments *ret)
{
    struct slice rest = {path.ptr + 1, path.len - 1};
    struct slice raw;

    *ret = (struct segments){.good = true};
    while (slice_split(&rest, '/', &raw)) {
        long len = http_percent_decode(raw, memory);

        if (ret->count == SEGMENTS_MAX) {
            ret->good = false;
            return;
        }
        if (len < 0) {
            ret->bad_escape = true;
            return;
        }
        ret->at[ret->count++] = (struct slice){memory, (size_t)len};
        memory += len;
    }
}

bool route_takes(struct slice path)
{
    const struct slice root = SLICE(ROUTE_ROOT);

    return slice_starts_with(path, root) && (path.len == root.len || path.ptr[root.len] == '/');
}

/* Behind the segment of a pattern at `at`, when that takes the given one; else NULL. */
static const char *pass(const char *at, struct slice segment)
{
    if (*at == ':') {
        while (*at != '/' && *at != '\0') {
            at++;
        }
        return segment.len > 0 ? at : NULL;
    }
    for (size_t i = 0; i < segment.len; i++, at++) {
        /* A decoded segment may hold a NUL too. */
        if (*at == '\0' || *at != segment.ptr[i]) {
            return NULL;
        }
    }
    return *at == '/' || *at == '\0' ? at : NULL;
}

/* Each request tries many patterns. Most end here, at the first byte of the second segment. */
static bool may_fit(const char *pattern, const struct segments *path)
{
    const char *second = pattern + sizeof(ROUTE_ROOT) - 1;

    if (path->count < 2 || *second == '\0') {
        return true;
    }
    return second[1] == ':' || (path->at[1].len > 0 && path->at[1].ptr[0] == second[1]);
}

static bool fits(const char *pattern, const struct segments *path,
                 struct slice params[ROUTE_PARAMS_MAX])
{
    const char *at = pattern;
    size_t param_count = 0;

    for (size_t i = 0; i < path->count; i++) {
        if (*at != '/') {
            return false; /* the pattern is shorter */
        }
        at++;
        if (*at == ':') {
            params[param_count++] = path->at[i];
        }
        at = pass(at, path->at[i]);
        if (at == NULL) {
            return false;
        }
    }
    return *at == '\0';
}

/* A fixed segment is stronger than one that takes any text: the table has them first. */
struct route_match route_find(enum http_method method, struct slice path, char *memory)
{
    enum http_method wanted = method == HTTP_HEAD ? HTTP_GET : method;
    struct route_match match = {.route = NULL};
    const char *known = NULL;
    const char *failed = NULL; /* rows of one path have one text, mostly even as a pointer */
    struct segments segments;

    split(path, memory, &segments);
    match.bad_escape = segments.bad_escape;
    if (!segments.good || segments.bad_escape) {
        return match;
    }
    for (size_t i = 0; i < route_count; i++) {
        const struct route *r = &routes[i];
        struct slice params[ROUTE_PARAMS_MAX] = {{NULL, 0}};

        if (r->pattern == failed || !may_fit(r->pattern, &segments)) {
            continue;
        }
        /* Of two patterns that fit, such as keys/ and :id, the first is meant, for all methods. */
        if (!fits(r->pattern, &segments, params) ||
            (known != NULL && !slice_equal(slice_of(known), slice_of(r->pattern)))) {
            failed = r->pattern;
            continue;
        }
        known = r->pattern;
        match.known = true;
        if (r->method == wanted) {
            match.route = r;
            memcpy(match.params, params, sizeof(params));
            return match;
        }
    }
    return match;
}

void route_allow(struct slice path, char *out, size_t size)
{
    static const enum http_method all[] = {HTTP_GET, HTTP_PUT, HTTP_POST, HTTP_PATCH, HTTP_DELETE};
    char memory[HTTP_TARGET_BYTES_MAX];
    size_t len = 0;

    out[0] = '\0';
    for (size_t i = 0; i < ARRAY_COUNT(all) && path.len <= sizeof(memory); i++) {
        if (route_find(all[i], path, memory).route != NULL && len < size) {
            len += (size_t)snprintf(out + len, size - len, "%s, ",
                                    all[i] == HTTP_GET ? "GET, HEAD" : http_method_name(all[i]));
        }
    }
    if (len < size) {
        (void)snprintf(out + len, size - len, "OPTIONS");
    }
}
