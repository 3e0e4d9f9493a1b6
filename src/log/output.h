/* Where a checkpoint or a compaction writes extents: one pack after the other, each begun when the
 * one before is full. The packs count for nothing until a catalog transaction names them; until
 * then output_destroy takes them back. One thread at a time; all of it may block. */
#ifndef ARBE_LOG_OUTPUT_H
#define ARBE_LOG_OUTPUT_H

#include "log/catalog.h"
#include "log/pack.h"

/* What a checkpoint or compaction works on: parts of an open store. */
struct output_target {
    struct catalog *catalog;
    struct pack_set *packs;
    pack_id *next_pack; /* counted up, also when the output fails: ids are never used twice */
    bool sync;          /* packs are made durable */
};

struct output {
    const struct output_target *target;
    struct pack_writer *writer; /* of the pack being filled; NULL between packs */
    struct output_pack *packs;  /* owned; finished ones */
    size_t pack_count;
    size_t pack_cap;
};

/* An empty output; creates no file yet. */
void output_init(struct output *o, const struct output_target *target);

/* Writes one extent, see pack_writer_add. */
int output_add(struct output *o, stream_id id, uint64_t start, const struct slice *pieces,
               size_t piece_count, struct slice marks, struct extent *ret_extent) MUST_USE;

/* Finishes the last pack and names all of them in `t`. */
int output_finish(struct output *o, struct catalog_txn *t) MUST_USE;

/* Frees; with `keep` false, the packs that were written are removed. */
void output_close(struct output *o, bool keep);

#endif
