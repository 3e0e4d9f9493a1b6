/* Matching walks pattern and name side by side, segment by segment. At a "**" it notes where both
 * stand and goes on as if that matched nothing; at a mismatch it returns to the last "**" and lets
 * it match one segment more. An earlier "**" need never be tried again, since the last one can take
 * whatever the earlier would: so there is one place to return to, not a tree of them. */
#include "stream/glob.h"

#include "stream/name.h"

enum glob_segment glob_segment_read(struct slice segment, struct slice *ret_literal)
{
    if (slice_equal(segment, SLICE("*"))) {
        return GLOB_ONE;
    }
    if (slice_equal(segment, SLICE("**"))) {
        return GLOB_ANY;
    }
    if (slice_equal(segment, SLICE("%2A"))) {
        segment = SLICE("*");
    } else if (slice_equal(segment, SLICE("%2A%2A"))) {
        segment = SLICE("**");
    }
    *ret_literal = segment;
    return GLOB_LITERAL;
}

static void put(char *out, size_t *len, struct slice bytes)
{
    memcpy(out + *len, bytes.ptr, bytes.len);
    *len += bytes.len;
}

/* A segment whose stars were escaped stands for itself: it keeps the escapes. `name` is what the
 * segment `raw` became as part of a name. */
static struct slice canonical_segment(struct slice raw, struct slice name)
{
    bool stars = slice_equal(name, SLICE("*")) || slice_equal(name, SLICE("**"));

    if (!stars || slice_equal(raw, name)) {
        return name;
    }
    return name.len == 1 ? SLICE("%2A") : SLICE("%2A%2A");
}

int glob_parse(struct slice raw, char out[static GLOB_BYTES_MAX], size_t *ret_len,
               struct errmsg *msg)
{
    char name[STREAM_NAME_BYTES_MAX];
    size_t name_len = 0;
    size_t len = 0;
    unsigned count = 0;

    if (name_parse(raw, name, &name_len, msg) != 0) {
        return ERR_INVALID; /* the sentence of name_parse fits */
    }
    /* Decoding makes no slashes and takes none away: both have the same number of segments. */
    struct slice raw_rest = raw;
    struct slice name_rest = {name, name_len};
    struct slice raw_segment;
    struct slice segment;

    while (slice_split(&raw_rest, '/', &raw_segment) && slice_split(&name_rest, '/', &segment)) {
        if (count++ == GLOB_SEGMENTS_MAX) {
            return err_set(msg, ERR_INVALID, "a pattern has at most %u segments",
                           GLOB_SEGMENTS_MAX);
        }
        if (count > 1) {
            put(out, &len, SLICE("/"));
        }
        put(out, &len, canonical_segment(raw_segment, segment));
    }
    *ret_len = len;
    return 0;
}

/* Whether one segment of a pattern, which is no "**", matches one of a name. */
static bool segment_matches(struct slice pattern, struct slice name)
{
    struct slice literal;

    return glob_segment_read(pattern, &literal) == GLOB_ONE || slice_equal(literal, name);
}

static bool is_any(struct slice segment)
{
    return slice_equal(segment, SLICE("**"));
}

static bool only_any(struct slice pattern)
{
    struct slice segment;

    while (slice_split(&pattern, '/', &segment)) {
        if (!is_any(segment)) {
            return false;
        }
    }
    return true;
}

bool glob_matches(struct slice pattern, struct slice name)
{
    struct slice any_pattern = {NULL, 0}; /* behind the last "**" */
    struct slice any_name = {NULL, 0};    /* behind what it has matched so far */
    bool any = false;

    while (name.ptr != NULL) {
        struct slice segment;
        struct slice name_segment;
        struct slice name_rest = name;
        bool more = slice_split(&pattern, '/', &segment);

        (void)slice_split(&name_rest, '/', &name_segment); /* there is one */
        if (more && is_any(segment)) {
            any = true;
            any_pattern = pattern;
            any_name = name;
        } else if (more && segment_matches(segment, name_segment)) {
            name = name_rest;
        } else if (any) {
            (void)slice_split(&any_name, '/', &name_segment); /* there is one */
            pattern = any_pattern;
            name = any_name;
        } else {
            return false;
        }
    }
    return only_any(pattern);
}
