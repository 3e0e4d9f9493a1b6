/* A signal handler is given nothing but the number, so what it needs is the one thing here that
 * outlives its callers. */
#include "cli/interrupt.h"

#include <assert.h>
#include <signal.h>
#include <stddef.h>

static const int signals[] = {SIGINT, SIGTERM, SIGHUP};

#define SIGNAL_COUNT (sizeof(signals) / sizeof(signals[0]))

struct watched {
    interrupt_abort_fn abort;
    void *client; /* NULL: none */
};

static struct {
    volatile sig_atomic_t caught;
    volatile struct watched watched[INTERRUPT_CLIENTS_MAX];
    bool pipe_was_ignored;
} state;

static void handle(int number)
{
    state.caught = number;
    for (size_t i = 0; i < INTERRUPT_CLIENTS_MAX; i++) {
        struct watched one = state.watched[i];

        if (one.client != NULL) {
            one.abort(one.client);
        }
    }
}

void interrupt_begin(void)
{
    /* No SA_RESTART: a write that waits for a slow reader has to look at what has happened. */
    struct sigaction action = {.sa_handler = handle, .sa_flags = (int)SA_RESETHAND};
    struct sigaction ignore = {.sa_handler = SIG_IGN};
    struct sigaction before;

    (void)sigemptyset(&action.sa_mask);
    (void)sigemptyset(&ignore.sa_mask);
    for (size_t i = 0; i < SIGNAL_COUNT; i++) {
        /* Under nohup SIGHUP stays ignored. */
        if (sigaction(signals[i], NULL, &before) == 0 && before.sa_handler != SIG_IGN) {
            (void)sigaction(signals[i], &action, NULL);
        }
    }
    if (sigaction(SIGPIPE, &ignore, &before) == 0) {
        state.pipe_was_ignored = before.sa_handler == SIG_IGN;
    }
}

static void block(sigset_t *ret_before)
{
    sigset_t set;

    (void)sigemptyset(&set);
    for (size_t i = 0; i < SIGNAL_COUNT; i++) {
        (void)sigaddset(&set, signals[i]);
    }
    (void)pthread_sigmask(SIG_BLOCK, &set, ret_before);
}

/* Puts `one` where `old` is. The handler never sees a list that is half changed. */
static bool replace(void *old, struct watched one)
{
    sigset_t before;
    bool done = false;

    block(&before);
    for (size_t i = 0; !done && i < INTERRUPT_CLIENTS_MAX; i++) {
        if (state.watched[i].client == old) {
            state.watched[i] = one;
            done = true;
        }
    }
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    return done;
}

void interrupt_watch(interrupt_abort_fn abort, void *client)
{
    bool room = replace(NULL, (struct watched){abort, client});

    assert(room);
    if (state.caught != 0) {
        abort(client);
    }
}

void interrupt_forget(void *client)
{
    if (client != NULL) {
        (void)replace(client, (struct watched){NULL, NULL});
    }
}

int interrupt_signal(void)
{
    return state.caught;
}

int interrupt_poll(struct pollfd *fds, nfds_t count, int timeout_ms)
{
    const struct timespec limit = {.tv_sec = timeout_ms / 1000,
                                   .tv_nsec = timeout_ms % 1000 * 1000000L};
    sigset_t before;
    int ready = 0;

    block(&before);
    if (state.caught == 0) {
        ready = ppoll(fds, count, timeout_ms < 0 ? NULL : &limit, &before);
    }
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    return ready > 0 ? ready : 0;
}

void interrupt_end_broken_pipe(void)
{
    if (!state.pipe_was_ignored) {
        (void)signal(SIGPIPE, SIG_DFL);
        (void)raise(SIGPIPE);
    }
}
