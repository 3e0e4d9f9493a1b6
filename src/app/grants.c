/* Two tables in which the hash of a key gives the one place that it can be in. The lock is held for
 * a comparison and a copy. */
#include "app/grants.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#define CALLERS  4096u /* powers of two */
#define ACCESSES 16384u
#define HOMES    16384u

struct caller_slot {
    uint64_t epoch; /* 0: empty */
    int64_t until_ms;
    struct caller caller;
};

struct access_slot {
    uint64_t epoch; /* 0: empty */
    char thread_id[STORE_ID_BYTES];
    char agent_id[STORE_ID_BYTES];
    struct thread_access access;
};

struct home_slot {
    char thread_id[STORE_ID_BYTES]; /* empty: none */
    char house_id[STORE_ID_BYTES];
};

struct grants {
    pthread_mutex_t mutex;      /* of the tables */
    atomic_uint_fast64_t epoch; /* from 1 on */
    struct caller_slot callers[CALLERS];
    struct access_slot accesses[ACCESSES];
    struct home_slot homes[HOMES];
};

int grants_create(struct grants **ret_grants)
{
    struct grants *g = calloc(1, sizeof(*g));

    if (g == NULL) {
        return ERR_NOMEM;
    }
    (void)pthread_mutex_init(&g->mutex, NULL); /* does not fail on Linux */
    atomic_store(&g->epoch, 1);
    *ret_grants = g;
    return 0;
}

void grants_destroy(struct grants *g)
{
    if (g != NULL) {
        (void)pthread_mutex_destroy(&g->mutex);
        free(g);
    }
}

uint64_t grants_epoch(const struct grants *g)
{
    return atomic_load(&g->epoch);
}

void grants_forget(struct grants *g)
{
    (void)atomic_fetch_add(&g->epoch, 1);
}

static struct caller_slot *caller_slot(struct grants *g, const char *hash)
{
    return &g->callers[slice_hash(slice_of(hash), 0) % CALLERS];
}

bool grants_find_caller(struct grants *g, const char *hash, int64_t now_ms,
                        struct caller *ret_caller)
{
    struct caller_slot *slot = caller_slot(g, hash);

    (void)pthread_mutex_lock(&g->mutex);
    /* The hash is of a secret with 256 random bits: how long a comparison takes tells nothing. */
    bool found = slot->epoch == grants_epoch(g) && now_ms < slot->until_ms &&
                 strcmp(slot->caller.hash, hash) == 0;

    if (found) {
        *ret_caller = slot->caller;
    }
    (void)pthread_mutex_unlock(&g->mutex);
    return found;
}

void grants_keep_caller(struct grants *g, uint64_t epoch, const struct caller *caller,
                        int64_t until_ms)
{
    struct caller_slot *slot = caller_slot(g, caller->hash);

    (void)pthread_mutex_lock(&g->mutex);
    *slot = (struct caller_slot){.epoch = epoch, .until_ms = until_ms, .caller = *caller};
    (void)pthread_mutex_unlock(&g->mutex);
}

static struct access_slot *access_slot(struct grants *g, struct slice thread_id,
                                       const char *agent_id)
{
    return &g->accesses[slice_hash(slice_of(agent_id), slice_hash(thread_id, 0)) % ACCESSES];
}

bool grants_find_access(struct grants *g, struct slice thread_id, const char *agent_id,
                        struct thread_access *ret_access)
{
    struct access_slot *slot = access_slot(g, thread_id, agent_id);

    (void)pthread_mutex_lock(&g->mutex);
    bool found = slot->epoch == grants_epoch(g) &&
                 slice_equal(slice_of(slot->thread_id), thread_id) &&
                 strcmp(slot->agent_id, agent_id) == 0;

    if (found) {
        *ret_access = slot->access;
    }
    (void)pthread_mutex_unlock(&g->mutex);
    return found;
}

void grants_keep_access(struct grants *g, uint64_t epoch, struct slice thread_id,
                        const char *agent_id, const struct thread_access *access)
{
    struct access_slot *slot = access_slot(g, thread_id, agent_id);

    if (thread_id.len >= sizeof(slot->thread_id) || strlen(agent_id) >= sizeof(slot->agent_id)) {
        return;
    }
    (void)pthread_mutex_lock(&g->mutex);
    *slot = (struct access_slot){.epoch = epoch, .access = *access};
    memcpy(slot->thread_id, thread_id.ptr, thread_id.len);
    memcpy(slot->agent_id, agent_id, strlen(agent_id) + 1);
    (void)pthread_mutex_unlock(&g->mutex);
}

bool grants_find_house(struct grants *g, struct slice thread_id,
                       char ret_house_id[static STORE_ID_BYTES])
{
    const struct home_slot *slot = &g->homes[slice_hash(thread_id, 0) % HOMES];

    (void)pthread_mutex_lock(&g->mutex);
    bool found = slot->thread_id[0] != '\0' && slice_equal(slice_of(slot->thread_id), thread_id);

    if (found) {
        memcpy(ret_house_id, slot->house_id, sizeof(slot->house_id));
    }
    (void)pthread_mutex_unlock(&g->mutex);
    return found;
}

void grants_keep_house(struct grants *g, struct slice thread_id, struct slice house_id)
{
    struct home_slot *slot = &g->homes[slice_hash(thread_id, 0) % HOMES];

    if (thread_id.len >= sizeof(slot->thread_id) || house_id.len >= sizeof(slot->house_id)) {
        return;
    }
    (void)pthread_mutex_lock(&g->mutex);
    *slot = (struct home_slot){.thread_id = ""};
    memcpy(slot->thread_id, thread_id.ptr, thread_id.len);
    memcpy(slot->house_id, house_id.ptr, house_id.len);
    (void)pthread_mutex_unlock(&g->mutex);
}
