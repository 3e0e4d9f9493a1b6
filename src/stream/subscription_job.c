/* How a change gets into the log, and what is deleted out of it. */
#include <assert.h>
#include <stdlib.h>

#include "base/limits.h"
#include "log/note.h"
#include "stream/subscription_core.h"
#include "stream/subscription_store.h"

/* Old notes of links that are written along with a change. */
#define LINKS_ALONG_MAX 256u

/* Notes that are taken away at a time. */
#define GARBAGE_MAX 256u

/* After the log refused something, what nobody asked for waits so long. */
#define HOLD_MS 1000u

void job_hold(struct subscriptions *s)
{
    s->hold_until_ms = core_mono_ms(s) + HOLD_MS;
}

struct subscription_job *job_begin(struct subscriptions *s, struct subscription *sub)
{
    assert(!sub->change);
    struct subscription_job *job = calloc(1, sizeof(*job));
    if (!job) {
        return NULL;
    }
    job->owner = s;
    job->sub = sub;
    buf_init(&job->batch, NOTE_BATCH_BYTES_MAX);
    subscription_change_init(&job->change, sub);
    return job;
}

static void unindex_edits(struct subscriptions *s, struct subscription_change *c)
{
    for (size_t i = 0; i < c->edit_count; i++) {
        if (c->edits[i].drop || !c->edits[i].is_explicit) {
            core_unindex(s, c->edits[i].link);
        }
    }
}

/* The deleted subscription keeps its generation, if it ever had one, and nothing else. */
static void remove_all(struct subscriptions *s, struct subscription *sub, int64_t removed_ms)
{
    core_forget_names(s, sub);
    struct list *first;
    while ((first = list_first(&sub->links)) != NULL) {
        struct subscription_link *l = container_of(first, struct subscription_link, link);
        core_unindex(s, l);
        if (l->saved) {
            garbage_add(s, sub->number, subscription_link_path(l));
        }
        subscription_detach(l);
    }
    free(sub->def.memory);
    sub->def = (struct subscription_definition){0};
    subscription_state_end(&sub->state);
    sub->created_ms = removed_ms;
    wake_forget(s, sub);
    atomic_fetch_sub(&s->counts.subscriptions, 1);
    atomic_fetch_add(&s->counts.tombstones, sub->state.generation > 0);
}

static void commit(struct subscriptions *s, struct subscription_change *c)
{
    struct subscription *sub = c->sub;
    bool create = c->create;
    bool remove = c->remove;
    bool moved = c->moved || create;
    bool wake = c->after.generation > sub->state.generation;
    int64_t removed_ms = c->removed_ms;
    if (create) {
        atomic_fetch_add(&s->counts.subscriptions, 1);
        atomic_fetch_sub(&s->counts.tombstones, sub->state.generation > 0);
    }
    unindex_edits(s, c);
    subscription_change_commit(c);
    if (remove) {
        remove_all(s, sub, removed_ms);
    } else if (moved) {
        wake_set_due(s, sub);
        atomic_fetch_add(&s->counts.wakes, wake);
    }
    core_count(s, sub);
}

static void finish(struct subscription_job *job, int code)
{
    struct subscriptions *s = job->owner;
    struct subscription *sub = job->sub;
    sub->change = NULL;
    if (code == 0) {
        commit(s, &job->change);
    } else {
        subscription_change_drop(&job->change);
        if (!job->op) {
            job_hold(s);
        }
    }
    if (job->done) {
        job->done(job, code);
    }
    core_ready(s, sub);
    buf_finish(&job->batch);
    free(job);
}

static void noted(struct stream_op *op)
{
    struct subscription_job *job = op->context;
    job->owner->notes--;
    finish(job, op->result.code);
}

void job_cancel(struct subscription_job *job, int code)
{
    assert(code < 0);
    finish(job, code);
}

void job_submit(struct subscription_job *job)
{
    struct subscriptions *s = job->owner;
    subscription_change_seal(&job->change, LINKS_ALONG_MAX);
    if (!job->change.failed) {
        subscription_store_change(&job->batch, &job->change);
    }
    if (job->change.failed || job->batch.failed) {
        job_cancel(job, ERR_NOMEM);
        return;
    }
    job->sub->change = &job->change;
    s->notes++;
    job->note.verb = STREAM_NOTE;
    job->note.note.changes = buf_slice(&job->batch);
    job->note.done = noted;
    job->note.context = job;
    if (stream_start(s->worker, &job->note) == 0) {
        noted(&job->note);
    }
}

void garbage_add(struct subscriptions *s, uint64_t number, struct slice text)
{
    struct garbage *g = malloc(sizeof(*g) + text.len);
    if (!g) {
        return; /* the next start finds it */
    }
    g->number = number;
    g->text_len = (uint16_t)text.len;
    memcpy(g->text, text.ptr, text.len);
    list_append(&s->garbage, &g->link);
}

static void burnt(struct stream_op *op)
{
    struct subscriptions *s = op->context;
    s->garbage_active = false;
    struct list *first;
    if (op->result.code < 0) {
        job_hold(s);
        list_append_all(&s->burning, &s->garbage);
        list_append_all(&s->garbage, &s->burning);
        return;
    }
    while ((first = list_first(&s->burning)) != NULL) {
        list_remove(first);
        free(container_of(first, struct garbage, link));
    }
}

/* An id that has been taken again keeps its notes. */
static void burn(struct subscriptions *s, const struct garbage *g)
{
    struct slice text = {g->text, g->text_len};
    if (g->number > 0) {
        subscription_store_unlink(&s->garbage_batch, g->number, text);
    } else if (!core_find(s, text)) {
        subscription_store_forget(&s->garbage_batch, text);
    }
}

static void burn_batch(struct subscriptions *s)
{
    s->garbage_active = true;
    s->garbage_op = (struct stream_op){
        .verb = STREAM_NOTE,
        .note = {.changes = buf_slice(&s->garbage_batch)},
        .done = burnt,
        .context = s,
    };
    if (s->garbage_batch.failed) {
        s->garbage_op.result.code = ERR_NOMEM;
    } else if (s->garbage_batch.len > 0 && stream_start(s->worker, &s->garbage_op) != 0) {
        return;
    }
    burnt(&s->garbage_op);
}

void garbage_burn(struct subscriptions *s)
{
    if (s->garbage_active || list_empty(&s->garbage) || atomic_load(&s->stopping) ||
        core_mono_ms(s) < s->hold_until_ms) {
        return;
    }
    buf_finish(&s->garbage_batch);
    buf_init(&s->garbage_batch, NOTE_BATCH_BYTES_MAX);
    struct list *first;
    for (size_t n = 0; n < GARBAGE_MAX && (first = list_first(&s->garbage)) != NULL; n++) {
        list_remove(first);
        list_append(&s->burning, first);
        burn(s, container_of(first, struct garbage, link));
    }
    burn_batch(s);
}
