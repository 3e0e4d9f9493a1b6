/* A name has one thread, however many wait for it: what it finds is theirs together, and whoever
 * leaves last frees it, be it the thread. */
#include "t3/rpc_lookup.h"

#include "base/err.h"
#include "base/limits.h"
#include "base/list.h"
#include "base/slice.h"

#include <pthread.h>
#include <signal.h>
#include <stdlib.h>

struct rpc_query {
    struct list under_way; /* on that list, until it has ended */
    struct list waiters;   /* struct rpc_lookup.waiting */
    bool ended;            /* what follows is known */
    int code;
    struct addrinfo *addresses;
    char host[]; /* constant */
};

/* Guards all of this process. A query has a thread while it is under way, also when nobody waits
 * for it any more: a name server that does not answer may hold it for longer than a connection is
 * tried. */
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static struct list under_way = {&under_way, &under_way};
static unsigned under_way_count;

static void free_if_left(struct rpc_query *q)
{
    if (!q->ended || !list_empty(&q->waiters)) {
        return;
    }
    if (q->addresses != NULL) {
        freeaddrinfo(q->addresses);
    }
    free(q);
}

static void *run(void *context)
{
    static const struct addrinfo hints = {.ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM};
    struct rpc_query *q = context;
    struct addrinfo *addresses = NULL;
    int code = getaddrinfo(q->host, NULL, &hints, &addresses);

    (void)pthread_mutex_lock(&mutex);
    list_remove(&q->under_way);
    under_way_count--;
    q->ended = true;
    q->code = code;
    q->addresses = code == 0 ? addresses : NULL;
    LIST_FOR_EACH(node, &q->waiters)
    {
        struct rpc_lookup *l = container_of(node, struct rpc_lookup, waiting);

        l->wake(l->context); /* under the mutex: rpc_lookup_forget waits for it */
    }
    free_if_left(q);
    (void)pthread_mutex_unlock(&mutex);
    return NULL;
}

/* Detached, and it takes no signals: they are the program's. */
static int start_thread(struct rpc_query *q)
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
    int failed = pthread_create(&thread, &attr, run, q);

    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    (void)pthread_attr_destroy(&attr);
    return failed != 0 ? ERR_LIMIT : 0;
}

/* Under the mutex, for which the thread waits. */
static int begin(const char *host, struct rpc_query **ret_query)
{
    size_t size = strlen(host) + 1;

    if (under_way_count >= T3_LOOKUPS_MAX) {
        return ERR_AGAIN;
    }
    struct rpc_query *q = calloc(1, sizeof(*q) + size);

    if (q == NULL) {
        return ERR_NOMEM;
    }
    memcpy(q->host, host, size);
    list_init(&q->waiters);
    int code = start_thread(q);

    if (code != 0) {
        free(q);
        return code;
    }
    list_append(&under_way, &q->under_way);
    under_way_count++;
    *ret_query = q;
    return 0;
}

static struct rpc_query *find(const char *host)
{
    LIST_FOR_EACH(node, &under_way)
    {
        struct rpc_query *q = container_of(node, struct rpc_query, under_way);

        if (strcmp(q->host, host) == 0) {
            return q;
        }
    }
    return NULL;
}

int rpc_lookup_start(struct rpc_lookup *l, const char *host, void (*wake)(void *context),
                     void *context)
{
    (void)pthread_mutex_lock(&mutex);
    struct rpc_query *q = find(host);
    int code = q == NULL ? begin(host, &q) : 0;

    if (code == 0) {
        *l = (struct rpc_lookup){.query = q, .wake = wake, .context = context};
        list_append(&q->waiters, &l->waiting);
    }
    (void)pthread_mutex_unlock(&mutex);
    return code;
}

bool rpc_lookup_ended(const struct rpc_lookup *l, int *ret_code,
                      const struct addrinfo **ret_addresses)
{
    (void)pthread_mutex_lock(&mutex);
    bool ended = l->query->ended;

    if (ended) {
        *ret_code = l->query->code;
        *ret_addresses = l->query->addresses;
    }
    (void)pthread_mutex_unlock(&mutex);
    return ended;
}

void rpc_lookup_forget(struct rpc_lookup *l)
{
    if (l->query == NULL) {
        return;
    }
    (void)pthread_mutex_lock(&mutex);
    list_remove(&l->waiting);
    free_if_left(l->query);
    (void)pthread_mutex_unlock(&mutex);
    l->query = NULL;
}
