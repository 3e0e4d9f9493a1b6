/* Look-ups that a name server holds up: how many there may be. */
#include "base/limits.h"

#undef T3_LOOKUPS_MAX
#define T3_LOOKUPS_MAX 3u

#include "t3/rpc_attempt.c"
#include "t3/rpc_lookup.c"

#include "unit/base/unit.h"
#include "unit/t3/fake_names.h"

#include <semaphore.h>

static sem_t woken;

static void wake(void *context)
{
    (void)context;
    (void)sem_post(&woken);
}

/* Those that nobody waits for any more count for as long as they have a thread; one more is no
 * connection, with a sentence. When they have ended there is room again. */
static void test_cap(void **state)
{
    static const struct rpc_url hanging = {.host = (char *)"hang.test"};
    static const struct rpc_url good = {.host = (char *)"one.test"};
    struct rpc_failure failure = {.code = T3_RPC_OK};
    struct rpc_attempt attempt;

    (void)state;
    (void)sem_init(&woken, 0, 0);
    for (unsigned i = 0; i < T3_LOOKUPS_MAX; i++) {
        rpc_attempt_init(&attempt, &hanging, false);
        assert_int_equal(rpc_attempt_begin(&attempt, wake, NULL, &failure), T3_RPC_OK);
        rpc_attempt_finish(&attempt);
    }
    rpc_attempt_init(&attempt, &good, false);
    assert_int_equal(rpc_attempt_begin(&attempt, wake, NULL, &failure), T3_RPC_ERROR_NETWORK);
    assert_non_null(strstr(failure.text, "too many other look-ups"));
    assert_null(attempt.lookup);
    fake_names_await_all(T3_LOOKUPS_MAX);
    fake_names_release();
    while (atomic_load(&under_way) > 0) {
        (void)sched_yield();
    }
    assert_int_equal(rpc_attempt_begin(&attempt, wake, NULL, &failure), T3_RPC_OK);
    (void)sem_wait(&woken);
    assert_int_equal(rpc_attempt_look(&attempt, &failure), T3_RPC_OK);
    assert_non_null(attempt.next);
    rpc_attempt_finish(&attempt);
    assert_int_equal(atomic_load(&under_way), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_cap),
    };

    return UNIT_RUN(tests);
}
