/* What catalog.c and catalog_txn.c share: the open environment and reading within any transaction.
 * Nobody else includes this. */
#ifndef ARBE_LOG_CATALOG_ENV_H
#define ARBE_LOG_CATALOG_ENV_H

#include <lmdb.h>

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
    TABLE_COUNT
};

struct catalog {
    struct sys *sys;
    MDB_env *env;
    MDB_dbi tables[TABLE_COUNT];
    bool unknown; /* a commit failed in the middle: no more transactions */
};

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

/* Decodes an entry of the extents table. */
int catalog_decode_extent_entry(struct slice key, struct slice value, stream_id *ret_id,
                                struct extent *ret_extent) MUST_USE;

#endif
