/* The engine's own state, private to src/stream. Each group of fields says which lock guards it;
 * the order of locks is told in stream.h. */
#ifndef ARBE_STREAM_CORE_H
#define ARBE_STREAM_CORE_H

#include <pthread.h>
#include <stdatomic.h>

#include "base/tree.h"
#include "base/counter.h"
#include "stream/engine.h"
#include "stream/load.h"
#include "stream/media.h"
#include "stream/note.h"
#include "stream/quota.h"
#include "stream/stream.h"
#include "stream/table.h"

struct replay;

/* A stream that changed with no operation waiting for it: its live readers are told once the log is
 * durable up to `end`. */
struct publish_note {
    struct list link;      /* on the engine's publish list */
    struct stream *stream; /* referenced */
    log_pos end;
};

/* A stream in the checkpoint in progress. */
struct saving {
    struct stream *stream; /* referenced */
    size_t gone_count;     /* forgotten producers that it removes */
    bool dropped;          /* it removes the stream */
    bool stored;           /* it has something of it, if only that it is gone */
    bool taken;            /* its turn came */
};

struct engine {
    struct engine_config config;
    struct store *store;
    struct table table;
    struct media_set media;
    struct loader loader;
    struct replay *replay; /* while opening */
    struct notes notes;

    pthread_mutex_t dirty_lock; /* guards the two below */
    struct list dirty;          /* struct stream: changed since it was last given to a checkpoint */
    size_t dirty_count;
    struct saving *saving; /* of the checkpoint in progress; the store's checkpoint thread */
    size_t saving_count;

    pthread_mutex_t fresh_lock; /* guards the tree */
    struct tree fresh;          /* struct stream, by name and id: in no catalog yet, see list.c */

    pthread_mutex_t publish_lock; /* guards the list */
    struct list publish;          /* struct publish_note */
    _Atomic size_t publish_count; /* of the list */

    pthread_mutex_t cache_lock; /* guards the list */
    struct list cached;         /* struct stream: has bytes that are in packs too; oldest first */

    pthread_mutex_t workers_lock; /* guards the lists */
    struct list workers;          /* struct engine_worker, attached */
    struct list detached;         /* struct engine_worker, freed with the engine */

    _Atomic uint64_t hot_bytes;         /* waiting for a checkpoint */
    struct quota quota;                 /* beside it: appends write to both */
    _Atomic uint64_t cache_bytes;       /* in memory and in packs */
    _Atomic uint64_t waiters;           /* live readers */
    _Atomic uint64_t notices;           /* of the store */
    _Atomic uint64_t extent_generation; /* compactions told of; see load.c */
    _Atomic uint64_t checkpoints;       /* that succeeded; see list.c */
    _Atomic bool checkpoint_asked;      /* by us, and not yet begun */

    pthread_rwlock_t observer_lock; /* guards `observer`; held to read while it is called */
    struct engine_observer observer;
    _Atomic uint64_t observer_generation; /* rises with every change; 0: there never was one */

    pthread_mutex_t keeper_lock; /* guards the fields below */
    pthread_cond_t keeper_wake;  /* to stop the housekeeping thread */
    bool keeper_stop;
    bool keeper_started; /* `keeper` runs */
    pthread_t keeper;
    struct task sweep_task; /* on the loader while `sweeping` */
    bool sweeping;
    struct counter evictions; /* since the start; the sweep's */
    unsigned evicted;         /* since memory was last trimmed; the sweep's */
    unsigned shard_next;      /* where the next round begins */
    int64_t wall_ms;          /* at the last round */
    uint64_t mono_ms;         /* at the last round; 0: none yet */
    uint64_t pause_until_ms;  /* monotonic; the clock jumped and nothing is swept before */
};

/* An attached event loop. Fields without a note belong to its thread. */
struct engine_worker {
    struct engine *engine;
    task_post_fn post;
    void *post_context;
    struct list link;     /* on the engine's workers; under their lock */
    struct list parked;   /* struct stream_op, by `end`, whose answer is not durable yet */
    struct list room;     /* struct stream_op, waiting for room in the log */
    struct list watches;  /* struct stream_watch */
    size_t pending;       /* operations started and not answered */
    _Atomic size_t waits; /* operations on `parked` and `room`; any thread reads */
    _Atomic bool posted;  /* `task` is on its way; any thread */
    struct task task;     /* answers what has become durable */
};

/* What the time is. Any thread. */
static inline int64_t engine_now_ms(const struct engine *e)
{
    struct sys *sys = e->config.store.sys;
    return sys->now_ms(sys->context);
}

static inline uint64_t engine_mono_ms(const struct engine *e)
{
    struct sys *sys = e->config.store.sys;
    return sys->mono_ms(sys->context);
}

#endif
