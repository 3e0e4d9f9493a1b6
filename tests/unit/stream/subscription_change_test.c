/* Changes, and what happens to links while one is under way. */
#include "stream/subscription_change.c"

#include <stdio.h>

#include "unit/base/unit.h"

static struct subscription *sub;
static struct subscription_change change;

static int open_sub(void **state)
{
    (void)state;
    const struct subscription_definition def = {.pattern = SLICE("*")};
    sub = subscription_create(SLICE("s"));
    assert_int_equal(subscription_define(sub, &def), 0);
    sub->exists = true;
    subscription_change_init(&change, sub);
    return 0;
}

static int close_sub(void **state)
{
    (void)state;
    subscription_destroy(sub);
    return 0;
}

static struct subscription_link *add(const char *path, stream_id stream, uint64_t acked,
                                     uint64_t tail)
{
    struct subscription_link *l = subscription_link_create(sub, slice_of(path), acked);
    l->stream = stream;
    l->tail = tail;
    l->saved = true;
    assert_int_equal(subscription_attach(l), 0);
    return l;
}

/* A cursor moves when the change is committed, not before, and never back. */
static void test_ack(void **state)
{
    (void)state;
    struct subscription_link *l = add("a", 1, 10, 30);
    subscription_change_ack(&change, l, 20);
    subscription_change_ack(&change, l, 15);
    assert_int_equal(change.edit_count, 1);
    assert_int_equal(l->acked, 10);
    assert_true(subscription_change_pending(&change));
    subscription_change_ack(&change, l, 30);
    assert_false(subscription_change_pending(&change));
    assert_true(subscription_pending(sub));
    subscription_change_seal(&change, 10);
    subscription_change_commit(&change);
    assert_int_equal(l->acked, 30);
    assert_false(subscription_pending(sub));
    assert_int_equal(l->edit, 0);
}

/* The start lies before everything, and is what no cursor goes back to. */
static void test_start(void **state)
{
    (void)state;
    struct subscription_link *a = add("a", 1, SUBSCRIPTION_START, 5);
    struct subscription_link *b = add("b", 2, 0, 5);
    subscription_change_ack(&change, a, 0);
    subscription_change_ack(&change, b, SUBSCRIPTION_START);
    subscription_change_seal(&change, 10);
    subscription_change_commit(&change);
    assert_int_equal(a->acked, 0);
    assert_int_equal(b->acked, 0);
}

/* A change that the log refuses leaves everything, old notes too, as it was. */
static void test_dropped(void **state)
{
    (void)state;
    struct subscription_link *a = add("a", 1, 10, 30);
    struct subscription_link *b = add("b", 2, 10, 30);
    subscription_soil(b);
    subscription_change_ack(&change, a, 20);
    change.after.generation = 9;
    subscription_change_seal(&change, 10);
    assert_int_equal(change.edit_count, 2);
    assert_true(list_empty(&sub->dirty));
    subscription_change_drop(&change);
    assert_false(list_empty(&sub->dirty));
    assert_int_equal(a->acked, 10);
    assert_int_equal(a->edit, 0);
    assert_int_equal(sub->state.generation, 0);
}

/* No more old notes are written along than there is room for. */
static void test_seal_max(void **state)
{
    (void)state;
    char path[16];
    for (int i = 0; i < 20; i++) {
        (void)snprintf(path, sizeof(path), "a%d", i);
        subscription_soil(add(path, 1, 0, 0));
    }
    subscription_change_seal(&change, 7);
    assert_int_equal(change.edit_count, 7);
    subscription_change_commit(&change);
    size_t left = 0;
    LIST_FOR_EACH(node, &sub->dirty)
    {
        left++;
    }
    assert_int_equal(left, 13);
}

/* The stream of a link is deleted while its cursor is on its way to the log: the note that gets
 * there is old at once. */
static void test_stream_goes(void **state)
{
    (void)state;
    struct subscription_link *l = add("a", 1, 10, 30);
    subscription_change_ack(&change, l, 30);
    subscription_change_seal(&change, 10);
    subscription_drop(l);
    assert_int_equal(sub->link_count, 0);
    subscription_change_commit(&change);
    assert_true(l->dropped && l->saved);
    assert_false(list_empty(&l->dirty_link));
    subscription_change_init(&change, sub);
    subscription_change_seal(&change, 10);
    assert_true(change.edits[0].drop);
    subscription_change_commit(&change);
    assert_null(subscription_find(sub, SLICE("a")));
}

/* It is deleted and made again meanwhile: the cursor of the old one means nothing to the new. */
static void test_stream_comes_again(void **state)
{
    (void)state;
    struct subscription_link *l = add("a", 1, 10, 30);
    subscription_change_ack(&change, l, 30);
    subscription_change_seal(&change, 10);
    subscription_drop(l);
    subscription_revive(l, 2, SUBSCRIPTION_START);
    l->tail = 4;
    subscription_refresh(l);
    subscription_change_commit(&change);
    assert_true(l->acked == SUBSCRIPTION_START);
    assert_true(subscription_pending(sub));
    assert_false(list_empty(&l->dirty_link));
}

/* The same where it is the note's removal that is on its way. */
static void test_removal_overtaken(void **state)
{
    (void)state;
    struct subscription_link *l = add("a", 1, 10, 30);
    subscription_drop(l);
    subscription_change_seal(&change, 10);
    assert_true(change.edits[0].drop);
    subscription_revive(l, 2, SUBSCRIPTION_START);
    subscription_change_commit(&change);
    assert_ptr_equal(subscription_find(sub, SLICE("a")), l);
    assert_false(l->dropped);
    assert_false(l->saved);
    assert_false(list_empty(&l->dirty_link));
}

/* A link by name is taken away while the pattern finds a new stream of that name, which stays. */
static void test_unlink_overtaken(void **state)
{
    (void)state;
    struct subscription_link *l = add("a", 1, 10, 30);
    l->is_explicit = true;
    const struct subscription_edit edit = {.link = l, .stream = 1, .acked = 10, .drop = true};
    subscription_change_edit(&change, &edit);
    subscription_change_seal(&change, 10);
    subscription_drop(l);
    subscription_revive(l, 2, SUBSCRIPTION_START);
    subscription_change_commit(&change);
    assert_ptr_equal(subscription_find(sub, SLICE("a")), l);
    assert_false(l->is_explicit);
    assert_int_equal(sub->link_count, 1);
}

/* It waits for its stream, which is made meanwhile: it is taken away all the same, unless the
 * pattern matches the stream. */
static void test_unlink_waiting(void **state)
{
    (void)state;
    const char *paths[] = {"a", "a/b"};
    for (size_t i = 0; i < ARRAY_COUNT(paths); i++) {
        struct subscription_link *l = add(paths[i], 0, 0, 0);
        l->is_explicit = true;
        const struct subscription_edit edit = {.link = l, .drop = true};
        subscription_change_edit(&change, &edit);
    }
    subscription_change_seal(&change, 10);
    subscription_find(sub, SLICE("a"))->stream = 1;
    subscription_find(sub, SLICE("a/b"))->stream = 2;
    subscription_change_commit(&change);
    assert_false(subscription_find(sub, SLICE("a"))->is_explicit);
    assert_null(subscription_find(sub, SLICE("a/b")));
    assert_int_equal(sub->link_count, 1);
}

/* A new link begins to count when it is committed. */
static void test_fresh(void **state)
{
    (void)state;
    struct subscription_link *l = subscription_link_create(sub, SLICE("a"), 0);
    l->dropped = true;
    assert_int_equal(subscription_attach(l), 0);
    assert_int_equal(sub->link_count, 0);
    const struct subscription_edit edit = {
        .link = l, .stream = 3, .acked = 7, .tail = 7, .is_explicit = true, .fresh = true};
    subscription_change_edit(&change, &edit);
    assert_false(subscription_change_pending(&change));
    subscription_change_seal(&change, 10);
    subscription_change_commit(&change);
    assert_int_equal(sub->link_count, 1);
    assert_true(l->saved && l->is_explicit && !l->dropped);
    assert_int_equal(l->stream, 3);
    assert_true(list_empty(&sub->dirty));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, open_sub, close_sub)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_ack),
        TEST(test_start),
        TEST(test_dropped),
        TEST(test_seal_max),
        TEST(test_stream_goes),
        TEST(test_stream_comes_again),
        TEST(test_removal_overtaken),
        TEST(test_unlink_overtaken),
        TEST(test_unlink_waiting),
        TEST(test_fresh),
    };
    return UNIT_RUN(tests);
}
