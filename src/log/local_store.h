/* What local_store.c and local_open.c share: the one implementation of the store, in pieces. Nobody
 * else includes this. */
#ifndef ARBE_LOG_LOCAL_STORE_H
#define ARBE_LOG_LOCAL_STORE_H

#include <pthread.h>

#include "log/checkpoint.h"
#include "log/compact.h"
#include "log/data_dir.h"
#include "log/hold.h"
#include "log/space.h"
#include "log/store.h"
#include "log/vitals.h"

#define PATH_BYTES_MAX DATA_DIR_PATH_BYTES_MAX

struct local_store {
    struct store base; /* first: what the streams hold */
    struct store_config config;
    struct store_events events;
    char dir[PATH_BYTES_MAX];
    char catalog_path[PATH_BYTES_MAX];
    char wal_path[PATH_BYTES_MAX];
    char packs_path[PATH_BYTES_MAX];
    char reserve_path[PATH_BYTES_MAX];
    int lock_fd;
    struct catalog *catalog;
    struct pack_set *packs;
    struct wal *wal; /* NULL in memory mode, and while recovery runs */

    /* The checkpoint thread's, or the caller's without threads. */
    struct catalog_state state;  /* as committed last, but for next_pack */
    struct output_target target; /* what checkpoints and compactions write to */
    struct compaction_ids small; /* streams with new extents */
    bool compact_more;           /* the last round did not finish */
    unsigned replaced;           /* extents, by the last run_compaction */
    size_t packs_gone;           /* likewise */
    struct space space;

    /* Atomics. */
    stream_id next_stream;
    log_pos checkpoint;  /* that of `state`, for other threads */
    log_pos replayed;    /* durable position during recovery */
    log_pos memory_next; /* position in memory mode */
    bool overflow_told;  /* the thread was woken for checkpoint_bytes */
    bool space_short;    /* the log was refused the next file when it last asked */
    bool space_lacking;  /* the last checkpoint found no space */
    bool deleted;        /* a delete was staged since the thread was last woken for one */

    struct vitals vitals;
    struct holds holds;

    pthread_mutex_t lock; /* guards what follows */
    pthread_cond_t wake;  /* for the checkpoint thread */
    bool asked;
    bool stop;
    bool thread_started;
    pthread_t thread;
};

extern const struct store_ops local_store_ops;

static inline struct local_store *local_of(struct store *s)
{
    return container_of(s, struct local_store, base);
}

static inline bool in_memory(const struct local_store *s)
{
    return s->config.durability == DURABILITY_MEMORY;
}

/* The state that a transaction committed now should carry. */
struct catalog_state local_store_state(struct local_store *s, log_pos checkpoint);

/* See wal_config. */
void local_store_on_notice(void *context);
/* See wal_config. */
bool local_store_may_grow(void *context, uint64_t file_bytes, uint64_t spare_bytes, log_pos end);

/* Between two attempts to learn how a commit ended, see catalog_watch: until then no checkpoint can
 * end. */
bool local_store_pause_commit(void *context, unsigned attempt);

/* Starts the checkpoint thread, which begins at once when the log is long after a bad time. */
int local_store_start_thread(struct local_store *s, struct errmsg *msg);

/* Closes whatever is open, also halfway through opening, and frees. */
void local_store_free(struct local_store *s);

#endif
