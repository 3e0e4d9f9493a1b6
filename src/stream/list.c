/* The catalog has names in order but knows streams only as the last checkpoint left them, and none
 * that was created since. So a list goes over the catalog and, beside it, over the streams that are
 * fresh: created, and in no catalog yet. Each stream that is in memory is shown as memory has it;
 * one that is not is as the catalog says, since what changed stays in memory until it is saved.
 *
 * A checkpoint moves streams from the one side to the other meanwhile. Fresh ones are taken first,
 * so none is missed between the two, and one that is met on both sides is shown once. But a stream
 * may be saved, and then leave memory, after the catalog was read: `checkpoints` of the engine
 * counts what was saved, and when it moved and a stream is not in memory, the catalog is read anew
 * from there on. */
#include "stream/list.h"

#include <assert.h>
#include <stdlib.h>

#include "stream/core.h"
#include "stream/expiry.h"
#include "stream/view.h"

#define LIST_SHOWN_MAX   4096u /* streams that a call shows, whatever the limit */
#define LIST_LOOKS_EXTRA 1024u /* and that it may pass over besides */
#define LIST_ENOUGH      1     /* ends a walk of the catalog that is to go no further */

struct lister {
    struct engine *e;
    const struct engine_list_query *query;
    engine_list_fn each;
    void *context;
    struct engine_list_end *end;
    int64_t now_ms;
    size_t limit;          /* streams that are shown at most */
    uint64_t checkpoints;  /* of the engine, before the catalog was read */
    struct stream **fresh; /* by name; owned, and each referenced */
    size_t fresh_count;
    size_t fresh_at; /* the next one */
    size_t shown;    /* by this call */
    size_t looks;    /* at streams, by this call */
    bool full;       /* who asks wants no more */
    bool stale;      /* the catalog is to be read anew */
    bool stopped;    /* nothing more is to be looked at */
};

/* How many streams a call may look at: then it stops, whatever it has shown. */
static size_t looks_max(const struct lister *w)
{
    return w->limit + LIST_LOOKS_EXTRA;
}

static const struct stream *fresh_of(const struct tree_node *node)
{
    return container_of(node, struct stream, fresh_node);
}

/* A name may be fresh more than once: the newest stream of it comes first. */
static int by_name(const struct tree_node *a, const struct tree_node *b)
{
    const struct stream *x = fresh_of(a);
    const struct stream *y = fresh_of(b);
    int order = slice_compare(stream_name(x), stream_name(y));
    return order != 0 ? order : (x->id < y->id) - (x->id > y->id);
}

void list_init_fresh(struct engine *e)
{
    pthread_mutex_init(&e->fresh_lock, NULL);
    tree_init(&e->fresh, by_name);
}

void list_fresh(struct stream *s)
{
    struct engine *e = s->engine;
    struct slice id = {(const char *)&s->id, sizeof(s->id)};
    pthread_mutex_lock(&e->fresh_lock);
    assert(!s->fresh);
    tree_insert(&e->fresh, &s->fresh_node, slice_hash(id, e->table.seed));
    s->fresh = true;
    pthread_mutex_unlock(&e->fresh_lock);
}

void list_stored(struct stream *s)
{
    struct engine *e = s->engine;
    pthread_mutex_lock(&e->fresh_lock);
    if (s->fresh) {
        tree_remove(&e->fresh, &s->fresh_node);
        s->fresh = false;
    }
    pthread_mutex_unlock(&e->fresh_lock);
}

/* Whether the stream's name is behind another. */
static bool is_behind(void *context, const struct tree_node *node)
{
    const struct slice *name = context;
    return slice_compare(stream_name(fresh_of(node)), *name) > 0;
}

static bool is_from(void *context, const struct tree_node *node)
{
    const struct slice *name = context;
    return slice_compare(stream_name(fresh_of(node)), *name) >= 0;
}

/* As many as this call may still look at. Of several of one name the newest alone: those before it
 * are gone for good, or it could not have been made. */
static int take_fresh(struct lister *w)
{
    struct engine *e = w->e;
    struct slice prefix = w->query->prefix;
    struct slice last = w->end->last;
    size_t max = looks_max(w) - w->looks;
    w->fresh = malloc((max + 1) * sizeof(w->fresh[0]));
    if (!w->fresh) {
        return ERR_NOMEM;
    }
    bool begun = slice_compare(last, prefix) >= 0 && last.len > 0;
    pthread_mutex_lock(&e->fresh_lock);
    struct tree_node *node = begun ? tree_find(&e->fresh, is_behind, &last)
                                   : tree_find(&e->fresh, is_from, &prefix);
    while (node && w->fresh_count < max) {
        struct stream *s = container_of(node, struct stream, fresh_node);
        struct slice name = stream_name(s);
        if (!slice_starts_with(name, prefix)) {
            break;
        }
        w->fresh[w->fresh_count++] = stream_ref(s);
        node = tree_find(&e->fresh, is_behind, &name);
    }
    pthread_mutex_unlock(&e->fresh_lock);
    return 0;
}

static void drop_fresh(struct lister *w)
{
    for (size_t i = 0; i < w->fresh_count; i++) {
        stream_unref(w->fresh[i]);
    }
    free(w->fresh);
    w->fresh = NULL;
    w->fresh_count = 0;
    w->fresh_at = 0;
}

/* Whether one more may be looked at. */
static bool may_look(struct lister *w)
{
    w->stopped = w->stopped || w->full || w->shown == w->limit || w->looks == looks_max(w);
    return !w->stopped;
}

/* One name was looked at; `listed` is NULL when there is nothing to show of it. In a damaged
 * catalog names may not ascend: who asks for page after page must come to an end all the same. */
static int pass(struct lister *w, struct slice name, const struct stream_listed *listed)
{
    w->looks++;
    if (slice_compare(name, w->end->last) <= 0) {
        return 0;
    }
    assert(name.len <= sizeof(w->end->bytes));
    memcpy(w->end->bytes, name.ptr, name.len);
    w->end->last = (struct slice){w->end->bytes, name.len};
    if (!listed) {
        return 0;
    }
    w->shown++;
    int code = w->each(w->context, listed);
    w->full = code == ENGINE_LIST_FULL;
    return w->full ? 0 : code;
}

static struct stream_expiry expiry_of(uint64_t ttl_seconds, int64_t expires_at_ms)
{
    return (struct stream_expiry){
        .has_ttl = ttl_seconds != UINT64_MAX,
        .has_expires_at = expires_at_ms != INT64_MAX,
        .ttl_seconds = ttl_seconds != UINT64_MAX ? ttl_seconds : 0,
        .expires_at_ms = expires_at_ms != INT64_MAX ? expires_at_ms : 0,
    };
}

/* Fills in how the stream durably is, and whether that is to be shown. False when nothing of it is
 * durable, or it is only being loaded. */
static bool look_into(struct lister *w, struct stream *s, struct stream_listed *ret_listed,
                      bool *ret_live)
{
    pthread_mutex_lock(&s->lock);
    const struct stream_state *v = view_now(s);
    bool born = v->life != LIFE_UNBORN;
    bool live = v->life == LIFE_ALIVE && w->now_ms < expiry_deadline(s);
    *ret_listed = (struct stream_listed){
        .name = stream_name(s),
        .id = s->id,
        .next = v->tail,
        .closed = v->closed,
        .created_ms = s->created_ms,
        .expiry = expiry_of(s->ttl_seconds, s->expires_at_ms),
        .fork = s->fork != NULL,
        .fork_offset = stream_own_start(s),
    };
    if (live) {
        ret_listed->content_type = media_text(s->media);
    }
    pthread_mutex_unlock(&s->lock);
    *ret_live = live;
    return born;
}

/* As the stream would be once it is loaded. */
static int64_t deadline_of(const struct stream_meta *m)
{
    if (m->expires_at_ms != INT64_MAX || m->ttl_seconds == UINT64_MAX) {
        return m->expires_at_ms;
    }
    return m->accessed_ms + expiry_slack_ms(m->ttl_seconds) + (int64_t)(m->ttl_seconds * 1000);
}

static int look_at_meta(struct lister *w, const struct stream_meta *m)
{
    struct stream_listed listed = {
        .name = m->name,
        .content_type = m->content_type,
        .id = m->id,
        .next = m->tail,
        .closed = m->closed,
        .created_ms = m->created_ms,
        .expiry = expiry_of(m->ttl_seconds, m->expires_at_ms),
        .fork = m->source_id != 0,
        .fork_offset = m->fork_offset,
    };
    bool live = !m->soft_deleted && w->now_ms < deadline_of(m);
    return pass(w, m->name, live ? &listed : NULL);
}

/* Goes over the fresh ones before `name`, or at it too; NULL: all that there are. */
static int look_at_fresh(struct lister *w, const struct slice *name, bool at_it)
{
    int code = 0;
    while (code == 0 && w->fresh_at < w->fresh_count) {
        struct stream *s = w->fresh[w->fresh_at];
        int order = name ? slice_compare(stream_name(s), *name) : -1;
        if (order > 0 || (order == 0 && !at_it) || !may_look(w)) {
            break;
        }
        struct stream_listed listed;
        bool live;
        w->fresh_at++;
        (void)look_into(w, s, &listed, &live); /* one that is not born is not live */
        code = pass(w, listed.name, live ? &listed : NULL);
    }
    return code;
}

/* One that is being loaded is as the catalog says, like one that is not in memory. */
static int look_at_stored(struct lister *w, const struct stream_meta *m)
{
    struct stream *s = table_id(w->e, m->id);
    struct stream_listed listed;
    bool live;
    bool born = s && look_into(w, s, &listed, &live);
    int code = 0;
    if (born) {
        code = pass(w, listed.name, live ? &listed : NULL);
    } else if (atomic_load(&w->e->checkpoints) == w->checkpoints) {
        code = look_at_meta(w, m);
    } else {
        w->stale = true;
        code = LIST_ENOUGH;
    }
    stream_unref(s);
    return code;
}

static int visit(void *context, const struct stream_meta *m)
{
    struct lister *w = context;
    int code = look_at_fresh(w, &m->name, false);
    if (code != 0) {
        return code;
    }
    if (!may_look(w)) {
        return LIST_ENOUGH;
    }
    /* One of the same name that is fresh is the same, or came after it went. */
    size_t before = w->fresh_at;
    code = look_at_fresh(w, &m->name, true);
    return code != 0 || w->fresh_at > before ? code : look_at_stored(w, m);
}

/* One reading of the catalog. */
static int list_once(struct lister *w)
{
    w->stale = false;
    w->checkpoints = atomic_load(&w->e->checkpoints);
    int code = take_fresh(w);
    if (code == 0) {
        struct store *store = w->e->store;
        code = store->ops->list(store, w->query->prefix, w->end->last, SIZE_MAX, visit, w);
    }
    code = code == LIST_ENOUGH ? 0 : code; /* the walk may have made a 0 of it itself */
    if (code == 0 && !w->stale) {
        code = look_at_fresh(w, NULL, true);
    }
    drop_fresh(w);
    return code;
}

int engine_list(struct engine *e, const struct engine_list_query *query, engine_list_fn each,
                void *context, struct engine_list_end *ret_end)
{
    struct lister w = {.e = e,
                       .query = query,
                       .each = each,
                       .context = context,
                       .end = ret_end,
                       .now_ms = engine_now_ms(e),
                       .limit = query->limit < LIST_SHOWN_MAX ? query->limit : LIST_SHOWN_MAX};
    assert(query->limit > 0);
    if (query->after.len > sizeof(ret_end->bytes)) {
        return ERR_INVALID;
    }
    /* `after` may be where the list before ended, in these very bytes. */
    memmove(ret_end->bytes, query->after.ptr ? query->after.ptr : "", query->after.len);
    ret_end->last = (struct slice){ret_end->bytes, query->after.len};
    int code;
    do {
        code = list_once(&w);
    } while (code == 0 && w.stale);
    ret_end->more = code == 0 && w.stopped;
    return code;
}
