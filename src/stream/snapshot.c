/* The snapshot copies what may change and borrows what may not: names, types and the ids of
 * producers live as long as the stream, and bytes as long as their blocks. */
#include "stream/snapshot.h"

#include <assert.h>
#include <stdlib.h>

#include "base/limits.h"
#include "stream/view.h"

/* Cuts the hot bytes of a stream into ranges. */
struct cutter {
    struct snapshot *snap;
    struct stream *s;
    uint64_t at; /* next byte */
    uint64_t to; /* end of what is durable */
};

/* Makes room for one more element of `size` bytes behind `count`; doubles at powers of two. */
static void *grow(void *array, size_t count, size_t size)
{
    if ((count & (count - 1)) != 0) {
        return array;
    }
    return realloc(array, (count == 0 ? 1 : 2 * count) * size);
}

static struct snapshot_range *add_range(struct cutter *c)
{
    struct snapshot *snap = c->snap;
    struct snapshot_range *ranges = grow(snap->ranges, snap->range_count, sizeof(ranges[0]));
    if (!ranges) {
        return NULL;
    }
    snap->ranges = ranges;
    struct snapshot_range *r = &ranges[snap->range_count++];
    *r = (struct snapshot_range){.start = c->at};
    return r;
}

static int add_piece(struct snapshot_range *r, const struct tail_chunk *chunk, struct slice bytes,
                     struct slice marks)
{
    struct slice *pieces = grow(r->pieces, r->piece_count, sizeof(pieces[0]));
    r->pieces = pieces ? pieces : r->pieces;
    struct snapshot_piece *holds = grow(r->holds, r->piece_count, sizeof(holds[0]));
    r->holds = holds ? holds : r->holds;
    if (!pieces || !holds) {
        return ERR_NOMEM;
    }
    r->pieces[r->piece_count] = bytes;
    r->holds[r->piece_count] = (struct snapshot_piece){block_ref(chunk->block), marks,
                                                       block_ref(chunk->marks)};
    r->piece_count++;
    r->len += bytes.len;
    r->marks_len += marks.len;
    return 0;
}

static struct slice slice_from(struct slice s, size_t skip)
{
    assert(skip <= s.len);
    return (struct slice){s.ptr + skip, s.len - skip};
}

/* The marks of the chunk from `skip` bytes on: a boundary. */
static struct slice marks_behind(const struct tail_chunk *chunk, uint64_t skip)
{
    struct slice all = tail_chunk_marks(chunk);
    if (skip == 0) {
        return all;
    }
    struct marks_cut begin = marks_cut_at(all, skip);
    assert(begin.floor == skip);
    return slice_from(all, begin.floor_marks);
}

/* How much of `left` bytes with these marks the range still holds, at least one message into an
 * empty range: an extent holds whole messages. */
static struct marks_run room_for(const struct snapshot_range *r, uint64_t left, struct slice marks)
{
    uint64_t bytes_max = r->len < EXTENT_BYTES_MAX ? EXTENT_BYTES_MAX - r->len : 0;
    size_t marks_max = r->marks_len < RUN_MARKS_BYTES_MAX ? RUN_MARKS_BYTES_MAX - r->marks_len : 0;
    if (left <= bytes_max && marks.len <= marks_max) {
        return (struct marks_run){left, marks.len};
    }
    return r->len == 0 ? marks_first_run(marks) : marks_fit(marks, bytes_max, marks_max);
}

/* Takes as much of one chunk as the range holds. False in *ret_more: the range is full. */
static int take_chunk(struct cutter *c, struct snapshot_range *r, const struct tail_chunk *chunk,
                      bool *ret_more)
{
    uint64_t skip = c->at - chunk->start;
    struct slice marks = marks_behind(chunk, skip);
    uint64_t left = chunk->len - skip;
    if (c->to - c->at < left) {
        left = c->to - c->at;
        marks.len = marks_cut_at(marks, left).floor_marks;
    }
    struct marks_run run = room_for(r, left, marks);
    *ret_more = run.len == left;
    if (run.len == 0) {
        return 0;
    }
    assert(run.len <= left);
    struct slice bytes = {chunk->ptr + skip, (size_t)run.len};
    c->at += run.len;
    return add_piece(r, chunk, bytes, (struct slice){marks.ptr, run.marks_len});
}

static int take_range(struct cutter *c)
{
    struct snapshot_range *r = add_range(c);
    if (!r) {
        return ERR_NOMEM;
    }
    bool more = true;
    while (more && c->at < c->to) {
        const struct tail_chunk *chunk = tail_find(&c->s->tail, c->at);
        assert(chunk);
        int code = take_chunk(c, r, chunk, &more);
        if (code < 0) {
            return code;
        }
    }
    assert(r->len > 0);
    return 0;
}

static int take_ranges(struct snapshot *snap, struct stream *s, uint64_t to)
{
    struct cutter c = {.snap = snap, .s = s, .at = s->saved, .to = to};
    while (c.at < c.to) {
        int code = take_range(&c);
        if (code < 0) {
            return code;
        }
    }
    return 0;
}

static int join_marks(struct snapshot_range *r, struct slice *ret_marks)
{
    if (r->piece_count == 1) {
        *ret_marks = r->holds[0].marks;
        return 0;
    }
    r->marks = malloc(r->marks_len);
    if (!r->marks) {
        return ERR_NOMEM;
    }
    size_t at = 0;
    for (size_t i = 0; i < r->piece_count; i++) {
        struct slice marks = r->holds[i].marks;
        memcpy(r->marks + at, marks.ptr, marks.len);
        at += marks.len;
    }
    *ret_marks = (struct slice){r->marks, at};
    return 0;
}

int snapshot_join(struct snapshot *snap)
{
    if (snap->range_count == 0) {
        return 0;
    }
    snap->given = malloc(snap->range_count * sizeof(snap->given[0]));
    if (!snap->given) {
        return ERR_NOMEM;
    }
    for (size_t i = 0; i < snap->range_count; i++) {
        struct snapshot_range *r = &snap->ranges[i];
        snap->given[i] = (struct checkpoint_range){
            .start = r->start,
            .pieces = r->pieces,
            .piece_count = r->piece_count,
        };
        int code = join_marks(r, &snap->given[i].marks);
        if (code < 0) {
            return code;
        }
    }
    snap->item.ranges = snap->given;
    snap->item.range_count = snap->range_count;
    return 0;
}

static int take_known(struct snapshot *snap, struct stream *s)
{
    struct producers *p = s->producers;
    snap->producers = malloc((p->map.count + 1) * sizeof(snap->producers[0]));
    if (!snap->producers) {
        return ERR_NOMEM;
    }
    size_t n = 0;
    for (struct map_node *node = map_next(&p->map, NULL); node; node = map_next(&p->map, node)) {
        struct producer *producer = container_of(node, struct producer, node);
        if (producer->known && (producer->dirty || s->producers_unsaved)) {
            const struct producer_state *d = &producer->durable;
            snap->producers[n++] = (struct producer_meta){producer_id(producer), d->epoch, d->seq,
                                                          d->used_ms};
            producer->dirty = false;
        }
    }
    s->producers_unsaved = false;
    snap->item.producers = snap->producers;
    snap->item.producer_count = n;
    return 0;
}

/* One that came back under the same id is not removed: its new state takes the place of the old. */
static int take_gone(struct snapshot *snap, struct stream *s)
{
    struct producers *p = s->producers;
    if (p->gone_count == 0) {
        return 0;
    }
    snap->gone = malloc(p->gone_count * sizeof(snap->gone[0]));
    if (!snap->gone) {
        return ERR_NOMEM;
    }
    size_t n = 0;
    for (size_t i = 0; i < p->gone_count; i++) {
        struct slice id = producer_id(p->gone[i]);
        if (!producers_find(p, id)) {
            snap->gone[n++] = id;
        }
    }
    snap->gone_count = p->gone_count;
    snap->item.forgotten_producers = snap->gone;
    snap->item.forgotten_count = n;
    return 0;
}

static struct record_producer closer_of(const struct stream *s)
{
    const struct stream_closer *c = s->closer;
    return c ? (struct record_producer){{c->id, c->id_len}, c->epoch, c->seq}
             : (struct record_producer){0};
}

static void take_fork(struct stream_meta *m, const struct stream_fork *fork)
{
    m->source_id = fork->source->id;
    m->fork_offset = fork->offset;
    m->fork_anchor = fork->anchor;
    m->fork_sub_offset = fork->sub_offset;
    m->fork_explicit = fork->explicit_offset;
}

static void take_meta(struct snapshot *snap, const struct stream *s)
{
    const struct stream_state *v = &s->visible;
    struct stream_meta *m = &snap->item.meta;
    *m = (struct stream_meta){
        .id = s->id,
        .applied = s->applied,
        .name = stream_name(s),
        .content_type = media_text(s->media),
        .created_ms = s->created_ms,
        .ttl_seconds = s->ttl_seconds,
        .expires_at_ms = s->expires_at_ms,
        .accessed_ms = v->accessed_ms,
        .tail = v->tail,
        .closed = v->closed,
        .soft_deleted = v->life == LIFE_SOFT,
        .fork_refs = v->fork_refs,
        .has_seq = v->seq != NULL,
    };
    if (v->seq) {
        snap->seq = block_ref(v->seq);
        m->seq = (struct slice){v->seq->data, v->seq->len};
    }
    if (v->closed) {
        m->closer = closer_of(s);
    }
    if (s->fork) {
        take_fork(m, s->fork);
    }
}

int snapshot_take(struct stream *s, struct snapshot *ret_snapshot)
{
    const struct stream_state *v = view_now(s);
    struct snapshot snap = {.item = {.id = s->id}};
    int code = 0;
    if (v->life == LIFE_UNBORN) {
        snap.empty = true;
    } else if (v->life == LIFE_GONE) {
        snap.item.dropped = true;
    } else {
        take_meta(&snap, s);
        code = take_ranges(&snap, s, v->tail);
        if (code == 0 && s->producers) {
            code = take_known(&snap, s);
        }
        if (code == 0 && s->producers) {
            code = take_gone(&snap, s);
        }
    }
    if (code < 0) {
        snapshot_finish(&snap);
        return code;
    }
    *ret_snapshot = snap;
    return 0;
}

static void range_finish(struct snapshot_range *r)
{
    for (size_t i = 0; i < r->piece_count; i++) {
        block_unref(r->holds[i].block);
        block_unref(r->holds[i].marks_block);
    }
    free(r->pieces);
    free(r->holds);
    free(r->marks);
}

void snapshot_finish(struct snapshot *snap)
{
    for (size_t i = 0; i < snap->range_count; i++) {
        range_finish(&snap->ranges[i]);
    }
    free(snap->ranges);
    free(snap->given);
    free(snap->producers);
    free(snap->gone);
    block_unref(snap->seq);
    *snap = (struct snapshot){0};
}
