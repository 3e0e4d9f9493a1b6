/* The pool of threads. */
#include "base/pool.c"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

struct job {
    struct task task; /* what is queued */
    unsigned *ran;    /* counts runs, atomic */
    unsigned at;      /* the count when this one ran */
};

static void run_job(struct task *task)
{
    struct job *job = container_of(task, struct job, task);
    job->at = __atomic_fetch_add(job->ran, 1, __ATOMIC_SEQ_CST);
}

/* A pool without threads runs a task before pool_submit returns. */
static void test_no_threads_run_at_once(void **state)
{
    (void)state;
    struct pool *p;
    assert_int_equal(pool_create(0, &p), 0);
    unsigned ran = 0;
    struct job job = {.task = {.run = run_job}, .ran = &ran};
    pool_submit(p, &job.task);
    assert_int_equal(ran, 1);
    pool_destroy(p);
}

/* One thread keeps the order of submission. */
static void test_one_thread_keeps_order(void **state)
{
    (void)state;
    struct pool *p;
    assert_int_equal(pool_create(1, &p), 0);
    unsigned ran = 0;
    struct job jobs[100];
    for (unsigned i = 0; i < 100; i++) {
        jobs[i] = (struct job){.task = {.run = run_job}, .ran = &ran};
        pool_submit(p, &jobs[i].task);
    }
    pool_destroy(p);
    for (unsigned i = 0; i < 100; i++) {
        assert_int_equal(jobs[i].at, i);
    }
}

/* Destroying a pool runs everything that was queued. */
static void test_destroy_runs_queue(void **state)
{
    (void)state;
    struct pool *p;
    assert_int_equal(pool_create(4, &p), 0);
    unsigned ran = 0;
    static struct job jobs[1000];
    for (unsigned i = 0; i < 1000; i++) {
        jobs[i] = (struct job){.task = {.run = run_job}, .ran = &ran};
        pool_submit(p, &jobs[i].task);
    }
    pool_destroy(p);
    assert_int_equal(ran, 1000);
}

/* Destroying nothing is fine. */
static void test_destroy_null(void **state)
{
    (void)state;
    pool_destroy(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_no_threads_run_at_once),
        cmocka_unit_test(test_one_thread_keeps_order),
        cmocka_unit_test(test_destroy_runs_queue),
        cmocka_unit_test(test_destroy_null),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
