/* A host is on `ready` when it has something to send and room for it, on `idle` when it has nothing
 * to send and nothing under way, else on neither. Idle hosts are kept for what is known of them. */
#include "serve/webhook_queue.h"

#include "base/err.h"
#include "base/limits.h"

#include <assert.h>
#include <stdlib.h>

void webhook_queue_init(struct webhook_queue *q, unsigned per_host_max, uint64_t seed)
{
    *q = (struct webhook_queue){.per_host_max = per_host_max, .seed = seed};
    map_init(&q->hosts);
    list_init(&q->ready);
    list_init(&q->idle);
}

static void remove_host(struct webhook_queue *q, struct webhook_host *host)
{
    assert(host->under_way == 0);
    assert(list_empty(&host->waiting));
    map_remove(&q->hosts, &host->by_key);
    list_remove(&host->turn);
    free(host->resolved);
    free(host);
}

void webhook_queue_finish(struct webhook_queue *q)
{
    assert(list_empty(&q->ready));
    LIST_FOR_EACH(node, &q->idle)
    {
        remove_host(q, container_of(node, struct webhook_host, turn));
    }
    assert(q->hosts.count == 0);
    map_finish(&q->hosts);
}

static unsigned room(const struct webhook_queue *q, const struct webhook_host *host)
{
    unsigned most = host->timed_out ? 1 : q->per_host_max;

    return most > host->under_way ? most - host->under_way : 0;
}

static bool is_idle(const struct webhook_host *host)
{
    return host->under_way == 0 && list_empty(&host->waiting);
}

/* Puts the host last on the list where it belongs by now. `was_idle`: it was on that one. */
static void place_host(struct webhook_queue *q, struct webhook_host *host, bool was_idle)
{
    q->idle_count -= was_idle ? 1 : 0;
    list_remove(&host->turn);
    if (!list_empty(&host->waiting)) {
        if (room(q, host) > 0) {
            list_append(&q->ready, &host->turn);
        }
        return;
    }
    if (host->under_way > 0) {
        return;
    }
    list_append(&q->idle, &host->turn);
    if (++q->idle_count > WEBHOOK_HOSTS_IDLE_MAX) {
        remove_host(q, container_of(list_first(&q->idle), struct webhook_host, turn));
        q->idle_count--;
    }
}

/* The host of that name, or a new one that is on no list yet. NULL: no memory. */
static struct webhook_host *find_host(struct webhook_queue *q, struct slice key)
{
    uint64_t hash = slice_hash(key, q->seed);

    for (struct map_node *node = map_find(&q->hosts, hash); node != NULL;
         node = map_find_next(node)) {
        struct webhook_host *host = container_of(node, struct webhook_host, by_key);

        if (slice_equal((struct slice){host->key, host->key_len}, key)) {
            return host;
        }
    }
    struct webhook_host *host = calloc(1, sizeof(*host) + key.len + 1);

    if (host == NULL || map_insert(&q->hosts, &host->by_key, hash) != 0) {
        free(host);
        return NULL;
    }
    list_init(&host->turn);
    list_init(&host->waiting);
    memcpy(host->key, key.ptr, key.len);
    host->key_len = key.len;
    return host;
}

int webhook_queue_push(struct webhook_queue *q, struct webhook_place *place, struct slice key)
{
    struct webhook_host *host = find_host(q, key);

    if (host == NULL) {
        return ERR_NOMEM;
    }
    bool was_idle = !list_empty(&host->turn) && is_idle(host);
    bool was_ready = !list_empty(&host->turn) && !was_idle;

    place->host = host;
    list_append(&host->waiting, &place->link);
    q->waiting_count++;
    if (!was_ready) { /* else it keeps its turn */
        place_host(q, host, was_idle);
    }
    return 0;
}

static struct webhook_place *take(struct webhook_queue *q, struct webhook_host *host)
{
    struct webhook_place *place = container_of(list_first(&host->waiting), struct webhook_place,
                                               link);

    list_remove(&place->link);
    q->waiting_count--;
    return place;
}

struct webhook_place *webhook_queue_next(struct webhook_queue *q)
{
    struct list *first = list_first(&q->ready);

    if (first == NULL) {
        return NULL;
    }
    struct webhook_host *host = container_of(first, struct webhook_host, turn);
    struct webhook_place *place = take(q, host);

    host->under_way++;
    place_host(q, host, false);
    return place;
}

struct webhook_place *webhook_queue_drain(struct webhook_queue *q)
{
    struct map_node *node = NULL;

    if (q->waiting_count == 0) {
        return NULL;
    }
    while ((node = map_next(&q->hosts, node)) != NULL) {
        struct webhook_host *host = container_of(node, struct webhook_host, by_key);

        if (!list_empty(&host->waiting)) {
            struct webhook_place *place = take(q, host);

            place->host = NULL;
            place_host(q, host, false);
            return place;
        }
    }
    return NULL;
}

void webhook_queue_end(struct webhook_queue *q, struct webhook_place *place, bool timed_out)
{
    struct webhook_host *host = place->host;
    bool was_ready = !list_empty(&host->turn);

    assert(host->under_way > 0);
    place->host = NULL;
    host->under_way--;
    host->timed_out = timed_out;
    if (!was_ready || room(q, host) == 0) {
        place_host(q, host, false);
    }
}
