/* Room for a whole append is made before it is staged, and is used right after, under one hold of
 * the stream's lock: that is why tail_add cannot fail. */
#include "stream/tail.h"

#include <assert.h>
#include <stdlib.h>

#include "base/err.h"
#include "base/limits.h"

#define BLOCK_BYTES_MAX (64u * KIB) /* of the tail's own blocks */
#define MARKS_BYTES_MIN 16u

static struct tail_chunk *chunk_at(const struct tail *t, uint32_t index)
{
    assert(index < t->count);
    return &t->chunks[t->first + index];
}

static struct tail_chunk *last_chunk(const struct tail *t)
{
    return t->count > 0 ? chunk_at(t, t->count - 1) : NULL;
}

static void chunk_finish(struct tail_chunk *c)
{
    block_unref(c->block);
    free(c->marks);
}

void tail_clear(struct tail *t)
{
    for (uint32_t i = 0; i < t->count; i++) {
        chunk_finish(chunk_at(t, i));
    }
    free(t->chunks);
    *t = (struct tail){0};
}

/* Makes room for one more chunk: by moving the chunks in use to the front, else by doubling. */
static int reserve_chunk(struct tail *t)
{
    if (t->first + t->count < t->cap) {
        return 0;
    }
    if (t->first > t->count) {
        memmove(t->chunks, t->chunks + t->first, t->count * sizeof(t->chunks[0]));
        t->first = 0;
        return 0;
    }
    uint32_t cap = t->cap > 0 ? t->cap * 2 : 1;
    struct tail_chunk *chunks = realloc(t->chunks, cap * sizeof(chunks[0]));
    if (!chunks) {
        return ERR_NOMEM;
    }
    t->chunks = chunks;
    t->cap = cap;
    return 0;
}

static int reserve_marks(struct tail_chunk *c, size_t len)
{
    size_t need = c->marks_len + len;
    if (need <= c->marks_cap) {
        return 0;
    }
    size_t cap = need > 2 * (size_t)c->marks_cap ? need : 2 * (size_t)c->marks_cap;
    cap = cap > MARKS_BYTES_MIN ? cap : MARKS_BYTES_MIN;
    if (cap > UINT32_MAX) {
        return ERR_NOMEM;
    }
    char *marks = realloc(c->marks, cap);
    if (!marks) {
        return ERR_NOMEM;
    }
    c->marks = marks;
    c->marks_cap = (uint32_t)cap;
    return 0;
}

static bool fits_last(const struct tail *t, size_t body_len)
{
    const struct tail_chunk *last = last_chunk(t);
    return last && !last->adopted && last->block->cap - last->block->len >= body_len;
}

/* The first block is as large as the first append, since most streams stay small; later ones
 * double. */
static size_t next_block_bytes(const struct tail *t, size_t body_len)
{
    const struct tail_chunk *last = last_chunk(t);
    size_t bytes = last && !last->adopted ? 2 * (size_t)last->block->cap : 0;
    bytes = bytes < BLOCK_BYTES_MAX ? bytes : BLOCK_BYTES_MAX;
    return bytes > body_len ? bytes : body_len;
}

int tail_prepare(struct tail *t, size_t body_len, size_t marks_len, struct block *adopt,
                 struct tail_room *ret_room)
{
    assert(body_len > 0);
    assert(marks_len > 0);
    if (!adopt && fits_last(t, body_len)) {
        int code = reserve_marks(last_chunk(t), marks_len);
        if (code == 0) {
            *ret_room = (struct tail_room){0};
        }
        return code;
    }
    struct tail_chunk fresh = {.adopted = adopt != NULL};
    if (reserve_chunk(t) < 0 || reserve_marks(&fresh, marks_len) < 0) {
        goto free_marks;
    }
    fresh.block = adopt ? block_ref(adopt) : block_try_create(next_block_bytes(t, body_len));
    if (!fresh.block) {
        goto free_marks;
    }
    *ret_room = (struct tail_room){.chunk = fresh, .fresh = true};
    return 0;

free_marks:
    free(fresh.marks);
    return ERR_NOMEM;
}

void tail_forgo(struct tail_room *room)
{
    if (room->fresh) {
        chunk_finish(&room->chunk);
    }
    *room = (struct tail_room){0};
}

static void place_fresh(struct tail *t, struct tail_room *room, uint64_t start, struct slice body)
{
    assert(t->first + t->count < t->cap);
    struct tail_chunk *c = &t->chunks[t->first + t->count];
    *c = room->chunk;
    c->start = start;
    c->ptr = c->adopted ? body.ptr : c->block->data;
    t->count++;
}

void tail_add(struct tail *t, struct tail_room *room, uint64_t start, struct slice body,
              struct slice marks)
{
    if (room->fresh) {
        place_fresh(t, room, start, body);
    }
    struct tail_chunk *c = last_chunk(t);
    assert(c);
    assert(c->start + c->len == start);
    assert(c->marks_len + marks.len <= c->marks_cap);
    if (!c->adopted) {
        assert(c->block->cap - c->block->len >= body.len);
        memcpy(c->block->data + c->block->len, body.ptr, body.len);
        c->block->len += (uint32_t)body.len;
    }
    c->len += (uint32_t)body.len;
    memcpy(c->marks + c->marks_len, marks.ptr, marks.len);
    c->marks_len += (uint32_t)marks.len;
    *room = (struct tail_room){0};
}

const struct tail_chunk *tail_find(const struct tail *t, uint64_t position)
{
    uint32_t low = 0;
    uint32_t high = t->count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        const struct tail_chunk *c = chunk_at(t, middle);
        if (position < c->start) {
            high = middle;
        } else if (position - c->start >= c->len) {
            low = middle + 1;
        } else {
            return c;
        }
    }
    return NULL;
}

uint64_t tail_drop(struct tail *t, uint64_t position)
{
    uint64_t bytes = 0;
    while (t->count > 0 && chunk_at(t, 0)->start + chunk_at(t, 0)->len <= position) {
        struct tail_chunk *c = chunk_at(t, 0);
        bytes += c->len;
        chunk_finish(c);
        t->first++;
        t->count--;
    }
    if (t->count == 0) {
        tail_clear(t);
    }
    return bytes;
}

uint64_t tail_bytes_before(const struct tail *t, uint64_t position)
{
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < t->count; i++) {
        const struct tail_chunk *c = chunk_at(t, i);
        if (c->start + c->len > position) {
            break;
        }
        bytes += c->len;
    }
    return bytes;
}
