/* Posts, and each id once: over an engine and a store, with answers that fail and get lost. */
#include "thread/poster.c"

#include "unit/thread/posting_rig.h"

static int with_thread(void **state)
{
    (void)posting_set_up(state);
    posting_add_house(*state);
    posting_add_thread(*state, "t");
    return 0;
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, with_thread, posting_tear_down)

/* Posts one entry and expects it to be stored. */
static void store_one(struct posting *g, struct slice id, bool fresh)
{
    struct one_post o;
    one_post_init(g, &o, "t", id, fresh, "hello");
    assert_int_equal(poster_post(g->poster, &o.post), 0);
    assert_int_equal(o.post.stored, 1);
    assert_false(o.entry.duplicate);
    assert_true(o.post.next_offset[0] != '\0');
    one_post_finish(&o);
}

/* Posts one entry whose id is there, and expects the first one of it. */
static void find_one(struct posting *g, struct slice id, const char *first)
{
    struct one_post o;
    one_post_init(g, &o, "t", id, false, "again");
    assert_int_equal(poster_post(g->poster, &o.post), 0);
    assert_int_equal(o.post.stored, 0);
    assert_true(o.entry.duplicate);
    assert_true(o.post.next_offset[0] == '\0');
    if (!slice_equal(o.entry.first, slice_of(first))) {
        fail_msg("%.*s", (int)o.entry.first.len, o.entry.first.ptr);
    }
    one_post_finish(&o);
}

#define FIRST(id, ts) \
    "{\"id\":\"" id "\",\"ts\":" ts ",\"payload\":{\"type\":\"chat\",\"text\":\"hello\"}}"

/* A fresh entry is appended without a look at what is there. */
static void fresh_ones_cost_an_append(void **state)
{
    struct posting *g = *state;
    unsigned reads = posting_calls(g, CALL_READ);
    store_one(g, SLICE("one"), true);
    store_one(g, SLICE("two"), true);
    assert_int_equal(posting_calls(g, CALL_READ), reads);
    assert_int_equal(posting_calls(g, CALL_APPEND), 2);
    assert_int_equal(posting_calls(g, CALL_HEAD), 0);
    posting_expect(g, "t", "one two");
}

/* The same id stores once, and is answered with the first entry: in this process and after a
 * restart, whoever wrote the first. */
static void an_id_stores_once(void **state)
{
    struct posting *g = *state;
    store_one(g, SLICE("mine"), false);
    find_one(g, SLICE("mine"), FIRST("mine", "1000000"));
    store_one(g, SLICE("servers"), true);
    find_one(g, SLICE("servers"), FIRST("servers", "1000002"));
    posting_reopen(g);
    find_one(g, SLICE("mine"), FIRST("mine", "1000000"));
    find_one(g, SLICE("servers"), FIRST("servers", "1000002"));
    posting_expect(g, "t", "mine servers");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(fresh_ones_cost_an_append),
        TEST(an_id_stores_once),
    };
    return UNIT_RUN(tests);
}
