/* Compaction: gives back the space of packs that hold mostly dead bytes, and joins the small
 * extents that frequent checkpoints leave behind. compact.c opens with the rules. One thread; all
 * of it blocks. */
#ifndef ARBE_LOG_COMPACT_H
#define ARBE_LOG_COMPACT_H

#include "log/output.h"

/* What a round did. */
struct compaction_work {
    uint64_t moved_bytes; /* of extents that are in the catalog at their new place */
    size_t packs_gone;    /* unlinked */
};

/* What one round may do and whom it tells. */
struct compaction {
    const struct output_target *target;
    const struct catalog_state
        *state;                   /* to write with the transaction; next_pack is the target's */
    uint64_t bytes_max;           /* rewritten in one round */
    struct compaction_work *work; /* added to; NULL: nobody asks */
    /* `e` is now in the place of all extents of stream `id` that it covers. */
    void (*replaced)(void *context, stream_id id, const struct extent *e);
    void *context;
};

/* Streams to look at for small extents; each once. */
struct compaction_ids {
    stream_id *ids; /* owned */
    size_t count;
    size_t cap;
};

/* Remembers a stream that got an extent; consecutive repetitions are kept once. What finds no
 * memory is forgotten: the next checkpoint of that stream brings it back. */
void compaction_note(struct compaction_ids *ids, stream_id id);

/* Frees the list. Accepts a zeroed one. */
void compaction_ids_finish(struct compaction_ids *ids);

/* One round: forgets and unlinks packs that were without live bytes already, then rewrites up to
 * bytes_max. Takes streams off `ids` as it looks at them. *ret_more: there is more to do. 0 or the
 * error that ended the round, after which nothing but unlinked packs has changed. */
int compact_round(const struct compaction *k, struct compaction_ids *ids, bool *ret_more) MUST_USE;

#endif
