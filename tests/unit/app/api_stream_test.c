/* Live reads whose right is taken away before they have begun to wait. */
#include "serve/handlers.h"

#include "serve/exchange.h"

static int fake_prepare(struct exchange *x, struct errmsg *msg);

#define catchup_prepare fake_prepare
#include "app/api_stream.c"
#undef catchup_prepare

#include "unit/app/app_rig.h"

#include <semaphore.h>
#include <stdatomic.h>

static struct {
    atomic_bool armed;
    sem_t begun; /* a first read is to begin, and is held */
    struct task task;
    struct exchange *x;
} hold;

/* As if the first read had waited for the disk. */
static void hold_read(struct exchange *x)
{
    hold.x = x;
    exchange_park(x);
    (void)sem_post(&hold.begun);
}

static void go_on(struct task *task)
{
    struct session *s = hold.x->session;

    (void)task;
    conn_pause(&s->conn, false);
    exchange_run(hold.x);
    session_advance(s);
}

static int fake_prepare(struct exchange *x, struct errmsg *msg)
{
    int code = catchup_prepare(x, msg);

    if (atomic_load(&hold.armed)) {
        x->ready = hold_read;
    }
    return code;
}

/* Begins a live read at the end, and takes the thread away during its first look. */
static void read_and_revoke(struct app_rig *rig, int fd, const char *live)
{
    char below[64];

    (void)snprintf(below, sizeof(below), "/stream?offset=now&live=%s", live);
    (void)sem_init(&hold.begun, 0, 0);
    atomic_store(&hold.armed, true);
    app_rig_send(rig, fd, "GET", app_rig_path(rig, below), "", "");
    (void)sem_wait(&hold.begun);
    atomic_store(&hold.armed, false);
    app_revoke(rig->app, &(struct revocation){.house_id = slice_of(rig->house_id)});
    hold.task = (struct task){.run = go_on};
    list_init(&hold.task.link);
    loop_post(hold.x->worker->loop, &hold.task); /* behind the revocation */
}

/* Whose right went during the first look does not begin to wait, nor to follow. */
static void ends(const char *live)
{
    struct app_rig rig = {.port = 0};
    struct app_answer *a = calloc(1, sizeof(*a));

    assert_non_null(a);
    app_rig_open(&rig);
    int fd = app_rig_connect(&rig);

    read_and_revoke(&rig, fd, live);
    assert_true(app_rig_receive(fd, a));
    assert_int_equal(a->status, 403);
    (void)close(fd);
    app_rig_close(&rig);
    free(a);
}

static void a_long_poll_ends(void **state)
{
    (void)state;
    ends("long-poll");
}

static void an_sse_stream_ends(void **state)
{
    (void)state;
    ends("sse");
}

int main(void)
{
    const struct CMUnitTest stream_tests[] = {
        cmocka_unit_test(a_long_poll_ends),
        cmocka_unit_test(an_sse_stream_ends),
    };

    return UNIT_RUN(stream_tests);
}
