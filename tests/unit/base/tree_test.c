/* Trees beside a sorted array. */
#include "base/tree.c"

#include <stdlib.h>

#include "base/attr.h"
#include "base/dice.h"
#include "unit/base/unit.h"

#define ITEMS 500u

struct item {
    struct tree_node node;
    unsigned key;
    bool in;
};

static unsigned comparisons;

static int by_key(const struct tree_node *a, const struct tree_node *b)
{
    comparisons++;
    unsigned x = container_of(a, struct item, node)->key;
    unsigned y = container_of(b, struct item, node)->key;
    return (x > y) - (x < y);
}

static bool at_least(void *context, const struct tree_node *node)
{
    return container_of(node, struct item, node)->key >= *(unsigned *)context;
}

/* Order and priorities of everything below `node`; returns how deep it is. */
static unsigned check(const struct tree_node *node, const struct tree_node *above)
{
    if (!node) {
        return 0;
    }
    assert_ptr_equal(node->parent, above);
    assert_true(!above || above->priority >= node->priority);
    assert_true(!node->left || by_key(node->left, node) < 0);
    assert_true(!node->right || by_key(node->right, node) > 0);
    unsigned left = check(node->left, node);
    unsigned right = check(node->right, node);
    return 1 + (left > right ? left : right);
}

static void compare_all(const struct tree *t, const struct item *items)
{
    const struct tree_node *at = NULL;
    unsigned from = 0;
    at = tree_find(t, at_least, &from);
    assert_ptr_equal(tree_first(t), at);
    for (unsigned i = 0; i < ITEMS; i++) {
        if (!items[i].in) {
            continue;
        }
        assert_ptr_equal(at, &items[i].node);
        assert_ptr_equal(tree_find(t, at_least, &(unsigned){items[i].key}), at);
        at = tree_next(at);
    }
    assert_null(at);
    assert_null(tree_find(t, at_least, &(unsigned){ITEMS}));
}

/* Random insertions and removals leave what a sorted array would hold. */
static void a_tree_is_a_sorted_set(void **state)
{
    (void)state;
    struct item *items = calloc(ITEMS, sizeof(items[0]));
    struct tree t;
    uint64_t random = 88172645463325252u;
    assert_non_null(items);
    tree_init(&t, by_key);
    compare_all(&t, items);
    for (unsigned step = 0; step < 5000; step++) {
        struct item *item = &items[dice_roll(&random) % ITEMS];
        item->key = (unsigned)(item - items);
        if (item->in) {
            tree_remove(&t, &item->node);
        } else {
            /* Few priorities, so that equal ones meet. */
            tree_insert(&t, &item->node, dice_roll(&random) % 64);
        }
        item->in = !item->in;
        if (step % 100 == 0) {
            (void)check(t.root, NULL);
            compare_all(&t, items);
        }
    }
    for (unsigned i = 0; i < ITEMS; i++) {
        if (items[i].in) {
            tree_remove(&t, &items[i].node);
        }
    }
    assert_null(t.root);
    free(items);
}

/* Keys that come in order do not make a list of the tree; walks and removals compare nothing. */
static void order_does_not_matter(void **state)
{
    (void)state;
    unsigned count = 20000;
    struct item *items = calloc(count, sizeof(items[0]));
    struct tree t;
    uint64_t random = 1;
    assert_non_null(items);
    tree_init(&t, by_key);
    for (unsigned i = 0; i < count; i++) {
        items[i].key = i;
        tree_insert(&t, &items[i].node, dice_roll(&random));
    }
    assert_true(check(t.root, NULL) < 60);
    comparisons = 0; /* from here on there are none */
    unsigned seen = 0;
    for (struct tree_node *at = tree_first(&t); at; at = tree_next(at)) {
        assert_int_equal(container_of(at, struct item, node)->key, seen++);
    }
    assert_int_equal(seen, count);
    for (unsigned i = 0; i < count; i++) {
        tree_remove(&t, &items[i * 7 % count].node);
    }
    assert_null(t.root);
    assert_int_equal(comparisons, 0);
    free(items);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_tree_is_a_sorted_set),
        cmocka_unit_test(order_does_not_matter),
    };
    return UNIT_RUN(tests);
}
