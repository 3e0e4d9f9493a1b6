/* A pin is a read transaction that nobody reads with: LMDB uses no page again that it could see. */
#include <stdlib.h>

#include "log/catalog_env.h"

struct catalog_pin {
    struct list link; /* on the catalog's pins */
    struct catalog *catalog;
    MDB_txn *txn; /* NULL: lost */
};

int catalog_pin(struct catalog *c, struct catalog_pin **ret_pin)
{
    struct catalog_pin *p = calloc(1, sizeof(*p));
    if (!p) {
        return ERR_NOMEM;
    }
    p->catalog = c;
    list_init(&p->link);
    pthread_rwlock_rdlock(&c->lock);
    int rc = ERR_AGAIN;
    if (c->env) {
        rc = catalog_from_mdb(mdb_txn_begin(c->env, NULL, MDB_RDONLY, &p->txn));
    }
    if (rc == 0) {
        pthread_mutex_lock(&c->pin_lock);
        list_append(&c->pins, &p->link);
        pthread_mutex_unlock(&c->pin_lock);
    }
    pthread_rwlock_unlock(&c->lock);
    if (rc) {
        free(p);
        return rc;
    }
    *ret_pin = p;
    return 0;
}

bool catalog_pin_lost(struct catalog_pin *p)
{
    pthread_mutex_lock(&p->catalog->pin_lock);
    bool lost = p->txn == NULL;
    pthread_mutex_unlock(&p->catalog->pin_lock);
    return lost;
}

/* Under the lock of the catalog, for reading or writing, since that closes the environment. */
static void end_txn(struct catalog_pin *p)
{
    if (p->txn) {
        mdb_txn_abort(p->txn);
        p->txn = NULL;
    }
}

void catalog_unpin(struct catalog_pin *p)
{
    if (!p) {
        return;
    }
    struct catalog *c = p->catalog;
    pthread_rwlock_rdlock(&c->lock);
    pthread_mutex_lock(&c->pin_lock);
    end_txn(p);
    list_remove(&p->link);
    pthread_mutex_unlock(&c->pin_lock);
    pthread_rwlock_unlock(&c->lock);
    free(p);
}

void catalog_lose_pins(struct catalog *c)
{
    pthread_mutex_lock(&c->pin_lock);
    LIST_FOR_EACH(node, &c->pins)
    {
        end_txn(container_of(node, struct catalog_pin, link));
    }
    pthread_mutex_unlock(&c->pin_lock);
}
