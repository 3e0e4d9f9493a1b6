/* The streams engine: every stream of one data directory, shared by all workers. This header is
 * what servers and programs see of it; struct stream itself is private to src/stream.
 *
 * Threads: a worker is one event loop. Every call that takes a worker is made on that worker's
 * thread, and its answers come on that thread. Nothing here blocks on the disk: what might is run
 * on the pool and answered later. Readers see only durable bytes, see view.
 *
 * Operations: fill a struct stream_op's request, call stream_start, and the answer is in
 * op->result: at once when it returns 0, later through op->done when it returns STREAM_PENDING.
 * The op and all that its request borrows must live until then; every op ends in bounded time,
 * there is no cancel. */
#ifndef ARBE_STREAM_ENGINE_H
#define ARBE_STREAM_ENGINE_H

#include "base/block.h"
#include "base/err.h"
#include "base/limits.h"
#include "base/pool.h"
#include "base/task.h"
#include "log/store.h"
#include "stream/offset.h"

struct engine;
struct engine_worker;
struct holds;
struct stream;

struct engine_config {
    struct store_config store;
    struct pool *pool;        /* for blocking work; outlives the engine */
    uint32_t read_page_bytes; /* most bytes of one read; one JSON message may exceed it */
    uint64_t hot_bytes_max;   /* bytes that wait for a checkpoint; above it appends get ERR_BUSY */
    uint64_t cache_bytes_max; /* bytes kept in memory though they are in packs */
    uint64_t idle_ms;         /* a stream unused this long leaves memory */
    uint64_t streams_max;     /* above it a creation gets ERR_NOSPC; 0: any number */
    uint64_t bytes_max;       /* above it a creation or an append does; 0: any number */
    uint64_t sweep_interval_ms; /* how often expired streams are looked for; 0: only when asked */
    /* See store_events.trouble; on any of the store's threads. NULL: nobody listens. */
    void (*trouble)(void *context, enum trouble trouble, const char *sentence);
    void *trouble_context;
};

/* Opens the data directory and recovers. Errors as local_store_open. */
int engine_open(const struct engine_config *config, struct engine **ret_engine,
                struct store_report *ret_report, struct errmsg *msg) MUST_USE;

/* All workers are detached by now. Makes a last checkpoint when `checkpoint`; frees everything. */
int engine_close(struct engine *e, bool checkpoint);

/* Whether the log failed: writes are refused until a restart. Any thread. */
bool engine_failed(const struct engine *e);

/* How the store is, for /health. Any thread; does not block for long. */
void engine_get_health(const struct engine *e, struct store_health *ret_health);

/* Looks for expired streams, evicts idle ones; a bounded amount of work. Called by the engine's own
 * housekeeping thread; simulations call it themselves. Blocks. */
void engine_housekeep(struct engine *e);

/* Counts for the operator and for tests. Any thread. */
struct engine_stats {
    uint64_t streams;        /* in the data directory, those included that are kept for forks */
    uint64_t bytes;          /* that they hold, as stored; inherited ones only at the source */
    uint64_t streams_loaded; /* in memory */
    uint64_t hot_bytes;      /* waiting for a checkpoint */
    uint64_t cache_bytes;    /* in memory and in packs */
    uint64_t waiters;        /* live readers that wait */
    uint64_t evicted;        /* streams that left memory since the start, being idle */
    struct store_stats store;
    uint64_t note_bytes; /* of memory, for notes that wait for a checkpoint */

    /* As configured; 0: any number. */
    uint64_t streams_max;
    uint64_t bytes_max;
    uint64_t hot_bytes_max;
    uint64_t cache_bytes_max;
    uint64_t staged_bytes_max;
    uint64_t log_bytes_max;
};

/* Each count is right at some moment of the call. The first two are of what was staged; once the
 * log failed, of what is durable, which takes a look at every stream in memory. */
void engine_get_stats(struct engine *e, struct engine_stats *ret_stats);

/* Changes the limits of engine_config. What is above a new one stays. Any thread. */
void engine_set_quota(struct engine *e, uint64_t streams_max, uint64_t bytes_max);

/* Who is told, beyond live readers, that streams became longer or went away. The callbacks come on
 * workers' threads, also from within stream_start, under locks: they must not block, nor call the
 * engine. They come before the operation that made the change is answered. */
struct engine_observer {
    void *context;

    /* Whether the observer wants to hear of streams of that name. Asked once per stream and
     * generation, see engine_observer_changed; true for a name that turns out not to matter is
     * well. */
    bool (*matches)(void *context, struct slice name);

    /* The stream is durably longer, `tail` bytes, by an append, or by a creation that brought bytes
     * of its own. Several growths may be told as one. */
    void (*grew)(void *context, struct slice name, uint64_t id, uint64_t tail);

    /* The stream is durably deleted, also where its data stays for forks. Another stream of that
     * name has a greater id, and may be told of before. */
    void (*dropped)(void *context, struct slice name, uint64_t id);

    /* The stream durably exists, and has no bytes of its own yet: `tail` is above 0 only for what a
     * fork inherited. May be NULL. */
    void (*made)(void *context, struct slice name, uint64_t id, uint64_t tail);
};

/* Sets the observer, which is copied; NULL takes it away, and none of its callbacks runs once this
 * returns. Any thread but from a callback. */
void engine_observe(struct engine *e, const struct engine_observer *observer);

/* What `matches` would answer may have changed. What becomes durable after this returns is told by
 * the new answer; so first change what `matches` looks at, then call this, then read where the
 * tails are, and nothing is missed. Any thread. */
void engine_observer_changed(struct engine *e);

/* Attaches an event loop. `post` runs tasks on it. ERR_NOMEM. */
int engine_attach(struct engine *e, task_post_fn post, void *post_context,
                  struct engine_worker **ret_worker) MUST_USE;

/* No op or waiter of the worker is open by now. Until the engine is closed `post` may still be
 * called, unless the worker was still. Accepts NULL. */
void engine_detach(struct engine_worker *w);

/* Whether nothing of this worker is open or on its way: once detached, its `post` is not called any
 * more, and tasks that it still has need not run. While an op is open, or a wake-up is on its way,
 * a task will come. */
bool engine_worker_still(const struct engine_worker *w);

/* Ops of this worker that have been started and not answered. */
size_t engine_worker_pending(const struct engine_worker *w);

/* Called per note in the order of keys; slices live during the call, which must not call the
 * engine. An error ends the walk and is returned. */
typedef int (*engine_note_fn)(void *context, struct slice key, struct slice value);

/* Shows all notes whose keys begin with `prefix`, as they durably are at one moment. Any thread;
 * blocks, and keeps checkpoints from ending meanwhile. ERR_CORRUPT, ERR_IO, ERR_NOMEM, with a
 * sentence; some have been shown by then. */
int engine_each_note(struct engine *e, struct slice prefix, engine_note_fn each, void *context,
                     struct errmsg *msg) MUST_USE;

/* Expiry as requested or as it stands. */
struct stream_expiry {
    bool has_ttl;
    bool has_expires_at;
    uint64_t ttl_seconds;
    int64_t expires_at_ms;
};

/* A stream in a list, as it durably was at some moment of the call. */
struct stream_listed {
    struct slice name;
    struct slice content_type;
    uint64_t id;
    uint64_t next; /* tail */
    bool closed;
    int64_t created_ms;
    struct stream_expiry expiry; /* as asked for at its creation */
    bool fork;
    uint64_t fork_offset; /* bytes inherited; with next == fork_offset it has none of its own */
};

/* Which streams. */
struct engine_list_query {
    struct slice prefix; /* names begin so; empty: all */
    struct slice after;  /* names come behind it in byte order; empty: from the first */
    size_t limit;        /* at most so many are shown, above 0 */
};

/* Where a list ended. */
struct engine_list_end {
    bool more;         /* there may be more: go on with `after` = last */
    struct slice last; /* in `bytes` */
    char bytes[STREAM_NAME_BYTES_MAX];
};

/* Called per stream in the order of names; slices live during the call, which must not call the
 * engine. An error ends the list and is returned. ENGINE_LIST_FULL ends it behind this stream, as
 * the limit does. */
typedef int (*engine_list_fn)(void *context, const struct stream_listed *listed);

#define ENGINE_LIST_FULL 1

/* Lists live streams by name: those that are deleted, soft-deleted or past their time are left out,
 * and of what is staged and not durable nothing shows. With ret_end->more it may have shown less
 * than `limit`, even nothing: the work of a call is bounded. It blocks: for the pool. ERR_INVALID
 * when `after` is longer than names are; ERR_CORRUPT, ERR_IO, ERR_NOMEM. */
int engine_list(struct engine *e, const struct engine_list_query *query, engine_list_fn each,
                void *context, struct engine_list_end *ret_end) MUST_USE;

/* What a tool that reads the data directory asks for, see log/hold.h; NULL: the store has none. End
 * all holds before the engine is closed. */
struct holds *engine_holds(struct engine *e);

#define STREAM_PENDING 1

enum stream_verb {
    STREAM_CREATE, /* PROTOCOL.md 5.1 and 4.2 */
    STREAM_APPEND, /* 5.2, 5.2.1, 5.3: body, close, or both */
    STREAM_DELETE, /* 5.4 */
    STREAM_HEAD,   /* 5.5 */
    STREAM_READ,   /* 5.6; also the first and each further step of a live read */
    STREAM_NOTE,   /* of no stream: changes to notes, see log/note.h; `name` is not looked at */
};

struct stream_create_request {
    struct slice content_type; /* trimmed; empty: inherit from the source, else octet-stream */
    struct stream_expiry expiry;
    bool closed;
    struct slice body;
    struct block *body_block; /* holds `body`, or NULL; referenced if kept */
    struct slice forked_from; /* canonical name of the source; empty: not a fork */
    bool has_fork_offset;
    struct offset fork_offset;
    bool has_sub_offset;
    uint64_t sub_offset;
};

struct stream_append_request {
    struct slice content_type; /* trimmed; empty: none was sent */
    struct slice body;         /* raw; in JSON mode it is validated here, before the lock */
    struct block *body_block;  /* holds `body`, or NULL */
    bool close;
    bool has_seq;
    struct slice seq;                /* Stream-Seq */
    struct record_producer producer; /* empty id: none */
    bool quiet;                      /* the observer is not told */
};

struct stream_read_request {
    struct offset from;
    struct stream *stream; /* NULL: look `name` up; else go on reading this very generation */
    bool touch;         /* renews a sliding TTL; the first step of a read does, later ones do not */
    bool in_memory;     /* pieces must be memory: cold bytes are read on the pool */
    uint32_t bytes_max; /* 0: read_page_bytes */
};

/* Answered once it is durable: 0; ERR_INVALID for a batch that is not sound; ERR_FAILED,
 * ERR_UNKNOWN, ERR_BUSY, ERR_NOSPC, ERR_NOMEM as appends are. A batch that note_frees, and that
 * names keys which are there, is taken where others find the log full. */
struct stream_note_request {
    struct slice changes; /* a batch, see log/note.h */
};

/* A run of bytes of an answer. Exactly one of block and pack is set; the holder has a reference. */
struct stream_piece {
    struct block *block; /* memory */
    struct pack *pack;   /* file: send from pack->fd */
    const char *ptr;     /* for a block: the bytes */
    uint64_t at;         /* for a pack: where the bytes begin in the file */
    size_t len;          /* bytes */
};

/* One snapshot of a stream for a reader: all of it from the same instant. */
struct stream_page {
    struct stream *stream;       /* referenced; give back with stream_page_finish */
    uint64_t stream_id;          /* for the ETag */
    uint64_t start;              /* position of the first byte */
    uint64_t next;               /* position behind the last byte; the tail when asked beyond it */
    uint64_t wait_from;          /* where a waiter waits: next, or beyond the tail as asked */
    bool up_to_date;             /* next is the tail */
    bool closed;                 /* next is the tail and the stream is closed */
    bool json;                   /* pieces end with a comma, which the array form leaves out */
    bool gone;                   /* a further step found the stream deleted, expired or replaced */
    struct stream_piece *pieces; /* owned */
    size_t piece_count;
    size_t bytes; /* sum of the pieces */
};

/* The answer to any op; which fields are set depends on the verb and the code. */
struct stream_result {
    int code; /* 0 or an error; msg has the sentence */
    struct errmsg msg;
    bool created;   /* create: new, else it was there with this configuration */
    bool duplicate; /* append: accepted before, nothing appended */
    bool closed;    /* create, append, head, and errors where it matters: the stream is closed */
    bool has_next;  /* `next` is meaningful */
    uint64_t next;  /* tail as of this answer */
    struct slice
        content_type; /* create, head, read: of the stream; lives as long as the op's arena or
                                  page: copied into `content_type_bytes` */
    char content_type_bytes[256];
    struct stream_expiry expiry; /* head */
    uint64_t id;                 /* append, head: of the stream */
    bool stale_epoch;            /* append, ERR_PERM: producer_epoch is the current one */
    bool seq_gap;                /* append, ERR_CONFLICT: expected and received are set */
    bool seq_conflict;           /* append, ERR_CONFLICT: Stream-Seq did not rise */
    uint64_t producer_epoch;
    uint64_t producer_seq; /* highest accepted */
    uint64_t producer_seq_expected;
    uint64_t producer_seq_received;
    struct stream_page page; /* read */
};

struct stream_op {
    enum stream_verb verb;
    struct slice name; /* canonical; at most STREAM_NAME_BYTES_MAX bytes */
    union {
        struct stream_create_request create;
        struct stream_append_request append;
        struct stream_read_request read;
        struct stream_note_request note;
    };
    void (*done)(struct stream_op *op); /* on the worker's thread, after STREAM_PENDING only */
    void *context;                      /* the caller's */
    struct stream_result result;

    /* private */
    struct engine_worker *worker;
    struct stream *stream; /* what the operation is about; referenced */
    struct stream *source; /* create: the stream to fork; referenced */
    struct list link;      /* parked, waiting for room, or on a stream that is loading */
    struct task task;      /* brings the operation back to its worker */
    int (*step)(struct stream_op *op); /* what to do next: 0 or STREAM_PENDING */
    log_pos end;                       /* the answer rests on what is durable up to here */
    uint64_t notices;                  /* of the engine, when room was last asked for */
    int found;                         /* result of the last look-up */
    bool claims;                       /* the look-up claims a name that is free */
    bool changed;                      /* a change was staged: live readers are told */
    void *scratch;                     /* of the verb */
};

/* Begins the operation. 0: answered, the result is there; STREAM_PENDING: op->done follows. */
int stream_start(struct engine_worker *w, struct stream_op *op) MUST_USE;

/* Gives back what a page holds; accepts a zeroed page, and may be called twice. Any thread. */
void stream_page_finish(struct stream_page *page);

/* Whether bytes of a file piece are likely in the page cache; when not, pread them on the pool
 * before sending. Does not block. */
bool stream_piece_resident(const struct stream_piece *piece, uint64_t from, size_t len);

/* A live reader: a small struct on its stream. `wake` is called on the worker's thread when
 * anything beyond `from` is to be seen: bytes, closing, deletion. It is called once per
 * registration, after which the waiter is off the list; the reader reads again from its page's
 * stream. */
struct stream_waiter {
    void (*wake)(struct stream_waiter *waiter);
    uint64_t from; /* position the reader has reached */

    /* private */
    struct list link; /* on the watch of its worker and stream */
    struct stream_watch *watch;
};

/* Registers the waiter at `stream` (referenced by a page the caller holds or held; the waiter
 * holds a reference of its own). 0: sleeping; STREAM_PENDING: there is something to read already,
 * nothing was registered; ERR_LIMIT: too many readers of this stream; ERR_NOMEM. */
int stream_wait(struct engine_worker *w, struct stream *stream,
                struct stream_waiter *waiter) MUST_USE;

/* Takes the waiter off; it may be off already. */
void stream_unwait(struct stream_waiter *waiter);

/* One more reference to a stream, for those that go on reading it. Any thread. */
struct stream *stream_ref(struct stream *s);

/* The canonical name that it was created with; lives as long as the reference. Any thread. */
struct slice stream_name(const struct stream *s);

/* Gives a reference back. Any thread. Accepts NULL. */
void stream_unref(struct stream *s);

/* The newest encoded frame of a stream, shared by all who follow it live: the bytes of positions
 * [from, to) in the one live encoding that the stream's content type has. stream_frame_get gives a
 * reference to the frame that begins at `from` and its end, or NULL; stream_frame_put offers
 * one. */
struct block *stream_frame_get(struct stream *s, uint64_t from, uint64_t *ret_to, bool *ret_closed);
void stream_frame_put(struct stream *s, uint64_t from, uint64_t to, bool closed,
                      struct block *frame);

#endif
