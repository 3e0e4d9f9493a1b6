/* Edits are kept in an array; a link knows its place in it while the change is under way. */
#include "stream/subscription_change.h"

#include <assert.h>
#include <stdlib.h>

#define EDITS_MIN 4u

void subscription_change_init(struct subscription_change *c, struct subscription *sub)
{
    *c = (struct subscription_change){.sub = sub, .after = subscription_state_copy(&sub->state)};
}

static void finish(struct subscription_change *c)
{
    subscription_state_drop(&c->after);
    free(c->edits);
    *c = (struct subscription_change){0};
}

void subscription_change_drop(struct subscription_change *c)
{
    for (size_t i = 0; i < c->edit_count; i++) {
        struct subscription_edit *edit = &c->edits[i];
        edit->link->edit = 0;
        if (edit->soiled) {
            subscription_soil(edit->link);
        }
    }
    finish(c);
}

static bool grow(struct subscription_change *c)
{
    if (c->edit_count < c->edit_cap) {
        return true;
    }
    size_t cap = c->edit_cap ? 2 * c->edit_cap : EDITS_MIN;
    struct subscription_edit *edits = realloc(c->edits, cap * sizeof(*edits));
    if (!edits) {
        c->failed = true;
        return false;
    }
    c->edits = edits;
    c->edit_cap = cap;
    return true;
}

void subscription_change_edit(struct subscription_change *c, const struct subscription_edit *edit)
{
    assert(edit->link->edit == 0 && edit->link->attached && edit->link->owner == c->sub);
    if (c->failed || !grow(c)) {
        return;
    }
    c->edits[c->edit_count++] = *edit;
    edit->link->edit = (uint32_t)c->edit_count;
}

/* The link as it is. */
static struct subscription_edit edit_of(struct subscription_link *l)
{
    return (struct subscription_edit){
        .link = l,
        .stream = l->stream,
        .acked = l->acked,
        .is_explicit = l->is_explicit,
        .drop = l->dropped,
    };
}

/* Where a cursor stands among others: the start lies before all. */
static bool is_behind(uint64_t acked, uint64_t other)
{
    return acked != other &&
           (acked == SUBSCRIPTION_START || (other != SUBSCRIPTION_START && acked < other));
}

void subscription_change_ack(struct subscription_change *c, struct subscription_link *l,
                             uint64_t acked)
{
    if (l->edit == 0) {
        struct subscription_edit edit = edit_of(l);
        subscription_change_edit(c, &edit);
    }
    if (!c->failed && is_behind(c->edits[l->edit - 1].acked, acked)) {
        c->edits[l->edit - 1].acked = acked;
    }
}

bool subscription_change_pending(const struct subscription_change *c)
{
    size_t pending = c->sub->pending_count;
    for (size_t i = 0; i < c->edit_count; i++) {
        const struct subscription_edit *edit = &c->edits[i];
        struct subscription_link after = *edit->link;
        after.acked = edit->acked;
        bool now = subscription_link_pending(edit->link);
        if (now && (edit->drop || !subscription_link_pending(&after))) {
            pending--;
        }
    }
    return pending > 0;
}

static void clean(struct subscription_edit *edit)
{
    struct subscription_link *l = edit->link;
    edit->soiled = !list_empty(&l->dirty_link);
    edit->dropped = l->dropped;
    list_remove(&l->dirty_link);
}

void subscription_change_seal(struct subscription_change *c, size_t max)
{
    for (size_t i = 0; i < c->edit_count; i++) {
        clean(&c->edits[i]);
    }
    struct list *first;
    for (; max > 0 && !c->failed && (first = list_first(&c->sub->dirty)) != NULL; max--) {
        struct subscription_link *l = container_of(first, struct subscription_link, dirty_link);
        struct subscription_edit edit = edit_of(l);
        clean(&edit);
        subscription_change_edit(c, &edit);
        if (c->failed) {
            subscription_soil(l);
        }
    }
}

/* Whether the link is about another stream by now, which the pattern matches. */
static bool is_overtaken(const struct subscription_edit *edit)
{
    const struct subscription_link *l = edit->link;
    bool other = edit->dropped || l->stream != edit->stream;
    return other && !l->dropped && subscription_globs(l->owner, subscription_link_path(l));
}

static void commit_drop(struct subscription_edit *edit)
{
    struct subscription_link *l = edit->link;
    if (!is_overtaken(edit)) {
        subscription_detach(l);
        return;
    }
    l->saved = false;
    l->is_explicit = l->is_explicit && edit->dropped;
    subscription_soil(l);
}

static void commit_edit(struct subscription_edit *edit)
{
    struct subscription_link *l = edit->link;
    l->edit = 0;
    if (edit->drop) {
        commit_drop(edit);
        return;
    }
    l->saved = true;
    if (edit->fresh) {
        subscription_revive(l, edit->stream, edit->acked);
        list_remove(&l->dirty_link);
        l->tail = edit->tail;
        l->is_explicit = edit->is_explicit;
    } else if (l->dropped || l->stream != edit->stream) {
        subscription_soil(l); /* the note is about a stream that is gone */
    } else {
        l->is_explicit = edit->is_explicit;
        if (is_behind(l->acked, edit->acked)) {
            l->acked = edit->acked;
        }
    }
    subscription_refresh(l);
}

void subscription_change_commit(struct subscription_change *c)
{
    struct subscription *sub = c->sub;
    assert(!c->failed);
    subscription_state_drop(&sub->state);
    sub->state = subscription_state_copy(&c->after);
    for (size_t i = 0; i < c->edit_count; i++) {
        commit_edit(&c->edits[i]);
    }
    if (c->create) {
        sub->exists = true;
    }
    if (c->remove) {
        sub->exists = false;
    }
    finish(c);
}
