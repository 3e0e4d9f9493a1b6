/* A line that is a pattern and the rest that is a name: any bytes are judged, and what is a pattern
 * and a name is matched a second time by filling in a table of all rests. */
#include "stream/glob.h"

#include "stream/name.h"

#include <assert.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define NAME_SEGMENTS_MAX (STREAM_NAME_BYTES_MAX + 1)

/* Splits into at most `max` segments. */
static size_t split(struct slice text, struct slice *segments, size_t max)
{
    size_t count = 0;

    while (count < max && slice_split(&text, '/', &segments[count])) {
        count++;
    }
    return count;
}

/* Row by row from the end: row i says which rests of the name the pattern from i on matches. */
static bool table_matches(struct slice pattern, struct slice name)
{
    struct slice p[GLOB_SEGMENTS_MAX];
    struct slice n[NAME_SEGMENTS_MAX];
    size_t p_count = split(pattern, p, GLOB_SEGMENTS_MAX);
    size_t n_count = split(name, n, NAME_SEGMENTS_MAX);
    bool row[NAME_SEGMENTS_MAX + 1] = {false};
    struct slice literal;

    row[n_count] = true;
    for (size_t i = p_count; i-- > 0;) {
        enum glob_segment kind = glob_segment_read(p[i], &literal);

        if (kind == GLOB_ANY) {
            for (size_t j = n_count; j-- > 0;) {
                row[j] = row[j] || row[j + 1];
            }
            continue;
        }
        for (size_t j = 0; j < n_count; j++) {
            row[j] = row[j + 1] && (kind == GLOB_ONE || slice_equal(literal, n[j]));
        }
        row[n_count] = false;
    }
    return row[0];
}

/* A canonical pattern is its own canonical form, read as a client's. */
static void check_pattern(struct slice pattern)
{
    char again[GLOB_BYTES_MAX];
    size_t len = 0;

    assert(pattern.len > 0 && pattern.len <= GLOB_BYTES_MAX);
    assert(glob_parse(pattern, again, &len, NULL) == 0);
    assert(slice_equal((struct slice){again, len}, pattern));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct slice rest = size == 0 ? SLICE("") : (struct slice){(const char *)data, size};
    struct slice raw_pattern;
    struct slice raw_name;
    struct errmsg msg = {.text = ""};
    char pattern[GLOB_BYTES_MAX];
    char name[STREAM_NAME_BYTES_MAX];
    size_t pattern_len = 0;
    size_t name_len = 0;

    (void)slice_split(&rest, '\n', &raw_pattern); /* there is always a first part */
    raw_name = rest.ptr == NULL ? SLICE("") : rest;
    int code = glob_parse(raw_pattern, pattern, &pattern_len, &msg);

    assert(code == 0 || code == ERR_INVALID);
    assert((code == 0) == (msg.text[0] == '\0'));
    if (code < 0) {
        return 0;
    }
    struct slice canonical = {pattern, pattern_len};

    check_pattern(canonical);
    if (name_parse(raw_name, name, &name_len, NULL) == 0) {
        struct slice canonical_name = {name, name_len};

        assert(glob_matches(canonical, canonical_name) == table_matches(canonical, canonical_name));
    }
    return 0;
}
