/* One subscription: what it is, where its cursors stand, and the wake that is under way. Pure: no
 * clock, no disk, no thread. The service (subscription_core.h) feeds it, and makes durable what is
 * to change before it changes: subscription_change.h.
 *
 *            wake                deliver: 2xx, not done        (webhook)
 *   IDLE ----------> OFFERED ---------------------------> LEASED
 *     ^                 |   claim                         (pull-wake)
 *     |                 |                                    |
 *     +-----------------+------------------------------------+
 *       done, release, expiry, nothing pending any more
 *
 * An end that leaves something pending is followed by a new wake in the same step, so that nothing
 * is forgotten: the memory is `tail > acked`. */
#ifndef ARBE_STREAM_SUBSCRIPTION_H
#define ARBE_STREAM_SUBSCRIPTION_H

#include "base/block.h"
#include "base/list.h"
#include "base/map.h"
#include "log/record.h"
#include "stream/subscription_index.h"

#define SUBSCRIPTION_WAKE_ID_BYTES 26u /* "w_" and 24 hexadecimal digits, without a NUL */
#define SUBSCRIPTION_HASH_BYTES    32u /* SHA-256 of the normalised configuration */

/* A cursor before the first byte, the protocol's "-1". */
#define SUBSCRIPTION_START UINT64_MAX

struct subscription;

enum subscription_type {
    SUBSCRIPTION_WEBHOOK,
    SUBSCRIPTION_PULL_WAKE
};

enum subscription_phase {
    SUBSCRIPTION_IDLE,    /* no wake */
    SUBSCRIPTION_OFFERED, /* a wake nobody has taken: to be delivered, or to be claimed */
    SUBSCRIPTION_LEASED,  /* a worker has it until lease_until_ms */
};

/* A name by which the index finds a subscription. */
struct subscription_name {
    struct index_entry entry;
    struct subscription *owner;
};

/* A stream that a subscription follows. Owned by its subscription. */
struct subscription_link {
    struct subscription *owner;
    struct map_node by_path;       /* in the links of the subscription, while `attached` */
    struct list link;              /* on its list, in order of linking */
    struct list pending_link;      /* on its pending ones */
    struct list dirty_link;        /* on its dirty ones: the note is older than this */
    struct subscription_name name; /* in the index, while explicit */
    uint64_t acked;                /* position of the cursor, or SUBSCRIPTION_START */
    uint64_t skip;                 /* bytes before it need no wake: inherited, or events of ours */
    uint64_t tail;                 /* of the stream, durable; 0: there is none yet */
    stream_id stream;              /* the stream that the cursor is about; 0: none yet */
    uint64_t sent_generation;      /* the newest wake that was sent with this link; 0: none */
    uint64_t sent_tail;            /* the tail it told of */
    uint32_t walk;                 /* the newest listing that found the stream */
    uint32_t edit;                 /* its place in the change at hand, from 1 on; 0: none */
    bool attached;                 /* in the subscription */
    bool is_explicit;              /* added by name; else only by the pattern */
    bool saved;                    /* there is a note of it */
    bool dropped;                  /* gone, but for its note */
    uint16_t path_len;             /* bytes of `path` */
    char path[];                   /* canonical name of the stream */
};

/* What a PUT defined, from the bytes of `memory`. */
struct subscription_definition {
    enum subscription_type type;
    struct slice pattern;     /* canonical; empty: none */
    struct slice target;      /* webhook: URL; pull-wake: canonical name of the wake stream */
    struct slice description; /* if has_description */
    bool has_description;
    uint32_t lease_ttl_ms;
    uint8_t hash[SUBSCRIPTION_HASH_BYTES]; /* of the normalised configuration, links included */
    char *memory;                          /* owned */
};

/* What moves with wakes. Times are of the wall clock, since they outlive the process. */
struct subscription_state {
    enum subscription_phase phase;
    uint64_t generation;                      /* of the newest wake; 0: none yet */
    char wake_id[SUBSCRIPTION_WAKE_ID_BYTES]; /* unless idle */
    int64_t lease_until_ms;                   /* 0: no lease runs */
    int64_t retry_at_ms;                      /* webhook: of the next attempt; 0: now */
    uint32_t failures;                        /* attempts that failed in a row */
    bool failed;                              /* status: `failures` is above 0 */
    struct slice holder;                      /* pull-wake: who claimed; else empty */
    struct block *holder_block;               /* holds it; referenced; NULL: nobody */
};

struct subscription {
    struct map_node by_id;
    struct slice id;    /* owned */
    bool exists;        /* else it is being made, or deleted and only its generation is kept */
    uint64_t number;    /* names its notes; never used twice */
    int64_t created_ms; /* wall clock; of one that was deleted, when that was */
    struct subscription_definition def;
    struct subscription_state state;
    struct index_entry entry;             /* of the pattern */
    struct subscription_name wake_stream; /* pull-wake: in the index, to hear when it is made */

    struct map links_by_path; /* struct subscription_link, dropped ones included */
    struct list links;        /* the same, in order of linking */
    struct list pending;      /* those with something behind their cursors */
    struct list dirty;        /* those whose notes are old */
    size_t link_count;        /* those not dropped */
    size_t pending_count;     /* of `pending` */

    /* Of the service. */
    size_t links_counted;               /* in the statistics */
    bool lease_counted;                 /* in the statistics */
    struct list ready_link;             /* on the list of those to be attended to */
    struct list call_link;              /* waits for a place at the sender of webhooks */
    struct list ops;                    /* struct subscription_op, in turn */
    struct list held;                   /* struct news, to be told once `linking` has ended */
    size_t held_count;                  /* of `held` */
    bool missed;                        /* news that there was no room or memory for */
    struct subscription_change *change; /* on its way to the log; NULL: none */
    struct linking *linking;            /* a PUT or POST that looks for tails; NULL: none */
    uint64_t lease_due_ms;              /* monotonic; 0: no lease runs */
    uint64_t retry_due_ms;              /* monotonic, of the next delivery or event; 0: now */
    uint64_t due_ms;                    /* monotonic, when to be attended to, if `timer` */
    size_t timer;                       /* its place among the timers, from 1 on; 0: none */
    size_t looks;                       /* operations that ask for a tail */
    size_t calls;                       /* webhooks under way */
    uint64_t call_generation;           /* webhook: the wake that is at the sender; 0: none */
    bool call_sent;                     /* webhook: that one is being sent */
    uint64_t result_generation;         /* webhook: the wake that was answered; 0: none */
    bool result_ok;                     /* the answer was 2xx */
    bool result_done;                   /* it said done */
    bool stale;                         /* its lease ended while no server ran */
    uint64_t told_generation;           /* pull-wake: the wake whose event is written; 0: none */
    uint32_t event_failures;            /* pull-wake: attempts that failed in a row */
    bool event_active;                  /* pull-wake: an event is being written */
    bool full_told;                     /* the operator knows that it has too many links */
};

/* An empty one that does not exist, or NULL when memory is out. */
struct subscription *subscription_create(struct slice id) MUST_USE;

/* Frees it with its links, which are in no index any more. Accepts NULL. */
void subscription_destroy(struct subscription *sub);

/* Takes a copy of what the configuration says. ERR_NOMEM; it is as before then. */
int subscription_define(struct subscription *sub,
                        const struct subscription_definition *def) MUST_USE;

/* A link that is in no subscription yet, at `acked`. NULL when memory is out. */
struct subscription_link *subscription_link_create(struct subscription *sub, struct slice path,
                                                   uint64_t acked);

/* Frees one that is attached to nothing. Accepts NULL. */
void subscription_link_destroy(struct subscription_link *l);

/* The link to that stream, perhaps a dropped one; or NULL. */
struct subscription_link *subscription_find(const struct subscription *sub, struct slice path);

/* Makes the link part of its subscription. ERR_NOMEM. */
int subscription_attach(struct subscription_link *l) MUST_USE;

/* Takes the link out of its subscription, whatever its state, and frees it. */
void subscription_detach(struct subscription_link *l);

/* The stream is gone, or the link is: it counts no more, and waits for its note to go. */
void subscription_drop(struct subscription_link *l);

/* Makes a dropped link count again, for the stream `stream` or for one that is to come (0). */
void subscription_revive(struct subscription_link *l, stream_id stream, uint64_t acked);

/* The note of the link is old. */
void subscription_soil(struct subscription_link *l);

/* To be called whenever acked, skip, tail or dropped have changed. */
void subscription_refresh(struct subscription_link *l);

/* Whether there is anything behind the cursor. An empty stream has nothing, whatever the cursor
 * says: positions are compared by meaning. */
static inline bool subscription_link_pending(const struct subscription_link *l)
{
    uint64_t seen = l->acked == SUBSCRIPTION_START ? 0 : l->acked;
    return !l->dropped && l->tail > (seen > l->skip ? seen : l->skip);
}

static inline bool subscription_pending(const struct subscription *sub)
{
    return !list_empty(&sub->pending);
}

static inline struct slice subscription_link_path(const struct subscription_link *l)
{
    return (struct slice){l->path, l->path_len};
}

/* Whether the subscription follows that stream by its pattern; never its own wake stream. */
bool subscription_globs(const struct subscription *sub, struct slice name);

/* Whether both numbers and the id name the wake that is under way. */
bool subscription_is_current(const struct subscription_state *st, uint64_t token_generation,
                             uint64_t generation, struct slice wake_id);

/* The moves. Each edits a state that is to be. */

/* A new wake: the next generation. The lease of a webhook begins now, that of pull-wake with the
 * claim. */
void subscription_state_wake(struct subscription_state *st, const struct subscription *sub,
                             const char wake_id[static SUBSCRIPTION_WAKE_ID_BYTES], int64_t now_ms);

/* The wake has ended; its generation stays. */
void subscription_state_end(struct subscription_state *st);

/* A worker has it from now on, or for longer. */
void subscription_state_lease(struct subscription_state *st, const struct subscription *sub,
                              int64_t now_ms);

/* Notes who holds the lease; takes over the reference. */
void subscription_state_hold(struct subscription_state *st, struct block *holder);

/* A delivery failed; the next is due in `pause_ms`, see subscription_pause_ms. */
void subscription_state_fail(struct subscription_state *st, uint64_t pause_ms, int64_t now_ms);

/* How long to wait after that many failures in a row: 1 s, doubled up to 60 s, and up to a fifth
 * more or less by `random`. */
uint64_t subscription_pause_ms(uint32_t failures, uint32_t random);

/* A copy with references of its own; to be dropped. */
struct subscription_state subscription_state_copy(const struct subscription_state *st);
void subscription_state_drop(struct subscription_state *st);

#endif
