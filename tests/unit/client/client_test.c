/* The client's thread over a transport that carries nothing: tasks, timers, parties and their
 * abort, also from a signal handler, the descriptor for event loops, and what is remembered. */
#include "unit/base/fault.h"

#include <poll.h>
#include <stdio.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <unistd.h>

/* Run once, at the places that their names say. */
static void (*before_next_write)(void);
static void (*after_next_read)(void);

static void run_once(void (**hook)(void))
{
    void (*run_it)(void) = *hook;

    if (run_it != NULL) {
        *hook = NULL;
        run_it();
    }
}

static ssize_t hooked_write(int fd, const void *bytes, size_t len)
{
    run_once(&before_next_write);
    return write(fd, bytes, len);
}

static ssize_t hooked_read(int fd, void *bytes, size_t size)
{
    ssize_t n = read(fd, bytes, size);

    run_once(&after_next_read);
    return n;
}

#define write hooked_write
#define read  hooked_read
#include "client/client.c"
#undef write
#undef read

#include "unit/base/unit.h"

/* A transport that only waits. */
struct idle {
    struct transport base;
    bool destroyed;
    int nudge; /* an eventfd that ends a wait as the network would; -1: none */

    pthread_mutex_t mutex; /* guards what follows */
    pthread_cond_t waits;
    unsigned turns;   /* how often the thread has come to wait */
    bool finds_order; /* the last time there was an order in the pipe already */
};

static bool readable(int fd)
{
    struct pollfd polled = {.fd = fd, .events = POLLIN};

    return poll(&polled, 1, 0) == 1;
}

static void idle_wait(struct transport *t, int wake_fd, int timeout_ms)
{
    struct idle *idle = container_of(t, struct idle, base);
    struct pollfd polled[] = {{.fd = wake_fd, .events = POLLIN},
                              {.fd = idle->nudge, .events = POLLIN}};
    eventfd_t value;

    (void)pthread_mutex_lock(&idle->mutex);
    idle->turns++;
    idle->finds_order = readable(wake_fd);
    (void)pthread_cond_broadcast(&idle->waits);
    (void)pthread_mutex_unlock(&idle->mutex);
    (void)poll(polled, ARRAY_COUNT(polled), timeout_ms);
    if (polled[1].revents != 0) {
        (void)eventfd_read(idle->nudge, &value);
    }
}

static void idle_destroy(struct transport *t)
{
    container_of(t, struct idle, base)->destroyed = true;
}

static const struct transport_ops idle_ops = {.wait = idle_wait, .destroy = idle_destroy};

#define IDLE                                                                         \
    (struct idle)                                                                    \
    {                                                                                \
        .base = {.ops = &idle_ops}, .nudge = -1, .mutex = PTHREAD_MUTEX_INITIALIZER, \
        .waits = PTHREAD_COND_INITIALIZER,                                           \
    }

struct fixture {
    struct idle idle;
    struct stream_client *client;
};

static void setup(struct fixture *f)
{
    *f = (struct fixture){.idle = IDLE};
    f->idle.nudge = eventfd(0, EFD_CLOEXEC);
    assert_true(f->idle.nudge >= 0);
    assert_int_equal(client_new(&f->idle.base, NULL, &f->client, NULL), STREAM_OK);
    assert_ptr_equal(client_transport(f->client), &f->idle.base);
}

static void finish(struct fixture *f)
{
    stream_client_free(f->client);
    assert_true(f->idle.destroyed);
    assert_int_equal(close(f->idle.nudge), 0);
}

/* ---------------------------------------------------------------------------------------- tasks */

struct counted {
    struct task task;
    unsigned *next; /* turn of the next one */
    unsigned turn;  /* which this one had */
};

static void count(struct task *task)
{
    struct counted *counted = container_of(task, struct counted, task);

    counted->turn = (*counted->next)++;
}

/* Tasks run in order, and client_run comes back after its own. */
static void test_tasks(void **state)
{
    struct counted tasks[100];
    unsigned next = 0;
    struct fixture f;

    (void)state;
    setup(&f);
    for (unsigned i = 0; i < 100; i++) {
        tasks[i] = (struct counted){.task = {.run = count}, .next = &next};
        if (i < 99) {
            client_post(f.client, &tasks[i].task);
        } else {
            client_run(f.client, &tasks[i].task);
        }
    }
    for (unsigned i = 0; i < 100; i++) {
        assert_int_equal(tasks[i].turn, i);
    }
    finish(&f);
}

/* --------------------------------------------------------------------------------------- orders */

static struct fixture *hooked; /* what the hooks below act upon */
static struct counted *other;

/* Waits until the thread has come to wait so many times. */
static void await_turns(struct idle *idle, unsigned turns)
{
    (void)pthread_mutex_lock(&idle->mutex);
    while (idle->turns < turns) {
        (void)pthread_cond_wait(&idle->waits, &idle->mutex);
    }
    (void)pthread_mutex_unlock(&idle->mutex);
}

/* The thread has come to wait so many times and no more, and only a new order ends that. */
static void expect_rest(struct fixture *f, unsigned turns)
{
    await_turns(&f->idle, turns);
    (void)pthread_mutex_lock(&f->idle.mutex);
    assert_int_equal(f->idle.turns, turns);
    assert_false(f->idle.finds_order);
    assert_false(atomic_load(&f->client->waking));
    (void)pthread_mutex_unlock(&f->idle.mutex);
}

static void turn_by_network(void)
{
    assert_int_equal(eventfd_write(hooked->idle.nudge, 1), 0);
    await_turns(&hooked->idle, 2);
}

/* The network gives the thread a turn while somebody has said that there is an order and has not
 * put it into the pipe yet. It is taken out all the same: one that stays would end each wait at
 * once. */
static void test_order_comes_late(void **state)
{
    unsigned next = 0;
    struct counted task = {.task = {.run = count}, .next = &next};
    struct fixture f;

    (void)state;
    setup(&f);
    await_turns(&f.idle, 1);
    hooked = &f;
    before_next_write = turn_by_network;
    client_post(f.client, &task.task);
    expect_rest(&f, 3); /* one turn by the network, one by the order */
    client_run(f.client, &task.task);
    expect_rest(&f, 4);
    assert_int_equal(next, 2);
    finish(&f);
}

static void post_other(void)
{
    client_post(hooked->client, &other->task);
}

/* An order that comes when the one before it was just taken out is carried out in the same turn,
 * and the next one finds the thread ready. */
static void test_order_comes_between(void **state)
{
    unsigned next = 0;
    struct counted first = {.task = {.run = count}, .next = &next};
    struct counted second = first;
    struct fixture f;

    (void)state;
    setup(&f);
    await_turns(&f.idle, 1);
    hooked = &f;
    other = &second;
    after_next_read = post_other;
    client_post(f.client, &first.task);
    expect_rest(&f, 2);
    assert_int_equal(next, 2);
    assert_int_equal(second.turn, 1);
    client_run(f.client, &first.task);
    expect_rest(&f, 3);
    finish(&f);
}

/* --------------------------------------------------------------------------------------- timers */

struct timed {
    struct task task;
    struct stream_client *client;
    struct client_timer timers[3];
    unsigned order[3];
    unsigned fired;
    unsigned again;
    pthread_mutex_t mutex;
    pthread_cond_t end;
    bool ended;
};

static void end_timed(struct timed *t)
{
    (void)pthread_mutex_lock(&t->mutex);
    t->ended = true;
    (void)pthread_cond_signal(&t->end);
    (void)pthread_mutex_unlock(&t->mutex);
}

static void fire_first(struct client_timer *timer)
{
    struct timed *t = container_of(timer, struct timed, timers[0]);

    t->order[t->fired++] = 0;
    end_timed(t);
}

static void fire_second(struct client_timer *timer)
{
    struct timed *t = container_of(timer, struct timed, timers[1]);

    if (++t->again < 3) {
        client_timer_start(t->client, timer, 0); /* from within */
        return;
    }
    t->order[t->fired++] = 1;
    client_timer_start(t->client, &t->timers[0], 1); /* sooner than it was */
}

static void fire_never(struct client_timer *timer)
{
    (void)timer;
    fail();
}

static void start_timers(struct task *task)
{
    struct timed *t = container_of(task, struct timed, task);

    client_timer_init(&t->timers[0], fire_first);
    client_timer_init(&t->timers[1], fire_second);
    client_timer_init(&t->timers[2], fire_never);
    client_timer_start(t->client, &t->timers[0], 1);
    client_timer_start(t->client, &t->timers[0], 3600000); /* later than it was */
    client_timer_start(t->client, &t->timers[1], 5);
    client_timer_start(t->client, &t->timers[2], 10);
    client_timer_stop(&t->timers[2]);
    client_timer_stop(&t->timers[2]); /* twice is fine */
}

static void test_timers(void **state)
{
    struct fixture f;

    (void)state;
    setup(&f);
    struct timed t = {.task = {.run = start_timers}, .client = f.client};

    (void)pthread_mutex_init(&t.mutex, NULL);
    (void)pthread_cond_init(&t.end, NULL);
    client_post(f.client, &t.task);
    (void)pthread_mutex_lock(&t.mutex);
    while (!t.ended) {
        (void)pthread_cond_wait(&t.end, &t.mutex);
    }
    (void)pthread_mutex_unlock(&t.mutex);
    assert_int_equal(t.fired, 2);
    assert_int_equal(t.order[0], 1);
    assert_int_equal(t.order[1], 0);
    finish(&f);
}

/* -------------------------------------------------------------------------------------- parties */

struct guest {
    struct client_party party;
    struct task task;
    struct stream_client *client;
    struct guest *with; /* leaves together with this one; NULL: alone */
    atomic_uint told;
};

static void tell_guest(struct client_party *party)
{
    struct guest *guest = container_of(party, struct guest, party);

    atomic_fetch_add(&guest->told, 1);
    client_party_leave(party);
    if (guest->with != NULL) {
        client_party_leave(&guest->with->party);
    }
}

static void join(struct task *task)
{
    struct guest *guest = container_of(task, struct guest, task);

    client_party_join(guest->client, &guest->party);
}

static void invite(struct fixture *f, struct guest *guest)
{
    *guest = (struct guest){.task = {.run = join}, .client = f->client};
    client_party_init(&guest->party, tell_guest);
}

static void nothing(struct task *task)
{
    (void)task;
}

/* Waits until the thread has done all that it was told so far. */
static void settle(struct fixture *f)
{
    struct task task = {.run = nothing};

    client_run(f->client, &task);
    client_run(f->client, &task);
}

/* The one that is aborted is told, once, and no other; an abort before it joined counts as well. */
static void test_party_abort(void **state)
{
    struct guest one;
    struct guest two;
    struct guest early;
    struct fixture f;

    (void)state;
    setup(&f);
    invite(&f, &one);
    invite(&f, &two);
    invite(&f, &early);
    client_run(f.client, &one.task);
    client_run(f.client, &two.task);
    client_party_abort(f.client, &one.party);
    client_party_abort(f.client, &one.party);
    settle(&f);
    assert_int_equal(atomic_load(&one.told), 1);
    assert_int_equal(atomic_load(&two.told), 0);
    client_party_abort(f.client, &early.party);
    client_run(f.client, &early.task);
    settle(&f);
    assert_int_equal(atomic_load(&early.told), 1);
    assert_false(client_aborted(f.client));
    finish(&f); /* tells the last */
    assert_int_equal(atomic_load(&two.told), 1);
}

/* All are told when the client is, those that come later too, until that is taken back. */
static void test_client_abort(void **state)
{
    struct guest guests[4];
    struct fixture f;

    (void)state;
    setup(&f);
    for (size_t i = 0; i < ARRAY_COUNT(guests); i++) {
        invite(&f, &guests[i]);
    }
    guests[0].with = &guests[1];
    for (size_t i = 0; i < 2; i++) {
        client_run(f.client, &guests[i].task);
    }
    stream_client_abort(f.client);
    assert_true(client_aborted(f.client));
    client_run(f.client, &guests[2].task);
    settle(&f);
    assert_int_equal(atomic_load(&guests[0].told), 1);
    assert_int_equal(atomic_load(&guests[1].told), 0); /* left with the first */
    assert_int_equal(atomic_load(&guests[2].told), 1);
    stream_client_reset(f.client);
    assert_false(client_aborted(f.client));
    client_run(f.client, &guests[3].task);
    settle(&f);
    assert_int_equal(atomic_load(&guests[3].told), 0);
    finish(&f);
}

static struct stream_client *signalled;

static void on_signal(int number)
{
    (void)number;
    stream_client_abort(signalled);
}

/* An abort from a signal handler leaves errno alone, however often it comes. */
static void test_signal(void **state)
{
    struct sigaction action = {.sa_handler = on_signal};
    struct guest guest;
    struct fixture f;

    (void)state;
    setup(&f);
    signalled = f.client;
    assert_int_equal(sigaction(SIGUSR1, &action, NULL), 0);
    invite(&f, &guest);
    client_run(f.client, &guest.task);
    errno = ENOTTY;
    for (int i = 0; i < 100000; i++) {
        assert_int_equal(raise(SIGUSR1), 0); /* more than a pipe holds */
    }
    assert_int_equal(errno, ENOTTY);
    settle(&f);
    assert_int_equal(atomic_load(&guest.told), 1);
    finish(&f);
}

/* --------------------------------------------------------------------------- for event loops */

/* The descriptor is readable as long as there is a reason, whenever it was asked for. */
static void test_ready(void **state)
{
    struct counted done = {.task = {.run = count}};
    unsigned next = 0;
    struct fixture f;

    (void)state;
    setup(&f);
    done.next = &next;
    client_ready_add(f.client);
    client_ready_add(f.client);
    int fd = stream_client_fd(f.client);

    assert_int_equal(fd, stream_client_fd(f.client));
    assert_true(readable(fd));
    client_ready_drop(f.client);
    assert_true(readable(fd));
    client_ready_drop(f.client);
    assert_false(readable(fd));
    client_finish(f.client, &done.task);
    assert_true(readable(fd));
    assert_int_equal(next, 0);
    stream_client_step(f.client);
    assert_int_equal(next, 1);
    assert_false(readable(fd));
    stream_client_step(f.client);
    finish(&f);
}

/* What is left for a step when the client is freed is done then. */
static void test_finish_at_free(void **state)
{
    struct counted done = {.task = {.run = count}};
    unsigned next = 0;
    struct fixture f;

    (void)state;
    setup(&f);
    done.next = &next;
    client_finish(f.client, &done.task);
    finish(&f);
    assert_int_equal(next, 1);
}

/* ------------------------------------------------------------------------------------ the rest */

/* Types are remembered by name; an empty one forgets, and the memory is bounded. */
static void test_types(void **state)
{
    struct fixture f;
    char type[256];
    char name[32];
    unsigned found = 0;

    (void)state;
    setup(&f);
    assert_false(client_type_find(f.client, SLICE("a"), type));
    assert_string_equal(type, "");
    client_type_note(f.client, SLICE("a"), "text/plain");
    assert_true(client_type_find(f.client, SLICE("a"), type));
    assert_string_equal(type, "text/plain");
    client_type_note(f.client, SLICE("a"), "application/json");
    assert_true(client_type_find(f.client, SLICE("a"), type));
    assert_string_equal(type, "application/json");
    client_type_note(f.client, SLICE("a"), "");
    assert_false(client_type_find(f.client, SLICE("a"), type));
    for (unsigned i = 0; i < 10 * TYPES; i++) {
        (void)snprintf(name, sizeof(name), "stream-%u", i);
        client_type_note(f.client, slice_of(name), "a/b");
        assert_true(client_type_find(f.client, slice_of(name), type));
    }
    for (unsigned i = 0; i < 10 * TYPES; i++) {
        (void)snprintf(name, sizeof(name), "stream-%u", i);
        found += client_type_find(f.client, slice_of(name), type);
    }
    assert_in_range(found, TYPES / 2, TYPES);
    fault_countdown = 0;
    client_type_note(f.client, SLICE("b"), "a/b");
    fault_countdown = -1;
    assert_false(client_type_find(f.client, SLICE("b"), type));
    finish(&f);
}

/* Options without sense are refused by name; the texts are not kept. */
static void test_options(void **state)
{
    struct stream_client_options options;
    struct stream_error error;
    struct stream_client *client;
    const struct {
        int *option;
        int value;
        const char *name;
    } cases[] = {
        {&options.connect_timeout_ms, 0, "connect_timeout_ms"},
        {&options.request_timeout_ms, -1, "request_timeout_ms"},
        {&options.idle_timeout_ms, -1, "idle_timeout_ms"},
        {&options.max_connections, 0, "max_connections"},
        {&options.retry.max_retries, -2, "retry.max_retries"},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
        struct idle idle = IDLE;

        stream_client_options_init(&options);
        *cases[i].option = cases[i].value;
        assert_int_equal(client_new(&idle.base, &options, &client, &error), STREAM_ERROR_ARGUMENT);
        assert_non_null(strstr(error.message, cases[i].name));
        assert_true(idle.destroyed);
        assert_int_equal(stream_client_new("http://h/", &options, &client, &error),
                         STREAM_ERROR_ARGUMENT);
    }
    stream_client_options_init(&options);
    options.max_message_bytes = 0;
    assert_int_equal(stream_client_new("http://h/", &options, &client, &error),
                     STREAM_ERROR_ARGUMENT);
    stream_client_options_init(&options);
    options.bearer = "b";
    assert_int_equal(stream_client_new("http://h/", &options, &client, &error), STREAM_OK);
    assert_null(client_options(client)->bearer);
    assert_int_equal(client_options(client)->max_connections, 8);
    stream_client_free(client);
    stream_client_free(NULL);
}

/* Without memory, or without descriptors, there is no client. */
static void test_no_memory(void **state)
{
    struct idle idle = IDLE;
    struct stream_client *client;
    struct stream_error error;

    (void)state;
    fault_countdown = 0;
    assert_int_equal(client_new(&idle.base, NULL, &client, &error), STREAM_ERROR_MEMORY);
    fault_countdown = -1;
    assert_true(idle.destroyed);
}

/* Nor without descriptors; a program that has none left when it asks for one is told so. */
static void test_no_descriptors(void **state)
{
    struct idle idle = IDLE;
    struct rlimit before;
    struct stream_client *client;
    struct stream_error error;
    struct fixture f;

    (void)state;
    setup(&f);
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
    struct rlimit none = {.rlim_cur = 0, .rlim_max = before.rlim_max};

    assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
    int code = client_new(&idle.base, NULL, &client, &error);
    int fd = stream_client_fd(f.client);

    assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
    assert_int_equal(code, STREAM_ERROR_MEMORY);
    assert_string_equal(error.message, "no file descriptor is left");
    assert_true(idle.destroyed);
    assert_int_equal(fd, -1);
    client_ready_add(f.client);
    assert_true(readable(stream_client_fd(f.client))); /* there are some again */
    client_ready_drop(f.client);
    finish(&f);
}

/* Calls that are started and not told of are bounded. */
static void test_started(void **state)
{
    struct fixture f;

    (void)state;
    setup(&f);
    for (unsigned i = 0; i < CLIENT_STARTED_MAX; i++) {
        assert_true(client_started_add(f.client));
    }
    assert_false(client_started_add(f.client));
    client_started_drop(f.client);
    assert_true(client_started_add(f.client));
    finish(&f);
}

/* Jitter is not the same number again and again. */
static void test_dice(void **state)
{
    struct fixture f;

    (void)state;
    setup(&f);
    assert_int_not_equal(client_dice(f.client), client_dice(f.client));
    finish(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_tasks),
        cmocka_unit_test(test_order_comes_late),
        cmocka_unit_test(test_order_comes_between),
        cmocka_unit_test(test_timers),
        cmocka_unit_test(test_party_abort),
        cmocka_unit_test(test_client_abort),
        cmocka_unit_test(test_signal),
        cmocka_unit_test(test_ready),
        cmocka_unit_test(test_finish_at_free),
        cmocka_unit_test(test_types),
        cmocka_unit_test(test_options),
        cmocka_unit_test(test_no_memory),
        cmocka_unit_test(test_no_descriptors),
        cmocka_unit_test(test_started),
        cmocka_unit_test(test_dice),
    };

    return UNIT_RUN(tests);
}
