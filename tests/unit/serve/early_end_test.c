/* A signal that comes while a mount opens hurries it, and is not lost by that. */
#include "serve/early_end.c"

#include <semaphore.h>
#include <time.h>

#include "unit/base/unit.h"

struct opening {
    struct mount mount;
    sem_t hurried;
    int count;
};

static void hurry(void *context)
{
    struct opening *o = context;

    o->count++;
    (void)sem_post(&o->hurried);
}

static void open_begin(struct opening *o)
{
    *o = (struct opening){.mount = {.context = o, .hurry = hurry}};
    assert_int_equal(sem_init(&o->hurried, 0, 0), 0);
}

/* The signal that is pending; 0: none. */
static int pending(const sigset_t *set)
{
    const struct timespec now = {0};
    int number = sigtimedwait(set, NULL, &now);

    return number < 0 ? 0 : number;
}

static void test_signals(void **state)
{
    static const int numbers[] = {SIGTERM, SIGINT, 0};
    struct opening o;
    struct early_end e;
    sigset_t set;

    (void)state;
    (void)sigemptyset(&set);
    (void)sigaddset(&set, SIGTERM);
    (void)sigaddset(&set, SIGINT);
    (void)sigaddset(&set, SIGALRM);
    assert_int_equal(pthread_sigmask(SIG_BLOCK, &set, NULL), 0);
    for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
        open_begin(&o);
        early_end_watch(&e, &o.mount);
        if (numbers[i] != 0) {
            assert_int_equal(kill(getpid(), numbers[i]), 0);
            assert_int_equal(sem_wait(&o.hurried), 0);
        }
        early_end_leave(&e);
        assert_int_equal(o.count, numbers[i] != 0);
        assert_int_equal(pending(&set), numbers[i]);
        assert_int_equal(pending(&set), 0);
        (void)sem_destroy(&o.hurried);
    }
}

/* A mount that never takes long is told nothing, and the signal waits. */
static void test_not_wanted(void **state)
{
    const struct mount mount = {.context = NULL};
    struct early_end e;
    sigset_t set;

    (void)state;
    (void)sigemptyset(&set);
    (void)sigaddset(&set, SIGTERM);
    assert_int_equal(pthread_sigmask(SIG_BLOCK, &set, NULL), 0);
    early_end_watch(&e, &mount);
    assert_int_equal(kill(getpid(), SIGTERM), 0);
    early_end_leave(&e);
    assert_int_equal(pending(&set), SIGTERM);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_signals),
        cmocka_unit_test(test_not_wanted),
    };
    return UNIT_RUN(tests);
}
