/* What the notes say, at the start. A note that does not prove itself stops the start: to go on
 * without it would be to forget a cursor. */
#include <assert.h>
#include <stdlib.h>

#include "base/limits.h"
#include "stream/subscription_core.h"
#include "stream/subscription_store.h"

/* Subscriptions by number, while links and states are read. */
struct numbered {
    struct map_node node; /* in the map, by number */
    struct subscription *sub;
};

struct loading {
    struct subscriptions *s;
    struct map by_number; /* struct numbered */
    struct errmsg *msg;
};

static int refuse(struct loading *d, struct slice key)
{
    return err_set(d->msg, ERR_CORRUPT,
                   "a note of a subscription does not prove itself: the one that begins with "
                   "\"%.*s\" and has a key of %zu bytes",
                   key.len < 5 ? (int)key.len : 5, key.ptr, key.len);
}

static int no_memory(struct loading *d)
{
    return err_set(d->msg, ERR_NOMEM, "%s", err_text(ERR_NOMEM));
}

static struct subscription *by_number(const struct loading *d, uint64_t number)
{
    struct map_node *node = map_find(&d->by_number, number);
    return node ? container_of(node, struct numbered, node)->sub : NULL;
}

static void see_number(struct subscriptions *s, uint64_t number)
{
    if (number >= s->next_number) {
        s->next_number = number + 1;
    }
}

static int add_number(struct loading *d, struct subscription *sub)
{
    struct numbered *n = calloc(1, sizeof(*n));
    if (!n || map_insert(&d->by_number, &n->node, sub->number) < 0) {
        free(n);
        return ERR_NOMEM;
    }
    n->sub = sub;
    return 0;
}

static int load_subscription(void *context, struct slice key, struct slice value)
{
    struct loading *d = context;
    struct subscriptions *s = d->s;
    struct subscription_note n;
    if (subscription_store_read(key, value, &n) < 0 || by_number(d, n.number)) {
        return refuse(d, key);
    }
    see_number(s, n.number);
    if (n.kind == SUBSCRIPTION_NOTE_TOMBSTONE && n.state.generation == 0) {
        garbage_add(s, 0, n.id); /* it keeps nothing: none is written any more */
        return 0;
    }
    struct subscription *sub = core_obtain(s, n.id);
    if (!sub) {
        return no_memory(d);
    }
    sub->number = n.number;
    sub->created_ms = n.created_ms;
    if (n.kind == SUBSCRIPTION_NOTE_TOMBSTONE) {
        sub->state.generation = n.state.generation;
        atomic_fetch_add(&s->counts.tombstones, 1);
        return 0;
    }
    if (add_number(d, sub) < 0 || subscription_define(sub, &n.def) < 0) {
        return no_memory(d);
    }
    sub->exists = true;
    atomic_fetch_add(&s->counts.subscriptions, 1);
    return 0;
}

static int take_state(struct subscription *sub, const struct subscription_state *st)
{
    struct block *holder = NULL;
    if (st->holder.len > 0) {
        holder = block_try_create(st->holder.len);
        if (!holder) {
            return ERR_NOMEM;
        }
        memcpy(holder->data, st->holder.ptr, st->holder.len);
        holder->len = (uint32_t)st->holder.len;
    }
    sub->state = *st;
    sub->state.holder = (struct slice){0};
    if (holder) {
        subscription_state_hold(&sub->state, holder);
    }
    return 0;
}

static int load_state(void *context, struct slice key, struct slice value)
{
    struct loading *d = context;
    struct subscription_note n;
    if (subscription_store_read(key, value, &n) < 0) {
        return refuse(d, key);
    }
    struct subscription *sub = by_number(d, n.number);
    if (!sub) {
        return refuse(d, key); /* a tombstone takes it along */
    }
    return take_state(sub, &n.state) < 0 ? no_memory(d) : 0;
}

static int load_link(void *context, struct slice key, struct slice value)
{
    struct loading *d = context;
    struct subscription_note n;
    if (subscription_store_read(key, value, &n) < 0) {
        return refuse(d, key);
    }
    struct subscription *sub = by_number(d, n.number);
    if (!sub) {
        /* Of a deleted one, which was not swept up in time. */
        see_number(d->s, n.number);
        garbage_add(d->s, n.number, n.path);
        return 0;
    }
    if (core_is_reserved(d->s, n.path)) {
        return 0;
    }
    struct subscription_link *l = subscription_link_create(sub, n.path, n.acked);
    if (!l || subscription_attach(l) < 0) {
        subscription_link_destroy(l);
        return no_memory(d);
    }
    l->stream = n.stream;
    l->skip = n.skip;
    l->is_explicit = n.is_explicit;
    l->saved = true;
    if (!l->is_explicit) {
        return 0;
    }
    int code = subscription_index_add_name(d->s->index, &l->name.entry, n.path);
    return code < 0 ? no_memory(d) : 0;
}

/* Whoever waits for those events has to claim without them. */
static void tell_of_target(struct subscriptions *s, const struct subscription *sub)
{
    struct slice target = sub->def.target;
    if (sub->def.type == SUBSCRIPTION_PULL_WAKE && core_is_reserved(s, target)) {
        core_trouble(s, "the subscription %.*s gets no wake events on %.*s: %s", (int)sub->id.len,
                     sub->id.ptr, (int)target.len, target.ptr, s->config.reserved_why);
    }
}

/* A lease goes on if it has time left. A webhook that may not have arrived is sent again, as the
 * same wake; but if its lease is over, whoever received it is fenced off by a new one. */
static int begin_again(struct loading *d)
{
    struct subscriptions *s = d->s;
    int64_t now_ms = core_now_ms(s);
    struct map_node *node = NULL;
    while ((node = map_next(&d->by_number, node)) != NULL) {
        struct subscription *sub = container_of(node, struct numbered, node)->sub;
        const struct subscription_state *st = &sub->state;
        wake_set_due(s, sub);
        sub->stale = st->phase == SUBSCRIPTION_OFFERED && st->lease_until_ms > 0 &&
                     st->lease_until_ms <= now_ms;
        if (core_index(s, sub) < 0) {
            return no_memory(d);
        }
        tell_of_target(s, sub);
        core_count(s, sub);
        core_ready(s, sub);
    }
    return 0;
}

int load_notes(struct subscriptions *s, struct errmsg *msg)
{
    struct loading d = {.s = s, .msg = msg};
    map_init(&d.by_number);
    struct engine *e = s->config.engine;
    int code = engine_each_note(e, SLICE(SUBSCRIPTION_KEY_SUB), load_subscription, &d, msg);
    if (code == 0) {
        code = engine_each_note(e, SLICE(SUBSCRIPTION_KEY_WAKE), load_state, &d, msg);
    }
    if (code == 0) {
        code = engine_each_note(e, SLICE(SUBSCRIPTION_KEY_LINK), load_link, &d, msg);
    }
    if (code == 0) {
        code = begin_again(&d);
    }
    struct map_node *node;
    while ((node = map_next(&d.by_number, NULL)) != NULL) {
        map_remove(&d.by_number, node);
        free(container_of(node, struct numbered, node));
    }
    map_finish(&d.by_number);
    return code;
}
