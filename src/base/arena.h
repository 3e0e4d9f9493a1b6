/* Memory that is freed all at once: one arena per request. Blocks of 4 KiB are chained; a larger
 * piece gets a block of its own. Under ASan each piece is a malloc of its own, so that overruns
 * show. Not thread-safe. */
#ifndef ARBE_BASE_ARENA_H
#define ARBE_BASE_ARENA_H

#include "base/attr.h"
#include "base/slice.h"

struct arena_block;

struct arena {
    struct arena_block *blocks; /* newest first; owned */
    size_t used;                /* bytes handed out, for the cap */
    size_t max;                 /* bytes it may hand out */
};

/* An empty arena that hands out at most `max` bytes. Allocates nothing. */
void arena_init(struct arena *a, size_t max);

/* Frees everything handed out; the arena is then as after arena_init. Accepts a zeroed arena. */
void arena_finish(struct arena *a);

/* `size` bytes aligned for any type, or NULL when memory or the cap is exhausted. */
void *arena_try_alloc(struct arena *a, size_t size) MUST_USE;

/* A NUL-terminated copy of `s` that lives as long as the arena, or NULL as above. */
char *arena_try_copy(struct arena *a, struct slice s) MUST_USE;

#endif
