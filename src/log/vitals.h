/* How the store is: what works and what does not, what the operator was told of it, and how much
 * was done in what time. local_store.c says what happened, vitals.c turns it into health, sentences
 * and numbers.
 *
 * What says "checkpoint thread" is for the one thread that makes checkpoints and compactions, or
 * the caller without threads; the rest is for any thread. Nothing blocks for long. */
#ifndef ARBE_LOG_VITALS_H
#define ARBE_LOG_VITALS_H

#include <pthread.h>

#include "base/histogram.h"
#include "log/store.h"

struct vitals {
    const struct store_events *events; /* whom to tell; borrowed */
    pthread_mutex_t lock;              /* guards `health` */
    struct store_health health;        /* all but what the log itself knows */
    bool failure_told;                 /* atomic: the operator knows that the log failed */

    /* The checkpoint thread's. */
    struct histogram checkpoint_us;     /* those that succeeded and had something to save */
    struct histogram compaction_us;     /* rounds that moved something or removed a pack */
    struct counter checkpoint_failures; /* attempts */
    struct counter compaction_failures; /* rounds */
    struct counter compacted_bytes;     /* moved */
    struct counter packs;               /* files, as last counted, like what follows */
    struct counter pack_bytes;          /* of those files */
    struct counter pack_live_bytes;     /* of them that a stream still needs */
};

/* Fills a zeroed struct. */
void vitals_init(struct vitals *v, const struct store_events *events);

/* Nobody asks any more. */
void vitals_finish(struct vitals *v);

/* A sentence for the operator. */
void vitals_say(struct vitals *v, enum trouble trouble, const char *format, ...) PRINTF_LIKE(3, 4);

/* The log in `path` failed with `error`; 0: it works. Said once. */
void vitals_log(struct vitals *v, const char *path, int error);

/* How a checkpoint of the directory `dir` ended: health tells, and it is said if that is news.
 * Checkpoint thread. */
void vitals_checkpoint(struct vitals *v, const char *dir, int rc);

/* One was committed, and took so long. Checkpoint thread. */
void vitals_checkpointed(struct vitals *v, uint64_t took_us);

/* The same for a round of compaction of the packs in `path`. */
void vitals_compaction(struct vitals *v, const char *path, int rc);

/* It moved so many bytes and removed so many packs; with neither it is not counted. Checkpoint
 * thread. */
void vitals_compacted(struct vitals *v, uint64_t moved_bytes, size_t packs_gone, uint64_t took_us);

/* Counts the packs that the catalog names. Reads, so it blocks; checkpoint
 * thread. */
void vitals_count(struct vitals *v, struct catalog *catalog);

/* What is known here of the store's health; log_error is that of the log. */
void vitals_get_health(struct vitals *v, int log_error, struct store_health *ret_health);

/* Fills what is known here; the rest of *stats is left alone. */
void vitals_get_stats(const struct vitals *v, struct store_stats *stats);

#endif
