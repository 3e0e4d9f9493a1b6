/* What is to become of one subscription, from the decision until it is durable: the state after it
 * and the links that change. Until it is committed nothing of it is to be seen; when the log
 * refuses it, it is dropped, and nothing has happened. At most one is under way for a subscription.
 *
 * Meanwhile its links live on: tails grow, streams are deleted and made again. So an edit remembers
 * which stream it was about, and what no longer holds when it is committed is written once more.
 * Pure. */
#ifndef ARBE_STREAM_SUBSCRIPTION_CHANGE_H
#define ARBE_STREAM_SUBSCRIPTION_CHANGE_H

#include "stream/subscription.h"

/* A link as it is to be. The link is attached; a new one as dropped, and the edit revives it. */
struct subscription_edit {
    struct subscription_link *link;
    stream_id stream; /* that the cursor is about */
    uint64_t acked;   /* the cursor */
    uint64_t tail;    /* new: of the stream */
    bool is_explicit; /* as in the link */
    bool fresh;       /* new: the link begins to count */
    bool drop;        /* the link goes, and its note */
    bool soiled;      /* private: the note was old before */
    bool dropped;     /* private: the link was dropped before */
};

struct subscription_change {
    struct subscription *sub;
    struct subscription_state after; /* owned */
    bool create;                     /* it begins to exist */
    bool remove;                     /* it ceases to */
    bool moved;                      /* `after` differs from the state before */
    bool failed;                     /* memory ran out while it was made */
    int64_t removed_ms;              /* wall clock, if `remove` */
    struct subscription_edit *edits; /* owned; at most one for a link */
    size_t edit_count;
    size_t edit_cap;
};

/* A change that changes nothing yet. */
void subscription_change_init(struct subscription_change *c, struct subscription *sub);

/* Nothing of it has happened. New links are left to the caller, still dropped and never saved. */
void subscription_change_drop(struct subscription_change *c);

/* The cursor of a link moves to `acked`, never back. */
void subscription_change_ack(struct subscription_change *c, struct subscription_link *l,
                             uint64_t acked);

/* Any other edit, of a link that has none yet. Failure sticks to the change. */
void subscription_change_edit(struct subscription_change *c, const struct subscription_edit *edit);

/* Whether something is pending once the change is committed, as far as is known now. */
bool subscription_change_pending(const struct subscription_change *c);

/* The change is complete and about to be written; notes of up to `max` other links that are old
 * are written along. */
void subscription_change_seal(struct subscription_change *c, size_t max);

/* It is durable: the subscription becomes so. Links that are explicit no longer, or gone, have been
 * taken out of the index. */
void subscription_change_commit(struct subscription_change *c);

#endif
