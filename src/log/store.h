/* The seam between the streams and what keeps them: one struct of operations going down, one of
 * events coming up. src/stream knows nothing else of src/log than this, record.h and catalog.h's
 * plain structs, so that a replicated engine can stand here later. local_store.c is the one
 * implementation: write-ahead log, packs, LMDB catalog, checkpoint and compaction threads, in one
 * data directory.
 *
 * Threads: `stage`, `durable` and `failed` are for any thread and do not block; everything that
 * says "blocks" belongs on the pool. Events come on the store's own threads. */
#ifndef ARBE_LOG_STORE_H
#define ARBE_LOG_STORE_H

#include "log/catalog.h"
#include "log/wal.h"

/* A run of a stream's bytes that waits for a checkpoint. */
struct checkpoint_range {
    uint64_t start;             /* offset in the stream */
    const struct slice *pieces; /* the bytes in order: at most EXTENT_BYTES_MAX, or one message */
    size_t piece_count;
    struct slice marks; /* message lengths, see record_append; at most RUN_MARKS_BYTES_MAX */
};

/* One dirty stream, as it durably is at this moment. Everything lives until the call returns. */
struct checkpoint_item {
    stream_id id;
    bool dropped;                          /* remove all of it; the rest is then unset */
    struct stream_meta meta;               /* tail ends at the last range */
    const struct checkpoint_range *ranges; /* ascending */
    size_t range_count;
    const struct producer_meta *producers; /* those that changed */
    size_t producer_count;
    const struct slice *forgotten_producers; /* ids to remove */
    size_t forgotten_count;
};

struct checkpoint; /* one in progress; see checkpoint_add */
struct holds;
struct store;

/* Adds one stream to the checkpoint in progress. Blocks. An error ends the checkpoint, which leaves
 * everything as before. */
int checkpoint_add(struct checkpoint *c, const struct checkpoint_item *item) MUST_USE;

/* How bad what the operator is told is. */
enum trouble {
    TROUBLE_OVER,   /* what was told before works again */
    TROUBLE_ODD,    /* goes on, but somebody should look */
    TROUBLE_BROKEN, /* something does not work */
};
/* Adds a note to the checkpoint in progress, or its removal when value is NULL. Blocks. Whatever
 * fails shows when the checkpoint is committed. */
void checkpoint_note(struct checkpoint *c, struct slice key, const struct slice *value);

/* What the streams tell the store's threads. `context` is the first argument of each. */
struct store_events {
    void *context;
    /* Once during open, before the first replay: from here on `store` answers its reading
     * operations and `durable`, so that replay can load the streams that records speak of. `totals`
     * are those of the catalog, and so without what replay brings. */
    void (*opening)(void *context, struct store *store, const struct catalog_totals *totals);
    /* Each record from the last checkpoint on, in order, during open. */
    int (*replay)(void *context, const struct record *r, log_pos end);
    /* The durable position moved, the log failed, or room was made or refused. Must not block. */
    void (*notice)(void *context);
    /* Call checkpoint_add for every dirty stream, in ascending id; streams dirtied meanwhile
     * belong to the next one. */
    int (*collect)(void *context, struct checkpoint *c);
    /* The same for at most `max` streams, all of them dropped: where the disk is full. May be
     * NULL. */
    int (*collect_dropped)(void *context, struct checkpoint *c, size_t max, size_t *ret_count);
    /* The checkpoint that collect filled is durable (code 0) or failed: on failure the streams are
     * dirty as before. */
    void (*checkpointed)(void *context, int code);
    /* An added extent is now part of the stream; called between collect and checkpointed(0), once
     * the catalog holds it. */
    void (*extent_added)(void *context, stream_id id, const struct extent *e);
    /* Compaction put `e` in the place of all extents that it covers. */
    void (*extent_replaced)(void *context, stream_id id, const struct extent *e);
    /* A sentence for the operator, once when something ceases to work and once when it works again;
     * also during open and close. May be NULL. */
    void (*trouble)(void *context, enum trouble trouble, const char *sentence);
};

struct store_config {
    const char *dir; /* data directory; made with mode 0700 when missing */
    enum durability durability;
    uint64_t segment_bytes;          /* --wal-segment */
    uint64_t checkpoint_bytes;       /* --checkpoint-bytes: log bytes that trigger a checkpoint */
    uint64_t checkpoint_interval_ms; /* --checkpoint-interval; 0: only when asked */
    uint64_t log_bytes_max;  /* log bytes that may wait for a checkpoint, above it ERR_BUSY for all
                               but deletes; 0: any number */
    size_t staged_bytes_max; /* staged and not durable */
    struct sys *sys;
    /* False: no threads at all; ops->commit and ops->checkpoint do the work, for simulations. */
    bool threads;
    /* An existing directory for LMDB, which makes its own system calls, where `sys` is not the real
     * one; NULL: DIR/catalog. */
    const char *catalog_dir;
};

/* What the operator wants to know at start. */
struct store_report {
    struct wal_report wal;
    uint64_t streams; /* in the catalog */
    char text[1024];  /* one line */
};

/* How the store is, for /health and metrics. */
struct store_health {
    int log_error;                /* what made the log fail; 0: it works */
    int checkpoint_error;         /* of the last checkpoint; 0: it succeeded */
    int compaction_error;         /* of the last compaction */
    uint64_t checkpoint_failures; /* in a row */
    uint64_t log_bytes;           /* waiting for a checkpoint */
    uint64_t checkpoints;         /* that succeeded since the start */
    char text[256];               /* what is wrong, in a line; empty: nothing */
};

/* Counts for the operator since the start, or as of now. In memory mode those of the log are 0. */
struct store_stats {
    struct wal_stats log;
    struct histogram_totals checkpoint_us; /* of checkpoints that saved something */
    struct histogram_totals compaction_us; /* of rounds that moved or removed something */
    uint64_t checkpoint_failures;          /* attempts */
    uint64_t compaction_failures;          /* rounds */
    uint64_t compacted_bytes;              /* moved */
    uint64_t packs;           /* as of the last checkpoint or compaction, like what follows */
    uint64_t pack_bytes;      /* of the files */
    uint64_t pack_live_bytes; /* of them that a stream still needs */
};

struct store_ops {
    /* See wal_stage; in memory mode everything staged is durable at once and nothing is written. */
    int (*stage)(struct store *s, const struct record *r, struct block *body_block,
                 log_pos *ret_end);
    log_pos (*durable)(struct store *s);
    bool (*failed)(struct store *s);
    stream_id (*next_id)(struct store *s); /* a new id; any thread */

    /* These block. */
    int (*find)(struct store *s, struct slice name, stream_id *ret_id);
    int (*load)(struct store *s, stream_id id, struct catalog_stream *ret_stream);
    int (*list)(struct store *s, struct slice prefix, struct slice after, size_t limit,
                catalog_each_fn each, void *context);
    int (*expired)(struct store *s, int64_t now_ms, size_t limit, catalog_each_fn each,
                   void *context);
    int (*each_note)(struct store *s, struct slice prefix, catalog_note_fn each, void *context,
                     struct errmsg *msg);
    int (*read_marks)(struct store *s, const struct extent *e, void *out);
    int (*read_extent)(struct store *s, const struct extent *e, void *data, void *marks);
    int (*pack_get)(struct store *s, pack_id id, struct pack **ret_pack);

    struct pack *(*pack_try_get)(struct store *s,
                                 pack_id id); /* does not block; NULL: use pack_get */

    /* Wakes the checkpoint thread; without threads, runs a checkpoint and one round of compaction
     * now and returns its result. */
    int (*checkpoint)(struct store *s);
    /* Only without threads: commits what is staged, gives notice. 0 or ERR_FAILED. */
    int (*commit)(struct store *s);
    /* Any thread; does not block for long. */
    void (*health)(struct store *s, struct store_health *ret_health);
    void (*stats)(struct store *s, struct store_stats *ret_stats); /* likewise */
    /* For tools that read the directory meanwhile; NULL: this store has none to offer. */
    struct holds *(*holds)(struct store *s);
    /* Commits what is staged; with `checkpoint`, makes a last checkpoint. Joins the threads,
     * frees. */
    int (*close)(struct store *s, bool checkpoint);
};

struct store {
    const struct store_ops *ops;
};

/* Opens the data directory: lock, catalog, recovery with replay events, threads. On error nothing
 * is left open and `msg` says what, where and what to do. The directory of another format or
 * another durability kind is refused with ERR_MISMATCH; a second process gets ERR_LOCKED. */
int local_store_open(const struct store_config *config, const struct store_events *events,
                     struct store **ret_store, struct store_report *ret_report,
                     struct errmsg *msg) MUST_USE;

#endif
