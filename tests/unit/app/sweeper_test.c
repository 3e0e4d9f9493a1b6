/* The sweeper's rhythm. The store is stood in for: it says how much there is to sweep. */
#include "app/sweeper.c"

#include "unit/base/unit.h"

#include <assert.h>
#include <string.h>

/* What is to be swept, and what was. */
static struct {
    pthread_mutex_t mutex;
    pthread_cond_t swept;
    unsigned pieces; /* calls so far */
    unsigned left;   /* calls that say that there is more */
    unsigned fail;   /* the so manieth call fails, from 1 on; 0: none */
    unsigned told;   /* of trouble */
} world = {.mutex = PTHREAD_MUTEX_INITIALIZER, .swept = PTHREAD_COND_INITIALIZER};

int store_sweep(struct thread_store *s, int64_t now_ms, bool *ret_more, struct errmsg *msg)
{
    (void)s;
    assert(now_ms > 1700000000000);
    (void)pthread_mutex_lock(&world.mutex);
    bool fails = ++world.pieces == world.fail;

    *ret_more = world.left > 0;
    world.left -= world.left > 0;
    (void)pthread_cond_broadcast(&world.swept);
    (void)pthread_mutex_unlock(&world.mutex);
    return fails ? err_set(msg, ERR_IO, "the disk is gone") : 0;
}

static void trouble(void *context, const char *sentence)
{
    (void)context;
    assert(strcmp(sentence, "the disk is gone") == 0);
    (void)pthread_mutex_lock(&world.mutex);
    world.told++;
    (void)pthread_cond_broadcast(&world.swept);
    (void)pthread_mutex_unlock(&world.mutex);
}

static struct sweeper *start(unsigned left, unsigned fail, uint64_t interval_ms)
{
    const struct sweeper_config config = {.interval_ms = interval_ms, .trouble = trouble};
    struct sweeper *s = NULL;

    world.pieces = 0;
    world.told = 0;
    world.left = left;
    world.fail = fail;
    assert_int_equal(sweeper_start(&config, &s), 0);
    return s;
}

static void await(const unsigned *number, unsigned at_least)
{
    (void)pthread_mutex_lock(&world.mutex);
    while (*number < at_least) {
        (void)pthread_cond_wait(&world.swept, &world.mutex);
    }
    (void)pthread_mutex_unlock(&world.mutex);
}

/* It sweeps at the start until nothing is left, and then rests: it can be stopped at once. */
static void sweeps_all_at_the_start(void **state)
{
    struct sweeper *s = start(5, 0, 0);

    (void)state;
    await(&world.pieces, 6);
    sweeper_stop(s);
    assert_int_equal(world.pieces, 6);
    assert_int_equal(world.told, 0);
}

/* It comes again. */
static void comes_again(void **state)
{
    struct sweeper *s = start(0, 0, 1);

    (void)state;
    await(&world.pieces, 3);
    sweeper_stop(s);
}

/* A failure is told, and is no end. */
static void goes_on_after_a_failure(void **state)
{
    struct sweeper *s = start(0, 1, 1);

    (void)state;
    await(&world.told, 1);
    await(&world.pieces, 2);
    sweeper_stop(s);
    assert_int_equal(world.told, 1);
}

/* It can be stopped in the middle of much work. */
static void stops_in_the_middle(void **state)
{
    struct sweeper *s = start(1000000000, 0, 0);

    (void)state;
    await(&world.pieces, 1);
    sweeper_stop(s);
    assert_true(world.left > 0);
    sweeper_stop(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sweeps_all_at_the_start),
        cmocka_unit_test(comes_again),
        cmocka_unit_test(goes_on_after_a_failure),
        cmocka_unit_test(stops_in_the_middle),
    };

    return UNIT_RUN(tests);
}
