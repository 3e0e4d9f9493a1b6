/* The shared part is counted: by its owner and by each thread, since a thread may outlive both the
 * question and the sender. */
#include "serve/webhook_lookup.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct lookups {
    lookup_resolve_fn resolve;
    pthread_mutex_t mutex; /* guards what follows, and `about` of lookups that run */
    void (*wake)(void *context);
    void *context;
    struct list ended; /* lookups that nobody has taken yet */
    unsigned running;  /* threads */
    bool closed;
};

/* With the mutex held, which it gives back. Frees the shared part behind the last one. */
static void release(struct lookups *l)
{
    bool last = l->closed && l->running == 0;

    (void)pthread_mutex_unlock(&l->mutex);
    if (last) {
        (void)pthread_mutex_destroy(&l->mutex); /* nobody else knows it any more */
        free(l);
    }
}

int lookups_open(lookup_resolve_fn resolve, void (*wake)(void *context), void *context,
                 struct lookups **ret_lookups)
{
    struct lookups *l = calloc(1, sizeof(*l));

    if (l == NULL || pthread_mutex_init(&l->mutex, NULL) != 0) {
        free(l);
        return ERR_NOMEM;
    }
    l->resolve = resolve;
    l->wake = wake;
    l->context = context;
    list_init(&l->ended);
    *ret_lookups = l;
    return 0;
}

void lookup_free(struct lookup *one)
{
    if (one == NULL) {
        return;
    }
    if (one->answers != NULL) {
        freeaddrinfo(one->answers);
    }
    free(one);
}

void lookups_close(struct lookups *l)
{
    struct list left;

    list_init(&left);
    (void)pthread_mutex_lock(&l->mutex);
    l->closed = true;
    list_append_all(&left, &l->ended);
    release(l);
    LIST_FOR_EACH(node, &left)
    {
        lookup_free(container_of(node, struct lookup, link));
    }
}

unsigned lookups_running(struct lookups *l)
{
    (void)pthread_mutex_lock(&l->mutex);
    unsigned running = l->running;

    (void)pthread_mutex_unlock(&l->mutex);
    return running;
}

static void *run(void *context)
{
    static const struct addrinfo hints = {
        .ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM, .ai_flags = AI_NUMERICSERV};
    struct lookup *one = context;
    struct lookups *l = one->lookups;
    struct addrinfo *answers = NULL;
    int code = l->resolve(one->host, one->port, &hints, &answers);

    one->code = code;
    one->answers = code == 0 ? answers : NULL;
    (void)pthread_mutex_lock(&l->mutex);
    l->running--;
    if (one->about != NULL && !l->closed) {
        list_append(&l->ended, &one->link);
        one = NULL;
    }
    if (!l->closed) {
        l->wake(l->context); /* under the mutex, so that lookups_close waits for it */
    }
    release(l);
    lookup_free(one);
    return NULL;
}

int lookup_start(struct lookups *l, const char *host, uint16_t port, void *about,
                 struct lookup **ret_lookup)
{
    size_t len = strlen(host);
    struct lookup *one = calloc(1, sizeof(*one) + len + 1);
    pthread_attr_t attr;
    pthread_t thread;

    if (one == NULL || pthread_attr_init(&attr) != 0) {
        free(one);
        return ERR_NOMEM;
    }
    list_init(&one->link);
    one->lookups = l;
    one->about = about;
    (void)snprintf(one->port, sizeof(one->port), "%u", port); /* fits */
    memcpy(one->host, host, len);
    (void)pthread_mutex_lock(&l->mutex);
    l->running++;
    (void)pthread_mutex_unlock(&l->mutex);
    (void)pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED); /* a valid value */
    int failed = pthread_create(&thread, &attr, run, one);

    (void)pthread_attr_destroy(&attr);
    if (failed != 0) {
        (void)pthread_mutex_lock(&l->mutex);
        l->running--;
        (void)pthread_mutex_unlock(&l->mutex);
        free(one);
        return ERR_AGAIN;
    }
    *ret_lookup = one;
    return 0;
}

void lookup_forget(struct lookup *one)
{
    struct lookups *l = one->lookups;

    (void)pthread_mutex_lock(&l->mutex);
    one->about = NULL;
    bool ended = !list_empty(&one->link);

    list_remove(&one->link);
    (void)pthread_mutex_unlock(&l->mutex);
    if (ended) {
        lookup_free(one);
    }
}

struct lookup *lookups_take(struct lookups *l)
{
    (void)pthread_mutex_lock(&l->mutex);
    struct list *first = list_first(&l->ended);

    if (first != NULL) {
        list_remove(first);
    }
    (void)pthread_mutex_unlock(&l->mutex);
    return first == NULL ? NULL : container_of(first, struct lookup, link);
}
