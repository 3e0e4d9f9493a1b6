/* Two hold it: whoever asks, and the thread. The last one frees. */
#include "t3/rpc_lookup.h"

#include "base/err.h"
#include "base/limits.h"
#include "base/slice.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>

struct rpc_lookup {
    pthread_mutex_t mutex; /* guards what follows but the name */
    void (*wake)(void *context);
    void *context;
    bool forgotten;
    bool ended;
    int code;
    struct addrinfo *addresses;
    char host[]; /* constant */
};

/* Under way in this process, also those that are forgotten: each has a thread, and a name server
 * that does not answer may hold it for longer than a connection is tried. */
static atomic_uint under_way;

static void destroy(struct rpc_lookup *l)
{
    if (l->addresses != NULL) {
        freeaddrinfo(l->addresses);
    }
    (void)pthread_mutex_destroy(&l->mutex); /* nobody else knows it any more */
    free(l);
}

static void *run(void *context)
{
    static const struct addrinfo hints = {.ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM};
    struct rpc_lookup *l = context;
    struct addrinfo *addresses = NULL;
    int code = getaddrinfo(l->host, NULL, &hints, &addresses);

    atomic_fetch_sub(&under_way, 1);
    (void)pthread_mutex_lock(&l->mutex);
    bool forgotten = l->forgotten;

    l->ended = true;
    l->code = code;
    l->addresses = code == 0 ? addresses : NULL;
    if (!forgotten) {
        l->wake(l->context); /* under the mutex: rpc_lookup_forget waits for it */
    }
    (void)pthread_mutex_unlock(&l->mutex);
    if (forgotten) {
        destroy(l);
    }
    return NULL;
}

/* Detached, and it takes no signals: they are the program's. */
static int start(struct rpc_lookup *l)
{
    pthread_attr_t attr;
    pthread_t thread;
    sigset_t all;
    sigset_t before;

    if (pthread_attr_init(&attr) != 0) {
        return ERR_NOMEM;
    }
    (void)pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED); /* a valid value */
    (void)sigfillset(&all);
    (void)pthread_sigmask(SIG_SETMASK, &all, &before);
    int failed = pthread_create(&thread, &attr, run, l);

    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    (void)pthread_attr_destroy(&attr);
    return failed != 0 ? ERR_LIMIT : 0;
}

int rpc_lookup_start(const char *host, void (*wake)(void *context), void *context,
                     struct rpc_lookup **ret_lookup)
{
    size_t size = strlen(host) + 1;
    struct rpc_lookup *l = calloc(1, sizeof(*l) + size);

    if (l == NULL || pthread_mutex_init(&l->mutex, NULL) != 0) {
        free(l);
        return ERR_NOMEM;
    }
    l->wake = wake;
    l->context = context;
    memcpy(l->host, host, size);
    int code = atomic_fetch_add(&under_way, 1) < T3_LOOKUPS_MAX ? start(l) : ERR_AGAIN;

    if (code != 0) {
        atomic_fetch_sub(&under_way, 1);
        destroy(l);
        return code;
    }
    *ret_lookup = l;
    return 0;
}

bool rpc_lookup_take(struct rpc_lookup *l, int *ret_code, struct addrinfo **ret_addresses)
{
    (void)pthread_mutex_lock(&l->mutex);
    bool ended = l->ended;

    if (ended) {
        *ret_code = l->code;
        *ret_addresses = l->addresses;
        l->addresses = NULL;
    }
    (void)pthread_mutex_unlock(&l->mutex);
    return ended;
}

void rpc_lookup_forget(struct rpc_lookup *l)
{
    if (l == NULL) {
        return;
    }
    (void)pthread_mutex_lock(&l->mutex);
    bool ended = l->ended;

    l->forgotten = true;
    (void)pthread_mutex_unlock(&l->mutex);
    if (ended) {
        destroy(l);
    }
}
