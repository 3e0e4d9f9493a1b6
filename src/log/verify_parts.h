/* What the files of the verifier share. verify.c is the whole, verify_catalog.c the tables,
 * verify_packs.c the pack files, verify_log.c the log and what its records make of the streams,
 * verify_forks.c what forks and sources say of each other, verify_backup.c the manifest of a
 * backup. Nobody else includes this. */
#ifndef ARBE_LOG_VERIFY_PARTS_H
#define ARBE_LOG_VERIFY_PARTS_H

#include "base/map.h"
#include "log/catalog_env.h"
#include "log/btree.h"
#include "log/verify.h"

#define VERIFY_PATH_MAX   1300u
#define VERIFY_NAME_BYTES 80u /* of a stream in a finding, with quotes and NUL */
#define CATALOG_FILE      "catalog/data.mdb"

enum seen_life {
    SEEN_ALIVE,
    SEEN_SOFT, /* deleted, kept for its forks */
    SEEN_GONE, /* or never there */
};

/* A stream that the log speaks of, as it is after the records so far. */
struct seen {
    struct map_node node; /* on verify's seen */
    stream_id id;
    log_pos applied;
    uint64_t tail;
    uint64_t fork_refs;
    uint64_t fork_offset;
    stream_id source_id;
    enum seen_life life;
    bool in_catalog;
};

/* Sources of forks, each as often as it has forks; sorted. */
struct source_list {
    stream_id *ids; /* owned */
    size_t count;
    size_t cap;
};

struct verify {
    const struct verify_config *config;
    struct sys *sys;
    struct verify_report report;
    struct btree_file *catalog; /* NULL: it cannot be read */
    struct btree tables[TABLE_COUNT];
    bool usable[TABLE_COUNT]; /* all of the table can be read */
    struct btree_cursor finders[TABLE_COUNT];
    struct catalog_state state;
    bool has_state;
    log_pos durable; /* of a running server: the log is whole up to here; else 0 */
    bool log_whole;  /* all records up to log_end were seen; never in memory mode */
    log_pos log_end; /* behind the last record */
    struct map seen; /* struct seen by id */
    struct source_list sources;
    uint64_t own_bytes; /* of all streams */
    uint64_t done;      /* bytes read */
    uint64_t total;     /* to read, as far as it is known */
    int error;          /* that ends it all: no memory */
};

/* Tells a finding. */
void verify_tell(struct verify *v, enum verify_level level, const char *file, const char *format,
                 ...) PRINTF_LIKE(4, 5);

/* A stream's name for a sentence: in quotes, cut, without what does not print. Returns `out`. */
const char *verify_name(struct slice name, char out[static VERIFY_NAME_BYTES]);

/* DIR/name, into VERIFY_PATH_MAX bytes. */
void verify_path(const struct verify *v, const char *name, char *out);

/* Counts bytes as read. */
void verify_progress(struct verify *v, uint64_t bytes);

#define TREE_MISSING UINT16_MAX /* flags of a table that is not in the file */

/* Tells that a table is not there. */
void verify_missing(struct verify *v, enum catalog_table table);

/* Looks a key up: 0 and the value, borrowed until the next look into that table; ERR_NOTFOUND;
 * another code when the table cannot be read, which was told. */
int verify_get(struct verify *v, enum catalog_table table, struct slice key,
               struct slice *ret_value) MUST_USE;

/* The value of a stream, which borrows likewise. ERR_CORRUPT when it does not prove itself, which
 * is told where the table is walked. */
int verify_get_stream(struct verify *v, stream_id id, struct stream_meta *ret_meta) MUST_USE;

/* A cursor over a usable table tells and forgets it when a page cannot be read. 1, 0 at the end or
 * after an error. */
int verify_next(struct verify *v, enum catalog_table table, struct btree_cursor *c,
                struct slice *ret_key, struct slice *ret_value) MUST_USE;

/* Begins to walk a table; false when it is not usable. Finish the cursor either way. */
bool verify_walk(struct verify *v, enum catalog_table table, struct btree_cursor *c) MUST_USE;

/* The parts, in this order: the pages of the catalog, which makes its tables usable; */
void verify_pages(struct verify *v);

/* the log, for which the state is known; */
void verify_log(struct verify *v);

/* streams with their extents, names, producers, expiry; */
void verify_tables(struct verify *v);

/* packs with their files; */
void verify_packs(struct verify *v);

/* forks and their sources; */
void verify_forks(struct verify *v);

/* and, whatever became of these, the files of a backup with its manifest. Nothing, without one. */
void verify_backup(struct verify *v);

/* A stream as the log leaves it: from the records, or from the catalog's value `meta`. */
struct seen verify_after_log(struct verify *v, const struct stream_meta *meta);

/* Forgets what the log said. */
void verify_log_finish(struct verify *v);

#endif
