/* Does to streams what records have caused: the signals of threads and houses, new streams, streams
 * that go. What is to be done was kept together with the change (store_outbox.h), so that a crash
 * or a failing append loses nothing: it is done at the next start, or tried again before, in the
 * same order per thread and once each (entries by their ids).
 *
 * The entry of an OUTBOX_APPEND may also be a JSON array of entries, which are stored all or none;
 * each one's own id counts. What can never be done, since the stream is closed or refuses it, or
 * went together with its thread, is told to `trouble` and taken out: it must not hold up the rest.
 * A thread that lost its stream gets a new one. */
#ifndef ARBE_THREAD_OUTBOX_H
#define ARBE_THREAD_OUTBOX_H

#include "thread/poster.h"
#include "thread/store_outbox.h"

#define OUTBOX_RETRY_MS_MIN 250u   /* back-off after the first failure, doubled each time */
#define OUTBOX_RETRY_MS_MAX 30000u /* the longest */

struct outbox;

struct outbox_config {
    struct thread_store *store;   /* outlives it, as do the others */
    struct stream_client *client; /* of recency_stream_client_new */
    struct poster *poster;
    uint64_t retry_ms_max; /* 0: OUTBOX_RETRY_MS_MAX; shorter for tests */
    /* Something could not be done for now, in a sentence. Any thread. May be NULL. */
    void (*trouble)(void *context, const char *sentence);
    void *context;
};

/* Starts its thread. ERR_NOMEM, ERR_AGAIN. */
int outbox_create(const struct outbox_config *config, struct outbox **ret_outbox) MUST_USE;

/* Does all that is left from before, before anything new is let in. Blocks. What cannot be done now
 * stays, `trouble` is told, and it is tried again later: no error. ERR_* of the store with a
 * sentence. */
int outbox_reconcile(struct outbox *o, struct errmsg *msg) MUST_USE;

/* Does what waits for one thread, after the change that caused it was committed. Blocks for as long
 * as an append takes, not at all when streams have not answered of late. 0, or -1 when something
 * stays undone: it is tried again, with back-off, and at the next start. Of one thread at a time,
 * in order. */
int outbox_run(struct outbox *o, struct slice thread_id);

/* The same for whatever waits, in the background: after the deletion of a house. */
void outbox_wake(struct outbox *o);

/* Items that were tried and wait to be tried again, for metrics. */
uint64_t outbox_waiting(struct outbox *o);

/* For how long the thread that waits longest has been tried, in milliseconds; 0: none waits. It
 * looks at each that waits. */
uint64_t outbox_oldest_ms(struct outbox *o);

/* Ends the background work. Blocks until what is under way has ended. Accepts NULL. */
void outbox_destroy(struct outbox *o);

/* A signal to be told to a thread. */
struct thread_signal {
    struct slice thread_id;
    struct slice entry_id;  /* new */
    struct slice author_id; /* empty: none */
    int64_t ts;
    const char *type;     /* such as "signal.thread.renamed" */
    struct slice members; /* of the payload, beside "type": "\"name\":\"x\""; empty: none */
};

/* Composes the item that appends it, in the arena. False when that is full. */
bool outbox_signal(const struct thread_signal *signal, struct arena *arena,
                   struct outbox_item *ret_item) MUST_USE;

#endif
