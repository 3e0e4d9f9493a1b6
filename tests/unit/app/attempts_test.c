/* Failed attempts: so many a minute, then a wait that is told and that ends. */
#include "app/attempts.c"

#include "unit/base/unit.h"

#define NOW INT64_C(1700000000000)

static struct attempts *create(void)
{
    struct attempts *a = NULL;

    assert_int_equal(attempts_create(&a), 0);
    return a;
}

/* Ten failures are free; the next try waits until one of them is forgotten. */
static void waits_after_ten(void **state)
{
    struct attempts *a = create();

    (void)state;
    for (unsigned i = 0; i < ATTEMPTS_PER_MINUTE; i++) {
        assert_int_equal(attempts_wait_s(a, 1, NOW), 0);
        attempts_failed(a, 1, NOW);
    }
    assert_int_equal(attempts_wait_s(a, 1, NOW), 6);
    assert_int_equal(attempts_wait_s(a, 1, NOW + 5000), 1);
    assert_int_equal(attempts_wait_s(a, 1, NOW + 6000), 0);
    attempts_destroy(a);
}

/* Others are not touched by it. */
static void tells_addresses_apart(void **state)
{
    struct attempts *a = create();

    (void)state;
    for (unsigned i = 0; i < 2 * ATTEMPTS_PER_MINUTE; i++) {
        attempts_failed(a, 1, NOW);
    }
    assert_true(attempts_wait_s(a, 1, NOW) > 0);
    assert_int_equal(attempts_wait_s(a, 2, NOW), 0);
    attempts_destroy(a);
}

/* However many fail at once, nobody is locked out for longer than two minutes. */
static void forgets_in_time(void **state)
{
    struct attempts *a = create();

    (void)state;
    for (unsigned i = 0; i < 1000; i++) {
        attempts_failed(a, 1, NOW);
    }
    assert_int_equal(attempts_wait_s(a, 1, NOW + 2 * MINUTE_MS + SHARE_MS), 0);
    attempts_destroy(a);
}

/* A clock that was set back locks nobody out. */
static void bears_a_clock_set_back(void **state)
{
    struct attempts *a = create();

    (void)state;
    attempts_failed(a, 1, NOW);
    assert_int_equal(attempts_wait_s(a, 1, NOW - 3600000), 0);
    attempts_failed(a, 1, NOW - 3600000);
    assert_int_equal(attempts_wait_s(a, 1, NOW - 3600000), 0);
    attempts_destroy(a);
}

/* A descriptor that is no connection has an address like any other. */
static void bears_a_gone_peer(void **state)
{
    struct attempts *a = create();

    (void)state;
    assert_int_equal(attempts_address(a, -1), 0);
    attempts_destroy(a);
    attempts_destroy(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(waits_after_ten),   cmocka_unit_test(tells_addresses_apart),
        cmocka_unit_test(forgets_in_time),   cmocka_unit_test(bears_a_clock_set_back),
        cmocka_unit_test(bears_a_gone_peer),
    };

    return UNIT_RUN(tests);
}
