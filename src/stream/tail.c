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
    block_unref(c->marks);
}

void tail_clear(struct tail *t)
{
    for (uint32_t i = 0; i < t->count; i++) {
        chunk_finish(chunk_at(t, i));
    }
    free(t->chunks);
    *t = (struct tail){0};
}

/* Makes room for `more` chunks: by moving the chunks in use to the front, else by doubling. */
static int reserve_chunks(struct tail *t, size_t more)
{
    size_t need = (size_t)t->first + t->count + more;
    if (need <= t->cap) {
        return 0;
    }
    if (t->first > t->count && t->count + more <= t->cap) {
        memmove(t->chunks, t->chunks + t->first, t->count * sizeof(t->chunks[0]));
        t->first = 0;
        return 0;
    }
    size_t cap = need > 2 * (size_t)t->cap ? need : 2 * (size_t)t->cap;
    struct tail_chunk *chunks = cap <= UINT32_MAX ? realloc(t->chunks, cap * sizeof(chunks[0]))
                                                  : NULL;
    if (!chunks) {
        return ERR_NOMEM;
    }
    t->chunks = chunks;
    t->cap = (uint32_t)cap;
    return 0;
}

/* Readers may refer to the block that is too small: it is replaced, not moved. */
static int reserve_marks(struct tail_chunk *c, size_t len)
{
    size_t need = c->marks_len + len;
    size_t cap = c->marks ? c->marks->cap : 0;
    if (need <= cap) {
        return 0;
    }
    cap = need > 2 * cap ? need : 2 * cap;
    struct block *marks = block_try_create(cap > MARKS_BYTES_MIN ? cap : MARKS_BYTES_MIN);
    if (!marks) {
        return ERR_NOMEM;
    }
    if (c->marks_len > 0) {
        memcpy(marks->data, c->marks->data, c->marks_len);
    }
    block_unref(c->marks);
    c->marks = marks;
    return 0;
}

static bool fits_last(const struct tail *t, const struct tail_body *body)
{
    const struct tail_chunk *last = last_chunk(t);
    return last && !last->adopted && last->block->cap - last->block->len >= body->bytes.len &&
           last->marks_len + body->marks.len <= RUN_MARKS_BYTES_MAX;
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

static int prepare_fresh(struct tail *t, const struct tail_body *body, struct tail_chunk *fresh)
{
    size_t runs = body->run_count > 0 ? body->run_count : 1;
    if (reserve_chunks(t, runs) < 0) {
        return ERR_NOMEM;
    }
    if (body->marks_block) {
        fresh->marks = block_ref(body->marks_block);
        fresh->marks_at = (uint32_t)(body->marks.ptr - body->marks_block->data);
    } else if (reserve_marks(fresh, body->marks.len) < 0) {
        return ERR_NOMEM;
    }
    fresh->adopted = body->block != NULL;
    fresh->block = body->block ? block_ref(body->block)
                               : block_try_create(next_block_bytes(t, body->bytes.len));
    return fresh->block ? 0 : ERR_NOMEM;
}

int tail_prepare(struct tail *t, const struct tail_body *body, struct tail_room *ret_room)
{
    assert(body->bytes.len > 0);
    assert(body->marks.len > 0);
    assert(body->block || (!body->marks_block && body->run_count <= 1));
    if (!body->block && fits_last(t, body)) {
        int code = reserve_marks(last_chunk(t), body->marks.len);
        if (code == 0) {
            *ret_room = (struct tail_room){0};
        }
        return code;
    }
    struct tail_chunk fresh = {0};
    int code = prepare_fresh(t, body, &fresh);
    if (code < 0) {
        chunk_finish(&fresh);
        return code;
    }
    *ret_room = (struct tail_room){.chunk = fresh, .fresh = true};
    return 0;
}

void tail_forgo(struct tail_room *room)
{
    if (room->fresh) {
        chunk_finish(&room->chunk);
    }
    *room = (struct tail_room){0};
}

static struct tail_chunk *push_chunk(struct tail *t, const struct tail_chunk *fresh)
{
    assert(t->first + t->count < t->cap);
    struct tail_chunk *c = &t->chunks[t->first + t->count];
    *c = *fresh;
    t->count++;
    return c;
}

/* Into the block of the last chunk, behind what is there. */
static void copy_in(struct tail_chunk *c, const struct tail_body *body)
{
    assert(c->block->cap - c->block->len >= body->bytes.len);
    assert(c->marks->cap - c->marks_len >= body->marks.len);
    memcpy(c->block->data + c->block->len, body->bytes.ptr, body->bytes.len);
    c->block->len += (uint32_t)body->bytes.len;
    c->len += (uint32_t)body->bytes.len;
    memcpy(c->marks->data + c->marks_len, body->marks.ptr, body->marks.len);
    c->marks_len += (uint32_t)body->marks.len;
}

/* One chunk for each run of the body; the first has its references already. */
static void push_runs(struct tail *t, const struct tail_chunk *fresh, uint64_t start,
                      const struct tail_body *body)
{
    struct marks_run whole = {body->bytes.len, body->marks.len};
    const struct marks_run *runs = body->run_count > 0 ? body->runs : &whole;
    size_t count = body->run_count > 0 ? body->run_count : 1;
    struct tail_chunk next = *fresh;
    next.start = start;
    next.ptr = body->bytes.ptr;
    for (size_t i = 0; i < count; i++) {
        next.len = (uint32_t)runs[i].len;
        next.marks_len = (uint32_t)runs[i].marks_len;
        struct tail_chunk *c = push_chunk(t, &next);
        if (i > 0) {
            block_ref(c->block);
            block_ref(c->marks);
        }
        next.start += next.len;
        next.ptr += next.len;
        next.marks_at += next.marks_len;
    }
    assert(next.ptr == body->bytes.ptr + body->bytes.len);
}

void tail_add(struct tail *t, struct tail_room *room, uint64_t start, const struct tail_body *body)
{
    const struct tail_chunk *last = last_chunk(t);
    assert(!last || last->start + last->len == start);
    struct tail_chunk fresh = room->chunk;
    if (body->block) {
        assert(room->fresh);
        if (!body->marks_block) {
            memcpy(fresh.marks->data, body->marks.ptr, body->marks.len);
        }
        push_runs(t, &fresh, start, body);
    } else {
        if (room->fresh) {
            fresh.start = start;
            fresh.ptr = fresh.block->data;
            push_chunk(t, &fresh);
        }
        copy_in(last_chunk(t), body);
    }
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
    const struct tail_chunk *last = last_chunk(t);
    if (!last || position < chunk_at(t, 0)->start) {
        return 0;
    }
    const struct tail_chunk *holder = tail_find(t, position);
    uint64_t end = holder ? holder->start : last->start + last->len;
    return end - chunk_at(t, 0)->start;
}
