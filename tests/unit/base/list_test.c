/* The intrusive ring: order, removal from anywhere, and joining. */
#include "base/list.h"

#include "unit/base/unit.h"

struct item {
    struct list link; /* on the list of the test */
    int value;        /* its place in the order */
};

static void fill(struct list *head, struct item *items, int count)
{
    list_init(head);
    for (int i = 0; i < count; i++) {
        items[i].value = i;
        list_init(&items[i].link);
        list_append(head, &items[i].link);
    }
}

/* Nodes come back in the order they were put in. */
static void test_keeps_order(void **state)
{
    struct item items[5];
    struct list head;
    int want = 0;

    (void)state;
    fill(&head, items, 5);
    LIST_FOR_EACH(node, &head)
    {
        assert_int_equal(container_of(node, struct item, link)->value, want);
        want++;
    }
    assert_int_equal(want, 5);
    assert_ptr_equal(list_first(&head), &items[0].link);
}

/* An empty head has no first node and is walked over. */
static void test_empty(void **state)
{
    struct list head;

    (void)state;
    list_init(&head);
    assert_true(list_empty(&head));
    assert_null(list_first(&head));
    LIST_FOR_EACH(node, &head)
    {
        fail();
    }
}

/* Removing is possible twice, since a removed node is on no list. */
static void test_remove_twice(void **state)
{
    struct item items[3];
    struct list head;

    (void)state;
    fill(&head, items, 3);
    list_remove(&items[1].link);
    list_remove(&items[1].link);
    assert_true(list_empty(&items[1].link));
    assert_ptr_equal(items[0].link.next, &items[2].link);
    list_append(&head, &items[1].link);
    assert_ptr_equal(head.prev, &items[1].link);
}

/* The body of a walk may remove the node it stands on. */
static void test_walk_and_remove(void **state)
{
    struct item items[6];
    struct list head;
    int left = 0;

    (void)state;
    fill(&head, items, 6);
    LIST_FOR_EACH(node, &head)
    {
        if (container_of(node, struct item, link)->value % 2 == 0) {
            list_remove(node);
        }
    }
    LIST_FOR_EACH(node, &head)
    {
        assert_int_equal(container_of(node, struct item, link)->value, 2 * left + 1);
        left++;
    }
    assert_int_equal(left, 3);
}

/* Joining moves all nodes behind those already there and empties the source. */
static void test_append_all(void **state)
{
    struct item first[2];
    struct item second[2];
    struct list to;
    struct list from;

    (void)state;
    fill(&to, first, 2);
    fill(&from, second, 2);
    list_append_all(&to, &from);
    assert_true(list_empty(&from));
    assert_ptr_equal(first[1].link.next, &second[0].link);
    assert_ptr_equal(second[1].link.next, &to);
    assert_ptr_equal(to.prev, &second[1].link);
    list_append_all(&to, &from);
    assert_ptr_equal(to.prev, &second[1].link);
    list_append_all(&from, &to);
    assert_true(list_empty(&to));
    assert_ptr_equal(list_first(&from), &first[0].link);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_keeps_order),  cmocka_unit_test(test_empty),
        cmocka_unit_test(test_remove_twice), cmocka_unit_test(test_walk_and_remove),
        cmocka_unit_test(test_append_all),
    };

    return UNIT_RUN(tests);
}
