/* Patterns: what is canonical, what is refused, what matches; against a naive matcher. */
#include "stream/glob.c"

#include "base/dice.h"
#include "unit/base/unit.h"

/* With its NUL. */
static void write_at(char *at, const char *text)
{
    memcpy(at, text, strlen(text) + 1);
}

static void assert_canonical(const char *raw, const char *want)
{
    char out[GLOB_BYTES_MAX];
    size_t len = 0;
    struct errmsg msg = {.text = ""};

    if (glob_parse(slice_of(raw), out, &len, &msg) != 0) {
        fail_msg("%s: %s", raw, msg.text);
    }
    if (!slice_equal((struct slice){out, len}, slice_of(want))) {
        fail_msg("%s became %.*s, not %s", raw, (int)len, out, want);
    }
}

/* Segments are decoded as those of names are; escaped stars stay apart from plain ones. */
static void test_canonical(void **state)
{
    (void)state;
    assert_canonical("events/*", "events/*");
    assert_canonical("**", "**");
    assert_canonical("a%20b/caf%C3%A9", "a b/caf\xc3\xa9");
    assert_canonical("a%2fb/%25", "a%2Fb/%25");
    assert_canonical("%2A", "%2A");
    assert_canonical("a/%2a/*", "a/%2A/*");
    assert_canonical("%2A%2a/*%2A/%2A*/**", "%2A%2A/%2A%2A/%2A%2A/**");
    assert_canonical("ev%2A/ev*/***", "ev*/ev*/***");
    assert_canonical("a//b/", "a//b/");
}

/* A pattern that no name could match is refused with a sentence. */
static void test_refused(void **state)
{
    static const char *const bad[] = {"",  "__ds/*", "%5F%5Fds", "a/../b", ".",
                                      "%", "a/%zz",  "a%00",     "\x80",   "a\nb"};
    char out[GLOB_BYTES_MAX];
    size_t len;

    (void)state;
    for (size_t i = 0; i < ARRAY_COUNT(bad); i++) {
        struct errmsg msg = {.text = ""};

        assert_int_equal(glob_parse(slice_of(bad[i]), out, &len, &msg), ERR_INVALID);
        assert_true(msg.text[0] != '\0');
    }
}

/* The caps: segments of a pattern, bytes of a name, and the longest canonical form. */
static void test_caps(void **state)
{
    char raw[6 * 2 * GLOB_SEGMENTS_MAX + 600] = "";
    char out[GLOB_BYTES_MAX];
    size_t len = 0;
    struct errmsg msg = {.text = ""};

    (void)state;
    for (unsigned i = 0; i < GLOB_SEGMENTS_MAX; i++) {
        write_at(raw + 7 * i, "%2A%2A/");
    }
    struct slice most = {raw, 7 * GLOB_SEGMENTS_MAX - 1};
    assert_int_equal(glob_parse(most, out, &len, &msg), 0);
    assert_int_equal(len, most.len);
    write_at(raw + 7 * GLOB_SEGMENTS_MAX, "a");
    assert_int_equal(glob_parse(slice_of(raw), out, &len, &msg), ERR_INVALID);
    assert_string_equal(msg.text, "a pattern has at most 64 segments");
    memset(raw, 'a', STREAM_NAME_BYTES_MAX + 1);
    raw[STREAM_NAME_BYTES_MAX + 1] = '\0';
    assert_int_equal(glob_parse(slice_of(raw), out, &len, &msg), ERR_INVALID);
    raw[STREAM_NAME_BYTES_MAX] = '\0';
    assert_int_equal(glob_parse(slice_of(raw), out, &len, &msg), 0);
}

/* The examples one would write down. */
static void test_matches(void **state)
{
    static const struct {
        const char *pattern;
        const char *name;
        bool matches;
    } cases[] = {
        {"events/*", "events/a", true},
        {"events/*", "events", false},
        {"events/*", "events/a/b", false},
        {"events/*", "events/", true},
        {"*", "a", true},
        {"*", "a/b", false},
        {"**", "a", true},
        {"**", "a/b/c", true},
        {"a/**", "a", true},
        {"a/**", "ab", false},
        {"a/**", "a/b/c", true},
        {"**/z", "z", true},
        {"**/z", "a/b/z", true},
        {"**/z", "a/z/b", false},
        {"a/**/z", "a/z", true},
        {"a/**/z", "a/b/c/z", true},
        {"a/**/z", "a/z/y", false},
        {"**/a/**", "x/a/y", true},
        {"**/a/**", "x/y", false},
        {"**/**", "a", true},
        {"*/**", "a", true},
        {"**/*", "a/b", true},
        {"*/*", "a", false},
        {"ev*", "events", false},
        {"ev*", "ev*", true},
        {"%2A", "a", false},
        {"%2A", "*", true},
        {"%2A%2A", "**", true},
        {"%2A%2A", "a/b", false},
        {"***", "***", true},
        {"***", "a", false},
        {"a//b", "a//b", true},
        {"a/*/b", "a//b", true},
        {"a/**/b", "a//b", true},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
        if (glob_matches(slice_of(cases[i].pattern), slice_of(cases[i].name)) != cases[i].matches) {
            fail_msg("%s and %s", cases[i].pattern, cases[i].name);
        }
    }
}

/* The definition, tried out literally: the rest of a pattern against the rest of a name. */
static bool naive(struct slice pattern, struct slice name)
{
    struct slice segment;
    struct slice name_segment;
    struct slice literal;

    if (!slice_split(&pattern, '/', &segment)) {
        return name.ptr == NULL;
    }
    if (glob_segment_read(segment, &literal) == GLOB_ANY) {
        for (;;) {
            if (naive(pattern, name)) {
                return true;
            }
            if (!slice_split(&name, '/', &name_segment)) {
                return false;
            }
        }
    }
    if (!slice_split(&name, '/', &name_segment)) {
        return false;
    }
    return (glob_segment_read(segment, &literal) == GLOB_ONE ||
            slice_equal(literal, name_segment)) &&
           naive(pattern, name);
}

static uint64_t seed = 1;

static unsigned draw(unsigned below)
{
    return (unsigned)(dice_roll(&seed) % below);
}

static void draw_path(char *out, const char *const *segments, unsigned kinds)
{
    unsigned count = 1 + draw(6);
    size_t len = 0;

    for (unsigned i = 0; i < count; i++) {
        write_at(out + len, i > 0 ? "/" : "");
        len += i > 0;
        const char *segment = segments[draw(kinds)];
        write_at(out + len, segment);
        len += strlen(segment);
    }
}

/* The matcher and the definition agree on short patterns and names over few segments. */
static void test_naive(void **state)
{
    static const char *const parts[] = {"a", "b", "*", "**", "**", "%2A", ""};
    static const char *const names[] = {"a", "b", "*", "a", ""};
    unsigned matched = 0;

    (void)state;
    for (int i = 0; i < 200000; i++) {
        char pattern[64];
        char name[64];

        draw_path(pattern, parts, ARRAY_COUNT(parts));
        draw_path(name, names, ARRAY_COUNT(names));
        if (name[0] == '\0' || pattern[0] == '\0') {
            continue; /* no stream has the empty name */
        }
        bool want = naive(slice_of(pattern), slice_of(name));

        matched += want;
        if (glob_matches(slice_of(pattern), slice_of(name)) != want) {
            fail_msg("%s and %s", pattern, name);
        }
    }
    assert_true(matched > 1000);
}

/* Many "**" that all but match cost no more than the product of the lengths: a matcher that tries
 * all ways would not end. */
static void test_hostile(void **state)
{
    char pattern[GLOB_BYTES_MAX] = "";
    char name[STREAM_NAME_BYTES_MAX + 1];

    (void)state;
    for (unsigned i = 0; i < GLOB_SEGMENTS_MAX / 2 - 1; i++) {
        write_at(pattern + 5 * i, "**/a/");
    }
    write_at(pattern + 5 * (GLOB_SEGMENTS_MAX / 2 - 1), "**/b");
    for (unsigned i = 0; i < STREAM_NAME_BYTES_MAX; i++) {
        name[i] = i % 2 == 0 ? 'a' : '/';
    }
    name[STREAM_NAME_BYTES_MAX] = '\0';
    for (int i = 0; i < 1000; i++) {
        assert_false(glob_matches(slice_of(pattern), slice_of(name)));
    }
    write_at(pattern + 5 * (GLOB_SEGMENTS_MAX / 2 - 1), "**");
    assert_true(glob_matches(slice_of(pattern), slice_of(name)));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_canonical), cmocka_unit_test(test_refused),
        cmocka_unit_test(test_caps),      cmocka_unit_test(test_matches),
        cmocka_unit_test(test_naive),     cmocka_unit_test(test_hostile),
    };

    return UNIT_RUN(tests);
}
