/* One stream in memory; private to src/stream.
 *
 * Locks, always taken in this order: a shard of the name table, a shard of the id table, a stream,
 * the source of that stream (child before source, up the chain), and then one of the engine's
 * small locks (dirty list, publish list, cache list, workers) or the store's. Nothing blocks under
 * any of them. All fields are guarded by `lock` unless said otherwise; those under "fixed" never
 * change once the stream is live. A change to several streams holds all their locks from the
 * checks until it is staged, which is why no lock over the whole engine is needed.
 *
 * States: what every check looks at is `staged`, the state after the newest record. What readers
 * and checkpoints see is `visible`, the state after the newest durable record. `changes` are the
 * records between the two, oldest first, each with the whole state after it; see view.c. */
#ifndef ARBE_STREAM_STREAM_H
#define ARBE_STREAM_STREAM_H

#include <pthread.h>
#include <stdatomic.h>

#include "base/list.h"
#include "base/map.h"
#include "base/tree.h"
#include "log/store.h"
#include "stream/media.h"
#include "stream/producer.h"
#include "stream/tail.h"

struct engine;

/* How far a name in the table has come; guarded by the name's shard. */
enum stream_phase {
    PHASE_LOADING, /* the catalog is being asked; operations queue */
    PHASE_CLAIMED, /* the name is free and one operation is creating the stream; others queue */
    PHASE_LIVE,
};

enum stream_life {
    LIFE_UNBORN, /* no durable record yet */
    LIFE_ALIVE,
    LIFE_SOFT, /* deleted, kept for its forks (PROTOCOL.md 4.2) */
    LIFE_GONE,
};

struct stream_state {
    uint64_t tail;       /* one past the last byte */
    int64_t accessed_ms; /* last logged access */
    struct block *seq;   /* last Stream-Seq; referenced; NULL: none */
    uint32_t fork_refs;  /* forks that have this stream as their source */
    uint8_t life;        /* enum stream_life */
    bool closed;         /* no more appends */
};

/* What an observer is told of. */
#define NEWS_GREW    1u
#define NEWS_DROPPED 2u
#define NEWS_MADE    4u

/* A staged record as far as it concerns one stream. */
struct stream_change {
    struct stream_change *next;           /* on the stream's changes */
    log_pos end;                          /* durable once the log is, up to here */
    struct stream_state after;            /* state of the stream */
    struct producer *producer;            /* pinned; NULL: none */
    struct producer_state producer_after; /* its state */
    bool quiet;                           /* growth that the observer is not told of */
};

/* What a fork remembers of its making. Fixed. */
struct stream_fork {
    struct stream *source; /* referenced */
    uint64_t offset;       /* bytes inherited */
    uint64_t anchor;       /* Stream-Fork-Offset as a position */
    uint64_t sub_offset;   /* Stream-Fork-Sub-Offset */
    bool explicit_offset;  /* whether Stream-Fork-Offset was given */
    unsigned depth;        /* sources above; at most FORK_DEPTH_MAX */
};

/* The request that closed the stream, when it had a producer. */
struct stream_closer {
    uint64_t epoch;
    uint64_t seq;
    uint16_t id_len; /* bytes */
    char id[];       /* as sent */
};

struct stream {
    struct map_node by_name; /* in the name table, while `named` */
    struct map_node by_id;   /* in the id table, while `listed` */
    struct engine *engine;
    _Atomic uint32_t refs;  /* the tables' one, forks', operations', pages', watches' */
    uint8_t phase;          /* enum stream_phase; under the name's shard */
    bool named;             /* in the name table; under the name's shard */
    bool listed;            /* in the id table; under the id's shard */
    bool dirty;             /* changed since a checkpoint took it, or about to change */
    bool cached;            /* on the cache list; under the cache lock */
    bool cache_used;        /* bytes of the cache were read since it last came by */
    bool producers_unsaved; /* a checkpoint failed: all producers are to be saved again */
    uint16_t name_len;      /* bytes of `name` */
    pthread_mutex_t lock;

    /* Fixed. */
    stream_id id;
    struct media *media; /* content type */
    int64_t created_ms;
    uint64_t ttl_seconds;     /* UINT64_MAX: none */
    int64_t expires_at_ms;    /* INT64_MAX: none */
    struct stream_fork *fork; /* NULL: not a fork */

    struct stream_state staged;
    struct stream_state visible;
    struct stream_change *changes;      /* oldest first */
    struct stream_change **changes_end; /* where the next one goes */
    log_pos applied;                    /* end of the newest record in `visible` */
    log_pos staged_end;                 /* end of the newest record in `staged` */
    int64_t accessed_ms;                /* newest access, logged or not */
    uint64_t used_ms;                   /* monotonic time of the last operation, for eviction */

    uint64_t saved;       /* bytes before it are in extents or inherited; behind it they are hot */
    uint64_t cache_bytes; /* of `tail` in whole chunks before `saved`, as last counted */
    struct tail tail;     /* the newest bytes, hot or still in memory */
    struct extent *extents; /* owned; ascending from the fork offset to `saved` */
    size_t extent_count;    /* in use */
    size_t extent_cap;      /* allocated */

    struct producers *producers;  /* NULL: none ever */
    struct stream_closer *closer; /* NULL: open, or closed by nobody's producer */
    uint64_t observed_generation; /* of the engine's observer, when it was last asked; 0: never */
    bool observed;                /* what it answered */
    uint8_t news;                 /* NEWS_*: visible, and the observer has not been told */
    struct stream_live *live;     /* watches and frame, see watch.h; NULL: nobody reads live */

    struct list cache_link;      /* on the engine's cache list; under the cache lock */
    struct list dirty_link;      /* on the engine's dirty list; under the dirty lock */
    struct list load_link;       /* on the loader's queue; under the loader's lock */
    struct tree_node fresh_node; /* in the engine's tree of fresh ones, while `fresh` */
    bool fresh;                  /* in no catalog yet; both under the fresh lock */
    struct list queue;           /* while not live: operations that wait; under the name's shard */
    char name[];                 /* canonical */
};

/* A stream object in no table, in `phase`, with one reference. NULL when memory is out. */
struct stream *stream_create(struct engine *e, struct slice name, enum stream_phase phase);

/* Forgets everything but name and tables, for filling it again. */
void stream_clear(struct stream *s);

/* A reference to a stream that another list names and that may be on its way out: false then. */
bool stream_try_ref(struct stream *s);

/* A copy of the closer, or NULL when memory is out. */
struct stream_closer *stream_closer_create(const struct record_producer *p);

/* Where a fork's own bytes begin; 0 for others. Fixed. */
static inline uint64_t stream_own_start(const struct stream *s)
{
    return s->fork ? s->fork->offset : 0;
}

#endif
