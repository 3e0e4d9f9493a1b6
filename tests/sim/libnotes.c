/* What the model and the requests know of notes, and the comparison of what the engine shows of all
 * notes and all streams with the model. */
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/limits.h"
#include "log/note.h"
#include "sim/fakefile.h"
#include "sim/world.h"
#include "sim/alloc.h"

#define NOTE_KEYS 6u

/* The model: every change in order. */

void model_apply_notes(struct model *m, const struct record_note *r)
{
    struct slice rest = r->changes;
    struct note_change c;
    int more;
    while ((more = note_next(&rest, &c)) > 0) {
        m->notes = fakefile_grow(m->notes, m->note_count, &m->note_cap, sizeof(m->notes[0]));
        struct model_note *n = &m->notes[m->note_count++];
        CHECK(c.key.len < sizeof(n->key), "a key that nobody sent");
        *n = (struct model_note){.moment = m->moment, .put = c.put, .len = c.value.len};
        memcpy(n->key, c.key.ptr, c.key.len);
        n->value = malloc(c.value.len + 1);
        assert(n->value);
        if (c.value.len > 0) {
            memcpy(n->value, c.value.ptr, c.value.len);
        }
    }
    CHECK(more == 0, "a batch of notes that is not sound");
}

void model_rewind_notes(struct model *m, size_t moment)
{
    while (m->note_count > 0 && m->notes[m->note_count - 1].moment > moment) {
        free(m->notes[--m->note_count].value);
    }
}

void model_finish_notes(struct model *m)
{
    model_rewind_notes(m, 0);
    free(m->notes);
}

/* What the key holds at the moment, or NULL. */
static const struct model_note *note_at(const struct model *m, const char *key, size_t moment)
{
    for (size_t i = m->note_count; i > 0; i--) {
        const struct model_note *n = &m->notes[i - 1];
        if (n->moment <= moment && strcmp(n->key, key) == 0) {
            return n->put ? n : NULL;
        }
    }
    return NULL;
}

/* The first key behind `after` that holds something at the moment. */
static const struct model_note *note_behind(const struct model *m, const char *after, size_t moment)
{
    const struct model_note *first = NULL;
    for (size_t i = 0; i < m->note_count; i++) {
        const struct model_note *n = &m->notes[i];
        if (strcmp(n->key, after) > 0 && (!first || strcmp(n->key, first->key) < 0)) {
            const struct model_note *now = note_at(m, n->key, moment);
            first = now ? now : first;
        }
    }
    return first;
}

/* Requests. */

static size_t value_len(struct world *w)
{
    switch (world_below(w, 16)) {
    case 0:
        return 0;
    case 1:
        return 4000 + world_below(w, 20000);
    default:
        return world_below(w, 100);
    }
}

static void put_random(struct request *r, struct buf *b, const char *key)
{
    char value[24100];
    size_t len = value_len(r->world);
    memset(value, 'a' + (int)(r->number % 26), len);
    note_put(b, slice_of(key), (struct slice){value, len});
}

/* Half of the batches change several keys, so that half a batch would show; some change one key
 * more than once, some only take away, some are not sound. The number of the request in each makes
 * it different from all others. */
void world_start_note(struct world *w)
{
    struct request *r = request_create(w, STREAM_NOTE, "s/0");
    struct buf b;
    char key[16];
    alloc_pause();
    buf_init(&b, NOTE_BATCH_BYTES_MAX);
    (void)snprintf(key, sizeof(key), "gone/%u", r->number);
    note_delete(&b, slice_of(key));
    bool frees = world_chance(w, 4);
    for (uint64_t n = 1 + world_below(w, 5); n > 0; n--) {
        (void)snprintf(key, sizeof(key), "n/%u", (unsigned)world_below(w, NOTE_KEYS));
        if (frees || world_chance(w, 4)) {
            note_delete(&b, slice_of(key));
        } else {
            put_random(r, &b, key);
        }
    }
    if (world_chance(w, 3)) {
        char number[12];
        (void)snprintf(number, sizeof(number), "%u", r->number);
        note_put(&b, SLICE("tomb"), slice_of(number));
    }
    alloc_resume();
    assert(!b.failed);
    r->said.malformed = world_chance(w, 30);
    r->raw = b.ptr;
    r->op.note.changes = (struct slice){b.ptr, b.len - r->said.malformed};
    request_start(r);
}

/* Comparing. */

/* One showing of all notes of a prefix. */
struct notes_shown {
    const struct model *model;
    size_t moment;
    char last[sizeof(((struct model_note *)NULL)->key)]; /* key shown last, or what is before all */
    struct slice prefix;
};

static int see_note(void *context, struct slice key, struct slice value)
{
    struct notes_shown *n = context;
    const struct model_note *want = note_behind(n->model, n->last, n->moment);
    CHECK(want, "a note that is not there: %.*s", (int)key.len, key.ptr);
    CHECK(slice_equal(slice_of(want->key), key), "the note %.*s is shown, %s is next", (int)key.len,
          key.ptr, want->key);
    CHECK(slice_equal((struct slice){want->value, want->len}, value),
          "the note %s holds %zu bytes of an other time, not %zu", want->key, value.len, want->len);
    memcpy(n->last, want->key, sizeof(n->last));
    return 0;
}

/* Whether an error may be: of a disk that fails, or without memory. */
static bool excused(const struct world *w, int code)
{
    return code == ERR_NOMEM ? alloc_failures() > 0 : w->trouble;
}

static void check_notes(struct world *w)
{
    struct notes_shown n = {.model = &w->model,
                            .moment = model_moment(&w->model, world_durable(w)),
                            .prefix = world_chance(w, 2) ? SLICE("n/") : SLICE("")};
    struct errmsg msg = {""};
    if (n.prefix.len > 0) {
        memcpy(n.last, "n/", 3);
    }
    int code = engine_each_note(w->engine, n.prefix, see_note, &n, &msg);
    CHECK(code == 0 || excused(w, code), "notes: %s: %s", err_name(code), msg.text);
    CHECK(code == 0 || msg.text[0], "notes: an error without a sentence");
    const struct model_note *more = code ? NULL : note_behind(n.model, n.last, n.moment);
    CHECK(!more || !slice_starts_with(slice_of(more->key), n.prefix), "the note %s is missing",
          more->key);
}

/* One listing of streams, page by page. */
struct streams_shown {
    struct world *world;
    size_t moment;
    bool shown[WORLD_NAMES];
    char last[24];
    size_t count; /* of this page */
};

static int see_stream(void *context, const struct stream_listed *l)
{
    struct streams_shown *n = context;
    struct world *w = n->world;
    char name[24] = "";
    CHECK(l->name.len < sizeof(name), "a stream that nobody made");
    memcpy(name, l->name.ptr, l->name.len);
    CHECK(strcmp(name, n->last) > 0, "%s is listed behind %s", name, n->last);
    memcpy(n->last, name, sizeof(name));
    struct model_stream *s = model_find(&w->model, name, n->moment);
    const struct model_version *v = s ? model_at(s, n->moment) : NULL;
    CHECK(v && v->life == MODEL_ALIVE, "%s is listed and is not there", name);
    CHECK(l->id == s->id, "%s is listed, but another one of that name", name);
    CHECK(world_now(w) < model_deadline_max(s), "%s is listed and past its time", name);
    CHECK(l->next == v->tail && l->closed == v->closed, "%s is listed with %llu bytes, not %llu",
          name, (unsigned long long)l->next, (unsigned long long)v->tail);
    CHECK(l->fork == (s->source != NULL) && l->fork_offset == s->fork_offset, "fork of %s", name);
    CHECK(slice_equal(l->content_type, slice_of(s->type)), "type of %s", name);
    CHECK(l->expiry.has_ttl == (s->ttl_seconds != UINT64_MAX) &&
              l->expiry.has_expires_at == (s->expires_at_ms != INT64_MAX),
          "expiry of %s", name);
    n->shown[strtoul(name + 2, NULL, 10)] = true;
    n->count++;
    return 0;
}

void world_check_list(struct world *w)
{
    struct streams_shown n = {.world = w, .moment = model_moment(&w->model, world_durable(w))};
    struct engine_list_end end = {0};
    struct engine_list_query q = {.limit = 1 + world_below(w, WORLD_NAMES)};
    do {
        n.count = 0;
        q.after = end.last;
        int code = engine_list(w->engine, &q, see_stream, &n, &end);
        if (code) {
            CHECK(excused(w, code), "list: %s", err_name(code));
            return;
        }
        CHECK(n.count <= q.limit, "%zu streams on a page of %zu", n.count, q.limit);
    } while (end.more);
    for (unsigned i = 0; i < WORLD_NAMES; i++) {
        char name[24];
        world_name(name, i);
        struct model_stream *s = model_find(&w->model, name, n.moment);
        bool there = s && model_at(s, n.moment)->life == MODEL_ALIVE;
        CHECK(n.shown[i] || !there || world_now(w) >= model_deadline_min(s), "%s is not listed",
              name);
    }
}

void world_survey(struct world *w)
{
    world_trace(w, "survey");
    check_notes(w);
    world_check_list(w);
}
