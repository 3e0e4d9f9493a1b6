/* What streams do, and what it means to subscriptions: links grow, are found by patterns, and go.
 *
 * Nothing depends on every piece of news being told: a link's tail only rises, a stream that is
 * missed shows in a listing, and ids tell an old stream from the next one of its name. So where
 * memory or room is out, all streams are listed. */
#include <assert.h>
#include <stdlib.h>

#include "base/limits.h"
#include "stream/subscription_core.h"

#define WALK_PAGE 1000u

/* A copy of what is told, about the stream of that name. */
static struct news *news_create(struct slice name, const struct news *told)
{
    struct news *n = malloc(sizeof(*n) + name.len);
    if (n) {
        *n = *told;
        n->gone = told->dropped ? told->id : told->gone;
        n->name_len = (uint16_t)name.len;
        memcpy(n->name, name.ptr, name.len);
        list_init(&n->link);
    }
    return n;
}

static struct slice news_name(const struct news *n)
{
    return (struct slice){n->name, n->name_len};
}

void news_drop_all(struct list *list)
{
    struct list *first;
    while ((first = list_first(list)) != NULL) {
        list_remove(first);
        free(container_of(first, struct news, link));
    }
}

/* Under the lock. */
static struct news *queued(struct subscriptions *s, struct slice name, uint64_t hash)
{
    struct map_node *node = map_find(&s->news_by_name, hash);
    for (; node; node = map_find_next(node)) {
        struct news *n = container_of(node, struct news, by_name);
        if (slice_equal(news_name(n), name)) {
            return n;
        }
    }
    return NULL;
}

/* A greater id: the older stream of that name is gone, whether that was told or not. */
static void merge(struct news *n, const struct news *told)
{
    if (told->id < n->id) {
        return;
    }
    if (told->id > n->id) {
        n->gone = n->id;
        n->id = told->id;
        n->tail = 0;
        n->dropped = false;
        n->forked = true;
    }
    n->gone = told->dropped ? told->id : n->gone;
    n->tail = told->tail > n->tail ? told->tail : n->tail;
    n->dropped = n->dropped || told->dropped;
    n->forked = n->forked && told->forked;
}

static bool enqueue(struct subscriptions *s, struct news *n, uint64_t hash)
{
    if (!n || s->news_count >= SUBSCRIPTION_GREW_MAX ||
        map_insert(&s->news_by_name, &n->by_name, hash) < 0) {
        return false;
    }
    list_append(&s->news, &n->link);
    s->news_count++;
    return true;
}

static void queue(struct subscriptions *s, struct slice name, const struct news *told)
{
    uint64_t hash = slice_hash(name, s->seed);
    pthread_mutex_lock(&s->lock);
    struct news *n = queued(s, name, hash);
    if (n) {
        merge(n, told);
    } else {
        n = news_create(name, told);
        if (!enqueue(s, n, hash)) {
            free(n);
            s->missed = true;
        }
        if (s->asleep) {
            pthread_cond_signal(&s->wake);
        }
    }
    pthread_mutex_unlock(&s->lock);
}

bool core_matches(const struct subscriptions *s, struct slice name)
{
    return !core_is_reserved(s, name) && subscription_index_matches(s->index, name);
}

static bool on_matches(void *context, struct slice name)
{
    return core_matches(context, name);
}

static void on_grew(void *context, struct slice name, uint64_t id, uint64_t tail)
{
    const struct news told = {.id = id, .tail = tail};
    queue(context, name, &told);
}

static void on_dropped(void *context, struct slice name, uint64_t id)
{
    const struct news told = {.id = id, .dropped = true};
    queue(context, name, &told);
}

static void on_made(void *context, struct slice name, uint64_t id, uint64_t tail)
{
    const struct news told = {.id = id, .tail = tail, .forked = true};
    queue(context, name, &told);
}

void news_observe(struct subscriptions *s)
{
    const struct engine_observer observer = {
        .context = s,
        .matches = on_matches,
        .grew = on_grew,
        .dropped = on_dropped,
        .made = on_made,
    };
    engine_observe(s->config.engine, &observer);
}

static void on_hit(void *context, struct index_entry *entry)
{
    struct subscriptions *s = context;
    if (s->hit_count == s->hit_cap) {
        size_t cap = s->hit_cap ? 2 * s->hit_cap : 16;
        struct subscription **hits = realloc(s->hits, cap * sizeof(struct subscription *));
        if (!hits) {
            s->hits_failed = true;
            return;
        }
        s->hits = hits;
        s->hit_cap = cap;
    }
    s->hits[s->hit_count++] = entry->is_pattern
                                  ? container_of(entry, struct subscription, entry)
                                  : container_of(entry, struct subscription_name, entry)->owner;
}

bool core_look_up(struct subscriptions *s, struct slice name)
{
    s->hit_count = 0;
    s->hits_failed = false;
    subscription_index_each(s->index, name, on_hit, s);
    return !s->hits_failed;
}

/* Until it is known where the cursors of new links are to stand, news have to wait. */
static void hold(struct subscription *sub, const struct news *n)
{
    struct news *copy = NULL;
    if (sub->held_count < SUBSCRIPTION_LINKS_MAX) {
        copy = news_create(news_name(n), n);
    }
    if (!copy) {
        sub->missed = true;
        return;
    }
    list_append(&sub->held, &copy->link);
    sub->held_count++;
}

static void drop_link(struct subscriptions *s, struct subscription_link *l)
{
    core_unindex(s, l);
    subscription_drop(l);
}

/* Room for one more link that nobody asked for by name. */
static bool has_room(struct subscriptions *s, struct subscription *sub, struct slice path)
{
    if (sub->link_count < SUBSCRIPTION_LINKS_MAX &&
        atomic_load(&s->counts.links) + s->linking_links < SUBSCRIPTION_LINKS_ALL_MAX) {
        return true;
    }
    atomic_fetch_add(&s->counts.links_refused, 1);
    if (!sub->full_told) {
        sub->full_told = true;
        core_trouble(s,
                     "the subscription %.*s follows %zu streams, and no more are possible: it is "
                     "not woken for %.*s and others",
                     (int)sub->id.len, sub->id.ptr, sub->link_count, (int)path.len, path.ptr);
    }
    return false;
}

/* The pattern found the stream by something that was appended: all of it is pending, unless it is a
 * wake event. With other bytes before that the stream would have been found by those; it was not,
 * for want of room. */
static struct subscription_link *find_by_pattern(struct subscriptions *s, struct subscription *sub,
                                                 struct subscription_link *l, const struct news *n)
{
    struct slice path = news_name(n);
    bool behind_others = n->quiet && n->quiet_start > 0;
    if (n->tail == 0 || n->forked || behind_others || !subscription_globs(sub, path) ||
        !has_room(s, sub, path)) {
        return NULL;
    }
    if (l) {
        subscription_revive(l, n->id, SUBSCRIPTION_START);
        return l;
    }
    l = subscription_link_create(sub, path, SUBSCRIPTION_START);
    if (!l || subscription_attach(l) < 0) {
        subscription_link_destroy(l);
        sub->missed = true;
        return NULL;
    }
    l->stream = n->id;
    l->walk = s->walk.number;
    return l;
}

/* What a fork inherited wakes nobody, nor does a wake event of ours: who has seen everything before
 * it has seen everything still, and may yet acknowledge it. Who has not will be told by what is
 * pending anyway. */
static void lengthen(struct subscription_link *l, const struct news *n)
{
    bool silent = n->forked || (n->quiet && l->tail == n->quiet_start);
    bool pending = subscription_link_pending(l);
    l->tail = n->tail > l->tail ? n->tail : l->tail;
    if (silent && !pending && subscription_link_pending(l)) {
        l->skip = l->tail;
        subscription_soil(l);
    }
}

static void tell(struct subscriptions *s, struct subscription *sub, const struct news *n)
{
    struct subscription_link *l = subscription_find(sub, news_name(n));
    if (l && !l->dropped && l->stream != 0 && l->stream != n->id) {
        if (n->id < l->stream) {
            return; /* of the stream before this one */
        }
        drop_link(s, l);
    }
    bool linked = l && !l->dropped;
    if (n->dropped) {
        /* A link by name that waits for its stream was made when the one before was gone. */
        if (linked && l->stream != 0) {
            drop_link(s, l);
        }
        return;
    }
    if (!linked) {
        l = find_by_pattern(s, sub, l, n);
        if (!l) {
            return;
        }
    }
    if (l->stream == 0) {
        l->stream = n->id; /* named before there was one */
        subscription_soil(l);
    }
    lengthen(l, n);
    l->walk = s->walk.number;
    subscription_refresh(l);
}

/* The stream that its events could not be written to may be another one now. */
static void tell_wake_stream(struct subscription *sub, const struct news *n)
{
    bool own = sub->def.type == SUBSCRIPTION_PULL_WAKE &&
               slice_equal(sub->def.target, news_name(n));
    if (own && !n->dropped && !n->quiet && sub->event_failures > 0) {
        sub->retry_due_ms = 0;
    }
}

static void tell_one(struct subscriptions *s, struct subscription *sub, const struct news *n)
{
    if (sub->linking) {
        hold(sub, n);
    } else if (sub->exists) {
        tell(s, sub, n);
        core_count(s, sub);
        tell_wake_stream(sub, n);
        core_ready(s, sub);
    }
    if (sub->missed && !sub->linking) {
        sub->missed = false;
        walk_begin(s);
    }
}

static void tell_all(struct subscriptions *s, const struct news *n)
{
    if (!core_look_up(s, news_name(n))) {
        walk_begin(s);
    }
    for (size_t i = 0; i < s->hit_count; i++) {
        tell_one(s, s->hits[i], n);
    }
}

/* What a listing under way has found may be told later: it must not bring back what is gone. */
static void remember_gone(struct subscriptions *s, struct news *n)
{
    uint64_t hash = slice_hash(news_name(n), s->seed);
    if (map_insert(&s->walk.gone, &n->by_name, hash) < 0) {
        free(n);
        walk_begin(s);
    }
}

static bool is_gone(const struct subscriptions *s, const struct news *found)
{
    uint64_t hash = slice_hash(news_name(found), s->seed);
    struct map_node *node = map_find(&s->walk.gone, hash);
    for (; node; node = map_find_next(node)) {
        const struct news *n = container_of(node, struct news, by_name);
        if (slice_equal(news_name(n), news_name(found)) && found->id <= n->gone) {
            return true;
        }
    }
    return false;
}

void walk_forget_gone(struct subscriptions *s)
{
    struct map_node *node;
    while ((node = map_next(&s->walk.gone, NULL)) != NULL) {
        map_remove(&s->walk.gone, node);
        free(container_of(node, struct news, by_name));
    }
}

void news_tell(struct subscriptions *s, struct news *news)
{
    tell_all(s, news);
    if (news->gone != 0 && s->walk.active) {
        remember_gone(s, news);
    } else {
        free(news);
    }
}

void news_release(struct subscriptions *s, struct subscription *sub)
{
    assert(!sub->linking);
    struct list *first;
    while ((first = list_first(&sub->held)) != NULL) {
        struct news *n = container_of(first, struct news, link);
        list_remove(first);
        tell_one(s, sub, n);
        free(n);
    }
    sub->held_count = 0;
    if (sub->missed) {
        sub->missed = false;
        walk_begin(s);
    }
}

void news_quiet(struct subscriptions *s, struct slice name, stream_id id, uint64_t start,
                uint64_t end)
{
    const struct news told = {.id = id, .tail = end, .quiet = true, .quiet_start = start};
    struct news *n = news_create(name, &told);
    if (n) {
        news_tell(s, n);
    } /* else: who hears of what comes next is told of the event as well */
}

/* On the pool: what is not looked up stays short. */
static int on_listed(void *context, const struct stream_listed *listed)
{
    struct subscriptions *s = context;
    if (!core_matches(s, listed->name)) {
        return 0;
    }
    const struct news told = {
        .id = listed->id,
        .tail = listed->next,
        .forked = listed->fork && listed->next == listed->fork_offset,
    };
    struct news *n = news_create(listed->name, &told);
    if (!n) {
        return ERR_NOMEM;
    }
    list_append(&s->walk.news, &n->link);
    return 0;
}

static void list_page(struct subscriptions *s)
{
    struct walk *w = &s->walk;
    const struct engine_list_query query = {
        .after = {w->after, w->after_len},
        .limit = WALK_PAGE,
    };
    w->end = (struct engine_list_end){0};
    w->code = engine_list(s->config.engine, &query, on_listed, s, &w->end);
}

static void tell_page(struct subscriptions *s)
{
    struct walk *w = &s->walk;
    struct list *first;
    while ((first = list_first(&w->news)) != NULL) {
        struct news *n = container_of(first, struct news, link);
        list_remove(first);
        if (is_gone(s, n)) {
            free(n);
        } else {
            news_tell(s, n);
        }
    }
    walk_forget_gone(s);
    if (w->code == 0 && w->end.more) {
        memcpy(w->after, w->end.last.ptr, w->end.last.len);
        w->after_len = w->end.last.len;
    }
}

/* Links that the listing did not find are of streams that are gone. */
static void drop_unseen(struct subscriptions *s, struct subscription *sub)
{
    if (sub->linking) {
        sub->missed = true; /* its links are being made: the next listing looks at them */
        return;
    }
    if (!sub->exists) {
        return;
    }
    LIST_FOR_EACH(node, &sub->links)
    {
        struct subscription_link *l = container_of(node, struct subscription_link, link);
        if (!l->dropped && l->stream != 0 && l->walk != s->walk.number) {
            drop_link(s, l);
        }
    }
    core_count(s, sub);
    core_ready(s, sub);
}

static void walk_ended(struct subscriptions *s)
{
    s->walk.active = false;
    if (s->walk.code < 0 || s->walk.end.more) {
        walk_begin(s); /* cut short: what lies behind was not looked at */
    }
    if (s->walk.code < 0) {
        job_hold(s);
    }
    if (s->walk.incomplete) {
        return; /* what it found did not reach every link: the next one knows what is gone */
    }
    struct map_node *node = NULL;
    while ((node = map_next(&s->by_id, node)) != NULL) {
        drop_unseen(s, container_of(node, struct subscription, by_id));
    }
}

static void walk_page(struct task *task);

static void walk_paged(struct task *task)
{
    struct subscriptions *s = container_of(task, struct subscriptions, walk.task);
    tell_page(s);
    if (s->walk.code < 0 || !s->walk.end.more || atomic_load(&s->stopping)) {
        walk_ended(s);
        return;
    }
    task->run = walk_page;
    pool_submit(s->config.pool, task);
}

static void walk_page(struct task *task)
{
    struct subscriptions *s = container_of(task, struct subscriptions, walk.task);
    list_page(s);
    task->run = walk_paged;
    core_post(s, task);
}

static void start(struct subscriptions *s)
{
    s->walk.wanted = false;
    s->walk.incomplete = false;
    s->walk.after_len = 0;
    s->walk.number++;
}

void walk_begin(struct subscriptions *s)
{
    s->walk.wanted = true;
    s->walk.incomplete = true;
}

void walk_go(struct subscriptions *s)
{
    if (!s->walk.wanted || s->walk.active || atomic_load(&s->stopping) ||
        core_mono_ms(s) < s->hold_until_ms) {
        return;
    }
    start(s);
    s->walk.active = true;
    s->walk.task.run = walk_page;
    pool_submit(s->config.pool, &s->walk.task);
}

int walk_run(struct subscriptions *s, struct errmsg *msg)
{
    if (atomic_load(&s->counts.subscriptions) == 0) {
        return 0;
    }
    start(s);
    do {
        list_page(s);
        tell_page(s);
    } while (s->walk.code == 0 && s->walk.end.more);
    if (s->walk.code < 0) {
        return err_set(msg, s->walk.code, "streams could not be listed: %s",
                       err_text(s->walk.code));
    }
    walk_ended(s);
    return 0;
}
