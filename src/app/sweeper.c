/* One piece is one transaction; between two of them others have their turn. */
#include "app/sweeper.h"

#include "app/wall_clock.h"
#include "thread/store.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <time.h>

struct sweeper {
    struct sweeper_config config;
    pthread_t thread;
    pthread_mutex_t mutex; /* of `stopping` */
    pthread_cond_t stop;
    bool stopping;
};

/* Sweeps one piece; whether there is more to be done now. */
static bool sweep(struct sweeper *s)
{
    struct errmsg msg = {{0}};
    bool more = false;
    int code = store_sweep(s->config.store, wall_clock_ms(), &more, &msg);

    if (code != 0 && s->config.trouble != NULL) {
        s->config.trouble(s->config.context, msg.text[0] == '\0' ? err_text(code) : msg.text);
    }
    return code == 0 && more;
}

/* Under the lock: waits for so long, or until it is to stop. */
static void rest(struct sweeper *s, uint64_t ms)
{
    struct timespec until;
    int code = 0;

    (void)clock_gettime(CLOCK_MONOTONIC, &until); /* cannot fail for this clock */
    until.tv_sec += (time_t)(ms / 1000);
    until.tv_nsec += (long)(ms % 1000) * 1000000;
    if (until.tv_nsec >= 1000000000) {
        until.tv_sec++;
        until.tv_nsec -= 1000000000;
    }
    while (!s->stopping && code != ETIMEDOUT) {
        code = pthread_cond_timedwait(&s->stop, &s->mutex, &until);
    }
}

static void *run(void *context)
{
    struct sweeper *s = context;

    (void)pthread_mutex_lock(&s->mutex);
    while (!s->stopping) {
        (void)pthread_mutex_unlock(&s->mutex);
        bool more = sweep(s);

        (void)pthread_mutex_lock(&s->mutex);
        if (!more) {
            rest(s, s->config.interval_ms);
        }
    }
    (void)pthread_mutex_unlock(&s->mutex);
    return NULL;
}

int sweeper_start(const struct sweeper_config *config, struct sweeper **ret_sweeper)
{
    struct sweeper *s = calloc(1, sizeof(*s));
    pthread_condattr_t attr;

    if (s == NULL) {
        return ERR_NOMEM;
    }
    s->config = *config;
    if (s->config.interval_ms == 0) {
        s->config.interval_ms = SWEEPER_INTERVAL_MS;
    }
    (void)pthread_mutex_init(&s->mutex, NULL); /* these do not fail on Linux */
    (void)pthread_condattr_init(&attr);
    (void)pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    (void)pthread_cond_init(&s->stop, &attr);
    (void)pthread_condattr_destroy(&attr);
    if (pthread_create(&s->thread, NULL, run, s) != 0) {
        (void)pthread_cond_destroy(&s->stop);
        (void)pthread_mutex_destroy(&s->mutex);
        free(s);
        return ERR_AGAIN;
    }
    *ret_sweeper = s;
    return 0;
}

void sweeper_stop(struct sweeper *s)
{
    if (s == NULL) {
        return;
    }
    (void)pthread_mutex_lock(&s->mutex);
    s->stopping = true;
    (void)pthread_cond_signal(&s->stop);
    (void)pthread_mutex_unlock(&s->mutex);
    (void)pthread_join(s->thread, NULL); /* fails for broken code only */
    (void)pthread_cond_destroy(&s->stop);
    (void)pthread_mutex_destroy(&s->mutex);
    free(s);
}
