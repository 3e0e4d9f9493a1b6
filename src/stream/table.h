/* Which streams are in memory: by name and by id, 64 shards each. The tables together hold one
 * reference to a stream that is in either. See stream.h for phases and the order of locks.
 *
 * A name that is looked up and is not in memory gets a placeholder, which becomes the stream's
 * object; operations queue on it until it is known whether there is such a stream. When there is
 * none, the first queued operation that wants to create takes the placeholder over, those before
 * it are told, and those behind it wait for what becomes of it. So a name has at most one object
 * and one creator. */
#ifndef ARBE_STREAM_TABLE_H
#define ARBE_STREAM_TABLE_H

#include "stream/engine.h"
#include "stream/stream.h"

#define TABLE_SHARDS 64u

struct table_shard {
    pthread_mutex_t lock;
    struct map map;
};

struct table {
    struct table_shard names[TABLE_SHARDS];
    struct table_shard ids[TABLE_SHARDS];
    uint64_t seed;        /* of the hash of names: clients choose them */
    _Atomic size_t count; /* objects in either table */
};

/* An empty table. */
void table_init(struct table *t, uint64_t seed);

/* Gives back the tables' references; nothing runs any more. */
void table_finish(struct table *t);

/* Looks `name` up for `op`. 0: op->stream is referenced and live. STREAM_PENDING: op->step is
 * called once op->found is known: 0 with op->stream live, or claimed by the operation when
 * op->claims; ERR_NOTFOUND, or another error of the catalog. ERR_NOMEM. */
int table_resolve(struct engine *e, struct slice name, struct stream_op *op) MUST_USE;

/* The stream with that id when it is listed, referenced; else NULL. It may not be live yet. */
struct stream *table_id(struct engine *e, stream_id id);

/* The live stream of that name when it is in memory, referenced; else NULL. */
struct stream *table_name(struct engine *e, struct slice name);

/* The placeholder that loads under `name`, referenced; a new one when there is none. A stream of
 * that name that is gone gives way; ERR_CORRUPT when there is one that is not. ERR_NOMEM. */
int table_adopt(struct engine *e, struct slice name, struct stream **ret_placeholder) MUST_USE;

/* Whether the placeholder still waits to be loaded. */
bool table_loading(struct engine *e, const struct stream *s);

/* Lists a placeholder by id, and takes it off again. The caller has filled it, or is about to
 * create it, and holds no lock. ERR_NOMEM. */
int table_list(struct engine *e, struct stream *s, stream_id id) MUST_USE;

/* See table_list. One that is not listed is left alone. */
void table_unlist(struct engine *e, struct stream *s);

/* The placeholder is a stream now: the queue goes on with it. */
void table_live(struct engine *e, struct stream *s);

/* There is no such stream after all, or an error: the queue is answered with `code`, but with
 * ERR_NOTFOUND only up to the first operation that claims, which gets the placeholder. */
void table_absent(struct engine *e, struct stream *s, int code);

/* Gives the name of `old`, which is gone, to a placeholder claimed by `op` and left in op->stream
 * in place of `old`. ERR_AGAIN when the name is not its any more: look up again. ERR_NOMEM. */
int table_replace(struct engine *e, struct stream *old, struct stream_op *op) MUST_USE;

/* Takes the stream out of both tables, and gives back their reference. */
void table_remove(struct engine *e, struct stream *s);

/* Walks the live streams of one name shard. The callback runs under the shards' locks and may lock
 * the stream; with true the stream leaves the tables if nobody else refers to it. */
typedef bool (*table_each_fn)(void *context, struct stream *s);

/* See table_each_fn; `shard` is below TABLE_SHARDS. How many streams left. */
size_t table_each(struct engine *e, unsigned shard, table_each_fn each, void *context);

#endif
