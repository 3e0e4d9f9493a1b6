/* A note in memory has versions, oldest first: of those that are durable only the newest, which no
 * checkpoint has saved yet, and behind it those that are staged and not durable. A version says
 * what the key holds from the record at `end` on, which may be nothing. Where a note has no durable
 * version, and where it is not in memory at all, the catalog knows.
 *
 * A batch is staged and applied under one lock, so that the order of versions is that of the log;
 * everything that can fail has been prepared before. A checkpoint takes durable versions out of the
 * lists, all at the same moment, and either forgets them once the catalog has them or puts them
 * back. What it saves may be newer than the position that it covers: replay then does the same
 * changes again, in the same order, to the same end. */
#include "stream/note.h"

#include <assert.h>
#include <stdlib.h>

#include "base/limits.h"
#include "log/note.h"
#include "stream/checkpoint.h"
#include "stream/op.h"

/* What a key holds from one record on. */
struct note_version {
    struct note_version *next; /* newer */
    log_pos end;               /* durable once the log is, up to here */
    uint32_t refs;             /* of the note, and of who reads all notes; under the lock */
    uint32_t len;              /* bytes of `value` */
    bool put;                  /* false: the key is gone */
    char value[];
};

struct note {
    struct map_node node;          /* in the map */
    struct note_version *versions; /* oldest first */
    bool saving;                   /* a checkpoint has one that is older than these, or all */
    uint16_t key_len;              /* bytes of `key` */
    char key[];
};

struct note_saving {
    struct note *note;
    struct note_version *version;
};

/* One change of a batch, made ready. */
struct note_step {
    struct note *note;            /* new; once `shared` one of the map */
    struct note_version *version; /* new */
    bool shared;                  /* `note` belongs to the map */
    bool inserted;                /* and this step has put it there */
};

struct note_plan {
    struct note_step *steps;
    size_t count;
};

static struct slice key_of(const struct note *n)
{
    return (struct slice){n->key, n->key_len};
}

static size_t note_bytes(const struct note *n)
{
    return sizeof(*n) + n->key_len;
}

static size_t version_bytes(const struct note_version *v)
{
    return sizeof(*v) + v->len;
}

void notes_init(struct notes *n, uint64_t seed)
{
    *n = (struct notes){.seed = seed};
    pthread_mutex_init(&n->lock, NULL);
    pthread_mutex_init(&n->walk, NULL);
    map_init(&n->map);
}

static void unref_version(struct notes *n, struct note_version *v)
{
    if (v && --v->refs == 0) {
        atomic_fetch_sub(&n->bytes, version_bytes(v));
        free(v);
    }
}

/* Takes a note without versions out. */
static void drop_note(struct notes *n, struct note *note)
{
    assert(!note->versions && !note->saving);
    map_remove(&n->map, &note->node);
    atomic_fetch_sub(&n->bytes, note_bytes(note));
    free(note);
}

void notes_finish(struct notes *n)
{
    struct map_node *node;
    assert(!n->collecting);
    while ((node = map_next(&n->map, NULL)) != NULL) {
        struct note *note = container_of(node, struct note, node);
        while (note->versions) {
            struct note_version *v = note->versions;
            note->versions = v->next;
            unref_version(n, v);
        }
        drop_note(n, note);
    }
    map_finish(&n->map);
    pthread_mutex_destroy(&n->walk);
    pthread_mutex_destroy(&n->lock);
}

/* Of the durable versions only the newest counts. */
static void prune(struct notes *n, struct note *note, log_pos durable)
{
    struct note_version *v = note->versions;
    while (v && v->next && v->next->end <= durable) {
        note->versions = v->next;
        unref_version(n, v);
        v = note->versions;
    }
}

/* What is durable and not in the catalog, after prune; NULL: the catalog knows. While the walk is
 * locked, so that nothing is being saved. */
static struct note_version *durable_version(const struct note *note, log_pos durable)
{
    assert(!note->saving);
    return note->versions && note->versions->end <= durable ? note->versions : NULL;
}

/* -------------------------------------------------------------------------------------------
 * changing */

static void plan_finish(struct note_plan *plan)
{
    for (size_t i = 0; i < plan->count; i++) {
        free(plan->steps[i].note);
        free(plan->steps[i].version);
    }
    free(plan->steps);
}

static int plan_step(struct note_step *step, const struct note_change *c, uint64_t seed)
{
    step->note = calloc(1, sizeof(*step->note) + c->key.len);
    step->version = calloc(1, sizeof(*step->version) + c->value.len);
    if (!step->note || !step->version) {
        return ERR_NOMEM;
    }
    step->note->key_len = (uint16_t)c->key.len;
    step->note->node.hash = slice_hash(c->key, seed);
    memcpy(step->note->key, c->key.ptr, c->key.len);
    step->version->refs = 1;
    step->version->put = c->put;
    step->version->len = (uint32_t)c->value.len;
    if (c->value.len > 0) {
        memcpy(step->version->value, c->value.ptr, c->value.len);
    }
    return 0;
}

/* Copies a sound batch of `count` changes; without the lock, since it may be long. */
static int plan_make(struct note_plan *plan, struct slice changes, size_t count, uint64_t seed)
{
    struct note_change c;
    int code = 0;
    *plan = (struct note_plan){.steps = calloc(count, sizeof(plan->steps[0]))};
    if (!plan->steps) {
        return ERR_NOMEM;
    }
    while (code == 0 && note_next(&changes, &c) > 0) {
        assert(plan->count < count);
        code = plan_step(&plan->steps[plan->count++], &c, seed);
    }
    if (code < 0) {
        plan_finish(plan);
    }
    return code;
}

static struct note *find(const struct notes *n, const struct note *like)
{
    for (struct map_node *node = map_find(&n->map, like->node.hash); node;
         node = map_find_next(node)) {
        struct note *note = container_of(node, struct note, node);
        if (slice_equal(key_of(note), key_of(like))) {
            return note;
        }
    }
    return NULL;
}

/* Puts the keys that are new into the map. ERR_NOMEM, and plan_forgo is to be called. */
static int plan_insert(struct notes *n, struct note_plan *plan)
{
    for (size_t i = 0; i < plan->count; i++) {
        struct note_step *step = &plan->steps[i];
        struct note *known = find(n, step->note);
        if (known) {
            free(step->note);
            step->note = known;
            step->shared = true;
        } else if (map_insert(&n->map, &step->note->node, step->note->node.hash) < 0) {
            return ERR_NOMEM;
        } else {
            step->shared = true;
            step->inserted = true;
            atomic_fetch_add(&n->bytes, note_bytes(step->note));
        }
    }
    return 0;
}

/* The record was not staged: all is as before. */
static void plan_forgo(struct notes *n, struct note_plan *plan)
{
    for (size_t i = 0; i < plan->count; i++) {
        struct note_step *step = &plan->steps[i];
        if (step->inserted) {
            drop_note(n, step->note);
        }
        if (step->shared) {
            step->note = NULL;
        }
    }
}

static void plan_apply(struct notes *n, struct note_plan *plan, log_pos end, log_pos durable)
{
    for (size_t i = 0; i < plan->count; i++) {
        struct note_step *step = &plan->steps[i];
        struct note_version **last = &step->note->versions;
        while (*last) {
            last = &(*last)->next;
        }
        step->version->end = end;
        *last = step->version;
        atomic_fetch_add(&n->bytes, version_bytes(step->version));
        prune(n, step->note, durable);
    }
    free(plan->steps);
}

/* Stages the batch and applies it, or neither. */
static int stage(struct engine *e, struct note_plan *plan, const struct record *r, log_pos *ret_end)
{
    struct notes *n = &e->notes;
    struct store *store = e->store;
    pthread_mutex_lock(&n->lock);
    int code = plan_insert(n, plan);
    if (code == 0) {
        code = store->ops->stage(store, r, NULL, ret_end);
    }
    if (code == 0) {
        plan_apply(n, plan, *ret_end, store->ops->durable(store));
    } else {
        plan_forgo(n, plan);
    }
    pthread_mutex_unlock(&n->lock);
    if (code < 0) {
        plan_finish(plan);
    }
    return code;
}

static int note_run(struct stream_op *op)
{
    struct engine *e = op->worker->engine;
    struct record r = {.type = RECORD_NOTE, .note = {.changes = op->note.changes}};
    struct note_plan plan;
    size_t count = 0;
    op_note(op);
    int code = note_check(op->note.changes, &count);
    if (code < 0) {
        (void)err_set(&op->result.msg, ERR_INVALID,
                      "a batch of notes is empty, broken or too long");
        return op_answer(op, ERR_INVALID);
    }
    if (atomic_load(&e->notes.bytes) > NOTES_HOT_BYTES_MAX && !record_frees(&r)) {
        checkpoint_ask(e);
        return op_answer(op, ERR_BUSY);
    }
    code = op_refused(e);
    if (code == 0) {
        code = plan_make(&plan, op->note.changes, count, e->notes.seed);
    }
    if (code == 0) {
        code = stage(e, &plan, &r, &op->end);
    }
    if (code == ERR_AGAIN) {
        return op_wait_room(op);
    }
    if (atomic_load(&e->notes.bytes) > NOTES_HOT_BYTES_MAX / 2) {
        checkpoint_ask(e);
    }
    return op_answer(op, code);
}

int note_begin(struct stream_op *op)
{
    op->step = note_run;
    return OP_NEXT;
}

int notes_replay(struct engine *e, const struct record_note *r, log_pos end)
{
    struct note_plan plan;
    size_t count = 0;
    int code = note_check(r->changes, &count);
    if (code == 0) {
        code = plan_make(&plan, r->changes, count, e->notes.seed);
    }
    if (code < 0) {
        return code;
    }
    struct notes *n = &e->notes;
    pthread_mutex_lock(&n->lock);
    code = plan_insert(n, &plan);
    if (code == 0) {
        plan_apply(n, &plan, end, end);
    } else {
        plan_forgo(n, &plan);
    }
    pthread_mutex_unlock(&n->lock);
    if (code < 0) {
        plan_finish(&plan);
    }
    return code;
}

/* -------------------------------------------------------------------------------------------
 * saving */

static int by_key(const void *a, const void *b)
{
    const struct note *x = ((const struct note_saving *)a)->note;
    const struct note *y = ((const struct note_saving *)b)->note;
    return slice_compare(key_of(x), key_of(y));
}

/* Under the lock: takes what is durable out of the lists. */
static int take(struct notes *n, log_pos durable)
{
    n->saving = malloc((n->map.count + 1) * sizeof(n->saving[0]));
    if (!n->saving) {
        return ERR_NOMEM;
    }
    for (struct map_node *node = map_next(&n->map, NULL); node; node = map_next(&n->map, node)) {
        struct note *note = container_of(node, struct note, node);
        prune(n, note, durable);
        struct note_version *v = durable_version(note, durable);
        if (v) {
            note->versions = v->next;
            v->next = NULL;
            note->saving = true;
            n->saving[n->saving_count++] = (struct note_saving){note, v};
        }
    }
    return 0;
}

int notes_collect(struct engine *e, struct checkpoint *c)
{
    struct notes *n = &e->notes;
    struct store *store = e->store;
    pthread_mutex_lock(&n->walk);
    n->collecting = true;
    pthread_mutex_lock(&n->lock);
    int code = take(n, store->ops->durable(store));
    pthread_mutex_unlock(&n->lock);
    if (code < 0) {
        return code;
    }
    qsort(n->saving, n->saving_count, sizeof(n->saving[0]), by_key);
    for (size_t i = 0; i < n->saving_count; i++) {
        const struct note_version *v = n->saving[i].version;
        struct slice value = {v->value, v->len};
        checkpoint_note(c, key_of(n->saving[i].note), v->put ? &value : NULL);
    }
    return 0;
}

static void saved(struct notes *n, const struct note_saving *s)
{
    s->note->saving = false;
    unref_version(n, s->version);
    if (!s->note->versions) {
        drop_note(n, s->note);
    }
}

static void unsave(struct notes *n, const struct note_saving *s, log_pos durable)
{
    s->note->saving = false;
    s->version->next = s->note->versions;
    s->note->versions = s->version;
    prune(n, s->note, durable);
}

void notes_done(struct engine *e, int code)
{
    struct notes *n = &e->notes;
    if (!n->collecting) {
        return;
    }
    log_pos durable = e->store->ops->durable(e->store);
    pthread_mutex_lock(&n->lock);
    for (size_t i = 0; i < n->saving_count; i++) {
        if (code < 0) {
            unsave(n, &n->saving[i], durable);
        } else {
            saved(n, &n->saving[i]);
        }
    }
    pthread_mutex_unlock(&n->lock);
    free(n->saving);
    n->saving = NULL;
    n->saving_count = 0;
    n->collecting = false;
    pthread_mutex_unlock(&n->walk);
}

/* ------------------------------------------------------------------------------------------
 * reading */

/* The notes in memory that stand for what the catalog says, and a walk over both. */
struct note_walk {
    struct note_saving *found; /* owned; by key */
    size_t count;
    size_t at; /* next one */
    engine_note_fn each;
    void *context;
};

/* With the walk locked nobody saves, so notes with a durable version stay; others may be pruned,
 * hence the references. */
static int note_walk_begin(struct engine *e, struct slice prefix, struct note_walk *w)
{
    struct notes *n = &e->notes;
    pthread_mutex_lock(&n->lock);
    log_pos durable = e->store->ops->durable(e->store);
    w->found = malloc((n->map.count + 1) * sizeof(w->found[0]));
    struct map_node *node = w->found ? map_next(&n->map, NULL) : NULL;
    for (; node; node = map_next(&n->map, node)) {
        struct note *note = container_of(node, struct note, node);
        prune(n, note, durable);
        struct note_version *v = durable_version(note, durable);
        if (v && slice_starts_with(key_of(note), prefix)) {
            v->refs++;
            w->found[w->count++] = (struct note_saving){note, v};
        }
    }
    pthread_mutex_unlock(&n->lock);
    if (!w->found) {
        return ERR_NOMEM;
    }
    qsort(w->found, w->count, sizeof(w->found[0]), by_key);
    return 0;
}

static void note_walk_end(struct engine *e, struct note_walk *w)
{
    struct notes *n = &e->notes;
    pthread_mutex_lock(&n->lock);
    for (size_t i = 0; i < w->count; i++) {
        unref_version(n, w->found[i].version);
    }
    pthread_mutex_unlock(&n->lock);
    free(w->found);
}

/* Shows those of memory that come before `key`; NULL: all that are left. */
static int show_before(struct note_walk *w, const struct slice *key)
{
    int code = 0;
    while (code == 0 && w->at < w->count) {
        const struct note_saving *f = &w->found[w->at];
        if (key && slice_compare(key_of(f->note), *key) >= 0) {
            break;
        }
        w->at++;
        if (f->version->put) {
            struct slice value = {f->version->value, f->version->len};
            code = w->each(w->context, key_of(f->note), value);
        }
    }
    return code;
}

static int show_stored(void *context, struct slice key, struct slice value)
{
    struct note_walk *w = context;
    int code = show_before(w, &key);
    bool known = w->at < w->count && slice_equal(key_of(w->found[w->at].note), key);
    /* One that memory knows better is shown from there, before the next. */
    return code != 0 || known ? code : w->each(w->context, key, value);
}

int engine_each_note(struct engine *e, struct slice prefix, engine_note_fn each, void *context,
                     struct errmsg *msg)
{
    struct note_walk w = {.each = each, .context = context};
    pthread_mutex_lock(&e->notes.walk);
    int code = note_walk_begin(e, prefix, &w);
    if (code == 0) {
        code = e->store->ops->each_note(e->store, prefix, show_stored, &w, msg);
        code = code ? code : show_before(&w, NULL);
        note_walk_end(e, &w);
    } else {
        (void)err_set(msg, code, "%s", err_text(code));
    }
    pthread_mutex_unlock(&e->notes.walk);
    return code;
}
