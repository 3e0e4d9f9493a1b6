/* What catalog.c and catalog_txn.c share: the open environment and reading within any transaction.
 * Nobody else but the verifier includes this. */
#ifndef ARBE_LOG_CATALOG_ENV_H
#define ARBE_LOG_CATALOG_ENV_H

#include <lmdb.h>
#include <pthread.h>

#include "base/list.h"
#include "log/catalog.h"

#define CATALOG_STATE_KEY "state"
#define CATALOG_ENOUGH    1 /* ends a walk that has nothing more to do; no error is above 0 */

enum catalog_table {
    TABLE_META,
    TABLE_NAMES,
    TABLE_STREAMS,
    TABLE_EXTENTS,
    TABLE_PRODUCERS,
    TABLE_EXPIRY,
    TABLE_PACKS,
    TABLE_PACK_EXTENTS,
    TABLE_NOTES,
    TABLE_COUNT
};

struct catalog {
    struct sys *sys;
    struct catalog_watch watch;
    char *dir; /* owned */
    bool sync;
    /* Held for reading by every reader, for writing while the environment is opened anew. */
    pthread_rwlock_t lock;
    MDB_env *env; /* NULL: it could not be opened again */
    MDB_dbi tables[TABLE_COUNT];
    unsigned page_bytes;
    struct catalog_totals totals; /* as of the last commit; of the thread that makes transactions */
    pthread_mutex_t pin_lock;     /* guards pins; taken after `lock` */
    struct list pins;             /* struct catalog_pin */
    bool unknown;                 /* nobody knows how a commit ended: no more transactions */
};

/* Ends the transactions of all pins, which are lost: the environment is about to be closed. */
void catalog_lose_pins(struct catalog *c);

/* What the table is called in the file. */
const char *catalog_table_name(enum catalog_table table);

/* Opens the environment into c->env; also sees to it that LMDB finds a whole file, and that it
 * speaks through the watch before it ends the process. On error there is none. */
int catalog_env_open(struct catalog *c) MUST_USE;

/* Opens the tables within a transaction. */
int catalog_env_tables(struct catalog *c, MDB_txn *txn, unsigned flags) MUST_USE;

/* Looks at the first and last entry of every table, and so at their roots and some of their leaves:
 * a glance, not a proof. ERR_CORRUPT, ERR_IO. */
int catalog_env_verify(struct catalog *c) MUST_USE;

/* Keeps some pages behind the last one that is used, so that a small transaction finds room on a
 * full disk. What fails is tried again after the next commit. */
void catalog_env_grow(struct catalog *c);

/* After a commit that failed with `error`: learns whether transaction `txn_id` is in the catalog.
 * 0: it is; ERR_UNKNOWN: cannot be told now; else it is not, and the code says why. May block for
 * as long as the watch wants. */
int catalog_env_settle(struct catalog *c, size_t txn_id, int error) MUST_USE;

/* The code of base/err.h for a result of LMDB. */
int catalog_from_mdb(int rc);

/* Bytes as LMDB takes them; borrows. */
MDB_val catalog_val(const void *bytes, size_t len);

/* The bytes of an LMDB value, which it keeps. */
struct slice catalog_slice(MDB_val v);

/* Reads within a transaction: the value of a stream, and who bears a name. Slices live until the
 * transaction writes or ends. ERR_NOTFOUND, ERR_CORRUPT, ERR_IO. */
int catalog_get_stream(struct catalog *c, MDB_txn *txn, stream_id id,
                       struct stream_meta *ret_meta) MUST_USE;
int catalog_get_name(struct catalog *c, MDB_txn *txn, struct slice name,
                     stream_id *ret_id) MUST_USE;

/* Called for each entry of a walk; a result other than 0 ends it and is returned. */
typedef int (*catalog_entry_fn)(void *context, struct slice key, struct slice value);

/* Walks a table from `from` on, for as long as keys begin with `prefix`. `each` must not write. */
int catalog_walk(MDB_txn *txn, MDB_dbi dbi, struct slice from, struct slice prefix,
                 catalog_entry_fn each, void *context) MUST_USE;

/* Counts all streams. */
int catalog_count_all(struct catalog *c, MDB_txn *txn, struct catalog_totals *ret_totals) MUST_USE;

/* Decodes an entry of the extents table. */
int catalog_decode_extent_entry(struct slice key, struct slice value, stream_id *ret_id,
                                struct extent *ret_extent) MUST_USE;

#endif
