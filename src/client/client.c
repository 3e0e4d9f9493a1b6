/* The thread's turn: wait for the transport, the pipe or a timer; run the tasks that others posted;
 * tell parties that they are aborted; run the timers that are due. Everything that is not marked
 * otherwise in struct stream_client belongs to this thread.
 *
 * The pipe: whoever wants the thread to look sets `waking`, and writes a byte only when it was not
 * set yet. The thread takes the byte out, clears `waking`, and looks after that, so that nothing is
 * missed. Without a byte it does not clear: somebody stands between the two steps, and a byte that
 * comes while `waking` is clear would be left in the pipe and turn the thread for nothing. Both
 * steps are safe in signal handlers, which is how an abort comes in. */
#include "client/client.h"

#include "base/dice.h"
#include "base/limits.h"
#include "client/retry.h"
#include "client/transport_http.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>

#define TYPES 512u /* slots for content types that are remembered; a newer one takes the slot */

/* What is known of a stream's content type. */
struct type {
    char *name; /* not terminated; owned, as the type behind it */
    size_t name_len;
    char *type;
};

struct stream_client {
    struct stream_client_options options; /* constant */
    struct transport *transport;          /* owned */
    pthread_t thread;
    struct list timers;
    struct list parties;
    uint64_t dice;

    int wake[2];            /* the pipe; the reading end is the thread's */
    atomic_bool waking;     /* any thread, signal handlers: a byte is in it, or on its way */
    atomic_bool aborted;    /* likewise: by stream_client_abort */
    atomic_bool abort_news; /* likewise: look at the parties */
    atomic_bool stopping;   /* by stream_client_free */
    pthread_mutex_t mutex;  /* guards what follows */
    pthread_cond_t ran;     /* a task of client_run has run */
    struct list inbox;      /* tasks for the thread */
    struct list finished;   /* tasks for stream_client_step */
    unsigned started_count; /* calls that were started and not told of */
    int ready_count;        /* reasons for the descriptor to be readable */
    int ready[2];           /* its pipe; -1 before it is asked for */
    struct type types[TYPES];
};

uint64_t client_now_ms(void)
{
    struct timespec ts;

    (void)clock_gettime(CLOCK_MONOTONIC, &ts); /* cannot fail for this clock */
    return (uint64_t)ts.tv_sec * 1000 + (uint64_t)ts.tv_nsec / 1000000;
}

uint64_t client_dice(struct stream_client *c)
{
    return dice_roll(&c->dice);
}

/* Any thread, and signal handlers. */
static void wake(struct stream_client *c)
{
    int saved = errno;

    if (!atomic_exchange(&c->waking, true)) {
        /* A full pipe wakes just as well, and the reading end is open as long as the client is. */
        (void)!write(c->wake[1], "", 1);
    }
    errno = saved;
}

/* Whether there was anything in it. */
static bool empty_pipe(int fd)
{
    char bytes[64];
    bool found = false;

    while (read(fd, bytes, sizeof(bytes)) > 0) {
        found = true;
    }
    return found;
}

static int open_pipe(int fds[2])
{
    return pipe2(fds, O_CLOEXEC | O_NONBLOCK);
}

static void close_pipe(int fds[2])
{
    if (fds[0] >= 0) {
        (void)close(fds[0]); /* only to be polled: nothing can be lost */
        (void)close(fds[1]);
    }
}

void client_post(void *context, struct task *task)
{
    struct stream_client *c = context;

    (void)pthread_mutex_lock(&c->mutex);
    list_init(&task->link);
    list_append(&c->inbox, &task->link);
    (void)pthread_mutex_unlock(&c->mutex);
    wake(c);
}

/* A task that somebody waits for. */
struct awaited {
    struct task task;
    struct task *inner;
    struct stream_client *client;
    bool has_run; /* under the client's mutex */
};

static void run_awaited(struct task *task)
{
    struct awaited *awaited = container_of(task, struct awaited, task);
    struct stream_client *c = awaited->client;

    awaited->inner->run(awaited->inner);
    (void)pthread_mutex_lock(&c->mutex);
    awaited->has_run = true;
    (void)pthread_cond_broadcast(&c->ran);
    (void)pthread_mutex_unlock(&c->mutex);
}

void client_run(struct stream_client *c, struct task *task)
{
    struct awaited awaited = {.task = {.run = run_awaited}, .inner = task, .client = c};

    client_post(c, &awaited.task);
    (void)pthread_mutex_lock(&c->mutex);
    while (!awaited.has_run) {
        (void)pthread_cond_wait(&c->ran, &c->mutex);
    }
    (void)pthread_mutex_unlock(&c->mutex);
}

const struct stream_client_options *client_options(const struct stream_client *c)
{
    return &c->options;
}

struct transport *client_transport(const struct stream_client *c)
{
    return c->transport;
}

void client_start(struct stream_client *c, struct call *call)
{
    call_begin(call);
    c->transport->ops->start(c->transport, call);
}

void client_cancel(struct stream_client *c, struct call *call)
{
    c->transport->ops->cancel(c->transport, call);
}

void client_resume(struct stream_client *c, struct call *call)
{
    c->transport->ops->resume(c->transport, call);
}

void client_timer_init(struct client_timer *timer, void (*fired)(struct client_timer *timer))
{
    *timer = (struct client_timer){.fired = fired};
    list_init(&timer->link);
}

void client_timer_start(struct stream_client *c, struct client_timer *timer, uint64_t delay_ms)
{
    list_remove(&timer->link);
    timer->at_ms = client_now_ms() + delay_ms;
    list_append(&c->timers, &timer->link);
}

void client_timer_stop(struct client_timer *timer)
{
    list_remove(&timer->link);
}

void client_party_init(struct client_party *party, void (*abort)(struct client_party *party))
{
    *party = (struct client_party){.abort = abort};
    list_init(&party->link);
}

void client_party_join(struct stream_client *c, struct client_party *party)
{
    list_append(&c->parties, &party->link);
    if (atomic_load(&party->aborted) || atomic_load(&c->aborted)) {
        atomic_store(&c->abort_news, true);
        wake(c);
    }
}

void client_party_leave(struct client_party *party)
{
    list_remove(&party->link);
}

void client_party_abort(struct stream_client *c, struct client_party *party)
{
    atomic_store(&party->aborted, true);
    atomic_store(&c->abort_news, true);
    wake(c);
}

bool client_aborted(const struct stream_client *c)
{
    return atomic_load(&c->aborted);
}

bool client_ending(const struct stream_client *c)
{
    return atomic_load(&c->stopping);
}

void stream_client_abort(struct stream_client *c)
{
    atomic_store(&c->aborted, true);
    atomic_store(&c->abort_news, true);
    wake(c);
}

static void do_nothing(struct task *task)
{
    (void)task;
}

/* The parties that were there are told before the flag falls: an abort is never lost. */
void stream_client_reset(struct stream_client *c)
{
    struct task task = {.run = do_nothing};

    if (client_ending(c)) {
        return; /* there are none to come, and nobody runs the task */
    }
    client_run(c, &task);
    client_run(c, &task); /* the turn of the first has told them by now */
    atomic_store(&c->aborted, false);
}

/* Under the mutex. */
static void add_ready(struct stream_client *c)
{
    if (c->ready_count++ == 0 && c->ready[0] >= 0) {
        (void)!write(c->ready[1], "", 1); /* the pipe is empty: there is room */
    }
}

void client_ready_add(struct stream_client *c)
{
    (void)pthread_mutex_lock(&c->mutex);
    add_ready(c);
    (void)pthread_mutex_unlock(&c->mutex);
}

void client_ready_drop(struct stream_client *c)
{
    (void)pthread_mutex_lock(&c->mutex);
    assert(c->ready_count > 0);
    if (--c->ready_count == 0 && c->ready[0] >= 0) {
        (void)empty_pipe(c->ready[0]);
    }
    (void)pthread_mutex_unlock(&c->mutex);
}

void client_finish(struct stream_client *c, struct task *task)
{
    (void)pthread_mutex_lock(&c->mutex);
    list_init(&task->link);
    list_append(&c->finished, &task->link);
    add_ready(c); /* in one step, since a step on another thread may take the task at once */
    (void)pthread_mutex_unlock(&c->mutex);
}

void stream_client_step(struct stream_client *c)
{
    struct list tasks;

    list_init(&tasks);
    (void)pthread_mutex_lock(&c->mutex);
    list_append_all(&tasks, &c->finished);
    (void)pthread_mutex_unlock(&c->mutex);
    for (struct list *node; (node = list_first(&tasks)) != NULL;) {
        struct task *task = container_of(node, struct task, link);

        list_remove(node);
        client_ready_drop(c);
        task->run(task);
    }
}

bool client_started_add(struct stream_client *c)
{
    (void)pthread_mutex_lock(&c->mutex);
    bool room = c->started_count < CLIENT_STARTED_MAX;

    c->started_count += room;
    (void)pthread_mutex_unlock(&c->mutex);
    return room;
}

void client_started_drop(struct stream_client *c)
{
    (void)pthread_mutex_lock(&c->mutex);
    assert(c->started_count > 0);
    c->started_count--;
    (void)pthread_mutex_unlock(&c->mutex);
}

int stream_client_fd(struct stream_client *c)
{
    (void)pthread_mutex_lock(&c->mutex);
    if (c->ready[0] < 0) {
        if (open_pipe(c->ready) != 0) {
            c->ready[0] = -1;
        } else if (c->ready_count > 0) {
            (void)!write(c->ready[1], "", 1); /* the pipe is empty: there is room */
        }
    }
    int fd = c->ready[0];

    (void)pthread_mutex_unlock(&c->mutex);
    return fd;
}

static struct type *type_slot(struct stream_client *c, struct slice name)
{
    return &c->types[slice_hash(name, 0) % TYPES];
}

static bool type_is_of(const struct type *slot, struct slice name)
{
    return slot->name != NULL && slice_equal((struct slice){slot->name, slot->name_len}, name);
}

bool client_type_find(struct stream_client *c, struct slice name, char *out)
{
    (void)pthread_mutex_lock(&c->mutex);
    const struct type *slot = type_slot(c, name);
    bool found = type_is_of(slot, name);

    out[0] = '\0';
    if (found) {
        memcpy(out, slot->type, strlen(slot->type) + 1);
    }
    (void)pthread_mutex_unlock(&c->mutex);
    return found;
}

void client_type_note(struct stream_client *c, struct slice name, const char *type)
{
    size_t type_size = strlen(type) + 1;

    (void)pthread_mutex_lock(&c->mutex);
    struct type *slot = type_slot(c, name);
    bool same = type_is_of(slot, name);

    if (!same || strcmp(slot->type, type) != 0) {
        char *memory = type[0] == '\0' ? NULL : malloc(name.len + type_size);

        if (same || memory != NULL) {
            free(slot->name);
            *slot = (struct type){0};
        }
        if (memory != NULL) {
            memcpy(memory, name.ptr, name.len);
            memcpy(memory + name.len, type, type_size);
            *slot = (struct type){memory, name.len, memory + name.len};
        }
    }
    (void)pthread_mutex_unlock(&c->mutex);
}

static void run_tasks(struct stream_client *c)
{
    struct list tasks;

    list_init(&tasks);
    (void)pthread_mutex_lock(&c->mutex);
    list_append_all(&tasks, &c->inbox);
    (void)pthread_mutex_unlock(&c->mutex);
    for (struct list *node; (node = list_first(&tasks)) != NULL;) {
        struct task *task = container_of(node, struct task, link);

        list_remove(node);
        task->run(task);
    }
}

/* A party that is told may leave, and others may leave with it: begins anew after each. */
static void tell_aborted(struct stream_client *c)
{
    if (!atomic_exchange(&c->abort_news, false)) {
        return;
    }
    bool all = atomic_load(&c->aborted);
    bool found = true;

    while (found) {
        found = false;
        LIST_FOR_EACH(node, &c->parties)
        {
            struct client_party *party = container_of(node, struct client_party, link);

            if (!party->told && (all || atomic_load(&party->aborted))) {
                party->told = true;
                found = true;
                party->abort(party);
                break;
            }
        }
    }
}

static struct client_timer *first_timer(struct stream_client *c)
{
    struct client_timer *first = NULL;

    LIST_FOR_EACH(node, &c->timers)
    {
        struct client_timer *timer = container_of(node, struct client_timer, link);

        if (first == NULL || timer->at_ms < first->at_ms) {
            first = timer;
        }
    }
    return first;
}

/* Runs what is due, for about a millisecond at most, so that the network gets its turn whatever
 * timers start anew. Milliseconds to the next one; -1: there is none. */
static int run_timers(struct stream_client *c)
{
    uint64_t now = client_now_ms();
    struct client_timer *timer;

    while ((timer = first_timer(c)) != NULL && timer->at_ms <= now) {
        list_remove(&timer->link);
        timer->fired(timer);
        if (client_now_ms() > now) {
            break;
        }
    }
    timer = first_timer(c);
    now = client_now_ms();
    if (timer == NULL) {
        return -1;
    }
    uint64_t left = timer->at_ms > now ? timer->at_ms - now : 0;

    return left > INT_MAX ? INT_MAX : (int)left;
}

/* A task that was posted before the end still has its turn, and may bring a party. */
static bool may_end(struct stream_client *c)
{
    if (!atomic_load(&c->stopping) || !list_empty(&c->parties)) {
        return false;
    }
    (void)pthread_mutex_lock(&c->mutex);
    bool empty = list_empty(&c->inbox);

    (void)pthread_mutex_unlock(&c->mutex);
    return empty;
}

static void *run(void *context)
{
    struct stream_client *c = context;
    int timeout_ms = -1;

    for (;;) {
        c->transport->ops->wait(c->transport, c->wake[0], timeout_ms);
        if (atomic_load(&c->waking) && empty_pipe(c->wake[0])) {
            atomic_store(&c->waking, false);
        }
        run_tasks(c);
        tell_aborted(c);
        if (may_end(c)) {
            break;
        }
        timeout_ms = run_timers(c);
    }
    return NULL;
}

static int check_limits(const struct stream_client_options *o, struct stream_error *ret_error)
{
    const struct {
        const char *name;
        int value;
        int least;
    } limits[] = {
        {"connect_timeout_ms", o->connect_timeout_ms, 1},
        {"request_timeout_ms", o->request_timeout_ms, 0},
        {"idle_timeout_ms", o->idle_timeout_ms, 0},
        {"max_connections", o->max_connections, 1},
    };

    for (size_t i = 0; i < ARRAY_COUNT(limits); i++) {
        if (limits[i].value < limits[i].least) {
            return call_error_set(ret_error, STREAM_ERROR_ARGUMENT,
                                  "%s is %d; it must be %d or more", limits[i].name,
                                  limits[i].value, limits[i].least);
        }
    }
    if (o->max_message_bytes == 0) {
        return call_error_set(ret_error, STREAM_ERROR_ARGUMENT,
                              "max_message_bytes is 0; it must be 1 or more");
    }
    return retry_check(&o->retry, ret_error);
}

void stream_client_options_init(struct stream_client_options *options)
{
    *options = (struct stream_client_options){
        .connect_timeout_ms = 10000,
        .request_timeout_ms = 30000,
        .idle_timeout_ms = 45000,
        .compression = 1,
        .max_connections = 8,
        .max_message_bytes = (size_t)64 << 20,
        .retry = {.max_retries = 5,
                  .initial_delay_ms = 100,
                  .max_delay_ms = 10000,
                  .multiplier = 2.0,
                  .retry_after_max_ms = 60000},
    };
}

/* The thread takes no signals: they are the program's. */
static int start_thread(struct stream_client *c)
{
    sigset_t all;
    sigset_t before;

    (void)sigfillset(&all);
    (void)pthread_sigmask(SIG_SETMASK, &all, &before);
    int rc = pthread_create(&c->thread, NULL, run, c);

    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    return rc;
}

static void destroy(struct stream_client *c)
{
    for (size_t i = 0; i < TYPES; i++) {
        free(c->types[i].name);
    }
    close_pipe(c->ready);
    close_pipe(c->wake);
    (void)pthread_cond_destroy(&c->ran);
    (void)pthread_mutex_destroy(&c->mutex);
    free(c);
}

int client_new(struct transport *transport, const struct stream_client_options *options,
               struct stream_client **ret_client, struct stream_error *ret_error)
{
    struct stream_client_options defaults;

    stream_client_options_init(&defaults);
    options = options != NULL ? options : &defaults;
    int code = check_limits(options, ret_error);
    struct stream_client *c = code == STREAM_OK ? calloc(1, sizeof(*c)) : NULL;

    if (c == NULL) {
        transport->ops->destroy(transport);
        return code != STREAM_OK ? code
                                 : call_error_set(ret_error, STREAM_ERROR_MEMORY, "out of memory");
    }
    c->options = *options;
    c->options.bearer = NULL;
    c->options.ca_file = NULL;
    c->options.user_agent = NULL;
    c->ready[0] = -1;
    list_init(&c->timers);
    list_init(&c->parties);
    list_init(&c->inbox);
    list_init(&c->finished);
    (void)pthread_mutex_init(&c->mutex, NULL); /* neither can fail on Linux */
    (void)pthread_cond_init(&c->ran, NULL);
    if (getrandom(&c->dice, sizeof(c->dice), GRND_NONBLOCK) < 0) {
        c->dice = client_now_ms();
    }
    c->transport = transport;
    if (open_pipe(c->wake) != 0) {
        c->wake[0] = -1;
        code = call_error_set(ret_error, STREAM_ERROR_MEMORY, "no file descriptor is left");
    } else if (start_thread(c) != 0) {
        code = call_error_set(ret_error, STREAM_ERROR_MEMORY, "the system allows no more threads");
    }
    if (code != STREAM_OK) {
        transport->ops->destroy(transport);
        destroy(c);
        return code;
    }
    *ret_client = c;
    return STREAM_OK;
}

int stream_client_new(const char *base_url, const struct stream_client_options *options,
                      struct stream_client **ret_client, struct stream_error *ret_error)
{
    struct stream_client_options defaults;
    struct transport *transport;

    stream_client_options_init(&defaults);
    options = options != NULL ? options : &defaults;
    int code = check_limits(options, ret_error);

    if (code == STREAM_OK) {
        code = transport_http_new(base_url, options, &transport, ret_error);
    }
    return code != STREAM_OK ? code : client_new(transport, options, ret_client, ret_error);
}

void stream_client_free(struct stream_client *c)
{
    if (c == NULL) {
        return;
    }
    atomic_store(&c->stopping, true);
    stream_client_abort(c);
    (void)pthread_join(c->thread, NULL);
    stream_client_step(c); /* calls that were started hear of their end, and none begins */
    c->transport->ops->destroy(c->transport);
    destroy(c);
}
