/* Blocks in a chain, each filled from its start; only the newest is filled further. */
#include "base/arena.h"

#include "base/asan.h"

#include <stdalign.h>
#include <stdlib.h>

#define BLOCK_BYTES 4096
#define ALIGNMENT   alignof(max_align_t)

/* Each piece is a malloc of its own, so that the sanitizer sees its end. */
#define PIECE_BLOCKS ASAN_IS_ON

struct arena_block {
    struct arena_block *next;       /* older */
    size_t cap;                     /* bytes in data */
    size_t used;                    /* bytes of data handed out */
    alignas(ALIGNMENT) char data[]; /* the pieces */
};

#define SHARED_CAP (BLOCK_BYTES - sizeof(struct arena_block))

void arena_init(struct arena *a, size_t max)
{
    *a = (struct arena){.max = max};
}

void arena_finish(struct arena *a)
{
    struct arena_block *next;

    for (struct arena_block *block = a->blocks; block != NULL; block = next) {
        next = block->next;
        free(block);
    }
    arena_init(a, a->max);
}

/* A new block, in front of all when `in_front`, else behind the newest, which fills up further. */
static struct arena_block *add_block(struct arena *a, size_t cap, bool in_front)
{
    struct arena_block *block = NULL;
    struct arena_block **link = in_front || a->blocks == NULL ? &a->blocks : &a->blocks->next;
    size_t bytes;

    if (!__builtin_add_overflow(cap, sizeof(*block), &bytes)) {
        block = malloc(bytes);
    }
    if (block == NULL) {
        return NULL;
    }
    *block = (struct arena_block){.next = *link, .cap = cap};
    *link = block;
    return block;
}

/* The block that `size` bytes come from, which has room for them; NULL when memory is out. */
static struct arena_block *block_for(struct arena *a, size_t size)
{
    struct arena_block *newest = a->blocks;

    if (PIECE_BLOCKS) {
        return add_block(a, size, true);
    }
    if (newest != NULL && newest->cap - newest->used >= size) {
        return newest;
    }
    /* A large piece would waste what is left of the newest block and fill a new one at once; where
     * there is none yet, small ones go behind it. */
    if (size > (newest == NULL ? SHARED_CAP / 2 : SHARED_CAP / 4)) {
        return add_block(a, size, false);
    }
    return add_block(a, SHARED_CAP, true);
}

void *arena_try_alloc(struct arena *a, size_t size)
{
    size_t rounded = size == 0 ? ALIGNMENT : (size + ALIGNMENT - 1) & ~(ALIGNMENT - 1);
    struct arena_block *block;
    char *piece;

    if (rounded < size || rounded > a->max - a->used) {
        return NULL;
    }
    /* The sanitizer is to catch the first byte past the end, hence the unrounded size. */
    block = block_for(a, PIECE_BLOCKS ? size : rounded);
    if (block == NULL) {
        return NULL;
    }
    piece = block->data + block->used;
    block->used = PIECE_BLOCKS ? block->cap : block->used + rounded;
    a->used += rounded;
    return piece;
}

char *arena_try_copy(struct arena *a, struct slice s)
{
    char *copy = s.len == SIZE_MAX ? NULL : arena_try_alloc(a, s.len + 1);

    if (copy == NULL) {
        return NULL;
    }
    if (s.len > 0) {
        memcpy(copy, s.ptr, s.len);
    }
    copy[s.len] = '\0';
    return copy;
}
