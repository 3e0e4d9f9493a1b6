/* Each change of a host ends in `place_host`, which puts it on the list where it belongs, last,
 * unless it is on that one already. Idle hosts are kept for what is known of them. */
#include "serve/webhook_queue.h"

#include "base/err.h"
#include "base/limits.h"

#include <assert.h>
#include <stdlib.h>

void webhook_queue_init(struct webhook_queue *q, unsigned per_host_max, uint64_t seed)
{
    *q = (struct webhook_queue){.per_host_max = per_host_max, .seed = seed};
    map_init(&q->hosts);
    for (int i = 0; i < WEBHOOK_LISTS; i++) {
        list_init(&q->lists[i]);
    }
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
    assert(q->waiting_count == 0);
    LIST_FOR_EACH(node, &q->lists[WEBHOOK_IDLE])
    {
        remove_host(q, container_of(node, struct webhook_host, turn));
    }
    assert(q->hosts.count == 0);
    map_finish(&q->hosts);
}

static enum webhook_list list_of(const struct webhook_queue *q, const struct webhook_host *host)
{
    unsigned most = host->timed_out ? 1 : q->per_host_max;

    if (list_empty(&host->waiting)) {
        return host->under_way > 0 ? WEBHOOK_NOWHERE : WEBHOOK_IDLE;
    }
    if (host->under_way >= most) {
        return WEBHOOK_FULL;
    }
    return host->put_off ? WEBHOOK_PUT_OFF : WEBHOOK_READY;
}

/* `again`: its turn was taken, so that the others come first. */
static void place_host(struct webhook_queue *q, struct webhook_host *host, bool again)
{
    enum webhook_list on = list_of(q, host);

    if (on == host->on && !again) {
        return;
    }
    q->idle_count -= host->on == WEBHOOK_IDLE ? 1 : 0;
    q->idle_count += on == WEBHOOK_IDLE ? 1 : 0;
    host->on = on;
    list_remove(&host->turn);
    if (on != WEBHOOK_NOWHERE) {
        list_append(&q->lists[on], &host->turn);
    }
    if (q->idle_count > WEBHOOK_HOSTS_IDLE_MAX) {
        struct list *idlest = list_first(&q->lists[WEBHOOK_IDLE]);

        remove_host(q, container_of(idlest, struct webhook_host, turn));
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
    place->host = host;
    list_append(&host->waiting, &place->link);
    q->waiting_count++;
    place_host(q, host, false);
    return 0;
}

static struct webhook_host *first_on(const struct webhook_queue *q, enum webhook_list which)
{
    struct list *first = list_first(&q->lists[which]);

    return first == NULL ? NULL : container_of(first, struct webhook_host, turn);
}

static struct webhook_place *first_of(const struct webhook_host *host)
{
    return container_of(list_first(&host->waiting), struct webhook_place, link);
}

static struct webhook_place *take(struct webhook_queue *q, struct webhook_host *host)
{
    struct webhook_place *place = first_of(host);

    list_remove(&place->link);
    q->waiting_count--;
    return place;
}

struct webhook_place *webhook_queue_peek(const struct webhook_queue *q)
{
    const struct webhook_host *host = first_on(q, WEBHOOK_READY);

    return host == NULL ? NULL : first_of(host);
}

struct webhook_place *webhook_queue_next(struct webhook_queue *q)
{
    struct webhook_host *host = first_on(q, WEBHOOK_READY);

    if (host == NULL) {
        return NULL;
    }
    struct webhook_place *place = take(q, host);

    host->under_way++;
    place_host(q, host, true);
    return place;
}

void webhook_queue_put_off(struct webhook_queue *q)
{
    struct webhook_host *host = first_on(q, WEBHOOK_READY);

    host->put_off = true;
    place_host(q, host, false);
}

struct webhook_host *webhook_queue_first_put_off(const struct webhook_queue *q)
{
    return first_on(q, WEBHOOK_PUT_OFF);
}

void webhook_queue_resume(struct webhook_queue *q, struct webhook_host *host)
{
    if (!host->put_off) {
        return;
    }
    host->put_off = false;
    place_host(q, host, false);
    if (host->on == WEBHOOK_READY) {
        list_remove(&host->turn);
        list_append(q->lists[WEBHOOK_READY].next, &host->turn); /* before the first */
    }
}

struct webhook_place *webhook_queue_drain(struct webhook_queue *q)
{
    static const enum webhook_list waiting[] = {WEBHOOK_READY, WEBHOOK_FULL, WEBHOOK_PUT_OFF};
    struct webhook_host *host = NULL;

    for (size_t i = 0; host == NULL && i < ARRAY_COUNT(waiting); i++) {
        host = first_on(q, waiting[i]);
    }
    if (host == NULL) {
        return NULL;
    }
    struct webhook_place *place = take(q, host);

    place->host = NULL;
    place_host(q, host, false);
    return place;
}

void webhook_queue_end(struct webhook_queue *q, struct webhook_place *place, bool timed_out)
{
    struct webhook_host *host = place->host;

    assert(host->under_way > 0);
    place->host = NULL;
    host->under_way--;
    host->timed_out = timed_out;
    place_host(q, host, false);
}
