/* A run is found by two binary searches, in the chunks of the hot tail and in the extents;
 * messages by walking the marks of one run (log/marks.h). */
#include "stream/locate.h"

#include <assert.h>

#include "base/limits.h"
#include "stream/core.h"

#define PACKED_BYTES_MIN (64u * KIB)

/* The stream that stores `position` of `s`, and in *ret_clip where its part of `s` ends. */
static struct stream *owner_of(struct stream *s, uint64_t position, uint64_t *ret_clip)
{
    *ret_clip = UINT64_MAX;
    while (position < stream_own_start(s)) {
        *ret_clip = s->fork->offset < *ret_clip ? s->fork->offset : *ret_clip;
        s = s->fork->source;
    }
    return s;
}

static const struct extent *find_extent(const struct stream *s, uint64_t position)
{
    size_t low = 0;
    size_t high = s->extent_count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        const struct extent *x = &s->extents[middle];
        if (position < x->start) {
            high = middle;
        } else if (position - x->start >= x->len) {
            low = middle + 1;
        } else {
            return x;
        }
    }
    return NULL;
}

/* Under the owner's lock. */
static int find(struct stream *s, uint64_t position, bool marks, struct locate_run *run)
{
    const struct tail_chunk *c = tail_find(&s->tail, position);
    if (c) {
        if (marks) {
            run->marks = tail_chunk_marks(c);
            run->marks_block = block_ref(c->marks);
        }
        s->cache_used = true;
        run->start = c->start;
        run->end = c->start + c->len;
        run->block = block_ref(c->block);
        run->ptr = c->ptr;
        return 0;
    }
    const struct extent *x = find_extent(s, position);
    if (!x) {
        return ERR_GONE;
    }
    run->extent = *x;
    run->start = x->start;
    run->end = x->start + x->len;
    return 0;
}

int locate_run(struct stream *s, uint64_t position, bool marks, struct locate_run *ret_run)
{
    uint64_t clip;
    struct locate_run run = {0};
    struct stream *owner = owner_of(s, position, &clip);
    pthread_mutex_lock(&owner->lock);
    int code = find(owner, position, marks, &run);
    pthread_mutex_unlock(&owner->lock);
    if (code == 0) {
        run.stored_end = run.end;
        run.end = run.end < clip ? run.end : clip;
        *ret_run = run;
    }
    return code;
}

/* Under the owner's lock: how far the extent's bytes may be taken. In whole messages that is up to
 * the chunk that holds the limit, since chunks begin with a message. */
static uint64_t packed_end(const struct stream *owner, const struct extent *x, uint64_t limit,
                           bool whole)
{
    uint64_t end = x->start + x->len;
    if (!whole) {
        return end < limit ? end : limit;
    }
    const struct tail_chunk *last = tail_find(&owner->tail, limit);
    return last && last->start < end ? last->start : end;
}

bool locate_packed(struct stream *s, uint64_t position, uint64_t limit, bool whole,
                   struct locate_run *ret_run)
{
    uint64_t clip;
    struct stream *owner = owner_of(s, position, &clip);
    bool found = false;
    pthread_mutex_lock(&owner->lock);
    const struct extent *x = find_extent(owner, position);
    if (x && tail_find(&owner->tail, position)) {
        uint64_t end = packed_end(owner, x, limit, whole);
        end = end < clip ? end : clip;
        found = end <= limit && end >= position + PACKED_BYTES_MIN;
        *ret_run = (struct locate_run){.start = x->start, .end = end, .extent = *x};
    }
    pthread_mutex_unlock(&owner->lock);
    return found;
}

int locate_marks(struct engine *e, struct locate_run *run)
{
    assert(!run->block);
    assert(!run->marks_block);
    if (run->extent.marks_len == 0) {
        return ERR_CORRUPT;
    }
    struct block *marks = block_try_create(run->extent.marks_len);
    if (!marks) {
        return ERR_NOMEM;
    }
    int code = e->store->ops->read_marks(e->store, &run->extent, marks->data);
    if (code < 0) {
        block_unref(marks);
        return code;
    }
    run->marks = (struct slice){marks->data, run->extent.marks_len};
    run->marks_block = marks;
    return 0;
}

int locate_again(struct stream *s, uint64_t position)
{
    uint64_t clip;
    return load_extents(owner_of(s, position, &clip));
}

void locate_finish(struct locate_run *run)
{
    block_unref(run->block);
    block_unref(run->marks_block);
    *run = (struct locate_run){0};
}

/* Goes from message to message of `s`, from run to run. */
struct walk {
    struct stream *s;
    uint64_t tail;             /* end of the walk */
    uint64_t position;         /* where the next message begins */
    struct locate_run run;     /* that holds it */
    struct bytes_reader marks; /* of the run, at the next message */
};

static int walk_load(struct walk *w)
{
    locate_finish(&w->run);
    int code = locate_run(w->s, w->position, true, &w->run);
    if (code == 0 && !w->run.block) {
        code = locate_marks(w->s->engine, &w->run);
    }
    return code;
}

/* Loads the run that holds w->position and skips to the message that holds it. */
static int walk_enter(struct walk *w)
{
    int code = walk_load(w);
    for (int i = 1; i < LOCATE_TRIES_MAX && code == ERR_NOTFOUND; i++) {
        code = locate_again(w->s, w->position);
        code = code == 0 ? walk_load(w) : code;
    }
    if (code == ERR_NOTFOUND) {
        return ERR_IO;
    }
    if (code < 0) {
        return code;
    }
    struct marks_cut cut = marks_cut_at(w->run.marks, w->position - w->run.start);
    const uint8_t *at = (const uint8_t *)w->run.marks.ptr;
    w->marks = (struct bytes_reader){.at = at + cut.floor_marks, .end = at + w->run.marks.len};
    w->position = w->run.start + cut.floor;
    return 0;
}

/* Passes one message. A message ends its append also where the fork that is walked, or a source of
 * it, was cut from its source. */
static int walk_next(struct walk *w, bool *ret_append_end)
{
    if (w->marks.at == w->marks.end || w->position >= w->run.end) {
        int code = walk_enter(w);
        if (code < 0) {
            return code;
        }
    }
    uint64_t len;
    if (!marks_next(&w->marks, &len, ret_append_end)) {
        return ERR_CORRUPT;
    }
    w->position += len;
    bool clipped = w->run.end < w->run.stored_end;
    if (w->position > w->run.end || (clipped && w->position == w->run.end)) {
        w->position = w->run.end;
        *ret_append_end = true;
    }
    return 0;
}

static int overshoot(const char *unit, uint64_t most, struct errmsg *msg)
{
    return err_set(msg, ERR_INVALID,
                   "Stream-Fork-Sub-Offset passes the end of the append there: at most %llu %s",
                   (unsigned long long)most, unit);
}

static int walk_messages(struct walk *w, uint64_t sub, struct errmsg *msg)
{
    bool append_end = false;
    for (uint64_t n = 0; n < sub; n++) {
        if (append_end || w->position >= w->tail) {
            return overshoot("messages", n, msg);
        }
        int code = walk_next(w, &append_end);
        if (code < 0) {
            return code;
        }
    }
    return 0;
}

/* To the end of the append that holds `anchor`: in byte streams an append is one message. */
static int walk_bytes(struct walk *w, uint64_t anchor, uint64_t sub, struct errmsg *msg)
{
    bool append_end = false;
    if (anchor >= w->tail) {
        return overshoot("bytes", 0, msg);
    }
    int code = walk_next(w, &append_end);
    if (code < 0) {
        return code;
    }
    uint64_t end = w->position < w->tail ? w->position : w->tail;
    if (sub > end - anchor) {
        return overshoot("bytes", end - anchor, msg);
    }
    w->position = anchor + sub;
    return 0;
}

int locate_fork(struct stream *s, uint64_t anchor, uint64_t sub, uint64_t tail,
                uint64_t *ret_offset, struct errmsg *msg)
{
    assert(anchor <= tail);
    struct walk w = {.s = s, .tail = tail, .position = anchor};
    int code = anchor < tail ? walk_enter(&w) : 0;
    if (code == 0 && s->media->json && w.position != anchor) {
        code = err_set(msg, ERR_INVALID,
                       "Stream-Fork-Offset lies inside a message: send an offset "
                       "that the server returned");
    }
    if (code == 0 && sub > 0) {
        code = s->media->json ? walk_messages(&w, sub, msg) : walk_bytes(&w, anchor, sub, msg);
    }
    if (code == 0) {
        *ret_offset = s->media->json || sub > 0 ? w.position : anchor;
    }
    locate_finish(&w.run);
    return code;
}
