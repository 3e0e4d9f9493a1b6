/* Holds on an open store, for tools that copy or check its files while it works: as long as there
 * is one, the log keeps what is behind the checkpoint of that moment, packs that nobody names any
 * more keep their files, and the catalog does not write over the pages of that moment. So whoever
 * reads the newest root of the catalog after a hold has begun finds all that it speaks of: in the
 * log too, up to the position that hold_renew tells then.
 *
 * What is held back takes space, so all holds are broken once the disk runs short: the store comes
 * first. Any thread; begin and end may block. */
#ifndef ARBE_LOG_HOLD_H
#define ARBE_LOG_HOLD_H

#include <pthread.h>

#include "base/err.h"
#include "base/list.h"
#include "log/record.h"

struct catalog;
struct pack_set;
struct store;
struct wal;

/* All holds of a store; part of it. */
struct holds {
    struct store *store;
    struct catalog *catalog;
    struct pack_set *packs;
    struct wal *wal;      /* NULL in memory mode */
    pthread_mutex_t lock; /* guards what follows */
    struct list all;      /* struct hold */
    size_t count;
};

struct hold;

/* None yet; the parts of the store are filled in once they are open. */
void holds_init(struct holds *h);

/* There is none any more. */
void holds_finish(struct holds *h);

/* Begins one. ERR_LIMIT over HOLDS_MAX, ERR_NOMEM, ERR_AGAIN, ERR_IO. */
int hold_begin(struct holds *h, struct hold **ret_hold) MUST_USE;

/* What was durable when it had begun, or was renewed. */
log_pos hold_durable(const struct hold *h);

/* What is durable now, which hold_durable tells from then on. To be called once the newest root of
 * the catalog was opened: a checkpoint may have come since the hold began, and its streams are then
 * ahead of the first position. */
log_pos hold_renew(struct hold *h);

/* The log need not be held any longer. Twice is fine. */
void hold_log_done(struct hold *h);

/* The catalog need not. Twice is fine. */
void hold_catalog_done(struct hold *h);

/* Whether it was broken: what is read now may not belong to what was read before. */
bool hold_broken(struct hold *h);

/* Ends and frees. Accepts NULL. */
void hold_end(struct hold *h);

/* Breaks all of them, since their space is needed. */
void holds_break(struct holds *h);

#endif
