/* One subscription: what it is, where its cursors stand, and the wake that is under way. A pure
 * state machine: no clock, no disk, no thread. subscriptions.c feeds it and makes durable what it
 * decides; subscription_view.c shows it.
 *
 *            wake                deliver: 2xx, not done        (webhook)
 *   IDLE ----------> OFFERED ---------------------------> LEASED
 *     ^                 |   claim                         (pull-wake)
 *     |                 |                                    |
 *     +-----------------+------------------------------------+
 *       done, release, expiry, nothing pending any more, deletion
 *
 * An end that leaves something pending is followed by a new wake in the same step, so that nothing
 * is forgotten: the memory is `tail > acked`. */
#ifndef ARBE_STREAM_SUBSCRIPTION_H
#define ARBE_STREAM_SUBSCRIPTION_H

#include "base/list.h"
#include "base/map.h"
#include "base/slice.h"
#include "log/record.h"

#define SUBSCRIPTION_WAKE_ID_BYTES 26u /* "w_" and 24 hexadecimal digits, without a NUL */
#define SUBSCRIPTION_HASH_BYTES    32u /* SHA-256 of the normalised configuration */

/* A cursor before the first byte, the protocol's "-1". */
#define SUBSCRIPTION_START UINT64_MAX

enum subscription_type {
    SUBSCRIPTION_WEBHOOK,
    SUBSCRIPTION_PULL_WAKE
};

enum subscription_phase {
    SUBSCRIPTION_IDLE,    /* no wake */
    SUBSCRIPTION_OFFERED, /* a wake nobody has taken: to be delivered, or to be claimed */
    SUBSCRIPTION_LEASED,  /* a worker has it until lease_until_ms */
};

/* A stream that the subscription follows. */
struct subscription_link {
    struct map_node by_path; /* in the links of its subscription */
    struct list link;        /* on its subscription's list, in order of linking */
    uint64_t acked;          /* position of the cursor, or SUBSCRIPTION_START */
    uint64_t skip;           /* bytes before it need no wake: wake events of our own */
    uint64_t tail;           /* of the stream, durable; 0: there is none yet */
    stream_id stream;        /* the stream that the cursor is about; 0: none yet */
    bool is_explicit;        /* added by name; else only by the pattern */
    bool saved;              /* there is a note of it */
    bool dirty;              /* its note is older than this */
    bool dropped;            /* gone, but for its note */
    uint16_t path_len;       /* bytes of `path` */
    char path[];             /* canonical name of the stream */
};

/* What a PUT defines. Borrowed or owned by whoever holds it; in a subscription it is owned. */
struct subscription_definition {
    enum subscription_type type;
    struct slice pattern;     /* canonical; empty: none */
    struct slice target;      /* webhook: URL; pull-wake: canonical name of the wake stream */
    struct slice description; /* when has_description */
    bool has_description;
    uint32_t lease_ttl_ms;
    uint8_t hash[SUBSCRIPTION_HASH_BYTES];
};

/* What changes with wakes: replaced as a whole once its note is durable. */
struct subscription_state {
    enum subscription_phase phase;
    uint64_t generation;                      /* of the newest wake; 0: none yet */
    char wake_id[SUBSCRIPTION_WAKE_ID_BYTES]; /* unless idle */
    int64_t lease_until_ms;                   /* wall clock; 0: no lease runs */
    int64_t retry_at_ms;                      /* wall clock, of the next attempt; 0: none planned */
    uint32_t failures;                        /* attempts that failed in a row */
    bool failed;                              /* status "failed" */
    struct slice holder;                      /* pull-wake: who claimed; points to holder_bytes */
    char holder_bytes[256];
};

struct subscription {
    struct map_node by_id;
    uint64_t number;    /* names its links on disk; never used twice */
    int64_t created_ms; /* wall clock */
    struct subscription_definition def;
    struct subscription_state state;
    struct map links_by_path; /* struct subscription_link */
    struct list links;        /* the same, in order of linking; skip those `dropped` */
    size_t link_count;        /* those not dropped */
    struct slice id;          /* owned */
    /* What follows belongs to subscriptions.c. */
};

/* Whether there is anything behind the cursor. An empty stream has nothing, whatever the cursor
 * says: positions are compared by meaning. */
static inline bool subscription_link_pending(const struct subscription_link *l)
{
    uint64_t seen = l->acked == SUBSCRIPTION_START ? 0 : l->acked;
    return !l->dropped && l->tail > (seen > l->skip ? seen : l->skip);
}

#endif
