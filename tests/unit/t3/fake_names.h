/* Names without a name server: this program's own getaddrinfo, for all of it, libwebsockets too. As
 * that of glibc it knows no name while there is no descriptor. */
#ifndef ARBE_TESTS_UNIT_T3_FAKE_NAMES_H
#define ARBE_TESTS_UNIT_T3_FAKE_NAMES_H

#include <arpa/inet.h>
#include <netdb.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static struct {
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    unsigned hanging; /* look-ups of names that end in hang.test under way */
    bool released;    /* they may end */
} fake_names = {.mutex = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};

static inline struct addrinfo *fake_names_node(const char *numeric, struct addrinfo *next)
{
    struct addrinfo *one = calloc(1, sizeof(*one) + sizeof(struct sockaddr_in6));
    struct sockaddr_in *v4 = (void *)(one + 1);
    struct sockaddr_in6 *v6 = (void *)(one + 1);

    one->ai_socktype = SOCK_STREAM;
    one->ai_addr = (void *)(one + 1);
    one->ai_next = next;
    if (inet_pton(AF_INET, numeric, &v4->sin_addr) == 1) {
        one->ai_family = v4->sin_family = AF_INET;
        one->ai_addrlen = sizeof(*v4);
    } else if (inet_pton(AF_INET6, numeric, &v6->sin6_addr) == 1) {
        one->ai_family = v6->sin6_family = AF_INET6;
        one->ai_addrlen = sizeof(*v6);
    } else {
        free(one);
        return NULL;
    }
    return one;
}

static inline void fake_names_hang(void)
{
    (void)pthread_mutex_lock(&fake_names.mutex);
    fake_names.hanging++;
    (void)pthread_cond_broadcast(&fake_names.changed);
    while (!fake_names.released) {
        (void)pthread_cond_wait(&fake_names.changed, &fake_names.mutex);
    }
    fake_names.hanging--;
    (void)pthread_cond_broadcast(&fake_names.changed);
    (void)pthread_mutex_unlock(&fake_names.mutex);
}

/* Waits until so many look-ups hang. */
static inline void fake_names_await_all(unsigned count)
{
    (void)pthread_mutex_lock(&fake_names.mutex);
    while (fake_names.hanging < count) {
        (void)pthread_cond_wait(&fake_names.changed, &fake_names.mutex);
    }
    (void)pthread_mutex_unlock(&fake_names.mutex);
}

/* Waits until a look-up hangs. */
static inline void fake_names_await(void)
{
    fake_names_await_all(1);
}

/* Lets them end, and waits for it. */
static inline void fake_names_release(void)
{
    (void)pthread_mutex_lock(&fake_names.mutex);
    fake_names.released = true;
    (void)pthread_cond_broadcast(&fake_names.changed);
    while (fake_names.hanging > 0) {
        (void)pthread_cond_wait(&fake_names.changed, &fake_names.mutex);
    }
    fake_names.released = false;
    (void)pthread_mutex_unlock(&fake_names.mutex);
}

int getaddrinfo(const char *name, const char *service, const struct addrinfo *hints,
                struct addrinfo **ret_list)
{
    struct addrinfo *one = fake_names_node(name, NULL);

    (void)service;
    (void)hints;
    if (one != NULL) {
        *ret_list = one;
        return 0;
    }
    int fd = dup(0);

    if (fd < 0) {
        return EAI_NONAME;
    }
    (void)close(fd);
    const size_t len = strlen(name);

    if (len >= 9 && strcmp(name + len - 9, "hang.test") == 0) {
        fake_names_hang();
        *ret_list = fake_names_node("127.0.0.1", NULL);
        return 0;
    }
    if (strcmp(name, "one.test") == 0) {
        *ret_list = fake_names_node("127.0.0.1", NULL);
        return 0;
    } else if (strcmp(name, "two.test") == 0) {
        *ret_list = fake_names_node("127.0.0.2", fake_names_node("127.0.0.1", NULL));
        return 0;
    }
    return EAI_NONAME;
}

void freeaddrinfo(struct addrinfo *list)
{
    while (list != NULL) {
        struct addrinfo *next = list->ai_next;

        free(list);
        list = next;
    }
}

#endif
