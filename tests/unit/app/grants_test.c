/* What is known by heart, and that it does not outlive a change. */
#include "app/grants.c"

#include "unit/base/unit.h"

#define HASH "aa11"
#define NOW  INT64_C(1000)

static struct grants *create(void)
{
    struct grants *g = NULL;

    assert_int_equal(grants_create(&g), 0);
    return g;
}

static void keep_caller(struct grants *g, uint64_t epoch)
{
    grants_keep_caller(
        g, epoch, &(struct caller){.proof = CALLER_KEY, .agent_id = "ann", .hash = HASH}, NOW + 10);
}

/* A caller is known until its time is up. */
static void knows_callers(void **state)
{
    struct grants *g = create();
    struct caller found = {.proof = CALLER_NOBODY};

    (void)state;
    assert_false(grants_find_caller(g, HASH, NOW, &found));
    keep_caller(g, grants_epoch(g));
    assert_true(grants_find_caller(g, HASH, NOW + 9, &found));
    assert_string_equal(found.agent_id, "ann");
    assert_false(grants_find_caller(g, HASH, NOW + 10, &found));
    assert_false(grants_find_caller(g, "bb22", NOW, &found));
    grants_destroy(g);
}

/* Access is that of one agent to one thread. */
static void knows_access(void **state)
{
    struct grants *g = create();
    const struct thread_access access = {.house_id = "home", .role = ROLE_OWNER};
    struct thread_access found = {.role = ROLE_NONE};

    (void)state;
    grants_keep_access(g, grants_epoch(g), SLICE("t1"), "ann", &access);
    assert_true(grants_find_access(g, SLICE("t1"), "ann", &found));
    assert_string_equal(found.house_id, "home");
    assert_int_equal(found.role, ROLE_OWNER);
    assert_false(grants_find_access(g, SLICE("t1"), "bob", &found));
    assert_false(grants_find_access(g, SLICE("t2"), "ann", &found));
    grants_destroy(g);
}

/* After a change nothing is known; what was asked for before it is not kept after it. */
static void forgets(void **state)
{
    struct grants *g = create();
    struct caller caller;
    struct thread_access access = {.role = ROLE_MEMBER};
    uint64_t before = grants_epoch(g);

    (void)state;
    keep_caller(g, before);
    grants_keep_access(g, before, SLICE("t1"), "ann", &access);
    grants_forget(g);
    assert_false(grants_find_caller(g, HASH, NOW, &caller));
    assert_false(grants_find_access(g, SLICE("t1"), "ann", &access));
    keep_caller(g, before); /* the records were asked before the change */
    assert_false(grants_find_caller(g, HASH, NOW, &caller));
    keep_caller(g, grants_epoch(g));
    assert_true(grants_find_caller(g, HASH, NOW, &caller));
    grants_destroy(g);
}

/* The house of a thread never changes: it is kept through changes. */
static void knows_houses(void **state)
{
    struct grants *g = create();
    char house_id[STORE_ID_BYTES];

    (void)state;
    assert_false(grants_find_house(g, SLICE("t1"), house_id));
    grants_keep_house(g, SLICE("t1"), SLICE("home"));
    grants_forget(g);
    assert_true(grants_find_house(g, SLICE("t1"), house_id));
    assert_string_equal(house_id, "home");
    assert_false(grants_find_house(g, SLICE("t2"), house_id));
    grants_destroy(g);
}

/* Ids that no record has are passed over, not cut. */
static void passes_over_long_ids(void **state)
{
    struct grants *g = create();
    const char *id = "0123456789012345678901234567890123456789";
    struct thread_access access = {.role = ROLE_OWNER};
    char house_id[STORE_ID_BYTES];

    (void)state;
    grants_keep_access(g, grants_epoch(g), slice_of(id), "ann", &access);
    assert_false(grants_find_access(g, slice_of(id), "ann", &access));
    grants_keep_house(g, slice_of(id), SLICE("home"));
    assert_false(grants_find_house(g, slice_of(id), house_id));
    grants_destroy(g);
    grants_destroy(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(knows_callers),
        cmocka_unit_test(knows_access),
        cmocka_unit_test(forgets),
        cmocka_unit_test(knows_houses),
        cmocka_unit_test(passes_over_long_ids),
    };

    return UNIT_RUN(tests);
}
