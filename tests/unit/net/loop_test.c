/* Posting from many threads, timers against a model, watches that go while events are dealt out. */
#include "net/loop.c"

#include "base/dice.h"
#include "unit/base/unit.h"

#define POSTERS          4
#define POSTS_PER_POSTER 20000

/* ------------------------------------------------------------------------------------- tasks */

struct job {
    struct task task;  /* what is queued */
    struct loop *loop; /* where it runs */
    unsigned *ran;     /* counts runs; the loop's thread only */
    unsigned last;     /* the run that stops the loop */
};

static void count_job(struct task *task)
{
    struct job *job = container_of(task, struct job, task);

    if (++*job->ran == job->last) {
        loop_stop(job->loop);
    }
}

struct poster {
    pthread_t thread;
    struct loop *loop;
    struct job *jobs; /* POSTS_PER_POSTER of them */
};

static void *post_all(void *context)
{
    struct poster *p = context;

    for (size_t i = 0; i < POSTS_PER_POSTER; i++) {
        loop_post(p->loop, &p->jobs[i].task);
    }
    return NULL;
}

/* Every task that any thread posts runs once, on the loop's thread, and none is left sleeping. */
static void test_posts_of_many_threads_all_run(void **state)
{
    struct poster posters[POSTERS];
    struct loop *l;
    unsigned ran = 0;

    (void)state;
    assert_int_equal(loop_create(&l), 0);
    for (size_t p = 0; p < POSTERS; p++) {
        posters[p].loop = l;
        posters[p].jobs = calloc(POSTS_PER_POSTER, sizeof(struct job));
        assert_non_null(posters[p].jobs);
        for (size_t i = 0; i < POSTS_PER_POSTER; i++) {
            posters[p].jobs[i] = (struct job){
                .task.run = count_job, .loop = l, .ran = &ran, .last = POSTERS * POSTS_PER_POSTER};
        }
        assert_int_equal(pthread_create(&posters[p].thread, NULL, post_all, &posters[p]), 0);
    }
    loop_run(l);
    assert_int_equal(ran, POSTERS * POSTS_PER_POSTER);
    for (size_t p = 0; p < POSTERS; p++) {
        assert_int_equal(pthread_join(posters[p].thread, NULL), 0);
        free(posters[p].jobs);
    }
    loop_destroy(l);
}

/* A stop that comes before the run makes it return after its first turn. */
static void test_stop_before_run(void **state)
{
    struct loop *l;
    unsigned ran = 0;
    struct job job = {.task.run = count_job, .ran = &ran};

    (void)state;
    assert_int_equal(loop_create(&l), 0);
    job.loop = l;
    loop_post(l, &job.task);
    loop_stop(l);
    loop_run(l);
    assert_int_equal(ran, 1);
    loop_destroy(l);
}

/* A task that was taken back does not run, and the others do. */
static void test_unpost(void **state)
{
    struct loop *l;
    unsigned ran = 0;
    struct job jobs[3];

    (void)state;
    assert_int_equal(loop_create(&l), 0);
    for (size_t i = 0; i < ARRAY_COUNT(jobs); i++) {
        jobs[i] = (struct job){.task.run = count_job, .loop = l, .ran = &ran};
        loop_post(l, &jobs[i].task);
    }
    loop_unpost(l, &jobs[1].task);
    loop_unpost(l, &jobs[1].task);
    loop_turn(l, 0);
    assert_int_equal(ran, 2);
    loop_destroy(l);
}

static void defer_again(struct task *task)
{
    struct job *job = container_of(task, struct job, task);

    ++*job->ran;
    loop_defer(job->loop, task);
}

/* A deferred task that defers itself runs once per turn, and keeps the turn from waiting. */
static void test_deferred_runs_once_per_turn(void **state)
{
    struct loop *l;
    unsigned ran = 0;
    struct job job = {.task.run = defer_again, .ran = &ran};

    (void)state;
    assert_int_equal(loop_create(&l), 0);
    job.loop = l;
    loop_defer(l, &job.task);
    loop_turn(l, WAIT_MS_MAX);
    assert_int_equal(ran, 1);
    loop_turn(l, WAIT_MS_MAX);
    assert_int_equal(ran, 2);
    loop_cancel(l, &job.task);
    loop_cancel(l, &job.task);
    loop_turn(l, 0);
    assert_int_equal(ran, 2);
    loop_destroy(l);
}

/* ------------------------------------------------------------------------------------ timers */

#define TIMERS 500

struct alarm {
    struct loop_timer timer;
    struct loop *loop;
    uint64_t due_ms; /* what the model expects; LOOP_NEVER_MS: not set */
    unsigned fired;  /* how often */
};

static void on_alarm(struct loop_timer *timer)
{
    struct alarm *a = container_of(timer, struct alarm, timer);

    assert_true(a->due_ms <= a->loop->now_ms);
    a->due_ms = LOOP_NEVER_MS;
    a->fired++;
}

/* After each step of the clock exactly the timers that a naive model calls due have fired. */
static void test_timers_follow_a_model(void **state)
{
    static struct alarm alarms[TIMERS];
    uint64_t seed = 0x5eed;
    struct loop *l;

    (void)state;
    assert_int_equal(loop_create(&l), 0);
    for (size_t i = 0; i < TIMERS; i++) {
        alarms[i] = (struct alarm){.timer.fire = on_alarm, .loop = l, .due_ms = LOOP_NEVER_MS};
    }
    for (unsigned round = 0; round < 20000; round++) {
        struct alarm *a = &alarms[dice_roll(&seed) % TIMERS];
        uint64_t choice = dice_roll(&seed) % 10;
        uint64_t delay = dice_roll(&seed) % 300;

        if (choice < 7) {
            assert_int_equal(loop_timer_set(l, &a->timer, delay), 0);
            a->due_ms = l->now_ms + delay;
        } else {
            (choice == 7 ? loop_timer_cancel : loop_timer_disarm)(l, &a->timer);
            a->due_ms = LOOP_NEVER_MS;
        }
        assert_int_equal(loop_timer_is_armed(&a->timer), choice < 7);
        if (round % 4 == 0) {
            l->now_ms += dice_roll(&seed) % 20;
            fire_timers(l);
            for (size_t i = 0; i < TIMERS; i++) {
                assert_true(alarms[i].due_ms > l->now_ms);
            }
        }
    }
    for (size_t i = 0; i < TIMERS; i++) {
        loop_timer_cancel(l, &alarms[i].timer);
    }
    loop_destroy(l);
}

static void set_again(struct loop_timer *timer)
{
    struct alarm *a = container_of(timer, struct alarm, timer);

    a->fired++;
    assert_int_equal(loop_timer_set(a->loop, timer, 0), 0);
}

/* A timer that sets itself to now fires once per turn and does not hold up the others. */
static void test_timer_of_zero_does_not_spin(void **state)
{
    struct alarm a = {.timer.fire = set_again};
    struct loop *l;

    (void)state;
    assert_int_equal(loop_create(&l), 0);
    a.loop = l;
    assert_int_equal(loop_timer_set(l, &a.timer, 0), 0);
    loop_turn(l, 0);
    assert_int_equal(a.fired, 1);
    loop_turn(l, WAIT_MS_MAX);
    assert_int_equal(a.fired, 2);
    loop_timer_cancel(l, &a.timer);
    loop_destroy(l);
}

/* The wait ends when the first timer is due, and a delay without end is no overflow. */
static void test_wait_ends_for_a_timer(void **state)
{
    struct alarm soon = {.timer.fire = on_alarm};
    struct alarm never = {.timer.fire = on_alarm};
    struct loop *l;

    (void)state;
    assert_int_equal(loop_create(&l), 0);
    soon.loop = never.loop = l;
    soon.due_ms = l->now_ms + 5;
    assert_int_equal(loop_timer_set(l, &never.timer, UINT64_MAX), 0);
    assert_int_equal(loop_timer_set(l, &soon.timer, 5), 0);
    while (soon.fired == 0) {
        loop_turn(l, WAIT_MS_MAX);
    }
    assert_int_equal(never.fired, 0);
    loop_timer_cancel(l, &never.timer);
    loop_destroy(l);
}

/* ----------------------------------------------------------------------------------- watches */

struct bell {
    struct loop_watch watch;
    struct loop *loop;
    struct bell *other; /* removed by this one's first event */
    bool removed;       /* by the other one */
    unsigned rung;      /* events seen */
};

static void on_bell(struct loop_watch *watch, uint32_t events)
{
    struct bell *b = container_of(watch, struct bell, watch);

    assert_true((events & EPOLLIN) != 0);
    assert_false(b->removed);
    b->rung++;
    if (!b->other->removed) {
        b->other->removed = true;
        loop_watch_remove(b->loop, &b->other->watch);
    }
}

/* A watch that is removed by a callback sees no event of the same turn. */
static void test_removed_watch_sees_no_event(void **state)
{
    struct bell bells[2] = {{.other = &bells[1]}, {.other = &bells[0]}};
    struct loop *l;

    (void)state;
    assert_int_equal(loop_create(&l), 0);
    for (size_t i = 0; i < 2; i++) {
        bells[i].loop = l;
        bells[i].watch = (struct loop_watch){
            .fd = eventfd(1, EFD_CLOEXEC), .events = EPOLLIN, .ready = on_bell};
        assert_int_equal(loop_watch_add(l, &bells[i].watch), 0);
    }
    loop_turn(l, 0);
    assert_int_equal(bells[0].rung + bells[1].rung, 1);
    for (size_t i = 0; i < 2; i++) {
        if (!bells[i].removed) {
            loop_watch_set(l, &bells[i].watch, EPOLLOUT);
            loop_watch_set(l, &bells[i].watch, EPOLLOUT);
            loop_watch_remove(l, &bells[i].watch);
        }
        assert_int_equal(close(bells[i].watch.fd), 0);
    }
    loop_destroy(l);
}

/* A descriptor that cannot be watched is an error, not a crash. */
static void test_bad_descriptor_is_refused(void **state)
{
    struct loop_watch watch = {.fd = -1, .events = EPOLLIN, .ready = on_bell};
    struct loop *l;

    (void)state;
    assert_int_equal(loop_create(&l), 0);
    assert_int_equal(loop_watch_add(l, &watch), ERR_IO);
    loop_destroy(l);
    loop_destroy(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_posts_of_many_threads_all_run),
        cmocka_unit_test(test_stop_before_run),
        cmocka_unit_test(test_unpost),
        cmocka_unit_test(test_deferred_runs_once_per_turn),
        cmocka_unit_test(test_timers_follow_a_model),
        cmocka_unit_test(test_timer_of_zero_does_not_spin),
        cmocka_unit_test(test_wait_ends_for_a_timer),
        cmocka_unit_test(test_removed_watch_sees_no_event),
        cmocka_unit_test(test_bad_descriptor_is_refused),
    };

    return UNIT_RUN(tests);
}
