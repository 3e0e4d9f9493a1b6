/* Idempotent producers of one stream (PROTOCOL.md 5.2.1): the verdict on a claim, a pure function,
 * and the map of those that the stream knows. A producer has two states: `staged`, which every
 * check looks at, and `durable`, which a checkpoint may write. The caller holds the stream's
 * lock. */
#ifndef ARBE_STREAM_PRODUCER_H
#define ARBE_STREAM_PRODUCER_H

#include "base/attr.h"
#include "base/map.h"
#include "base/slice.h"

struct producer_state {
    uint64_t epoch;
    uint64_t seq;    /* last accepted */
    int64_t used_ms; /* last accepted request */
};

enum producer_verdict {
    PRODUCER_ACCEPT,
    PRODUCER_DUPLICATE,   /* accepted before */
    PRODUCER_STALE_EPOCH, /* a newer session took over */
    PRODUCER_EPOCH_SEQ,   /* a new epoch must begin at 0 */
    PRODUCER_GAP,         /* a sequence number was left out */
};

/* Judges (epoch, seq) against what is known; `state` is NULL for a producer never seen, which
 * begins at 0 in whatever epoch it says. */
enum producer_verdict producer_judge(const struct producer_state *state, uint64_t epoch,
                                     uint64_t seq);

struct producer {
    struct map_node node;          /* in the stream's producers */
    struct producer_state staged;  /* what the newest record says */
    struct producer_state durable; /* what the newest durable record says */
    uint32_t pins;                 /* records that are staged and not durable */
    bool known;                    /* `durable` is set */
    bool dirty;                    /* `durable` changed since it was last given to a checkpoint */
    uint16_t id_len;               /* bytes */
    char id[];                     /* as sent */
};

struct producers {
    struct map map;         /* struct producer, by id */
    struct producer **gone; /* forgotten and perhaps still in the catalog; owned */
    size_t gone_count;      /* entries */
};

/* NULL when memory is out. */
struct producers *producers_create(void);

/* Frees the producers with it. Accepts NULL. */
void producers_destroy(struct producers *p);

/* The producer called `id`, or NULL. `p` may be NULL. */
struct producer *producers_find(const struct producers *p, struct slice id);

/* Whether one more may be added; at PRODUCERS_PER_STREAM_MAX those that were idle for
 * PRODUCER_IDLE_MS are forgotten first. ERR_LIMIT when there are none, ERR_NOMEM. */
int producers_make_room(struct producers *p, int64_t now_ms) MUST_USE;

/* Adds a producer, which must be new. ERR_NOMEM. */
int producers_add(struct producers *p, struct slice id, struct producer **ret_producer) MUST_USE;

/* Takes a producer out again that no record has named. */
void producers_remove(struct producers *p, struct producer *producer);

/* Frees the forgotten ones, once a checkpoint has removed them. */
void producers_clear_gone(struct producers *p, size_t count);

static inline struct slice producer_id(const struct producer *p)
{
    return (struct slice){p->id, p->id_len};
}

#endif
