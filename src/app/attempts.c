/* A bucket per address, as the time at which it would be full again: each failure moves that by a
 * minute's share, and what is more than a minute ahead has to wait. */
#include "app/attempts.h"

#include "base/err.h"
#include "base/slice.h"

#include <netinet/in.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/random.h>
#include <sys/socket.h>

#define PLACES    4096u
#define MINUTE_MS 60000
#define SHARE_MS  (MINUTE_MS / (int64_t)ATTEMPTS_PER_MINUTE)
/* What is further ahead comes of a clock that was set back, which must lock nobody out. */
#define AHEAD_MS_MAX (2 * MINUTE_MS + SHARE_MS)

struct attempts {
    pthread_mutex_t mutex; /* of the places */
    uint64_t seed;
    int64_t full_ms[PLACES];
};

int attempts_create(struct attempts **ret_attempts)
{
    struct attempts *a = calloc(1, sizeof(*a));

    if (a == NULL) {
        return ERR_NOMEM;
    }
    if (getrandom(&a->seed, sizeof(a->seed), 0) != (ssize_t)sizeof(a->seed)) {
        free(a);
        return ERR_IO;
    }
    (void)pthread_mutex_init(&a->mutex, NULL); /* does not fail on Linux */
    *ret_attempts = a;
    return 0;
}

void attempts_destroy(struct attempts *a)
{
    if (a != NULL) {
        (void)pthread_mutex_destroy(&a->mutex);
        free(a);
    }
}

uint64_t attempts_wait_s(struct attempts *a, uint64_t address, int64_t now_ms)
{
    (void)pthread_mutex_lock(&a->mutex);
    int64_t ahead = a->full_ms[address % PLACES] - now_ms;

    (void)pthread_mutex_unlock(&a->mutex);
    if (ahead <= MINUTE_MS - SHARE_MS || ahead > AHEAD_MS_MAX) {
        return 0;
    }
    return (uint64_t)(ahead - (MINUTE_MS - SHARE_MS) + 999) / 1000;
}

void attempts_failed(struct attempts *a, uint64_t address, int64_t now_ms)
{
    (void)pthread_mutex_lock(&a->mutex);
    int64_t *full = &a->full_ms[address % PLACES];

    if (*full < now_ms || *full > now_ms + AHEAD_MS_MAX) {
        *full = now_ms;
    }
    if (*full <= now_ms + 2 * MINUTE_MS) {
        *full += SHARE_MS;
    }
    (void)pthread_mutex_unlock(&a->mutex);
}

uint64_t attempts_address(const struct attempts *a, int fd)
{
    struct sockaddr_storage storage = {0};
    socklen_t len = sizeof(storage);
    struct slice bytes = {"", 0};

    if (getpeername(fd, (struct sockaddr *)&storage, &len) != 0) {
        return 0; /* it has gone again */
    }
    if (storage.ss_family == AF_INET) {
        const struct sockaddr_in *v4 = (const struct sockaddr_in *)&storage;

        bytes = (struct slice){(const char *)&v4->sin_addr, sizeof(v4->sin_addr)};
    } else if (storage.ss_family == AF_INET6) {
        const struct sockaddr_in6 *v6 = (const struct sockaddr_in6 *)&storage;

        bytes = (struct slice){(const char *)&v6->sin6_addr, 8};
    }
    return slice_hash(bytes, a->seed);
}
