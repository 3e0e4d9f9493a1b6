/* Links and their cursors, and the moves of the state. */
#include "stream/subscription.h"

#include <assert.h>
#include <stdlib.h>

#include "base/limits.h"
#include "stream/glob.h"

/* Clients choose paths; where the subscription lies in memory, they do not. */
static uint64_t path_hash(const struct subscription *sub, struct slice path)
{
    return slice_hash(path, (uint64_t)(uintptr_t)sub);
}

struct subscription *subscription_create(struct slice id)
{
    struct subscription *sub = calloc(1, sizeof(*sub));
    char *bytes = malloc(id.len + 1);
    if (!sub || !bytes) {
        free(sub);
        free(bytes);
        return NULL;
    }
    memcpy(bytes, id.ptr, id.len);
    sub->id = (struct slice){bytes, id.len};
    sub->wake_stream.owner = sub;
    map_init(&sub->links_by_path);
    list_init(&sub->links);
    list_init(&sub->pending);
    list_init(&sub->dirty);
    list_init(&sub->ready_link);
    list_init(&sub->call_link);
    list_init(&sub->ops);
    list_init(&sub->held);
    return sub;
}

void subscription_destroy(struct subscription *sub)
{
    if (!sub) {
        return;
    }
    struct list *first;
    while ((first = list_first(&sub->links)) != NULL) {
        subscription_detach(container_of(first, struct subscription_link, link));
    }
    map_finish(&sub->links_by_path);
    subscription_state_drop(&sub->state);
    free(sub->def.memory);
    free((char *)(uintptr_t)sub->id.ptr);
    free(sub);
}

static struct slice copy_to(char **at, struct slice s)
{
    struct slice copy = {*at, s.len};
    if (s.len > 0) {
        memcpy(*at, s.ptr, s.len);
    }
    *at += s.len;
    return copy;
}

int subscription_define(struct subscription *sub, const struct subscription_definition *def)
{
    char *memory = malloc(def->pattern.len + def->target.len + def->description.len + 1);
    if (!memory) {
        return ERR_NOMEM;
    }
    free(sub->def.memory);
    char *at = memory;
    sub->def = *def;
    sub->def.memory = memory;
    sub->def.pattern = copy_to(&at, def->pattern);
    sub->def.target = copy_to(&at, def->target);
    sub->def.description = copy_to(&at, def->description);
    return 0;
}

struct subscription_link *subscription_link_create(struct subscription *sub, struct slice path,
                                                   uint64_t acked)
{
    assert(path.len > 0 && path.len <= STREAM_NAME_BYTES_MAX);
    struct subscription_link *l = calloc(1, sizeof(*l) + path.len);
    if (!l) {
        return NULL;
    }
    l->owner = sub;
    l->name.owner = sub;
    l->acked = acked;
    l->path_len = (uint16_t)path.len;
    memcpy(l->path, path.ptr, path.len);
    list_init(&l->link);
    list_init(&l->pending_link);
    list_init(&l->dirty_link);
    return l;
}

void subscription_link_destroy(struct subscription_link *l)
{
    assert(!l || (!l->attached && !l->name.entry.node));
    free(l);
}

struct subscription_link *subscription_find(const struct subscription *sub, struct slice path)
{
    struct map_node *node = map_find(&sub->links_by_path, path_hash(sub, path));
    for (; node; node = map_find_next(node)) {
        struct subscription_link *l = container_of(node, struct subscription_link, by_path);
        if (slice_equal(subscription_link_path(l), path)) {
            return l;
        }
    }
    return NULL;
}

int subscription_attach(struct subscription_link *l)
{
    struct subscription *sub = l->owner;
    assert(!l->attached && !subscription_find(sub, subscription_link_path(l)));
    int code = map_insert(&sub->links_by_path, &l->by_path,
                          path_hash(sub, subscription_link_path(l)));
    if (code < 0) {
        return code;
    }
    list_append(&sub->links, &l->link);
    l->attached = true;
    sub->link_count += !l->dropped;
    subscription_refresh(l);
    return 0;
}

void subscription_detach(struct subscription_link *l)
{
    struct subscription *sub = l->owner;
    assert(l->attached && !l->name.entry.node);
    l->attached = false;
    subscription_refresh(l);
    map_remove(&sub->links_by_path, &l->by_path);
    list_remove(&l->link);
    list_remove(&l->dirty_link);
    sub->link_count -= !l->dropped;
    free(l);
}

void subscription_drop(struct subscription_link *l)
{
    if (l->dropped) {
        return;
    }
    l->dropped = true;
    l->is_explicit = false;
    l->sent_generation = 0;
    l->owner->link_count--;
    subscription_soil(l);
    subscription_refresh(l);
}

void subscription_revive(struct subscription_link *l, stream_id stream, uint64_t acked)
{
    assert(l->dropped && l->attached);
    l->dropped = false;
    l->stream = stream;
    l->acked = acked;
    l->skip = 0;
    l->tail = 0;
    l->owner->link_count++;
    subscription_soil(l);
    subscription_refresh(l);
}

void subscription_soil(struct subscription_link *l)
{
    if (list_empty(&l->dirty_link)) {
        list_append(&l->owner->dirty, &l->dirty_link);
    }
}

void subscription_refresh(struct subscription_link *l)
{
    bool listed = !list_empty(&l->pending_link);
    bool pending = l->attached && subscription_link_pending(l);
    if (pending && !listed) {
        list_append(&l->owner->pending, &l->pending_link);
        l->owner->pending_count++;
    } else if (!pending && listed) {
        list_remove(&l->pending_link);
        l->owner->pending_count--;
    }
}

bool subscription_globs(const struct subscription *sub, struct slice name)
{
    return sub->def.pattern.len > 0 && glob_matches(sub->def.pattern, name) &&
           !(sub->def.type == SUBSCRIPTION_PULL_WAKE && slice_equal(sub->def.target, name));
}

bool subscription_is_current(const struct subscription_state *st, uint64_t token_generation,
                             uint64_t generation, struct slice wake_id)
{
    return st->phase != SUBSCRIPTION_IDLE && token_generation == st->generation &&
           generation == st->generation &&
           slice_equal(wake_id, (struct slice){st->wake_id, sizeof(st->wake_id)});
}

static void drop_holder(struct subscription_state *st)
{
    block_unref(st->holder_block);
    st->holder_block = NULL;
    st->holder = (struct slice){0};
}

void subscription_state_wake(struct subscription_state *st, const struct subscription *sub,
                             const char wake_id[static SUBSCRIPTION_WAKE_ID_BYTES], int64_t now_ms)
{
    assert(st->phase == SUBSCRIPTION_IDLE && !st->holder_block);
    st->phase = SUBSCRIPTION_OFFERED;
    st->generation++;
    memcpy(st->wake_id, wake_id, sizeof(st->wake_id));
    bool leased = sub->def.type == SUBSCRIPTION_WEBHOOK;
    st->lease_until_ms = leased ? now_ms + sub->def.lease_ttl_ms : 0;
}

void subscription_state_end(struct subscription_state *st)
{
    drop_holder(st);
    st->phase = SUBSCRIPTION_IDLE;
    st->lease_until_ms = 0;
    st->retry_at_ms = 0;
    st->failures = 0;
    st->failed = false;
}

void subscription_state_lease(struct subscription_state *st, const struct subscription *sub,
                              int64_t now_ms)
{
    assert(st->phase != SUBSCRIPTION_IDLE);
    st->phase = SUBSCRIPTION_LEASED;
    st->lease_until_ms = now_ms + sub->def.lease_ttl_ms;
    st->retry_at_ms = 0;
    st->failures = 0;
    st->failed = false;
}

void subscription_state_fail(struct subscription_state *st, uint64_t pause_ms, int64_t now_ms)
{
    assert(st->phase == SUBSCRIPTION_OFFERED);
    st->lease_until_ms = 0;
    st->retry_at_ms = now_ms + (int64_t)pause_ms;
    st->failures += st->failures < UINT32_MAX;
    st->failed = true;
}

uint64_t subscription_pause_ms(uint32_t failures, uint32_t random)
{
    assert(failures > 0);
    uint64_t pause = SUBSCRIPTION_RETRY_MS_MAX;
    if (failures < 7 && SUBSCRIPTION_RETRY_MS_MIN << (failures - 1) < pause) {
        pause = SUBSCRIPTION_RETRY_MS_MIN << (failures - 1);
    }
    return pause * 4 / 5 + (pause * 2 / 5 * random >> 32);
}

void subscription_state_hold(struct subscription_state *st, struct block *holder)
{
    drop_holder(st);
    st->holder_block = holder;
    st->holder = (struct slice){holder->data, holder->len};
}

struct subscription_state subscription_state_copy(const struct subscription_state *st)
{
    struct subscription_state copy = *st;
    if (copy.holder_block) {
        block_ref(copy.holder_block);
    }
    return copy;
}

void subscription_state_drop(struct subscription_state *st)
{
    drop_holder(st);
}
