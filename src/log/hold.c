/* A hold begins with log and packs and only then looks at the catalog: what the catalog of that
 * moment names can then only go later. */
#include "log/hold.h"

#include <assert.h>
#include <stdlib.h>

#include "base/limits.h"
#include "log/catalog.h"
#include "log/pack.h"
#include "log/store.h"
#include "log/wal.h"

struct hold {
    struct list link; /* on holds.all */
    struct holds *holds;
    struct catalog_pin *pin; /* owned; NULL: let go */
    log_pos durable;         /* when it had begun, or was renewed */
    bool log;                /* held */
    bool packs;              /* held */
    bool broken;
};

void holds_init(struct holds *h)
{
    *h = (struct holds){0};
    pthread_mutex_init(&h->lock, NULL);
    list_init(&h->all);
}

void holds_finish(struct holds *h)
{
    assert(h->count == 0);
    pthread_mutex_destroy(&h->lock);
}

/* With the lock held, as all of these. */
static void release_log(struct hold *h)
{
    if (h->log) {
        wal_unhold(h->holds->wal);
        h->log = false;
    }
}

static void release_catalog(struct hold *h)
{
    catalog_unpin(h->pin);
    h->pin = NULL;
}

static void release_all(struct hold *h)
{
    release_log(h);
    release_catalog(h);
    if (h->packs) {
        pack_set_unhold(h->holds->packs);
        h->packs = false;
    }
}

int hold_begin(struct holds *holds, struct hold **ret_hold)
{
    struct hold *h = calloc(1, sizeof(*h));
    if (!h) {
        return ERR_NOMEM;
    }
    h->holds = holds;
    list_init(&h->link);
    pthread_mutex_lock(&holds->lock);
    int rc = holds->count < HOLDS_MAX ? 0 : ERR_LIMIT;
    if (rc == 0) {
        if (holds->wal) {
            wal_hold(holds->wal);
            h->log = true;
        }
        pack_set_hold(holds->packs);
        h->packs = true;
        rc = catalog_pin(holds->catalog, &h->pin);
    }
    if (rc == 0) {
        h->durable = holds->store->ops->durable(holds->store);
        list_append(&holds->all, &h->link);
        holds->count++;
    } else {
        release_all(h);
    }
    pthread_mutex_unlock(&holds->lock);
    if (rc) {
        free(h);
        return rc;
    }
    *ret_hold = h;
    return 0;
}

log_pos hold_durable(const struct hold *h)
{
    return h->durable;
}

log_pos hold_renew(struct hold *h)
{
    h->durable = h->holds->store->ops->durable(h->holds->store);
    return h->durable;
}

void hold_log_done(struct hold *h)
{
    pthread_mutex_lock(&h->holds->lock);
    release_log(h);
    pthread_mutex_unlock(&h->holds->lock);
}

void hold_catalog_done(struct hold *h)
{
    pthread_mutex_lock(&h->holds->lock);
    release_catalog(h);
    pthread_mutex_unlock(&h->holds->lock);
}

bool hold_broken(struct hold *h)
{
    pthread_mutex_lock(&h->holds->lock);
    bool broken = h->broken || (h->pin && catalog_pin_lost(h->pin)) ||
                  (h->packs && pack_set_hold_lost(h->holds->packs));
    pthread_mutex_unlock(&h->holds->lock);
    return broken;
}

void hold_end(struct hold *h)
{
    if (!h) {
        return;
    }
    struct holds *holds = h->holds;
    pthread_mutex_lock(&holds->lock);
    release_all(h);
    list_remove(&h->link);
    holds->count--;
    pthread_mutex_unlock(&holds->lock);
    free(h);
}

void holds_break(struct holds *holds)
{
    pthread_mutex_lock(&holds->lock);
    LIST_FOR_EACH(node, &holds->all)
    {
        struct hold *h = container_of(node, struct hold, link);
        release_all(h);
        h->broken = true;
    }
    pthread_mutex_unlock(&holds->lock);
}
