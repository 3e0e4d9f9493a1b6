/* Look-ups on threads of their own: answers come back, and nobody waits for one that hangs. */
#include "unit/base/fault.h"

#include "serve/webhook_lookup.c"

#include "unit/base/unit.h"

/* A resolver that hangs until it is let go; only one test at a time uses it. */
static pthread_mutex_t gate_mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t gate_changed = PTHREAD_COND_INITIALIZER;
static bool gate_open;
static unsigned gate_waiting;
static unsigned gate_left;

static int numeric(const char *host, const char *port, const struct addrinfo *hints,
                   struct addrinfo **ret_answers)
{
    struct addrinfo strict = *hints;

    strict.ai_flags |= AI_NUMERICHOST;
    return getaddrinfo(host, port, &strict, ret_answers);
}

static int hangs(const char *host, const char *port, const struct addrinfo *hints,
                 struct addrinfo **ret_answers)
{
    (void)pthread_mutex_lock(&gate_mutex);
    gate_waiting++;
    (void)pthread_cond_broadcast(&gate_changed);
    while (!gate_open) {
        (void)pthread_cond_wait(&gate_changed, &gate_mutex);
    }
    gate_left++;
    (void)pthread_cond_broadcast(&gate_changed);
    (void)pthread_mutex_unlock(&gate_mutex);
    return numeric(host, port, hints, ret_answers);
}

static void gate_await(const unsigned *counter, unsigned count)
{
    (void)pthread_mutex_lock(&gate_mutex);
    while (*counter < count) {
        (void)pthread_cond_wait(&gate_changed, &gate_mutex);
    }
    (void)pthread_mutex_unlock(&gate_mutex);
}

static void gate_set(bool open)
{
    (void)pthread_mutex_lock(&gate_mutex);
    gate_open = open;
    gate_waiting = open ? gate_waiting : 0;
    gate_left = open ? gate_left : 0;
    (void)pthread_cond_broadcast(&gate_changed);
    (void)pthread_mutex_unlock(&gate_mutex);
}

struct waiter {
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    unsigned wakes;
};

static void on_wake(void *context)
{
    struct waiter *w = context;

    (void)pthread_mutex_lock(&w->mutex);
    w->wakes++;
    (void)pthread_cond_signal(&w->changed);
    (void)pthread_mutex_unlock(&w->mutex);
}

static void await(struct waiter *w, unsigned wakes)
{
    (void)pthread_mutex_lock(&w->mutex);
    while (w->wakes < wakes) {
        (void)pthread_cond_wait(&w->changed, &w->mutex);
    }
    (void)pthread_mutex_unlock(&w->mutex);
}

#define WAITER_INIT                                                                         \
    {                                                                                       \
        .mutex = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER, .wakes = 0 \
    }

static void test_answers(void **state)
{
    (void)state;
    struct waiter w = WAITER_INIT;
    struct lookups *lookups = NULL;
    struct lookup *one = NULL;
    int about[2];

    assert_int_equal(lookups_open(numeric, on_wake, &w, &lookups), 0);
    assert_int_equal(lookup_start(lookups, "192.0.2.1", 443, &about[0], &one), 0);
    await(&w, 1);
    one = lookups_take(lookups);
    assert_non_null(one);
    assert_ptr_equal(one->about, &about[0]);
    assert_int_equal(one->code, 0);
    assert_int_equal(one->answers->ai_family, AF_INET);
    lookup_free(one);
    assert_int_equal(lookup_start(lookups, "no number", 443, &about[1], &one), 0);
    await(&w, 2);
    one = lookups_take(lookups);
    assert_ptr_equal(one->about, &about[1]);
    assert_int_equal(one->code, EAI_NONAME);
    assert_null(one->answers);
    lookup_free(one);
    assert_null(lookups_take(lookups));
    assert_int_equal(lookups_running(lookups), 0);
    lookups_close(lookups);
}

/* No memory: no thread is counted, and the next one is fine. */
static void test_no_memory(void **state)
{
    (void)state;
    struct waiter w = WAITER_INIT;
    struct lookups *lookups = NULL;
    struct lookup *one = NULL;
    int about = 0;

    fault_countdown = 0;
    assert_int_equal(lookups_open(numeric, on_wake, &w, &lookups), ERR_NOMEM);
    fault_countdown = -1;
    assert_null(lookups);
    assert_int_equal(lookups_open(numeric, on_wake, &w, &lookups), 0);
    fault_countdown = 0;
    assert_int_equal(lookup_start(lookups, "192.0.2.1", 443, &about, &one), ERR_NOMEM);
    fault_countdown = -1;
    assert_null(one);
    assert_int_equal(lookups_running(lookups), 0);
    assert_int_equal(lookup_start(lookups, "192.0.2.1", 443, &about, &one), 0);
    await(&w, 1);
    lookup_free(lookups_take(lookups));
    lookups_close(lookups);
}

/* Forgotten while it runs, and after it has ended: it is not handed out, and freed. Its end is told
 * all the same, for there is room for another. */
static void test_forget(void **state)
{
    (void)state;
    struct waiter w = WAITER_INIT;
    struct lookups *lookups = NULL;
    struct lookup *hanging = NULL;
    struct lookup *ended = NULL;
    int about = 0;

    gate_set(false);
    assert_int_equal(lookups_open(hangs, on_wake, &w, &lookups), 0);
    assert_int_equal(lookup_start(lookups, "192.0.2.1", 443, &about, &hanging), 0);
    assert_int_equal(lookup_start(lookups, "192.0.2.1", 443, &about, &ended), 0);
    gate_await(&gate_waiting, 2);
    assert_int_equal(lookups_running(lookups), 2);
    lookup_forget(hanging);
    gate_set(true);
    await(&w, 2);
    assert_int_equal(lookups_running(lookups), 0);
    lookup_forget(ended);
    assert_null(lookups_take(lookups));
    gate_await(&gate_left, 2);
    lookups_close(lookups);
}

/* Closed while a name server keeps it waiting: closing does not wait, and no wake comes later. */
static void test_close(void **state)
{
    (void)state;
    struct waiter w = WAITER_INIT;
    struct lookups *lookups = NULL;
    struct lookup *one = NULL;
    int about = 0;

    gate_set(false);
    assert_int_equal(lookups_open(hangs, on_wake, &w, &lookups), 0);
    assert_int_equal(lookup_start(lookups, "192.0.2.1", 443, &about, &one), 0);
    gate_await(&gate_waiting, 1);
    lookup_forget(one);
    lookups_close(lookups);
    gate_set(true);
    gate_await(&gate_left, 1);
    assert_int_equal(w.wakes, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_answers),
        cmocka_unit_test(test_no_memory),
        cmocka_unit_test(test_forget),
        cmocka_unit_test(test_close),
    };

    return UNIT_RUN(tests);
}
