/* Which of some records a reference means. */
#include "cli/ref.c"

#include "unit/base/unit.h"

#define ID_ONE   "0193a5b2-7c4d-7aaa-8000-000000000001"
#define ID_TWO   "0193a5b2-7c4d-7aaa-8000-000000000002"
#define ID_OTHER "0193ffff-7c4d-7aaa-8000-000000000003"

static const struct {
    const char *id;
    const char *name;
    const char *handle;
} records[] = {
    {ID_ONE, "plans", "ann"},
    {ID_TWO, "plans", "bob"},
    {ID_OTHER, "", "archive-bot"},
    {"0193eeee-7c4d-7aaa-8000-000000000004", "0193ffff", "ann"},
};

static void search(const char *text, struct ref_search *s, struct arena *memory)
{
    arena_init(memory, 64u * 1024u);
    ref_begin(s, slice_of(text), memory);
    for (size_t round = 0; round < 2; round++) { /* lists that change tell some twice */
        for (size_t i = 0; i < ARRAY_COUNT(records); i++) {
            const struct ref_candidate one = {"thing", slice_of(records[i].id),
                                              slice_of(records[i].name),
                                              slice_of(records[i].handle)};

            ref_offer(s, &one);
        }
    }
    assert_false(s->failed);
}

static size_t count(const char *text)
{
    struct ref_search s;
    struct arena memory;

    search(text, &s, &memory);
    arena_finish(&memory);
    return s.count;
}

/* Ids, their beginnings, names and handles; what is the same for two is ambiguous. */
static void finds_what_is_meant(void **state)
{
    static const struct {
        const char *text;
        size_t count;
    } cases[] = {
        {ID_ONE, 1},      {"0193a5b2-7c4d-7aaa-8000-00000000000", 2},
        {"0193a5b2", 2},  {"0193a5b", 0}, /* too short for an id, and no name */
        {"0193ffff", 2},                  /* the beginning of one's id, the name of another */
        {"0193ffff-", 1}, {"0193FFFF-", 0},
        {"plans", 2},     {"plan", 0},
        {"Plans", 0},     {"@archive-bot", 1},
        {"@ann", 2},      {"archive-bot", 0},
        {"@", 0},         {"", 0},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
        if (count(cases[i].text) != cases[i].count) {
            fail_msg("\"%s\" means %zu, not %zu", cases[i].text, count(cases[i].text),
                     cases[i].count);
        }
    }
}

/* What was found is kept whole. */
static void keeps_what_it_found(void **state)
{
    struct ref_search s;
    struct arena memory;

    (void)state;
    search("@archive-bot", &s, &memory);
    assert_int_equal(s.count, 1);
    assert_string_equal(s.found[0].kind, "thing");
    assert_string_equal(s.found[0].id.ptr, ID_OTHER);
    assert_string_equal(s.found[0].name.ptr, "");
    assert_string_equal(s.found[0].handle.ptr, "archive-bot");
    arena_finish(&memory);
}

/* More than are kept are counted all the same. */
static void counts_beyond_what_it_keeps(void **state)
{
    struct ref_search s;
    struct arena memory;

    (void)state;
    arena_init(&memory, 64u * 1024u);
    ref_begin(&s, SLICE("same"), &memory);
    for (char i = 'a'; i < 'a' + 15; i++) {
        ref_offer(&s, &(struct ref_candidate){"thing", {&i, 1}, SLICE("same"), SLICE("")});
    }
    assert_int_equal(s.count, 15);
    assert_string_equal(s.found[REF_FOUND_MAX - 1].id.ptr, "j");
    arena_finish(&memory);
}

/* Without memory it says so, and finds nothing. */
static void fails_without_memory(void **state)
{
    struct ref_search s;
    struct arena memory;

    (void)state;
    arena_init(&memory, 1);
    ref_begin(&s, SLICE("same"), &memory);
    ref_offer(&s, &(struct ref_candidate){"thing", SLICE("id"), SLICE("same"), SLICE("")});
    assert_true(s.failed);
    assert_int_equal(s.count, 0);
    arena_finish(&memory);
}

/* Whole ids are those that the server makes. */
static void knows_ids(void **state)
{
    (void)state;
    assert_true(ref_is_id(SLICE(ID_ONE)));
    assert_false(ref_is_id(SLICE("0193a5b2")));
    assert_true(ref_is_prefix(SLICE("0193a5b2")));
    assert_false(ref_is_prefix(SLICE("a-plan-of")));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(finds_what_is_meant),
        cmocka_unit_test(keeps_what_it_found),
        cmocka_unit_test(counts_beyond_what_it_keeps),
        cmocka_unit_test(fails_without_memory),
        cmocka_unit_test(knows_ids),
    };

    return UNIT_RUN(tests);
}
