/* A director that is woken, one that fails, and one that is slow when the server ends. */
#include "unit/base/fault.h"

#include "thread/store_outbox.h"

static int fake_outbox_add(struct thread_store *s, const struct outbox_item *items, size_t count,
                           struct errmsg *msg);

#define store_outbox_add fake_outbox_add
#include "app/waking.c"
#undef store_outbox_add

#include "unit/app/app_rig.h"

#include <semaphore.h>

static atomic_bool store_fails;

static int fake_outbox_add(struct thread_store *s, const struct outbox_item *items, size_t count,
                           struct errmsg *msg)
{
    return atomic_load(&store_fails) ? ERR_IO : store_outbox_add(s, items, count, msg);
}

/* A director that does as it is told. */
struct fake_director {
    atomic_uint wakes;
    atomic_bool fails;
    sem_t woken;  /* posted at the begin of each wake */
    sem_t let_go; /* waited for in each wake, when it is slow */
    bool slow;
    pthread_mutex_t mutex;          /* of what follows */
    char thread_id[STORE_ID_BYTES]; /* of the last */
    char entry_id[ENTRY_ID_BYTES];
};

static int fake_wake(void *context, struct slice thread_id, struct slice entry_id,
                     struct errmsg *msg)
{
    struct fake_director *d = context;

    (void)pthread_mutex_lock(&d->mutex);
    (void)snprintf(d->thread_id, sizeof(d->thread_id), "%.*s", (int)thread_id.len, thread_id.ptr);
    (void)snprintf(d->entry_id, sizeof(d->entry_id), "%.*s", (int)entry_id.len, entry_id.ptr);
    (void)pthread_mutex_unlock(&d->mutex);
    (void)atomic_fetch_add(&d->wakes, 1);
    (void)sem_post(&d->woken);
    if (d->slow) {
        (void)sem_wait(&d->let_go);
    }
    return atomic_load(&d->fails) ? err_set(msg, ERR_IO, "the model said \"no\"") : 0;
}

struct test {
    struct fake_director director;
    struct app_rig rig;
    struct app_answer answer;
};

static int set_up(void **state)
{
    struct test *t = calloc(1, sizeof(*t));

    assert_non_null(t);
    (void)sem_init(&t->director.woken, 0, 0);
    (void)sem_init(&t->director.let_go, 0, 0);
    (void)pthread_mutex_init(&t->director.mutex, NULL);
    t->rig.director = (struct director){.context = &t->director, .wake = fake_wake};
    *state = t;
    return 0;
}

static int tear_down(void **state)
{
    struct test *t = *state;

    (void)sem_destroy(&t->director.woken);
    (void)sem_destroy(&t->director.let_go);
    free(t);
    return 0;
}

#define HELLO "{\"payload\":{\"type\":\"chat\",\"text\":\"hello\"}}"

/* Posts, and gives the id of the entry. */
static void post(struct test *t, char *ret_id, size_t size)
{
    assert_int_equal(
        app_rig_ask(&t->rig, "POST", app_rig_path(&t->rig, "/entries"), HELLO, &t->answer), 201);
    app_rig_member(t->answer.body, "id", ret_id, size);
}

/* Reads the thread from `offset` on, waiting for something to come; the offset moves on. */
static void read_on(struct test *t, char *offset, size_t size)
{
    char path[256];
    const char *next;

    (void)snprintf(path, sizeof(path), "/api/threads/%s/stream?live=long-poll&offset=%s",
                   t->rig.thread_id, offset);
    assert_int_equal(app_rig_ask(&t->rig, "GET", path, "", &t->answer), 200);
    next = strstr(t->answer.text, "Stream-Next-Offset: ");
    assert_non_null(next);
    next += strlen("Stream-Next-Offset: ");
    (void)snprintf(offset, size, "%.*s", (int)strcspn(next, "\r"), next);
}

/* Each post wakes it, with the thread and the entry. */
static void a_post_wakes(void **state)
{
    struct test *t = *state;
    char id[64];

    app_rig_open(&t->rig);
    post(t, id, sizeof(id));
    (void)sem_wait(&t->director.woken);
    assert_string_equal(t->director.thread_id, t->rig.thread_id);
    assert_string_equal(t->director.entry_id, id);
    assert_int_equal(app_rig_ask(&t->rig, "POST", app_rig_path(&t->rig, "/entries"),
                                 "{\"id\":\"mine\",\"payload\":{\"type\":\"chat\",\"text\":\"x\"}}",
                                 &t->answer),
                     201);
    (void)sem_wait(&t->director.woken);
    assert_string_equal(t->director.entry_id, "mine");
    app_rig_close(&t->rig);
    assert_int_equal(atomic_load(&t->director.wakes), 2);
}

/* A wake that fails leaves the message, and the thread is told behind it, with the reason. */
static void a_failure_is_told(void **state)
{
    struct test *t = *state;
    char offset[64] = "-1";
    char id[64];
    char wanted[256];
    const char *message = NULL;
    const char *failure = NULL;

    atomic_store(&t->director.fails, true);
    app_rig_open(&t->rig);
    post(t, id, sizeof(id));
    while (failure == NULL) {
        read_on(t, offset, sizeof(offset));
        const char *here = strstr(t->answer.body, "\"text\":\"hello\"");

        message = here == NULL ? message : here;
        failure = strstr(t->answer.body, "\"signal.thread_director.failed\"");
        assert_true(failure == NULL || message != NULL);
        assert_true(failure == NULL || here == NULL || here < failure);
    }
    (void)snprintf(wanted, sizeof(wanted),
                   "\"reason\":\"the model said \\\"no\\\"\",\"entryId\":\"%s\"", id);
    assert_non_null(strstr(failure, wanted));
    app_rig_close(&t->rig);
}

/* Wakes that wait when the server ends are made before what they need has gone. */
static void waiting_wakes_are_made_at_the_end(void **state)
{
    struct test *t = *state;
    char id[64];
    const unsigned count = 12;

    atomic_store(&t->director.fails, true);
    t->director.slow = true;
    t->rig.thread_count = 2;
    app_rig_open(&t->rig);
    struct app *app = t->rig.app;

    for (unsigned i = 0; i < count; i++) {
        char thread[64];

        (void)snprintf(thread, sizeof(thread), "no-thread-%u", i);
        (void)snprintf(id, sizeof(id), "e%u", i);
        waking_start(app, slice_of(thread), slice_of(id));
    }
    (void)sem_wait(&t->director.woken);
    app_rig_stop(&t->rig);
    for (unsigned i = 0; i < count; i++) {
        (void)sem_post(&t->director.let_go);
    }
    app_rig_join(&t->rig);
    assert_int_equal(atomic_load(&t->director.wakes), count);
}

/* However much is posted while a thread waits for its wake, it waits for one, about the newest. */
static void a_thread_waits_once(void **state)
{
    struct test *t = *state;
    char id[64];

    t->director.slow = true;
    t->rig.thread_count = 1;
    app_rig_open(&t->rig);
    waking_start(t->rig.app, SLICE("busy"), SLICE("first"));
    (void)sem_wait(&t->director.woken); /* it runs, and holds the one thread */
    for (unsigned i = 0; i < 100; i++) {
        (void)snprintf(id, sizeof(id), "e%u", i);
        waking_start(t->rig.app, SLICE("busy"), slice_of(id));
        waking_start(t->rig.app, SLICE("other"), slice_of(id));
    }
    for (unsigned i = 0; i < 3; i++) {
        (void)sem_post(&t->director.let_go);
    }
    app_rig_close(&t->rig);
    assert_int_equal(atomic_load(&t->director.wakes), 3);
    assert_string_equal(t->director.thread_id, "other");
    assert_string_equal(t->director.entry_id, "e99");
}

/* The next line of the log. */
static void read_line(FILE *log, char *line, size_t size)
{
    assert_non_null(fgets(line, (int)size, log));
}

/* What cannot be told to the thread, or not even be begun, is told to the operator; the message
 * stays, and later ones wake as ever. */
static void what_cannot_be_told_is_logged(void **state)
{
    struct test *t = *state;
    char line[512];
    char id[64];
    int ends[2];

    assert_int_equal(pipe(ends), 0);
    FILE *log = fdopen(ends[0], "r");

    assert_non_null(log);
    t->rig.log_fd = ends[1];
    atomic_store(&t->director.fails, true);
    app_rig_open(&t->rig);
    atomic_store(&store_fails, true);
    post(t, id, sizeof(id));
    read_line(log, line, sizeof(line));
    assert_non_null(strstr(line, "the director was not woken for thread"));
    assert_non_null(strstr(line, "could not be told"));
    atomic_store(&store_fails, false);
    atomic_store(&t->director.fails, false);
    fault_countdown = 0;
    waking_start(t->rig.app, slice_of(t->rig.thread_id), SLICE("e"));
    fault_countdown = -1;
    read_line(log, line, sizeof(line));
    assert_non_null(strstr(line, "out of memory"));
    post(t, id, sizeof(id));
    app_rig_close(&t->rig);
    assert_int_equal(atomic_load(&t->director.wakes), 2);
    (void)fclose(log);
    (void)close(ends[1]);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest waking_tests[] = {
        TEST(a_post_wakes),
        TEST(a_failure_is_told),
        TEST(a_thread_waits_once),
        TEST(what_cannot_be_told_is_logged),
        TEST(waiting_wakes_are_made_at_the_end),
    };

    return UNIT_RUN(waking_tests);
}
