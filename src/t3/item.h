/* What stream items and projections tell, as operations on threads. This is where the shapes of
 * orchestration V2 are known; t3/row.h knows what an operation means for a row.
 *
 * Of runs, messages and turns an operation holds facts: ids and texts as JSON values borrowed from
 * the text that is read, times read already. Pure but for memory; one thread. */
#ifndef ARBE_T3_ITEM_H
#define ARBE_T3_ITEM_H

#include "base/buf.h"
#include "base/err.h"
#include "base/limits.h"
#include "t3/facts.h"

/* What is told of a thing that there is at most one of. */
enum t3_told {
    T3_TOLD_NOTHING,
    T3_TOLD_NONE, /* there is none */
    T3_TOLD_FACTS,
};

enum t3_archived {
    T3_ARCHIVED_NOT_TOLD,
    T3_ARCHIVED_NO,
    T3_ARCHIVED_YES,
};

enum t3_op_kind {
    T3_OP_UPSERT,
    T3_OP_DELETE,
    T3_OP_SNAPSHOT_BEGINS, /* no thread; the upserts to its end are all of the host */
    T3_OP_SNAPSHOT_ENDS,
};

struct t3_op {
    enum t3_op_kind kind;
    enum t3_scope scope;
    struct slice thread_id; /* decoded; lives until the callback returns */
    bool creates;           /* makes a thread that was deleted be there again */
    struct slice title;     /* a JSON string or null; ptr NULL: not told */
    struct slice state;     /* likewise, of its run */
    enum t3_archived archived;
    enum t3_told run_told;
    struct t3_run_facts run;
    enum t3_told message_told;
    struct t3_message_facts message;
    enum t3_told turn_told;
    struct t3_turn_facts turn;
    struct slice request;  /* id of one that waits for an answer, "" for one without; null: none */
    struct slice answered; /* id of one that does not; ptr NULL, of both: not told */
    enum t3_told plan;     /* one that a person is to accept */
};

/* Takes an operation; a result other than 0 ends the reading and is returned. */
typedef int (*t3_op_fn)(void *context, const struct t3_op *op);

struct t3_item_reader {
    t3_op_fn op;
    void *context;
    size_t applied;                     /* items that were taken */
    size_t skipped;                     /* items, and records in snapshots, that are broken */
    struct buf id;                      /* private: the thread id at hand */
    char id_bytes[T3_ID_BYTES_MAX + 1]; /* private: of it */
    struct t3_op at_hand;               /* private: too large for a stack of them */
};

/* A reader that tells `op` what it reads. It stays where it is, and holds nothing to be freed. */
void t3_item_reader_init(struct t3_item_reader *r, t3_op_fn op, void *context);

/* Reads a JSON text: a chunk, an item, or a projection. 0; ERR_INVALID with a sentence: it is none
 * of them; ERR_MISMATCH with one: a server of the first protocol; ERR_NOMEM; or what `op`
 * returned. */
int t3_item_read(struct t3_item_reader *r, struct slice text, struct errmsg *msg) MUST_USE;

#endif
