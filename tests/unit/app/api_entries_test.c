/* Posts whose end comes early, or after their client has gone. */
#include "serve/exchange.h"
#include "thread/poster.h"

#include <semaphore.h>

/* Stand between a post and what it calls. */
static void fake_run(struct exchange *x);
static void fake_start(struct poster *p, struct post *post);

#define exchange_run fake_run
#define poster_start fake_start
#include "app/api_entries.c"
#undef exchange_run
#undef poster_start

#include "unit/app/app_rig.h"

#include <stdatomic.h>

static struct {
    atomic_bool wait_for_gone; /* an append has its end only when its client has gone */
    atomic_bool wait_for_end;  /* poster_start returns only when the post has ended */
    sem_t under_way;           /* an append was started */
    sem_t ended;
    struct task task;
    struct exchange *x;
    void (*done)(struct post *post, int result);
} hold;

/* ---------------------------------------------------------------------------------- the fakes */

static void resume_when_gone(struct task *task)
{
    if (hold.x->session->gone) {
        exchange_resume(hold.x);
    } else {
        loop_post(hold.x->worker->loop, task);
    }
}

static void hold_done(struct stream_op *op)
{
    (void)op;
    hold.task = (struct task){.run = resume_when_gone};
    list_init(&hold.task.link);
    loop_post(hold.x->worker->loop, &hold.task);
}

static void fake_run(struct exchange *x)
{
    if (!atomic_load(&hold.wait_for_gone)) {
        exchange_run(x);
        return;
    }
    hold.x = x;
    x->work->op.name = (struct slice){x->work->name, x->work->name_len};
    x->work->op.done = hold_done;
    exchange_park(x);
    if (stream_start(x->worker->engine, &x->work->op) != STREAM_PENDING) {
        hold_done(&x->work->op);
    }
    (void)sem_post(&hold.under_way);
}

static void post_ended(struct post *post, int result)
{
    hold.done(post, result);
    (void)sem_post(&hold.ended);
}

static void fake_start(struct poster *p, struct post *post)
{
    if (!atomic_load(&hold.wait_for_end)) {
        poster_start(p, post);
        return;
    }
    hold.done = post->done;
    post->done = post_ended;
    poster_start(p, post);
    (void)sem_wait(&hold.ended);
}

/* ---------------------------------------------------------------------------------- the tests */

struct test {
    sem_t woken;
    struct app_rig rig;
    struct app_answer answer;
};

static int fake_wake(void *context, struct slice thread_id, struct slice entry_id,
                     struct errmsg *msg)
{
    (void)thread_id;
    (void)entry_id;
    (void)msg;
    (void)sem_post(context);
    return 0;
}

static int set_up(void **state)
{
    struct test *t = calloc(1, sizeof(*t));

    assert_non_null(t);
    (void)sem_init(&t->woken, 0, 0);
    (void)sem_init(&hold.under_way, 0, 0);
    (void)sem_init(&hold.ended, 0, 0);
    t->rig.director = (struct director){.context = &t->woken, .wake = fake_wake};
    app_rig_open(&t->rig);
    *state = t;
    return 0;
}

static int tear_down(void **state)
{
    struct test *t = *state;

    atomic_store(&hold.wait_for_gone, false);
    atomic_store(&hold.wait_for_end, false);
    app_rig_close(&t->rig);
    (void)sem_destroy(&t->woken);
    free(t);
    return 0;
}

#define CHAT(text) "{\"payload\":{\"type\":\"chat\",\"text\":\"" text "\"}}"

/* Posts, so that caller and thread are known by heart. */
static void warm(struct test *t)
{
    assert_int_equal(
        app_rig_ask(&t->rig, "POST", app_rig_path(&t->rig, "/entries"), CHAT("warm"), &t->answer),
        201);
    (void)sem_wait(&t->woken);
}

static int64_t number_of(const char *json, const char *name)
{
    char pattern[64];

    (void)snprintf(pattern, sizeof(pattern), "\"%s\":", name);
    const char *at = strstr(json, pattern);

    assert_non_null(at);
    return strtoll(at + strlen(pattern), NULL, 10);
}

/* A client that goes before its entry is stored: it is stored, and what goes with that happens. */
static void a_gone_client_s_entry_counts(void **state)
{
    const struct linger reset = {.l_onoff = 1, .l_linger = 0};
    struct test *t = *state;

    warm(t);
    int fd = app_rig_connect(&t->rig);

    atomic_store(&hold.wait_for_gone, true);
    app_rig_send(&t->rig, fd, "POST", app_rig_path(&t->rig, "/entries"), "", CHAT("gone"));
    (void)sem_wait(&hold.under_way);
    assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_LINGER, &reset, sizeof(reset)), 0);
    (void)close(fd);
    (void)sem_wait(&t->woken);
    atomic_store(&hold.wait_for_gone, false);
    assert_int_equal(app_rig_ask(&t->rig, "GET", app_rig_path(&t->rig, "/entries"), "", &t->answer),
                     200);
    const char *entry = strstr(t->answer.body, "\"gone\"");

    assert_non_null(entry);
    while (strncmp(entry, "\"ts\":", 5) != 0) {
        entry--;
    }
    int64_t ts = number_of(entry, "ts");

    assert_int_equal(app_rig_ask(&t->rig, "GET", app_rig_path(&t->rig, ""), "", &t->answer), 200);
    assert_true(number_of(t->answer.body, "lastEntryTs") >= ts);
}

/* A post that has ended before its handler returns is answered with its result. */
static void a_quick_end_is_not_lost(void **state)
{
    struct test *t = *state;

    warm(t);
    atomic_store(&hold.wait_for_end, true);
    assert_int_equal(
        app_rig_ask(&t->rig, "POST", app_rig_path(&t->rig, "/entries"),
                    "{\"id\":\"quick\",\"payload\":{\"type\":\"chat\",\"text\":\"x\"}}",
                    &t->answer),
        201);
    assert_non_null(strstr(t->answer.body, "\"id\":\"quick\""));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest entry_tests[] = {
        TEST(a_gone_client_s_entry_counts),
        TEST(a_quick_end_is_not_lost),
    };

    return UNIT_RUN(entry_tests);
}
