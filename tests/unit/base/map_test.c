/* The intrusive hash map, against a plain array, with hostile hashes and without memory. */
#include "unit/base/unit.h"

#include "unit/base/fault.h"

#include "base/map.c"
#include "base/dice.h"

#include <stdbool.h>

#define NODES 2000

struct item {
    struct map_node node; /* in the map of the test */
    uint64_t key;         /* compared by the test */
    bool present;         /* whether the model holds it */
    unsigned seen;        /* visits during a walk */
};

static struct item *item_of(struct map_node *node)
{
    return node == NULL ? NULL : container_of(node, struct item, node);
}

static struct item *lookup(const struct map *m, uint64_t hash, uint64_t key)
{
    struct map_node *node = map_find(m, hash);

    while (node != NULL && item_of(node)->key != key) {
        node = map_find_next(node);
    }
    return item_of(node);
}

/* An empty map finds nothing, walks nothing and may be finished, also when it is all zeros. */
static void test_empty(void **state)
{
    struct map m = {0};

    (void)state;
    map_finish(&m);
    map_init(&m);
    assert_null(map_find(&m, 1));
    assert_null(map_next(&m, NULL));
    map_finish(&m);
}

/* Nodes of one hash are all candidates, and none of another hash is. */
static void test_equal_hashes_are_all_found(void **state)
{
    struct map m;
    struct item items[20];

    (void)state;
    map_init(&m);
    for (uint64_t i = 0; i < 20; i++) {
        items[i].key = i;
        assert_int_equal(map_insert(&m, &items[i].node, i % 2), 0);
    }
    for (uint64_t i = 0; i < 20; i++) {
        assert_ptr_equal(lookup(&m, i % 2, i), &items[i]);
        assert_null(lookup(&m, 1 - i % 2, i));
    }
    map_finish(&m);
}

static void walk_and_count(const struct map *m, struct item *items)
{
    size_t seen = 0;

    for (struct map_node *node = map_next(m, NULL); node != NULL; node = map_next(m, node)) {
        assert_true(item_of(node)->present);
        item_of(node)->seen++;
        seen++;
    }
    assert_int_equal(seen, m->count);
    for (size_t i = 0; i < NODES; i++) {
        assert_int_equal(items[i].seen, items[i].present);
        items[i].seen = 0;
    }
}

/* After any series of insertions and removals the map holds what a plain array of flags holds. The
 * hashes are small numbers, the worst case for a table that took their bits as they are. */
static void test_agrees_with_a_model(void **state)
{
    static struct item items[NODES];
    uint64_t seed = 20261130;
    struct map m;

    (void)state;
    map_init(&m);
    for (int phase = 0; phase < 6; phase++) {
        for (int step = 0; step < 4 * NODES; step++) {
            struct item *item = &items[dice_roll(&seed) % NODES];
            bool grow = dice_roll(&seed) % 8 < (phase % 2 == 0 ? 7u : 1u);

            item->key = (uint64_t)(item - items);
            assert_ptr_equal(lookup(&m, item->key / 3, item->key), item->present ? item : NULL);
            if (grow && !item->present) {
                assert_int_equal(map_insert(&m, &item->node, item->key / 3), 0);
                item->present = true;
            } else if (!grow && item->present) {
                map_remove(&m, &item->node);
                item->present = false;
            }
        }
        walk_and_count(&m, items);
    }
    map_finish(&m);
}

/* The table keeps its promise about memory: full before it doubles, a quarter before it halves. */
static void test_table_follows_the_count(void **state)
{
    static struct item items[NODES];
    struct map m;

    (void)state;
    map_init(&m);
    for (size_t i = 0; i < NODES; i++) {
        assert_int_equal(map_insert(&m, &items[i].node, i), 0);
        assert_true(m.count <= m.slot_count);
    }
    for (size_t i = 0; i < NODES; i++) {
        map_remove(&m, &items[i].node);
        assert_true(m.slot_count == SLOTS_MIN || m.count >= m.slot_count / 4);
    }
    assert_int_equal(m.slot_count, SLOTS_MIN);
    map_finish(&m);
}

/* Removing the nodes behind a walk, every one or some, skips none and repeats none, although the
 * table shrinks under the walk. */
static void test_removal_behind_a_walk(void **state)
{
    static struct item items[NODES];

    (void)state;
    for (size_t keep_each = 2; keep_each < 40; keep_each += 7) {
        struct map_node *before = NULL;
        size_t visits = 0;
        struct map m;

        map_init(&m);
        for (size_t i = 0; i < NODES; i++) {
            items[i].seen = 0;
            assert_int_equal(map_insert(&m, &items[i].node, i * i), 0);
        }
        for (struct map_node *node = map_next(&m, NULL); node != NULL; node = map_next(&m, node)) {
            assert_int_equal(item_of(node)->seen, 0);
            item_of(node)->seen = 1;
            if (before != NULL && visits % keep_each != 0) {
                map_remove(&m, before);
            }
            before = node;
            visits++;
        }
        assert_int_equal(visits, NODES);
        map_finish(&m);
    }
}

/* Without memory the first insertion fails and changes nothing; later growth is only put off. */
static void test_growth_is_put_off_without_memory(void **state)
{
    static struct item items[100];
    struct map m;

    (void)state;
    map_init(&m);
    fault_countdown = 0;
    assert_int_equal(map_insert(&m, &items[0].node, 0), ERR_NOMEM);
    assert_int_equal(m.count, 0);
    fault_countdown = 1;
    for (size_t i = 0; i < 100; i++) {
        items[i].key = i;
        assert_int_equal(map_insert(&m, &items[i].node, i), 0);
    }
    assert_int_equal(m.slot_count, SLOTS_MIN);
    fault_countdown = -1;
    for (size_t i = 0; i < 100; i++) {
        assert_ptr_equal(lookup(&m, i, i), &items[i]);
    }
    for (size_t i = 0; i < 50; i++) {
        map_remove(&m, &items[i].node);
    }
    assert_int_equal(map_insert(&m, &items[0].node, 0), 0);
    assert_true(m.slot_count > SLOTS_MIN);
    fault_countdown = 0;
    for (size_t i = 50; i < 100; i++) {
        map_remove(&m, &items[i].node);
    }
    assert_ptr_equal(lookup(&m, 0, 0), &items[0]);
    fault_countdown = -1;
    map_finish(&m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_empty),
        cmocka_unit_test(test_equal_hashes_are_all_found),
        cmocka_unit_test(test_agrees_with_a_model),
        cmocka_unit_test(test_table_follows_the_count),
        cmocka_unit_test(test_removal_behind_a_walk),
        cmocka_unit_test(test_growth_is_put_off_without_memory),
    };

    return UNIT_RUN(tests);
}
