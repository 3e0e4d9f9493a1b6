/* What model calls cost is counted once, by which way it comes. */
#include "app/spend.c"

#include "unit/app/desk_rig.h"

#define ASSISTANT(id)                                                                            \
    "{\"id\":\"" id "\",\"ts\":7,\"authorId\":\"m\",\"payload\":{\"type\":\"pi.assistant\","     \
    "\"content\":[],\"provider\":\"acme\",\"model\":\"big-1\",\"usage\":{\"input\":10,"          \
    "\"output\":20,\"cacheRead\":3,\"cacheWrite\":4,\"totalTokens\":37,\"cost\":{\"input\":0.1," \
    "\"output\":0.15,\"cacheRead\":0,\"cacheWrite\":0,\"total\":0.25}},\"stopReason\":\"stop\"}}"
#define CHAT \
    "{\"id\":\"c\",\"ts\":7,\"authorId\":\"m\",\"payload\":{\"type\":\"chat\",\"text\":\"x\"}}"

static struct desk desk;

static int set_up(void **state)
{
    (void)state;
    desk_open(&desk);
    desk_fill(&desk);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    desk_close(&desk);
    return 0;
}

static struct post_entry entry_of(const char *json)
{
    return (struct post_entry){.json = slice_of(json)};
}

static struct usage_total total_of(const char *thread)
{
    struct usage_sum sum;
    struct arena arena;

    arena_init(&arena, MIB);
    FINE(store_usage_thread(desk.app.store, slice_of(thread), &arena, &sum, msg));
    if (sum.total.events > 0) {
        assert_true(slice_equal(sum.by_agent[0].id, SLICE("m")));
        assert_true(slice_equal(sum.by_model[0].id, SLICE("acme/big-1")));
    }
    arena_finish(&arena);
    return sum.total;
}

static void each_entry_counts_once(void **state)
{
    const struct post_entry entries[] = {entry_of(ASSISTANT("e1")), entry_of(CHAT),
                                         entry_of(ASSISTANT("e2")), entry_of("{")};

    (void)state;
    for (int i = 0; i < 3; i++) {
        spend_record(&desk.app, SLICE("h"), SLICE("p"), entries, ARRAY_COUNT(entries));
    }
    struct usage_total total = total_of("p");

    assert_int_equal(total.events, 2);
    assert_int_equal(total.input_tokens, 20);
    assert_int_equal(total.output_tokens, 40);
    assert_int_equal(total.cache_read_tokens, 6);
    assert_int_equal(total.cache_write_tokens, 8);
    assert_true(total.cost_usd > 0.499 && total.cost_usd < 0.501);
}

/* What is come upon after a crash is the same event, and the house is found; of a thread that is
 * gone nothing is kept. */
static void catching_up_is_the_same(void **state)
{
    const struct post_entry entry = entry_of(ASSISTANT("e1"));

    (void)state;
    spend_catch_up(&desk.app, SLICE("p"), &entry);
    assert_int_equal(total_of("p").events, 1);
    spend_record(&desk.app, SLICE("h"), SLICE("p"), &entry, 1);
    spend_catch_up(&desk.app, SLICE("p"), &entry);
    assert_int_equal(total_of("p").events, 1);
    spend_catch_up(&desk.app, SLICE("gone"), &entry);
    assert_int_equal(total_of("gone").events, 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest spend_tests[] = {
        TEST(each_entry_counts_once),
        TEST(catching_up_is_the_same),
    };

    return UNIT_RUN(spend_tests);
}
