/* The catalog: everything known about a stream except its bytes, in one LMDB environment under
 * DIR/catalog/. It is changed only by checkpoints and compactions, one transaction each, together
 * with the log position that it covers. catalog.c opens with the tables and catalog_value.h has the
 * codec of the values.
 *
 * Reads are short LMDB read transactions; they may fault pages in from disk, so they run on the
 * pool. One write transaction at a time. */
#ifndef ARBE_LOG_CATALOG_H
#define ARBE_LOG_CATALOG_H

#include "base/err.h"
#include "log/pack.h"
#include "log/record.h"
#include "log/sys.h"

/* What the catalog keeps of one stream besides extents and producers. Slices borrow from whoever
 * filled the struct. */
struct stream_meta {
    stream_id id;
    log_pos applied; /* end of the last record that is in here; replay skips up to it */
    struct slice name;
    struct slice content_type; /* as given at creation */
    int64_t created_ms;
    uint64_t ttl_seconds;  /* UINT64_MAX: none */
    int64_t expires_at_ms; /* INT64_MAX: none */
    int64_t accessed_ms;   /* last logged access, for a sliding TTL */
    uint64_t tail;         /* offset one past the last byte; all bytes before are in extents or,
                                  before fork_offset, in the source's */
    stream_id source_id;   /* 0: not a fork */
    uint64_t fork_offset;
    uint64_t fork_anchor;
    uint64_t fork_sub_offset;
    bool fork_explicit;
    bool closed;
    bool soft_deleted;
    uint64_t fork_refs; /* forks that have this stream as their source */
    bool has_seq;
    struct slice seq;              /* last Stream-Seq */
    struct record_producer closer; /* who closed the stream; empty id: nobody's producer did */
};

/* State of one producer of one stream. */
struct producer_meta {
    struct slice id;
    uint64_t epoch;
    uint64_t seq;    /* last accepted */
    int64_t used_ms; /* last accepted request */
};

/* A loaded stream: one allocation-owning struct, freed by catalog_stream_finish. */
struct catalog_stream {
    struct stream_meta meta; /* slices point into `bytes` */
    struct extent *extents;  /* ascending, without gaps from fork_offset to tail */
    size_t extent_count;
    struct producer_meta *producers; /* slices point into `bytes` */
    size_t producer_count;
    char *bytes; /* owned */
};

/* The singletons of the catalog. */
struct catalog_state {
    uint8_t uuid[16];      /* of the data directory */
    uint32_t format;       /* CATALOG_FORMAT */
    uint32_t epoch;        /* of the last opening */
    uint8_t durable;       /* 1: kept by sync or os; 0: memory */
    uint8_t log_made;      /* 1: a log was begun, so that none to be found is a fault */
    log_pos checkpoint;    /* recovery begins here */
    stream_id next_stream; /* every id below may be taken */
    pack_id next_pack;
    uint8_t counted;    /* 1: `own_bytes` was kept up; an older version wrote 0 */
    uint64_t own_bytes; /* see catalog_totals. The catalog sees to both fields by itself */
};

/* What the streams of the catalog are in all. */
struct catalog_totals {
    uint64_t streams;
    uint64_t bytes; /* of their own: from fork_offset to tail */
};

struct catalog;

#define CATALOG_FORMAT       2u /* with notes; older versions refuse it */
#define CATALOG_FORMAT_FIRST 1u /* the oldest that is read */

/* Whom the catalog speaks to when something is wrong; each may be NULL. */
struct catalog_watch {
    void *context;
    /* LMDB met damage that it cannot bear: the process ends when this returns. */
    void (*damaged)(void *context, const char *sentence);
    /* It could not be learnt how a commit ended, for the first time at attempt 0: waits before the
     * next attempt. False: gives up, with ERR_UNKNOWN. Without it there is one attempt. */
    bool (*pause)(void *context, unsigned attempt);
};

/* Opens or creates; `dir` exists on the real disk, since LMDB makes its own calls. `sync` false
 * leaves syncing to the kernel. `watch` (NULL: nobody) is copied. A new environment gets a random
 * uuid and epoch 0. ERR_CORRUPT, ERR_MISMATCH (other format), ERR_IO, ERR_NOSPC with a sentence. */
int catalog_open(struct sys *sys, const char *dir, bool sync, const struct catalog_watch *watch,
                 struct catalog **ret_catalog, struct catalog_state *ret_state,
                 struct errmsg *msg) MUST_USE;

/* No transaction is open any more. Accepts NULL. */
void catalog_close(struct catalog *c);

/* Keeps the pages of this moment, and of all later ones, from being written over, for others who
 * read the file. It grows meanwhile, since pages that became free are not used again. */
struct catalog_pin;

/* ERR_NOMEM, ERR_AGAIN, ERR_IO. */
int catalog_pin(struct catalog *c, struct catalog_pin **ret_pin) MUST_USE;

/* Whether the pages may have been written over: the environment was opened anew. */
bool catalog_pin_lost(struct catalog_pin *p);

/* Lets go and frees. Accepts NULL. */
void catalog_unpin(struct catalog_pin *p);

/* Looks up a name. 0 and the id, or ERR_NOTFOUND, ERR_CORRUPT, ERR_IO. */
int catalog_find(struct catalog *c, struct slice name, stream_id *ret_id) MUST_USE;

/* Loads a stream whole. Errors as catalog_find. */
int catalog_load(struct catalog *c, stream_id id, struct catalog_stream *ret_stream) MUST_USE;

/* Frees what catalog_load filled. Accepts a zeroed struct. */
void catalog_stream_finish(struct catalog_stream *s);

/* Called per stream in name order; a result other than 0 ends the walk and is returned. */
typedef int (*catalog_each_fn)(void *context, const struct stream_meta *meta);

/* Walks at most `limit` streams whose names begin with `prefix` and come after `after`. */
int catalog_list(struct catalog *c, struct slice prefix, struct slice after, size_t limit,
                 catalog_each_fn each, void *context) MUST_USE;

/* Walks at most `limit` streams whose deadline in the index is at or before `now_ms`, earliest
 * first. The index may lag behind renewals: the caller checks. */
int catalog_expired(struct catalog *c, int64_t now_ms, size_t limit, catalog_each_fn each,
                    void *context) MUST_USE;

/* The totals as of the last commit, kept up by every transaction. On the thread that makes
 * transactions. */
struct catalog_totals catalog_get_totals(const struct catalog *c);

/* The same by a walk over all streams, for whoever doubts. Blocks. */
int catalog_measure(struct catalog *c, struct catalog_totals *ret_totals) MUST_USE;

/* Number of streams, from the table's own count. */
uint64_t catalog_count(struct catalog *c);

/* Called per pack with the bytes that live extents hold of it. */
typedef int (*catalog_pack_fn)(void *context, pack_id id, uint64_t live_bytes,
                               uint64_t total_bytes);

/* Walks all packs, ascending. */
int catalog_each_pack(struct catalog *c, catalog_pack_fn each, void *context) MUST_USE;

/* Called per extent of a pack, by position. */
typedef int (*catalog_extent_fn)(void *context, stream_id id, const struct extent *e);

/* Walks the extents that lie in `pack`. */
int catalog_each_extent(struct catalog *c, pack_id pack, catalog_extent_fn each,
                        void *context) MUST_USE;

/* Called per extent of a stream, ascending; nothing for an unknown id. */
int catalog_each_stream_extent(struct catalog *c, stream_id id, catalog_extent_fn each,
                               void *context) MUST_USE;

/* Called per note in the order of keys; slices live during the call. A result other than 0 ends the
 * walk and is returned. */
typedef int (*catalog_note_fn)(void *context, struct slice key, struct slice value);

/* Walks the notes whose keys begin with `prefix`. ERR_CORRUPT, with a sentence that names the note,
 * when one does not prove itself; ERR_IO. */
int catalog_each_note(struct catalog *c, struct slice prefix, catalog_note_fn each, void *context,
                      struct errmsg *msg) MUST_USE;

/* Forgets all streams, packs and notes and writes `state`, in one transaction. */
int catalog_clear(struct catalog *c, const struct catalog_state *state) MUST_USE;

/* A write transaction. The first failure sticks and the commit returns it. Packs' live counts and
 * the name, expiry and pack indexes follow from the calls below. Begin, calls and end on one
 * thread. */
struct catalog_txn;

/* Waits for another write transaction to end. ERR_UNKNOWN after a commit that ended so. */
int catalog_begin(struct catalog *c, struct catalog_txn **ret_txn) MUST_USE;

/* Writes everything but extents and producers. The name goes to the stream unless a newer one
 * has it. */
void catalog_put_stream(struct catalog_txn *t, const struct stream_meta *meta);

/* Writes one producer, whether or not it is known. */
void catalog_put_producer(struct catalog_txn *t, stream_id id, const struct producer_meta *p);

/* Removes one producer; an unknown one is fine. */
void catalog_del_producer(struct catalog_txn *t, stream_id id, struct slice producer_id);

/* Adds an extent behind the stream's last one. One that is there already is left alone. */
void catalog_add_extent(struct catalog_txn *t, stream_id id, const struct extent *e);

/* Replaces the extents that exactly cover e->start .. +e->len. ERR_NOTFOUND (not sticky) when they
 * no longer do, or the stream is gone: then nothing changes. */
int catalog_replace_extents(struct catalog_txn *t, stream_id id, const struct extent *e) MUST_USE;

/* Removes the stream with its extents, producers and index entries; the name only while it still
 * names this id. Unknown ids are left alone. */
void catalog_drop_stream(struct catalog_txn *t, stream_id id);

/* Writes a pack's size; its live bytes are counted from extents. */
void catalog_put_pack(struct catalog_txn *t, pack_id id, uint64_t total_bytes);

/* Forgets a pack without live bytes. */
void catalog_del_pack(struct catalog_txn *t, pack_id id);

/* Writes a note, whether or not there is one. */
void catalog_put_note(struct catalog_txn *t, struct slice key, struct slice value);

/* Removes a note; an unknown one is fine. */
void catalog_del_note(struct catalog_txn *t, struct slice key);

/* Writes the singletons. */
void catalog_put_state(struct catalog_txn *t, const struct catalog_state *state);

/* Ends and frees the transaction either way. After an error nothing of it happened and another one
 * may be tried, but for ERR_UNKNOWN: the disk failed at the very end, and only the next start can
 * tell whether it happened; the catalog takes no more transactions, and nothing that it may name
 * must be removed. See catalog_watch.pause. */
int catalog_commit(struct catalog_txn *t) MUST_USE;

/* Ends and frees the transaction without effect. */
void catalog_abort(struct catalog_txn *t);

#endif
