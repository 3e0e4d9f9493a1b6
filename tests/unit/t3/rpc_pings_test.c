/* When servers are asked whether they are there, and when they are not. */
#include "t3/rpc_pings.c"

#include "unit/base/unit.h"

/* The first ping is due after an interval, and the next one an interval after that was seen. */
static void test_interval(void **state)
{
    struct rpc_pings pings;

    (void)state;
    rpc_pings_begin(&pings, 100, 2, 1000);
    assert_int_equal(rpc_pings_due_ms(&pings), 1100);
    assert_true(rpc_pings_step(&pings, 1099, false));
    assert_false(rpc_pings_take(&pings));
    assert_true(rpc_pings_step(&pings, 1130, false));
    assert_int_equal(rpc_pings_due_ms(&pings), 1230);
    assert_true(rpc_pings_take(&pings));
    assert_false(rpc_pings_take(&pings));
}

/* As many as may be missed are, and the next that is due is the end; whatever the server says
 * makes all of them good. */
static void test_missed(void **state)
{
    struct rpc_pings pings;

    (void)state;
    rpc_pings_begin(&pings, 100, 2, 0);
    assert_true(rpc_pings_step(&pings, 100, false));
    assert_true(rpc_pings_step(&pings, 200, false));
    rpc_pings_heard(&pings);
    assert_true(rpc_pings_step(&pings, 300, false));
    assert_true(rpc_pings_step(&pings, 400, false));
    assert_true(rpc_pings_step(&pings, 499, false));
    assert_false(rpc_pings_step(&pings, 500, false));
}

/* Who does not read misses nothing, but goes on to ask. */
static void test_deaf(void **state)
{
    struct rpc_pings pings;

    (void)state;
    rpc_pings_begin(&pings, 100, 1, 0);
    for (uint64_t now = 100; now <= 1000; now += 100) {
        assert_true(rpc_pings_step(&pings, now, true));
        assert_true(rpc_pings_take(&pings));
    }
    rpc_pings_heard(&pings);
    assert_true(rpc_pings_step(&pings, 1100, false));
    assert_false(rpc_pings_step(&pings, 1200, false));
}

/* An interval of 0: none is ever due. */
static void test_none(void **state)
{
    struct rpc_pings pings;

    (void)state;
    rpc_pings_begin(&pings, 0, 1, 0);
    assert_int_equal(rpc_pings_due_ms(&pings), 0);
    assert_true(rpc_pings_step(&pings, UINT64_MAX, false));
    assert_false(rpc_pings_take(&pings));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_interval),
        cmocka_unit_test(test_missed),
        cmocka_unit_test(test_deaf),
        cmocka_unit_test(test_none),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
