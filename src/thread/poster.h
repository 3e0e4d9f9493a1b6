/* Appends entries to threads' streams, each id once: the same id again, also after a restart, also
 * at the same time, also in another batch, stores nothing and is answered with the first entry.
 *
 * Ids that the server itself has just made (`fresh`) are new and cost nothing but the append. For
 * others the index in the store is first brought up to where the stream ends, by reading what came
 * since it was last looked at: the index is made from the stream and may be behind it, never ahead.
 * Two posts of one id wait for each other. After an append whose outcome is not known the next post
 * of that id finds out.
 *
 * What is started is bounded (POSTS_MAX, and their bytes); more is BUSY. Blocking work runs on the
 * pool, the append itself on no thread at all. Any thread may call. */
#ifndef ARBE_THREAD_POSTER_H
#define ARBE_THREAD_POSTER_H

#include "arbe/stream_client.h"
#include "base/arena.h"
#include "base/list.h"
#include "base/pool.h"
#include "thread/api_error.h"
#include "thread/entry.h"
#include "thread/failure.h"
#include "thread/recency.h"
#include "thread/store_thread.h"

struct poster;

struct poster_config {
    struct thread_store *store;   /* outlives it, as do the others */
    struct stream_client *client; /* of recency_stream_client_new */
    struct pool *pool;            /* of at least one thread */
    struct failure_teller teller; /* why posts fail; all zeros: nobody asks */
};

/* One entry of a post. */
struct post_entry {
    struct slice id;    /* as entry_id_good has it, or the server's own */
    struct slice json;  /* the whole entry, as entry_format made it */
    bool fresh;         /* the id was made just now, and nobody else can have it */
    bool duplicate;     /* result: there was an entry of that id before; nothing stored */
    struct slice first; /* result of a duplicate: that entry's JSON, in the post's arena */
};

/* Entries that are stored all or none, duplicates apart. The caller's memory, which lives until
 * `done`. */
struct post {
    struct slice thread_id;
    struct post_entry *entries;
    size_t count;        /* at least 1; ids within it are different */
    struct arena *arena; /* for `first`; used by nobody else meanwhile */

    /* Called once, on any thread, also within poster_start; must not block. 0, or -1 and `error` is
     * set: NOT_FOUND, THREAD_CLOSED, STREAMS_UNAVAILABLE, OUTCOME_UNKNOWN, BUSY, STORAGE_FULL,
     * TOO_LARGE, INTERNAL. Not used by poster_post. */
    void (*done)(struct post *p, int result);
    void *context;

    struct api_error error;
    bool final;                            /* with an error: the same post will never succeed */
    uint64_t retry_after_s;                /* with BUSY and STREAMS_UNAVAILABLE; 0: not said */
    size_t stored;                         /* entries that were appended */
    char next_offset[STREAM_OFFSET_BYTES]; /* behind them; empty when nothing was stored */

    /* private */
    struct poster *poster;
    struct list link;           /* behind a claim, or on the queue */
    struct post_claim *claims;  /* ids that are not fresh; owned */
    struct entry_query *looked; /* what the index is asked about them; owned */
    size_t claim_count;
    char *batch;                /* several entries as one text; owned */
    size_t bytes;               /* of the entries, as they count against POSTS_BYTES_MAX */
    struct post_waiter *waiter; /* poster_post */
};

/* ERR_NOMEM, ERR_AGAIN. */
int poster_create(const struct poster_config *config, struct poster **ret_poster) MUST_USE;

/* Starts a post, whose results and private fields it begins. Does not block. */
void poster_start(struct poster *p, struct post *post);

/* Does a post and waits, looking up its own and others' meanwhile. Not for workers, nor for
 * callbacks of the client. As `done`. */
int poster_post(struct poster *p, struct post *post) MUST_USE;

/* Finds the entry of that id in a thread: 0 and its JSON in the arena; NOT_FOUND and the others
 * above. Blocks. */
int poster_find(struct poster *p, struct slice thread_id, struct slice entry_id,
                struct arena *arena, struct slice *ret_json, struct api_error *ret_error) MUST_USE;

/* Writes what of the index is not written yet, for tests and at the end. Blocks. */
int poster_flush(struct poster *p, struct errmsg *msg);

/* What it has done since it was created. */
struct poster_stats {
    uint64_t stored;     /* entries */
    uint64_t duplicates; /* entries that were there already */
};

/* For metrics. Any thread. */
void poster_get_stats(const struct poster *p, struct poster_stats *ret_stats);

/* No post is under way. Flushes. Accepts NULL. */
void poster_destroy(struct poster *p);

#endif
