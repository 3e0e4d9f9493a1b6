/* The service: its thread, its queues, and who gets attention next. */
#include "stream/subscriptions.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "stream/subscription_core.h"

void core_post(void *context, struct task *task)
{
    struct subscriptions *s = context;
    pthread_mutex_lock(&s->lock);
    list_append(&s->tasks, &task->link);
    if (s->asleep) {
        pthread_cond_signal(&s->wake);
    }
    pthread_mutex_unlock(&s->lock);
}

void core_ready(struct subscriptions *s, struct subscription *sub)
{
    if (list_empty(&sub->ready_link)) {
        list_append(&s->ready, &sub->ready_link);
    }
}

void core_ready_first(struct subscriptions *s, struct subscription *sub)
{
    list_remove(&sub->ready_link);
    list_append(s->ready.next, &sub->ready_link);
}

static uint64_t id_hash(const struct subscriptions *s, struct slice id)
{
    return slice_hash(id, s->seed);
}

struct subscription *core_find(const struct subscriptions *s, struct slice id)
{
    struct map_node *node = map_find(&s->by_id, id_hash(s, id));
    for (; node; node = map_find_next(node)) {
        struct subscription *sub = container_of(node, struct subscription, by_id);
        if (slice_equal(sub->id, id)) {
            return sub;
        }
    }
    return NULL;
}

struct subscription *core_obtain(struct subscriptions *s, struct slice id)
{
    struct subscription *sub = core_find(s, id);
    if (sub) {
        return sub;
    }
    if (timer_reserve(s) < 0) {
        return NULL;
    }
    sub = subscription_create(id);
    if (sub && map_insert(&s->by_id, &sub->by_id, id_hash(s, id)) < 0) {
        subscription_destroy(sub);
        return NULL;
    }
    return sub;
}

static bool is_busy(const struct subscription *sub)
{
    return sub->change || sub->linking || sub->calls > 0 || sub->looks > 0 || sub->event_active ||
           !list_empty(&sub->ops);
}

void core_forget(struct subscriptions *s, struct subscription *sub)
{
    if (sub->exists || sub->state.generation > 0 || is_busy(sub)) {
        return;
    }
    assert(list_empty(&sub->links));
    timer_set(s, sub, UINT64_MAX);
    news_drop_all(&sub->held);
    list_remove(&sub->ready_link);
    list_remove(&sub->call_link);
    map_remove(&s->by_id, &sub->by_id);
    subscription_destroy(sub);
}

int core_index(struct subscriptions *s, struct subscription *sub)
{
    const struct subscription_definition *def = &sub->def;
    int code = 0;
    if (def->pattern.len > 0) {
        code = subscription_index_add_pattern(s->index, &sub->entry, def->pattern);
    }
    if (code == 0 && def->type == SUBSCRIPTION_PULL_WAKE) {
        code = subscription_index_add_name(s->index, &sub->wake_stream.entry, def->target);
    }
    return code;
}

void core_forget_names(struct subscriptions *s, struct subscription *sub)
{
    subscription_index_remove(s->index, &sub->entry);
    subscription_index_remove(s->index, &sub->wake_stream.entry);
    engine_observer_changed(s->config.engine);
}

void core_unindex(struct subscriptions *s, struct subscription_link *l)
{
    if (l->name.entry.node) {
        subscription_index_remove(s->index, &l->name.entry);
        engine_observer_changed(s->config.engine);
    }
}

void core_trouble(struct subscriptions *s, const char *format, ...)
{
    if (!s->config.trouble) {
        return;
    }
    char sentence[512];
    va_list args;
    va_start(args, format);
    (void)vsnprintf(sentence, sizeof(sentence), format, args); /* cut is well */
    va_end(args);
    s->config.trouble(s->config.context, sentence);
}

void core_count(struct subscriptions *s, struct subscription *sub)
{
    size_t links = sub->exists ? sub->link_count : 0;
    bool leased = sub->exists && sub->state.phase == SUBSCRIPTION_LEASED;
    atomic_fetch_add(&s->counts.links, links - sub->links_counted);
    atomic_fetch_add(&s->counts.leases, (uint64_t)leased - (uint64_t)sub->lease_counted);
    sub->links_counted = links;
    sub->lease_counted = leased;
}

static struct subscription_op *next_op(struct subscription *sub)
{
    struct list *first = list_first(&sub->ops);
    if (!first) {
        return NULL;
    }
    list_remove(first);
    return container_of(first, struct subscription_op, link);
}

/* What was delivered and done is still kept while the server stops. */
static bool may_change(const struct subscriptions *s, const struct subscription *sub)
{
    return core_mono_ms(s) >= s->hold_until_ms &&
           (!atomic_load(&s->stopping) || sub->result_generation != 0);
}

/* See the head of subscription_core.h. */
static void attend(struct subscriptions *s, struct subscription *sub)
{
    while (!sub->change && !sub->linking) {
        if (sub->exists && may_change(s, sub) && wake_change(s, sub)) {
            break;
        }
        struct subscription_op *op = next_op(sub);
        if (!op) {
            break;
        }
        ops_run(s, sub, op);
    }
    wake_act(s, sub);
    if (!sub->exists) {
        core_forget(s, sub);
    }
}

static bool attend_all(struct subscriptions *s)
{
    struct list *first;
    bool any = false;
    while (s->notes < SUBSCRIPTION_NOTES_MAX && (first = list_first(&s->ready)) != NULL) {
        list_remove(first);
        attend(s, container_of(first, struct subscription, ready_link));
        any = true;
    }
    return any;
}

static void fire_timers(struct subscriptions *s)
{
    uint64_t now = core_mono_ms(s);
    struct subscription *sub;
    while ((sub = timer_first(s)) != NULL && sub->due_ms <= now) {
        timer_set(s, sub, UINT64_MAX);
        core_ready(s, sub);
    }
}

/* Takes what has come. News first: whoever acknowledges bytes has seen them, so they have been
 * told of before the operation came. */
static bool take(struct subscriptions *s, struct list *news, struct list *tasks)
{
    pthread_mutex_lock(&s->lock);
    list_append_all(news, &s->news);
    map_finish(&s->news_by_name);
    s->news_count = 0;
    list_append_all(tasks, &s->tasks);
    bool missed = s->missed;
    s->missed = false;
    pthread_mutex_unlock(&s->lock);
    if (missed) {
        walk_begin(s);
    }
    return missed || !list_empty(news) || !list_empty(tasks);
}

static bool run_queues(struct subscriptions *s)
{
    struct list news;
    struct list tasks;
    list_init(&news);
    list_init(&tasks);
    bool any = take(s, &news, &tasks);
    struct list *first;
    while ((first = list_first(&news)) != NULL) {
        list_remove(first);
        news_tell(s, container_of(first, struct news, link));
    }
    while ((first = list_first(&tasks)) != NULL) {
        struct task *task = container_of(first, struct task, link);
        list_remove(first);
        task->run(task);
    }
    return any;
}

#define TOMBSTONE_SWEEP_MS (10u * 60u * 1000u)

/* The tokens of a tombstone that is older than this have long expired. */
static bool is_old(const struct subscriptions *s, const struct subscription *sub)
{
    return core_now_ms(s) - sub->created_ms > SUBSCRIPTION_TOMBSTONE_MS;
}

/* Forgets old tombstones. */
static void sweep(struct subscriptions *s)
{
    s->sweep_due_ms = core_mono_ms(s) + TOMBSTONE_SWEEP_MS;
    struct map_node *next;
    for (struct map_node *node = map_next(&s->by_id, NULL); node; node = next) {
        next = map_next(&s->by_id, node);
        struct subscription *sub = container_of(node, struct subscription, by_id);
        if (!sub->exists && sub->state.generation > 0 && !is_busy(sub) && is_old(s, sub)) {
            garbage_add(s, 0, sub->id);
            sub->state.generation = 0;
            atomic_fetch_sub(&s->counts.tombstones, 1);
            core_forget(s, sub);
        }
    }
}

static bool is_idle(const struct subscriptions *s)
{
    return s->notes == 0 && s->calls_active == 0 && s->events == 0 && s->linkings == 0 &&
           !s->walk.active && !s->garbage_active && atomic_load(&s->counts.ops) == 0;
}

static uint64_t next_due(const struct subscriptions *s)
{
    struct subscription *first = timer_first(s);
    uint64_t due = first ? first->due_ms : UINT64_MAX;
    bool waits = (!list_empty(&s->garbage) && !s->garbage_active) ||
                 (s->walk.wanted && !s->walk.active);
    if (waits && !atomic_load(&s->stopping) && s->hold_until_ms < due) {
        due = s->hold_until_ms;
    }
    return due < s->sweep_due_ms ? due : s->sweep_due_ms;
}

uint64_t subscriptions_step(struct subscriptions *s)
{
    bool more = true;
    while (more) {
        more = run_queues(s);
        fire_timers(s);
        more = attend_all(s) || more;
        garbage_burn(s);
        walk_go(s);
    }
    if (core_mono_ms(s) >= s->sweep_due_ms) {
        sweep(s);
    }
    atomic_store(&s->idle, is_idle(s));
    return next_due(s);
}

/* Waits until something comes or `due_ms`. False: it is time to end. */
static bool wait(struct subscriptions *s, uint64_t due_ms)
{
    struct timespec until = {
        .tv_sec = (time_t)(due_ms / 1000),
        .tv_nsec = (long)(due_ms % 1000 * 1000000),
    };
    int code = 0;
    pthread_mutex_lock(&s->lock);
    s->asleep = true;
    bool end = s->quit && atomic_load(&s->idle);
    while (!end && code == 0 && list_empty(&s->tasks) && list_empty(&s->news) && !s->missed) {
        code = pthread_cond_timedwait(&s->wake, &s->lock, &until);
        end = s->quit && atomic_load(&s->idle);
    }
    s->asleep = false;
    end = end && list_empty(&s->tasks);
    pthread_mutex_unlock(&s->lock);
    return !end;
}

static void *thread_main(void *context)
{
    struct subscriptions *s = context;
    uint64_t due_ms;
    do {
        due_ms = subscriptions_step(s);
    } while (wait(s, due_ms));
    return NULL;
}

static struct subscriptions *create(const struct subscriptions_config *config)
{
    struct subscriptions *s = calloc(1, sizeof(*s));
    if (!s) {
        return NULL;
    }
    pthread_condattr_t attr;
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_mutex_init(&s->lock, NULL);
    pthread_cond_init(&s->wake, &attr);
    pthread_condattr_destroy(&attr);
    s->config = *config;
    config->sys->random(config->sys->context, &s->seed, sizeof(s->seed));
    struct list *lists[] = {&s->tasks,   &s->news,    &s->ready,    &s->calls,
                            &s->garbage, &s->burning, &s->walk.news};
    for (size_t i = 0; i < ARRAY_COUNT(lists); i++) {
        list_init(lists[i]);
    }
    map_init(&s->news_by_name);
    map_init(&s->walk.gone);
    map_init(&s->by_id);
    s->next_number = 1;
    s->base_url = strdup(config->base_url);
    s->index = subscription_index_create(s->seed);
    s->config.base_url = s->base_url;
    return s;
}

static void drop_garbage(struct list *list)
{
    struct list *first;
    while ((first = list_first(list)) != NULL) {
        list_remove(first);
        free(container_of(first, struct garbage, link));
    }
}

static void destroy(struct subscriptions *s)
{
    struct map_node *node;
    while ((node = map_next(&s->by_id, NULL)) != NULL) {
        struct subscription *sub = container_of(node, struct subscription, by_id);
        map_remove(&s->by_id, node);
        if (s->index) {
            subscription_index_remove(s->index, &sub->entry);
            subscription_index_remove(s->index, &sub->wake_stream.entry);
            LIST_FOR_EACH(each, &sub->links)
            {
                struct subscription_link *l = container_of(each, struct subscription_link, link);
                subscription_index_remove(s->index, &l->name.entry);
            }
        }
        news_drop_all(&sub->held);
        subscription_destroy(sub);
    }
    map_finish(&s->by_id);
    news_drop_all(&s->news);
    news_drop_all(&s->walk.news);
    walk_forget_gone(s);
    map_finish(&s->walk.gone);
    map_finish(&s->news_by_name);
    drop_garbage(&s->garbage);
    drop_garbage(&s->burning);
    buf_finish(&s->garbage_batch);
    subscription_index_destroy(s->index);
    free(s->timers);
    free(s->hits);
    free(s->base_url);
    pthread_cond_destroy(&s->wake);
    pthread_mutex_destroy(&s->lock);
    free(s);
}

int subscriptions_open_stepped(const struct subscriptions_config *config,
                               struct subscriptions **ret_s, struct errmsg *msg)
{
    struct subscriptions *s = create(config);
    if (!s || !s->base_url || !s->index) {
        if (s) {
            destroy(s);
        }
        return err_set(msg, ERR_NOMEM, "%s", err_text(ERR_NOMEM));
    }
    int code = load_notes(s, msg);
    if (code < 0) {
        goto fail;
    }
    code = engine_attach(config->engine, core_post, s, &s->worker);
    if (code < 0) {
        (void)err_set(msg, code, "%s", err_text(code));
        goto fail;
    }
    news_observe(s);
    code = walk_run(s, msg);
    if (code < 0) {
        engine_observe(config->engine, NULL);
        engine_detach(s->worker);
        goto fail;
    }
    sweep(s);
    *ret_s = s;
    return 0;

fail:
    destroy(s);
    return code;
}

int subscriptions_open(const struct subscriptions_config *config, struct subscriptions **ret_s,
                       struct errmsg *msg)
{
    struct subscriptions *s = NULL;
    int code = subscriptions_open_stepped(config, &s, msg);
    if (code < 0) {
        return code;
    }
    if (pthread_create(&s->thread, NULL, thread_main, s) != 0) {
        subscriptions_close(s);
        return err_set(msg, ERR_AGAIN, "the thread of the subscriptions could not be started");
    }
    s->threaded = true;
    *ret_s = s;
    return 0;
}

/* Has the thread look at itself. */
static void nudge(struct subscriptions *s, bool quit)
{
    pthread_mutex_lock(&s->lock);
    s->quit = s->quit || quit;
    pthread_cond_signal(&s->wake);
    pthread_mutex_unlock(&s->lock);
}

void subscriptions_stop(struct subscriptions *s)
{
    atomic_store(&s->stopping, true);
    nudge(s, false);
}

bool subscriptions_stopped(const struct subscriptions *s)
{
    return atomic_load(&s->stopping) && atomic_load(&s->idle);
}

void subscriptions_close(struct subscriptions *s)
{
    if (!s) {
        return;
    }
    subscriptions_stop(s);
    if (s->threaded) {
        nudge(s, true);
        pthread_join(s->thread, NULL);
    }
    engine_observe(s->config.engine, NULL);
    assert(is_idle(s));
    engine_detach(s->worker);
    destroy(s);
}

void subscriptions_get_stats(const struct subscriptions *s, struct subscriptions_stats *ret_stats)
{
    const struct subscription_counts *c = &s->counts;
    *ret_stats = (struct subscriptions_stats){
        .subscriptions = atomic_load(&c->subscriptions),
        .tombstones = atomic_load(&c->tombstones),
        .links = atomic_load(&c->links),
        .leases = atomic_load(&c->leases),
        .queue = atomic_load(&c->ops),
        .deliveries_active = atomic_load(&c->calls),
        .deliveries_waiting = atomic_load(&c->calls_waiting),
        .wakes = atomic_load(&c->wakes),
        .deliveries_ok = atomic_load(&c->calls_ok),
        .deliveries_failed = atomic_load(&c->calls_failed),
        .deliveries_lost = atomic_load(&c->calls_lost),
        .events_written = atomic_load(&c->events_written),
        .events_failed = atomic_load(&c->events_failed),
        .leases_expired = atomic_load(&c->leases_expired),
        .links_refused = atomic_load(&c->links_refused),
    };
}
