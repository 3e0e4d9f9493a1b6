/* Names and values are compared after decoding: %6Fffset is offset. */
#include "serve/query.h"

#include "http/request.h"
#include "stream/field.h"

/* Longer names are unknown, longer values of known names are malformed: no token, mode or
 * cursor comes near. */
#define NAME_BYTES_MAX  64
#define VALUE_BYTES_MAX 256

enum parameter {
    OFFSET,
    LIVE,
    CURSOR,
    PARAMETER_COUNT,
    UNKNOWN = PARAMETER_COUNT,
};

static const char *const names[PARAMETER_COUNT] = {"offset", "live", "cursor"};

static enum parameter parameter_of(struct slice name)
{
    char decoded[NAME_BYTES_MAX];

    if (name.len > sizeof(decoded)) {
        return UNKNOWN;
    }
    long len = http_percent_decode(name, decoded);

    for (int i = 0; len >= 0 && i < PARAMETER_COUNT; i++) {
        if (slice_equal((struct slice){decoded, (size_t)len}, slice_of(names[i]))) {
            return (enum parameter)i;
        }
    }
    return UNKNOWN;
}

static int take_live(struct slice value, struct query *query, struct errmsg *msg)
{
    if (slice_equal(value, SLICE("long-poll"))) {
        query->live = QUERY_LONG_POLL;
        return 0;
    }
    if (slice_equal(value, SLICE("sse"))) {
        query->live = QUERY_SSE;
        return 0;
    }
    return err_set(msg, ERR_INVALID, "live must be long-poll or sse");
}

static int take(enum parameter which, struct slice raw, struct query *query, struct errmsg *msg)
{
    char decoded[VALUE_BYTES_MAX];
    long len = raw.len > sizeof(decoded) ? ERR_INVALID : http_percent_decode(raw, decoded);
    struct slice value = {decoded, len < 0 ? 0 : (size_t)len};

    if (which == CURSOR) {
        query->cursor = cursor_parse(value);
        return 0;
    }
    /* A value that cannot be decoded is malformed like an empty one. */
    return which == OFFSET ? field_offset(value, &query->offset, msg)
                           : take_live(value, query, msg);
}

int query_parse(struct slice text, struct query *ret_query, struct errmsg *msg)
{
    struct query query = {.offset = {.kind = OFFSET_START}, .live = QUERY_CATCH_UP};
    bool seen[PARAMETER_COUNT] = {false};
    struct slice name;
    struct slice value;

    while (http_query_next(&text, &name, &value)) {
        enum parameter which = parameter_of(name);

        if (which == UNKNOWN) {
            continue;
        }
        if (seen[which]) {
            return err_set(msg, ERR_INVALID, "%s may be given once only", names[which]);
        }
        seen[which] = true;
        int code = take(which, value, &query, msg);

        if (code != 0) {
            return code;
        }
    }
    if (seen[LIVE] && !seen[OFFSET]) {
        return err_set(msg, ERR_INVALID, "live needs an offset to begin from, such as offset=now");
    }
    *ret_query = query;
    return 0;
}
