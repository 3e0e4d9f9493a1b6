/* SIGALRM, sent to the thread alone, tells it to leave; nobody else uses it before the drain. */
#include "serve/early_end.h"

#include <signal.h>
#include <unistd.h>

static int wait_for(const sigset_t *set)
{
    int number = 0;

    while (sigwait(set, &number) != 0) { /* EINTR */
    }
    return number;
}

static void *watch(void *context)
{
    const struct early_end *e = context;
    sigset_t set;

    (void)sigemptyset(&set);
    (void)sigaddset(&set, SIGALRM);
    (void)sigaddset(&set, SIGTERM);
    (void)sigaddset(&set, SIGINT);
    int number = wait_for(&set);

    if (number != SIGALRM) {
        e->mount->hurry(e->mount->context);
        (void)sigdelset(&set, SIGTERM);
        (void)sigdelset(&set, SIGINT);
        (void)wait_for(&set);
        (void)kill(getpid(), number); /* one's own process: it can be told */
    }
    return NULL;
}

void early_end_watch(struct early_end *e, const struct mount *mount)
{
    *e = (struct early_end){.mount = mount};
    e->watches = mount->hurry != NULL && pthread_create(&e->thread, NULL, watch, e) == 0;
}

void early_end_leave(struct early_end *e)
{
    if (e->watches) {
        (void)pthread_kill(e->thread, SIGALRM); /* these fail for broken code only */
        (void)pthread_join(e->thread, NULL);
    }
}
