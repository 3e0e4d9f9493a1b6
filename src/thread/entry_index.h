/* Which entry ids a thread's stream has, and where: kept in the store, made from the stream by
 * reading what came since it was last looked at. It may be behind the stream, never ahead.
 *
 * What was read is kept in memory and written in batches, by a thread of its own: a look costs a
 * read of the new part of the stream and a query, and no transaction. What is not written when the
 * process dies is read again. Bounded by INDEX_THREADS_MAX and INDEX_ROWS_MAX. Any thread. */
#ifndef ARBE_THREAD_ENTRY_INDEX_H
#define ARBE_THREAD_ENTRY_INDEX_H

#include "arbe/stream_client.h"
#include "base/arena.h"
#include "thread/api_error.h"
#include "thread/failure.h"
#include "thread/store_thread.h"

struct entry_index;

/* An id that is looked for. */
struct entry_query {
    struct slice id;
    bool found;        /* result */
    struct slice json; /* result: the first entry of that id, in the arena */
};

/* Starts its thread. Store and client outlive it; `teller`, which is copied, hears why looks fail,
 * NULL: nobody does. ERR_NOMEM, ERR_AGAIN. */
int entry_index_open(struct thread_store *store, struct stream_client *client,
                     const struct failure_teller *teller, struct entry_index **ret_index) MUST_USE;

/* Reads up to where the stream ends now, and looks for the ids. Looks at one thread are made one
 * after the other. Blocks. 0; or -1 with NOT_FOUND when there is no such stream, BUSY when the
 * arena is full, and what failure.h has for streams and the store. */
int entry_index_look(struct entry_index *x, struct slice thread_id, struct entry_query *queries,
                     size_t count, struct arena *arena, struct api_error *ret_error) MUST_USE;

/* Writes what is not written yet. Blocks. The first error of the store, with a sentence. */
int entry_index_flush(struct entry_index *x, struct errmsg *msg);

/* Writes likewise, as far as that goes, and frees. No look is under way. Accepts NULL. */
void entry_index_close(struct entry_index *x);

#endif
