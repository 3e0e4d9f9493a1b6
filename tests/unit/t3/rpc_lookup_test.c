/* Look-ups that a name server holds up: how many there may be, and who shares one. */
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

static void start(struct rpc_lookup *l, const char *host)
{
    assert_int_equal(rpc_lookup_start(l, host, wake, NULL), 0);
}

static void await_none(void)
{
    unsigned count;

    do {
        (void)sched_yield();
        (void)pthread_mutex_lock(&mutex);
        count = under_way_count;
        (void)pthread_mutex_unlock(&mutex);
    } while (count > 0);
}

/* Those that nobody waits for any more count for as long as they have a thread; one more is no
 * connection, with a sentence. When they have ended there is room again. */
static void test_cap(void **state)
{
    static const char *const names[T3_LOOKUPS_MAX] = {"a.hang.test", "b.hang.test", "c.hang.test"};
    static const struct rpc_url good = {.host = (char *)"one.test"};
    struct rpc_failure failure = {.code = T3_RPC_OK};
    struct rpc_attempt attempt;

    (void)state;
    for (unsigned i = 0; i < T3_LOOKUPS_MAX; i++) {
        start(&attempt.lookup, names[i]);
        rpc_lookup_forget(&attempt.lookup);
    }
    rpc_attempt_init(&attempt, &good, false);
    assert_int_equal(rpc_attempt_begin(&attempt, wake, NULL, &failure), T3_RPC_ERROR_NETWORK);
    assert_non_null(strstr(failure.text, "too many other look-ups"));
    assert_null(attempt.lookup.query);
    fake_names_await_all(T3_LOOKUPS_MAX);
    fake_names_release();
    await_none();
    assert_int_equal(rpc_attempt_begin(&attempt, wake, NULL, &failure), T3_RPC_OK);
    (void)sem_wait(&woken);
    assert_int_equal(rpc_attempt_look(&attempt, &failure), T3_RPC_OK);
    assert_non_null(attempt.next);
    rpc_attempt_finish(&attempt);
    await_none();
}

/* However many wait for a name, it is asked for once, and all of them hear of it, but for those
 * that left; whoever comes when nobody waits any more joins in, too. */
static void test_shared(void **state)
{
    enum {
        COUNT = 100
    };
    struct rpc_lookup lookups[COUNT];
    struct rpc_lookup other;
    const struct addrinfo *addresses[2] = {NULL, NULL};
    int code = EAI_FAIL;

    (void)state;
    start(&other, "hang.test");
    rpc_lookup_forget(&other);
    fake_names_await();
    for (int i = 0; i < COUNT; i++) {
        start(&lookups[i], "hang.test");
        assert_false(rpc_lookup_ended(&lookups[i], &code, &addresses[0]));
    }
    start(&other, "one.test");
    (void)sem_wait(&woken); /* it does not wait for the others */
    rpc_lookup_forget(&other);
    rpc_lookup_forget(&lookups[0]);
    assert_int_equal(fake_names.hanging, 1);
    fake_names_release();
    for (int i = 1; i < COUNT; i++) {
        (void)sem_wait(&woken);
    }
    assert_int_equal(sem_trywait(&woken), -1);
    for (int i = 1; i < COUNT; i++) {
        code = EAI_FAIL;
        assert_true(rpc_lookup_ended(&lookups[i], &code, &addresses[i % 2]));
        assert_int_equal(code, 0);
        assert_non_null(addresses[i % 2]);
    }
    assert_ptr_equal(addresses[0], addresses[1]);
    start(&other, "hang.test"); /* what has ended is not asked again */
    fake_names_await();
    assert_false(rpc_lookup_ended(&other, &code, &addresses[0]));
    for (int i = 1; i < COUNT; i++) {
        rpc_lookup_forget(&lookups[i]);
    }
    fake_names_release();
    (void)sem_wait(&woken);
    rpc_lookup_forget(&other);
    await_none();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_cap),
        cmocka_unit_test(test_shared),
    };

    (void)sem_init(&woken, 0, 0);
    return UNIT_RUN(tests);
}
