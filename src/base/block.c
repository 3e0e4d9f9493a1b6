/* The count is the only field that several threads touch. */
#include "base/block.h"

#include <assert.h>
#include <stdlib.h>

#define CAP_MAX (UINT32_C(1) << 30)

struct block *block_try_create(size_t cap)
{
    struct block *b;

    if (cap > CAP_MAX) {
        return NULL;
    }
    b = malloc(offsetof(struct block, data) + cap);
    if (b == NULL) {
        return NULL;
    }
    b->refs = 1;
    b->cap = (uint32_t)cap;
    b->len = 0;
    return b;
}

struct block *block_try_grow(struct block *b, size_t cap)
{
    struct block *grown;

    assert(cap >= b->cap);
    assert(__atomic_load_n(&b->refs, __ATOMIC_RELAXED) == 1);
    if (cap > CAP_MAX) {
        return NULL;
    }
    grown = realloc(b, offsetof(struct block, data) + cap);
    if (grown == NULL) {
        return NULL;
    }
    grown->cap = (uint32_t)cap;
    return grown;
}

struct block *block_ref(struct block *b)
{
    /* Relaxed: whoever refs already holds a reference, so the block cannot go meanwhile. */
    uint32_t before = __atomic_fetch_add(&b->refs, 1, __ATOMIC_RELAXED);

    assert(before > 0);
    assert(before < UINT32_MAX);
    return b;
}

void block_unref(struct block *b)
{
    uint32_t before;

    if (b == NULL) {
        return;
    }
    /* Release and acquire: what every holder did to the bytes comes before the free. */
    before = __atomic_fetch_sub(&b->refs, 1, __ATOMIC_ACQ_REL);
    assert(before > 0);
    if (before == 1) {
        free(b);
    }
}
