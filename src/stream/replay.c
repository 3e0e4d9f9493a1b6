/* The checkpoint took its streams at different moments, all after the position from which the log
 * is replayed (checkpoint.c). So a stream may be ahead of the record at hand, and the rules are
 * these:
 *
 *   - What a record does to a stream is skipped when the stream's `applied` is at or past its end.
 *   - A record about a stream that is not in the catalog and was not created by a record before is
 *     skipped: a later deletion was covered by the checkpoint, which dropped the stream.
 *   - So is a creation whose name belongs to a stream with a higher id, or whose source is not
 *     there: both tell that its deletion was covered. Its id is dead, and all its later records
 *     are skipped.
 *   - What a record does to other streams, the fork counts of sources and the end of ancestors,
 *     goes by each of their own `applied`, whatever becomes of the stream that the record is
 *     about.
 *   - A stream of the catalog whose source is not there is gone as well, though its deletion comes
 *     only later in the log: the checkpoint took the source after it, and the stream before
 *     (load.c).
 *
 * Everything replayed is durable: staged and visible state change together. */
#include "stream/replay.h"

#include <assert.h>
#include <stdlib.h>

#include "base/bytes.h"
#include "base/limits.h"
#include "stream/checkpoint.h"
#include "stream/expiry.h"
#include "stream/list.h"
#include "stream/message.h"
#include "stream/view.h"

#define ADOPT_BYTES_MIN (16u * KIB) /* a larger body gets a block of its own */

/* An id whose records are skipped. */
struct dead {
    struct map_node node;
    stream_id id;
};

struct replay {
    struct map dead; /* struct dead */
};

struct replay *replay_create(void)
{
    struct replay *r = malloc(sizeof(*r));
    if (r) {
        map_init(&r->dead);
    }
    return r;
}

void replay_destroy(struct replay *r)
{
    if (!r) {
        return;
    }
    struct map_node *node = map_next(&r->dead, NULL);
    while (node) {
        struct map_node *next = map_next(&r->dead, node);
        free(container_of(node, struct dead, node));
        node = next;
    }
    map_finish(&r->dead);
    free(r);
}

static bool is_dead(const struct replay *r, stream_id id)
{
    for (struct map_node *n = map_find(&r->dead, id); n; n = map_find_next(n)) {
        if (container_of(n, struct dead, node)->id == id) {
            return true;
        }
    }
    return false;
}

static int bury(struct replay *r, stream_id id)
{
    struct dead *d = malloc(sizeof(*d));
    if (!d || map_insert(&r->dead, &d->node, id) < 0) {
        free(d);
        return ERR_NOMEM;
    }
    d->id = id;
    return 0;
}

/* The stream that the record still has to change, referenced; NULL in *ret_stream when there is
 * none, or it is past the record already. */
static int find(struct engine *e, stream_id id, log_pos end, struct stream **ret_stream)
{
    struct stream *s = NULL;
    if (is_dead(e->replay, id)) {
        *ret_stream = NULL;
        return 0;
    }
    int code = load_id(e, id, &s);
    if (code == ERR_NOTFOUND) {
        *ret_stream = NULL;
        return 0;
    }
    if (code < 0) {
        return code;
    }
    if (s->applied >= end || s->visible.life == LIFE_GONE) {
        stream_unref(s);
        s = NULL;
    }
    *ret_stream = s;
    return 0;
}

/* The change made ready is a fact: staged and visible at once. */
static void apply(struct stream *s, struct stream_change *c, log_pos end)
{
    struct quota *q = &s->engine->quota;
    quota_count(q, quota_share_of(s, &c->after));
    quota_give(q, quota_share_of(s, &s->staged));
    checkpoint_mark(s);
    view_push(s, c, end);
    view_settle(s);
}

static int add_bytes(struct stream *s, struct slice body, struct slice marks)
{
    if (body.len == 0) {
        return 0;
    }
    struct tail_room room;
    struct tail_body add = {.bytes = body, .marks = marks};
    struct marks_run *runs = NULL;
    if (body.len >= ADOPT_BYTES_MIN) {
        add.block = block_try_create(body.len);
        if (!add.block || message_split(body.len, marks, &runs, &add.run_count) < 0) {
            block_unref(add.block);
            return ERR_NOMEM;
        }
        memcpy(add.block->data, body.ptr, body.len);
        add.block->len = (uint32_t)body.len;
        add.bytes.ptr = add.block->data;
        add.runs = runs;
    }
    int code = tail_prepare(&s->tail, &add, &room);
    if (code == 0) {
        tail_add(&s->tail, &room, s->staged.tail, &add);
        atomic_fetch_add(&s->engine->hot_bytes, body.len);
    }
    block_unref(add.block);
    free(runs);
    return code;
}

/* -----------------------------------------------------------------------------------------
 * creation */

static int fill(struct stream *s, const struct record_create *c, struct stream *source)
{
    s->media = media_get(&s->engine->media, c->content_type);
    if (!s->media) {
        return ERR_NOMEM;
    }
    s->created_ms = c->created_ms;
    s->accessed_ms = c->created_ms + expiry_slack_ms(c->ttl_seconds);
    s->ttl_seconds = c->ttl_seconds;
    s->expires_at_ms = c->expires_at_ms;
    if (!source) {
        return 0;
    }
    s->fork = malloc(sizeof(*s->fork));
    if (!s->fork) {
        return ERR_NOMEM;
    }
    *s->fork = (struct stream_fork){
        .source = stream_ref(source),
        .offset = c->fork_offset,
        .anchor = c->fork_anchor,
        .sub_offset = c->fork_sub_offset,
        .explicit_offset = c->fork_explicit,
        .depth = source->fork ? source->fork->depth + 1 : 1,
    };
    s->saved = c->fork_offset;
    bool sound = s->fork->depth <= FORK_DEPTH_MAX && c->fork_offset <= source->staged.tail;
    return sound ? 0 : ERR_CORRUPT;
}

/* A placeholder becomes the stream. Under its lock. */
static int create(struct stream *s, const struct record_create *c, struct stream *source,
                  log_pos end)
{
    int code = fill(s, c, source);
    s->staged.tail = s->saved;
    if (code == 0) {
        code = add_bytes(s, c->body, c->marks);
    }
    if (code < 0) {
        return code;
    }
    struct stream_change *change = view_change(s);
    if (!change) {
        return ERR_NOMEM;
    }
    change->after.tail = s->saved + c->body.len;
    change->after.accessed_ms = c->created_ms;
    change->after.life = LIFE_ALIVE;
    change->after.closed = c->closed;
    apply(s, change, end);
    return 0;
}

static int create_stream(struct engine *e, const struct record *r, struct stream *source,
                         log_pos end)
{
    struct stream *s;
    int code = table_adopt(e, r->create.name, &s);
    if (code < 0) {
        return code;
    }
    pthread_mutex_lock(&s->lock);
    s->id = r->id;
    code = create(s, &r->create, source, end);
    pthread_mutex_unlock(&s->lock);
    if (code == 0) {
        code = table_list(e, s, r->id);
    }
    if (code == 0) {
        list_fresh(s);
        table_live(e, s);
    } else {
        table_absent(e, s, code);
    }
    stream_unref(s);
    return code;
}

static int count_fork(struct stream *source, log_pos end)
{
    pthread_mutex_lock(&source->lock);
    struct stream_change *c = view_change(source);
    if (c) {
        c->after.fork_refs++;
        apply(source, c, end);
    }
    pthread_mutex_unlock(&source->lock);
    return c ? 0 : ERR_NOMEM;
}

/* The source of a creation, referenced; NULL when it is gone. Its count goes by its own
 * `applied`. */
static int take_source(struct engine *e, stream_id id, log_pos end, struct stream **ret_source)
{
    struct stream *s = NULL;
    int code = is_dead(e->replay, id) ? ERR_NOTFOUND : load_id(e, id, &s);
    if (code == 0 && s->visible.life == LIFE_GONE) {
        stream_unref(s);
        code = ERR_NOTFOUND;
    }
    if (code == ERR_NOTFOUND) {
        *ret_source = NULL;
        return 0;
    }
    if (code == 0 && s->applied < end) {
        code = count_fork(s, end);
        if (code < 0) {
            stream_unref(s);
        }
    }
    if (code == 0) {
        *ret_source = s;
    }
    return code;
}

/* Whether the name belongs to a later stream, in memory or in the catalog. */
static int name_taken(struct engine *e, const struct record *r, bool *ret_taken)
{
    stream_id holder = 0;
    struct stream *s = table_name(e, r->create.name);
    int code = 0;
    if (s) {
        holder = s->id;
        stream_unref(s);
    } else {
        code = e->store->ops->find(e->store, r->create.name, &holder);
    }
    if (code < 0 && code != ERR_NOTFOUND) {
        return code;
    }
    *ret_taken = code == 0 && holder > r->id;
    return 0;
}

static int known(struct engine *e, stream_id id, bool *ret_known)
{
    struct stream *s;
    int code = load_id(e, id, &s);
    if (code == 0) {
        stream_unref(s);
    }
    *ret_known = code == 0;
    return code == ERR_NOTFOUND ? 0 : code;
}

static int replay_create_record(struct engine *e, const struct record *r, log_pos end)
{
    struct stream *source = NULL;
    bool there = false;
    bool taken = false;
    int code = known(e, r->id, &there);
    if (code == 0 && r->create.source_id != 0) {
        code = take_source(e, r->create.source_id, end, &source);
    }
    if (code == 0 && !there) {
        code = name_taken(e, r, &taken);
    }
    if (code == 0 && !there) {
        bool orphan = r->create.source_id != 0 && !source;
        code = taken || orphan ? bury(e->replay, r->id) : create_stream(e, r, source, end);
    }
    stream_unref(source);
    return code;
}

/* ------------------------------------------------------------------------------------------
 * appending */

static int set_producer(struct stream *s, struct stream_change *c, const struct record_append *a)
{
    if (a->producer.id.len == 0) {
        return 0;
    }
    if (!s->producers && !(s->producers = producers_create())) {
        return ERR_NOMEM;
    }
    struct producer *p = producers_find(s->producers, a->producer.id);
    int code = p ? 0 : producers_add(s->producers, a->producer.id, &p);
    if (code == 0) {
        c->producer = p;
        c->producer_after = (struct producer_state){a->producer.epoch, a->producer.seq, a->now_ms};
    }
    return code;
}

static int change_append(struct stream *s, struct stream_change *c, const struct record_append *a)
{
    if (a->offset != s->staged.tail || s->staged.life != LIFE_ALIVE) {
        return ERR_CORRUPT;
    }
    c->after.tail += a->body.len;
    c->after.closed = c->after.closed || a->close;
    c->after.accessed_ms = a->now_ms > c->after.accessed_ms ? a->now_ms : c->after.accessed_ms;
    if (a->has_seq && view_set_seq(&c->after, a->seq) < 0) {
        return ERR_NOMEM;
    }
    if (a->close && a->producer.id.len > 0 && !s->closer &&
        !(s->closer = stream_closer_create(&a->producer))) {
        return ERR_NOMEM;
    }
    int code = set_producer(s, c, a);
    return code < 0 ? code : add_bytes(s, a->body, a->marks);
}

static void renew(struct stream *s, int64_t logged_ms)
{
    int64_t accessed_ms = logged_ms + expiry_slack_ms(s->ttl_seconds);
    s->accessed_ms = accessed_ms > s->accessed_ms ? accessed_ms : s->accessed_ms;
}

/* Under the lock. */
static int append(struct stream *s, const struct record_append *a, log_pos end)
{
    struct stream_change *c = view_change(s);
    if (!c) {
        return ERR_NOMEM;
    }
    int code = change_append(s, c, a);
    if (code < 0) {
        view_drop(c);
        return code;
    }
    apply(s, c, end);
    renew(s, a->now_ms);
    return 0;
}

static int touch(struct stream *s, const struct record_touch *t, log_pos end)
{
    struct stream_change *c = view_change(s);
    if (!c) {
        return ERR_NOMEM;
    }
    c->after.accessed_ms = t->now_ms > c->after.accessed_ms ? t->now_ms : c->after.accessed_ms;
    apply(s, c, end);
    renew(s, t->now_ms);
    return 0;
}

/* -------------------------------------------------------------------------------------------
 * deletion */

/* Lets one stream of a deletion go, or lose a fork. */
static int let_go(struct engine *e, stream_id id, uint8_t life, bool release, log_pos end)
{
    struct stream *s = NULL;
    int code = id != 0 ? find(e, id, end, &s) : 0;
    if (code < 0 || !s) {
        return code;
    }
    pthread_mutex_lock(&s->lock);
    struct stream_change *c = view_change(s);
    if (c) {
        c->after.life = life > c->after.life ? life : c->after.life;
        c->after.fork_refs -= release && c->after.fork_refs > 0 ? 1 : 0;
        apply(s, c, end);
    }
    pthread_mutex_unlock(&s->lock);
    stream_unref(s);
    return c ? 0 : ERR_NOMEM;
}

static int replay_delete(struct engine *e, const struct record *r, log_pos end)
{
    const struct record_delete *d = &r->del;
    int code = let_go(e, r->id, d->soft ? LIFE_SOFT : LIFE_GONE, false, end);
    for (uint32_t i = 0; code == 0 && i < d->cascade_count; i++) {
        code = let_go(e, bytes_get_u64(d->cascade.ptr + (size_t)i * 8), LIFE_GONE, true, end);
    }
    return code < 0 ? code : let_go(e, d->released, LIFE_UNBORN, true, end);
}

static int replay_change(struct engine *e, const struct record *r, log_pos end)
{
    struct stream *s;
    int code = find(e, r->id, end, &s);
    if (code < 0 || !s) {
        return code;
    }
    pthread_mutex_lock(&s->lock);
    code = r->type == RECORD_APPEND ? append(s, &r->append, end) : touch(s, &r->touch, end);
    pthread_mutex_unlock(&s->lock);
    stream_unref(s);
    return code;
}

int replay_record(struct engine *e, const struct record *r, log_pos end)
{
    assert(e->replay);
    switch (r->type) {
    case RECORD_CREATE:
        return replay_create_record(e, r, end);
    case RECORD_DELETE:
        return replay_delete(e, r, end);
    case RECORD_NOTE:
        return notes_replay(e, &r->note, end);
    case RECORD_APPEND:
    case RECORD_TOUCH:
        break;
    }
    return replay_change(e, r, end);
}
