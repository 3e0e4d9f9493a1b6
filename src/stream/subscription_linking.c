/* Linking streams by a request: their tails are asked for, one after the other, and for a pattern
 * all streams are listed; then everything becomes so in one change. Meanwhile whatever happens to
 * the streams is held back: first the index knows of the new links, then the tails are read, so
 * nothing is missed in between. */
#include <assert.h>
#include <stdlib.h>

#include "base/limits.h"
#include "stream/glob.h"
#include "stream/subscription_core.h"

#define LISTING_PAGE 1000u

/* A stream that the pattern matches. */
struct match {
    struct list link;
    stream_id stream;
    uint64_t tail;
    uint16_t path_len; /* bytes of `path` */
    char path[];
};

struct linking {
    struct subscriptions *owner;
    struct subscription *sub;
    struct subscription_op *op; /* NULL once it is answered */
    struct subscription_job *job;
    const struct slice *paths; /* of the request */
    size_t path_count;
    size_t path_index; /* the next one whose tail is asked for */
    size_t fresh;      /* new links */
    uint32_t walk;     /* the newest listing when it began; what it finds may be gone by the next */
    struct stream_op head;
    uint64_t old_number;    /* of the subscription, if it is not created after all */
    int64_t old_created_ms; /* likewise */

    struct task task; /* lists a page, on the pool */
    char prefix[GLOB_BYTES_MAX];
    size_t prefix_len;
    struct engine_list_end end;
    char after[STREAM_NAME_BYTES_MAX];
    size_t after_len;
    struct list matches; /* struct match */
    size_t match_count;
    int code; /* of the listing */
};

static void drop_matches(struct linking *k)
{
    struct list *first;
    while ((first = list_first(&k->matches)) != NULL) {
        list_remove(first);
        free(container_of(first, struct match, link));
    }
}

/* Takes back what was made for a change that did not happen. */
static void undo(struct linking *k)
{
    struct subscription *sub = k->sub;
    LIST_FOR_EACH(node, &sub->links)
    {
        struct subscription_link *l = container_of(node, struct subscription_link, link);
        if (l->dropped || !l->is_explicit) {
            core_unindex(k->owner, l);
        }
        if (l->dropped && !l->saved) {
            subscription_detach(l);
        }
    }
    if (!sub->exists) {
        core_forget_names(k->owner, sub);
        free(sub->def.memory);
        sub->def = (struct subscription_definition){0};
        sub->number = k->old_number;
        sub->created_ms = k->old_created_ms;
    }
}

/* The subscription goes on, whatever came of it. */
static void end(struct linking *k)
{
    struct subscriptions *s = k->owner;
    struct subscription *sub = k->sub;
    sub->linking = NULL;
    s->linkings--;
    s->linking_links -= k->fresh;
    news_release(s, sub);
    core_ready(s, sub);
    drop_matches(k);
    free(k);
}

static void written(struct subscription_job *job, int code)
{
    struct linking *k = job->context;
    if (code < 0) {
        undo(k);
    }
    if (!k->op) {
        /* Refused, and answered. */
    } else if (code < 0) {
        ops_fail(k->op, code);
    } else if (k->op->verb == SUBSCRIPTION_PUT) {
        ops_show(k->owner, k->sub, k->op, 201);
    } else {
        ops_answer(k->op, 204);
    }
    end(k);
}

/* More streams than one subscription, or all of them, may follow. */
static void refuse_full(struct linking *k)
{
    ops_refuse(k->op, SUBSCRIPTION_ERROR_LIMIT_REACHED,
               "a subscription follows at most %u streams, and all together at most %u: use a "
               "narrower pattern, or several subscriptions",
               SUBSCRIPTION_LINKS_MAX, SUBSCRIPTION_LINKS_ALL_MAX);
    k->op = NULL;
    job_cancel(k->job, ERR_LIMIT);
}

static bool is_full(const struct linking *k)
{
    return k->sub->link_count + k->fresh > SUBSCRIPTION_LINKS_MAX ||
           atomic_load(&k->owner->counts.links) + k->owner->linking_links >
               SUBSCRIPTION_LINKS_ALL_MAX;
}

/* A link to that path, which counts once it is committed; the one there is, if there is one. NULL
 * when memory is out. */
static struct subscription_link *prepare_link(struct linking *k, struct slice path)
{
    struct subscription_link *l = subscription_find(k->sub, path);
    if (!l) {
        l = subscription_link_create(k->sub, path, 0);
        if (!l) {
            return NULL;
        }
        l->dropped = true;
        if (subscription_attach(l) < 0) {
            subscription_link_destroy(l);
            return NULL;
        }
    }
    k->fresh += l->dropped;
    k->owner->linking_links += l->dropped;
    return l;
}

static int prepare_name(struct linking *k, struct slice path)
{
    struct subscription_link *l = prepare_link(k, path);
    if (!l) {
        return ERR_NOMEM;
    }
    if (l->is_explicit && !l->dropped) {
        return 0;
    }
    int code = subscription_index_add_name(k->owner->index, &l->name.entry, path);
    if (code == 0 && !l->dropped) {
        /* Found by the pattern before: the cursor stays. */
        const struct subscription_edit edit = {
            .link = l, .stream = l->stream, .acked = l->acked, .is_explicit = true};
        subscription_change_edit(&k->job->change, &edit);
    }
    return code;
}

static int prepare(struct linking *k)
{
    int code = k->sub->exists ? 0 : core_index(k->owner, k->sub);
    for (size_t i = 0; i < k->path_count && code == 0; i++) {
        code = prepare_name(k, k->paths[i]);
    }
    engine_observer_changed(k->owner->config.engine);
    return code;
}

/* A stream that does not exist has the tail zero: all that comes is pending. False: it ended. */
static bool take_tail(struct linking *k)
{
    int code = k->head.result.code;
    if (code < 0 && code != ERR_NOTFOUND && code != ERR_GONE) {
        job_cancel(k->job, code);
        return false;
    }
    struct subscription_link *l = subscription_find(k->sub, k->head.name);
    const struct subscription_edit edit = {
        .link = l,
        .stream = code == 0 ? k->head.result.id : 0,
        .acked = code == 0 ? k->head.result.next : 0,
        .tail = code == 0 ? k->head.result.next : 0,
        .is_explicit = true,
        .fresh = true,
    };
    l->walk = k->walk;
    subscription_change_edit(&k->job->change, &edit);
    return true;
}

static void ask_next(struct linking *k);

static void asked(struct stream_op *head)
{
    struct linking *k = head->context;
    if (take_tail(k)) {
        ask_next(k);
    }
}

/* All is known. */
static void conclude(struct linking *k)
{
    struct subscription_change *c = &k->job->change;
    if (!c->create && c->edit_count == 0 && !c->failed) {
        ops_answer(k->op, 204);
        k->op = NULL;
        job_cancel(k->job, ERR_AGAIN); /* there is nothing to write */
        return;
    }
    job_submit(k->job);
}

static bool add_match(struct linking *k, const struct match *m)
{
    struct slice path = {m->path, m->path_len};
    struct subscription_link *l = subscription_find(k->sub, path);
    if (l && l->edit != 0) {
        return true; /* named as well */
    }
    l = prepare_link(k, path);
    if (!l) {
        job_cancel(k->job, ERR_NOMEM);
        return false;
    }
    l->walk = k->walk;
    const struct subscription_edit edit = {
        .link = l, .stream = m->stream, .acked = m->tail, .tail = m->tail, .fresh = true};
    subscription_change_edit(&k->job->change, &edit);
    return true;
}

static void list_page(struct task *task);

static void listed(struct task *task)
{
    struct linking *k = container_of(task, struct linking, task);
    if (k->code == 0 && k->end.more && !atomic_load(&k->owner->stopping)) {
        memcpy(k->after, k->end.last.ptr, k->end.last.len);
        k->after_len = k->end.last.len;
        task->run = list_page;
        pool_submit(k->owner->config.pool, task);
        return;
    }
    k->code = k->code == 0 && k->end.more ? ERR_STOPPING : k->code;
    if (k->code < 0 && k->code != ERR_LIMIT) {
        job_cancel(k->job, k->code);
        return;
    }
    LIST_FOR_EACH(node, &k->matches)
    {
        if (!add_match(k, container_of(node, struct match, link))) {
            return;
        }
    }
    if (k->code == ERR_LIMIT || is_full(k)) {
        refuse_full(k);
        return;
    }
    conclude(k);
}

/* On the pool, while nobody touches the definition. */
static int on_listed(void *context, const struct stream_listed *stream)
{
    struct linking *k = context;
    if (core_is_reserved(k->owner, stream->name) || !subscription_globs(k->sub, stream->name)) {
        return 0;
    }
    if (k->match_count >= SUBSCRIPTION_LINKS_MAX) {
        return ERR_LIMIT;
    }
    struct match *m = malloc(sizeof(*m) + stream->name.len);
    if (!m) {
        return ERR_NOMEM;
    }
    m->stream = stream->id;
    m->tail = stream->next;
    m->path_len = (uint16_t)stream->name.len;
    memcpy(m->path, stream->name.ptr, stream->name.len);
    list_append(&k->matches, &m->link);
    k->match_count++;
    return 0;
}

static void list_page(struct task *task)
{
    struct linking *k = container_of(task, struct linking, task);
    const struct engine_list_query query = {
        .prefix = {k->prefix, k->prefix_len},
        .after = {k->after, k->after_len},
        .limit = LISTING_PAGE,
    };
    k->end = (struct engine_list_end){0};
    k->code = engine_list(k->owner->config.engine, &query, on_listed, k, &k->end);
    task->run = listed;
    core_post(k->owner, task);
}

/* What all names begin with that the pattern matches: its literal segments up to the first other
 * one. */
static void set_prefix(struct linking *k)
{
    struct slice rest = k->sub->def.pattern;
    struct slice segment;
    struct slice literal;
    struct buf prefix;
    buf_init_fixed(&prefix, k->prefix, sizeof(k->prefix));
    while (slice_split(&rest, '/', &segment) &&
           glob_segment_read(segment, &literal) == GLOB_LITERAL) {
        if (prefix.len > 0) {
            buf_append_char(&prefix, '/');
        }
        buf_append(&prefix, literal);
    }
    assert(!prefix.failed);
    k->prefix_len = prefix.len;
}

/* Asks for the tails, as long as the answers are there at once; then for what the pattern
 * matches. */
static void ask_next(struct linking *k)
{
    while (k->path_index < k->path_count) {
        struct slice path = k->paths[k->path_index++];
        if (!subscription_find(k->sub, path)->dropped) {
            continue;
        }
        k->head = (struct stream_op){
            .verb = STREAM_HEAD, .name = path, .done = asked, .context = k};
        if (stream_start(k->owner->worker, &k->head) == STREAM_PENDING || !take_tail(k)) {
            return;
        }
    }
    if (k->sub->exists || k->sub->def.pattern.len == 0) {
        conclude(k);
        return;
    }
    set_prefix(k);
    k->task.run = list_page;
    pool_submit(k->owner->config.pool, &k->task);
}

static struct linking *begin(struct subscriptions *s, struct subscription *sub,
                             struct subscription_op *op)
{
    struct linking *k = calloc(1, sizeof(*k));
    struct subscription_job *job = k ? job_begin(s, sub) : NULL;
    if (!job) {
        free(k);
        ops_fail(op, ERR_NOMEM);
        return NULL;
    }
    k->owner = s;
    k->sub = sub;
    k->op = op;
    k->job = job;
    k->walk = s->walk.number;
    k->old_number = sub->number;
    k->old_created_ms = sub->created_ms;
    list_init(&k->matches);
    job->op = op;
    job->context = k;
    job->done = written;
    sub->linking = k;
    s->linkings++;
    return k;
}

static void go(struct linking *k)
{
    int code = prepare(k);
    if (code == ERR_LIMIT) {
        ops_refuse(k->op, SUBSCRIPTION_ERROR_LIMIT_REACHED,
                   "all patterns together have as many segments as this server keeps");
        k->op = NULL;
    }
    if (code < 0) {
        job_cancel(k->job, code);
    } else if (is_full(k)) {
        refuse_full(k);
    } else {
        ask_next(k);
    }
}

void linking_create(struct subscriptions *s, struct subscription *sub, struct subscription_op *op)
{
    const struct subscription_spec *spec = &op->request->spec;
    struct linking *k = begin(s, sub, op);
    if (!k) {
        return;
    }
    k->paths = spec->streams;
    k->path_count = spec->stream_count;
    sub->number = s->next_number++;
    sub->created_ms = core_now_ms(s);
    k->job->change.create = true;
    if (subscription_define(sub, &spec->def) < 0) {
        job_cancel(k->job, ERR_NOMEM);
        return;
    }
    go(k);
}

void linking_add(struct subscriptions *s, struct subscription *sub, struct subscription_op *op)
{
    struct linking *k = begin(s, sub, op);
    if (k) {
        k->paths = op->request->streams;
        k->path_count = op->request->stream_count;
        go(k);
    }
}
