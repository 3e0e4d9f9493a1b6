/* Counts that LMDB keeps are taken from the trees; only what has to be looked at is walked. */
#include "log/survey.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/bytes.h"
#include "log/btree.h"
#include "log/catalog_env.h"
#include "log/catalog_value.h"
#include "log/log_files.h"

#define PATH_BYTES 1300u

struct work {
    struct sys *sys;
    const char *dir;
    struct btree_file *catalog;
    struct catalog_state state;
    struct survey *survey;
};

typedef void (*entry_fn)(struct work *w, struct slice key, struct slice value);

/* Calls `each` for all entries of a table; one that is not there has none. */
static int walk(struct work *w, enum catalog_table table, entry_fn each)
{
    struct btree tree;
    struct btree_cursor c;
    struct slice key;
    struct slice value;
    int rc = btree_file_table(w->catalog, catalog_table_name(table), &tree);
    if (rc) {
        return rc == ERR_NOTFOUND ? 0 : rc;
    }
    btree_cursor_init(&c, w->catalog, &tree);
    rc = btree_cursor_seek(&c, (struct slice){0});
    rc = rc ? rc : btree_cursor_next(&c, &key, &value);
    while (rc > 0) {
        each(w, key, value);
        rc = btree_cursor_next(&c, &key, &value);
    }
    btree_cursor_finish(&c);
    return rc;
}

static int count(struct work *w, enum catalog_table table, uint64_t *ret_count)
{
    struct btree tree;
    int rc = btree_file_table(w->catalog, catalog_table_name(table), &tree);
    *ret_count = rc ? 0 : tree.entries;
    return rc == ERR_NOTFOUND ? 0 : rc;
}

/* Puts the stream among the largest, if it belongs there. */
static void rank(struct survey *s, const struct stream_meta *m, uint64_t bytes)
{
    size_t at = s->largest_count;
    while (at > 0 && s->largest[at - 1].bytes < bytes) {
        at--;
    }
    if (at == SURVEY_LARGEST) {
        return;
    }
    if (s->largest_count < SURVEY_LARGEST) {
        s->largest_count++;
    }
    memmove(&s->largest[at + 1], &s->largest[at],
            (s->largest_count - 1 - at) * sizeof(s->largest[0]));
    s->largest[at] = (struct survey_stream){.id = m->id, .bytes = bytes, .name_len = m->name.len};
    memcpy(s->largest[at].name, m->name.ptr, m->name.len);
}

static void take_state(struct work *w, struct slice key, struct slice value)
{
    if (slice_equal(key, SLICE(CATALOG_STATE_KEY)) && catalog_decode_state(value, &w->state) != 0) {
        w->survey->unreadable++;
    }
}

static void take_stream(struct work *w, struct slice key, struct slice value)
{
    struct survey *s = w->survey;
    struct stream_meta m;
    if (key.len != 8 || catalog_decode_stream(value, bytes_get_u64_be(key.ptr), &m) != 0) {
        s->unreadable++;
        return;
    }
    uint64_t bytes = m.tail - m.fork_offset;
    s->streams++;
    s->forks += m.source_id != 0;
    s->soft_deleted += m.soft_deleted;
    s->closed += m.closed;
    s->expiring += catalog_deadline(&m) != INT64_MAX;
    s->stream_bytes += bytes;
    rank(s, &m, bytes);
}

static void take_pack(struct work *w, struct slice key, struct slice value)
{
    struct survey *s = w->survey;
    uint64_t live = 0;
    uint64_t total = 0;
    if (key.len != 8 || catalog_decode_pair(value, &live, &total) != 0) {
        s->unreadable++;
        return;
    }
    s->packs++;
    s->pack_bytes += total;
    s->live_bytes += live;
}

static void take_note(struct work *w, struct slice key, struct slice entry)
{
    struct survey *s = w->survey;
    struct slice value;
    if (catalog_decode_note(key, entry, &value) != 0) {
        s->unreadable++;
        return;
    }
    s->notes++;
    s->note_bytes += key.len + value.len;
}

/* Lists of free pages: u64 count, u64 numbers. */
static int count_free(struct work *w)
{
    struct btree_cursor c;
    struct slice key;
    struct slice value;
    btree_cursor_init(&c, w->catalog, &w->catalog->free);
    int rc = btree_cursor_seek(&c, (struct slice){0});
    rc = rc ? rc : btree_cursor_next(&c, &key, &value);
    while (rc > 0) {
        w->survey->free_pages += value.len >= 8 ? bytes_get_u64(value.ptr) : 0;
        rc = btree_cursor_next(&c, &key, &value);
    }
    btree_cursor_finish(&c);
    return rc;
}

static int look_at_catalog(struct work *w)
{
    struct survey *s = w->survey;
    s->page_bytes = w->catalog->page_bytes;
    s->pages = w->catalog->page_count;
    int rc = walk(w, TABLE_META, take_state);
    rc = rc ? rc : walk(w, TABLE_STREAMS, take_stream);
    rc = rc ? rc : walk(w, TABLE_PACKS, take_pack);
    rc = rc ? rc : walk(w, TABLE_NOTES, take_note);
    rc = rc ? rc : count(w, TABLE_EXTENTS, &s->extents);
    rc = rc ? rc : count(w, TABLE_PRODUCERS, &s->producers);
    rc = rc ? rc : count_free(w);
    s->memory = w->state.durable == 0;
    s->checkpoint = w->state.checkpoint;
    return rc;
}

static void on_file(void *context, enum log_fact fact, const char *name, int64_t number)
{
    (void)context; /* the verifier judges */
    (void)fact;
    (void)name;
    (void)number;
}

static int look_at_log(struct work *w)
{
    char path[PATH_BYTES];
    struct log_files files;
    (void)snprintf(path, sizeof(path), "%s/wal", w->dir);
    int rc = log_files_open(&files, w->sys, path, w->state.uuid, w->state.checkpoint, on_file,
                            NULL);
    w->survey->log_files = files.file_count;
    w->survey->log_file_bytes = files.file_bytes;
    log_files_finish(&files);
    return rc;
}

int survey_run(struct sys *sys, const char *dir, struct survey *ret_survey, struct errmsg *msg)
{
    char path[PATH_BYTES];
    struct errmsg why = {{0}};
    struct survey *survey = calloc(1, sizeof(*survey));
    struct work w = {.sys = sys, .dir = dir, .survey = survey};
    if (!survey) {
        return err_set(msg, ERR_NOMEM, "%s", err_text(ERR_NOMEM));
    }
    (void)snprintf(path, sizeof(path), "%.1200s/catalog/data.mdb", dir);
    int rc = btree_file_open(sys, path, &w.catalog, &why);
    if (rc) {
        free(survey);
        return err_set(msg, rc, "cannot open %.150s: %.80s", path, why.text);
    }
    rc = look_at_catalog(&w);
    if (rc) {
        (void)err_set(msg, rc, "cannot read %.120s, page %llu: %.80s; run arbe streams verify",
                      path, (unsigned long long)w.catalog->fault_page, w.catalog->fault);
    } else if ((rc = look_at_log(&w)) != 0) {
        (void)err_set(msg, rc, "cannot list %.150s/wal: %s", dir, err_file_text(rc));
    }
    btree_file_close(w.catalog);
    if (rc == 0) {
        *ret_survey = *survey;
    }
    free(survey);
    return rc;
}
