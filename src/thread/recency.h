/* When threads were last written to: threads.last_entry_ts, by which lists are sorted. Whoever
 * writes to threads does it by a client of recency_stream_client_new and need not think of this.
 *
 * A successful append to a stream arbe-thread-ID moves that thread forward: in memory at once, in
 * the records at most once in RECENCY_INTERVAL_MS per thread, never back, and the last one is never
 * lost: it is written when its time comes, by recency_close, or, after a crash, by
 * recency_reconcile, which looks at where the streams end. Any thread. */
#ifndef ARBE_THREAD_RECENCY_H
#define ARBE_THREAD_RECENCY_H

#include "arbe/stream_client.h"
#include "base/pool.h"
#include "client/transport.h"
#include "thread/entry.h"
#include "thread/store_thread.h"

#define RECENCY_INTERVAL_MS 5000u
#define THREAD_STREAM       "arbe-thread-" /* and the thread's id: the stream's name */
#define THREAD_STREAM_BYTES (sizeof(THREAD_STREAM) - 1 + STORE_ID_BYTES)

struct recency;

struct recency_config {
    struct thread_store *store; /* outlives it */
    uint64_t interval_ms;       /* 0: RECENCY_INTERVAL_MS; shorter for tests */
    /* Records could not be written: tried again later. Any thread. May be NULL. */
    void (*trouble)(void *context, const char *sentence);
    /* An entry that recency_reconcile came upon, with its whole JSON: of it the records knew
     * nothing. The slices live during the call. At least once each. May be NULL. */
    void (*seen)(void *context, struct slice thread_id, const struct entry *entry,
                 struct slice json);
    void *context;
};

/* Starts its thread. ERR_NOMEM, ERR_AGAIN. */
int recency_open(const struct recency_config *config, struct recency **ret_recency) MUST_USE;

/* Writes what is not written yet, and frees. Its clients are freed by now. Blocks. An error of the
 * store, with a sentence: then the next start's recency_reconcile makes up for it. Accepts NULL. */
int recency_close(struct recency *r, struct errmsg *msg);

/* The only way to a client that writes threads: wraps a transport, which it owns from now on, also
 * when this fails. As client_new. */
int recency_stream_client_new(struct recency *r, struct transport *transport,
                              const struct stream_client_options *options,
                              struct stream_client **ret_client, struct stream_error *ret_error);

/* Moves threads forward whose streams go beyond what the records know: after a crash, before
 * anything is appended. Costs one listing where the server offers one, a HEAD per thread else, and
 * a read where there is a difference, of what lies behind the known offset. A thread that has no
 * stream gets one. Blocks. ERR_* of the
 * store, ERR_NOMEM, or ERR_IO when streams could not be read, with a sentence: threads that were
 * read by then are moved. */
int recency_reconcile(struct recency *r, struct stream_client *client, struct errmsg *msg) MUST_USE;

/* A thread that is further than its record says. */
struct recency_ahead {
    char thread_id[STORE_ID_BYTES];
    int64_t ts;
};

/* The threads that are ahead of their records at present: those written to within the last
 * interval. An array to be given back by free(), NULL when there is none; ERR_NOMEM. For lists,
 * which must be right in between too: they ask this first and the records after that, so that what
 * is written in between is seen in one of both. */
int recency_get_ahead(struct recency *r, struct recency_ahead **ret_ahead,
                      size_t *ret_count) MUST_USE;

/* The newest entry of one thread, when memory knows more than the records: else 0. */
int64_t recency_get(struct recency *r, struct slice thread_id);

/* Threads written to the records so far, for tests and metrics. */
uint64_t recency_writes(struct recency *r);

/* What it was opened with; constant. */
const struct recency_config *recency_get_config(const struct recency *r);

/* A thread has an entry of `ts`, and its stream ends at `offset` now. Any thread; never blocks for
 * long. For transports and who copies streams by other ways. */
void recency_note(struct recency *r, struct slice thread_id, int64_t ts, const char *offset);

/* The name of a thread's stream, NUL-terminated. `thread_id` has less than STORE_ID_BYTES bytes. */
void thread_stream_name(struct slice thread_id, char out[static THREAD_STREAM_BYTES]);

/* The thread of a stream's name: false when it is no thread's. ret_id borrows from `name`. */
bool thread_stream_parse(struct slice name, struct slice *ret_id) MUST_USE;

#endif
