/* A record is staged in the log under the stream's lock, and from then on every check sees its
 * effect. Readers must not: a crash could still take it back. So the effect waits as a change on
 * the stream's list until the log is durable up to its end; whoever looks at the visible state
 * first applies the changes that have become durable meanwhile, oldest first. A change carries the
 * whole state after it, so applying is assigning, and the visible state always is the exact state
 * after a prefix of the stream's records: the one that ends at `applied`. */
#include "stream/view.h"

#include <assert.h>
#include <stdlib.h>

#include "stream/core.h"

static struct stream_state state_copy(const struct stream_state *state)
{
    struct stream_state copy = *state;
    if (copy.seq) {
        block_ref(copy.seq);
    }
    return copy;
}

static void state_assign(struct stream_state *to, struct stream_state from)
{
    block_unref(to->seq);
    *to = from;
}

struct stream_change *view_change(const struct stream *s)
{
    struct stream_change *c = calloc(1, sizeof(*c));
    if (c) {
        c->after = state_copy(&s->staged);
    }
    return c;
}

void view_drop(struct stream_change *c)
{
    if (c) {
        block_unref(c->after.seq);
        free(c);
    }
}

void view_push(struct stream *s, struct stream_change *c, log_pos end)
{
    assert(end > s->staged_end || s->staged_end == 0);
    assert(c->after.tail >= s->staged.tail);
    assert(c->after.life >= s->staged.life);
    c->end = end;
    c->next = NULL;
    *s->changes_end = c;
    s->changes_end = &c->next;
    s->staged_end = end;
    s->used_ms = engine_mono_ms(s->engine);
    state_assign(&s->staged, state_copy(&c->after));
    if (c->producer) {
        c->producer->staged = c->producer_after;
        c->producer->pins++;
    }
}

static void apply_producer(struct producer *p, const struct producer_state *after)
{
    assert(p->pins > 0);
    p->pins--;
    p->durable = *after;
    p->known = true;
    p->dirty = true;
}

/* A stream that is gone for good gives its memory back; readers keep the blocks they refer to. */
static void drop_data(struct stream *s)
{
    atomic_fetch_sub(&s->engine->hot_bytes, s->visible.tail - s->saved);
    atomic_fetch_sub(&s->engine->cache_bytes, s->cache_bytes);
    s->cache_bytes = 0;
    tail_clear(&s->tail);
    s->saved = s->visible.tail;
    free(s->extents);
    s->extents = NULL;
    s->extent_count = 0;
    s->extent_cap = 0;
}

/* What the change means to an observer. A fork without bytes of its own has not grown. */
static uint8_t news_of(const struct stream *s, const struct stream_change *c)
{
    const struct stream_state *v = &s->visible;
    uint64_t tail = v->life == LIFE_UNBORN ? stream_own_start(s) : v->tail;
    uint8_t news = c->after.tail > tail && !c->quiet ? NEWS_GREW : 0;
    news |= v->life == LIFE_UNBORN ? NEWS_MADE : 0;
    return v->life <= LIFE_ALIVE && c->after.life > LIFE_ALIVE ? news | NEWS_DROPPED : news;
}

static void apply(struct stream *s, struct stream_change *c)
{
    s->news |= news_of(s, c);
    if (c->producer) {
        apply_producer(c->producer, &c->producer_after);
    }
    s->applied = c->end;
    state_assign(&s->visible, c->after);
    free(c);
    if (s->visible.life == LIFE_GONE) {
        drop_data(s);
    }
}

static void apply_up_to(struct stream *s, log_pos durable)
{
    while (s->changes && s->changes->end <= durable) {
        struct stream_change *c = s->changes;
        s->changes = c->next;
        if (!s->changes) {
            s->changes_end = &s->changes;
        }
        apply(s, c);
    }
}

const struct stream_state *view_now(struct stream *s)
{
    if (s->changes) {
        apply_up_to(s, s->engine->store->ops->durable(s->engine->store));
    }
    return &s->visible;
}

void view_settle(struct stream *s)
{
    apply_up_to(s, UINT64_MAX);
    s->news = 0; /* what was so at the start is no news */
}

void view_reset(struct stream *s, struct stream_state state, log_pos applied)
{
    assert(!s->changes);
    state_assign(&s->visible, state_copy(&state));
    state_assign(&s->staged, state);
    s->applied = applied;
    s->staged_end = applied;
}

int view_set_seq(struct stream_state *state, struct slice seq)
{
    struct block *b = block_try_create(seq.len);
    if (!b) {
        return ERR_NOMEM;
    }
    memcpy(b->data, seq.ptr ? seq.ptr : "", seq.len);
    b->len = (uint32_t)seq.len;
    block_unref(state->seq);
    state->seq = b;
    return 0;
}
