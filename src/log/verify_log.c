/* The log from the checkpoint on, as recovery reads it, and what its records make of the streams,
 * by the rules at the head of replay.c: a stream is ahead of the records up to its `applied`, and a
 * record may speak of streams that a checkpoint has dropped already. The streams that the log
 * speaks of are kept in memory; of all others the catalog's word is the last.
 *
 * What ends the log is no damage: a crash leaves the end of what was being written. Whole records
 * behind the end are: either a disk damaged the one in front of them, or a power loss tore the last
 * batch, and nobody can tell which. In the log of a running server everything up to the position
 * that it gave must be whole, and what is behind is none of our business. */
#include <stdio.h>
#include <stdlib.h>

#include "base/bytes.h"
#include "base/limits.h"
#include "log/log_files.h"
#include "log/verify_parts.h"
#include "log/walk.h"

#define PROGRESS_STEP MIB

/* Files. */

static void tell_file(struct verify *v, enum log_fact fact, const char *file, int64_t count)
{
    switch (fact) {
    case LOG_FILE_UNFINISHED:
        verify_tell(v, VERIFY_NOTE, file,
                    "it holds nothing but zeros: its making was cut short, and the next start "
                    "removes it");
        break;
    case LOG_FILE_DAMAGED:
        verify_tell(v, VERIFY_DAMAGE, file,
                    "at 0: its header does not prove itself: the next start sets the file aside "
                    "with all records in it");
        break;
    case LOG_FILE_FOREIGN:
        verify_tell(v, VERIFY_DAMAGE, file,
                    "at 0: it belongs to another data directory: the next start is refused");
        break;
    case LOG_FILE_FORMAT:
        verify_tell(v, VERIFY_DAMAGE, file,
                    "at 0: its format is not known to this version: the next start is refused");
        break;
    case LOG_FILE_SHORT:
        verify_tell(v, VERIFY_DAMAGE, file,
                    "it is %lld bytes shorter than it was made: it was cut, and records may be "
                    "missing",
                    (long long)count);
        break;
    case LOG_FILE_UNREACHABLE:
        verify_tell(v, VERIFY_DAMAGE, file,
                    "the part of the log in front of it is missing: the next start sets the file "
                    "aside with all records in it");
        break;
    case LOG_FILE_UNREADABLE:
        verify_tell(v, VERIFY_DAMAGE, file, "it cannot be opened (%s): the next start fails",
                    err_file_text((int)count));
        break;
    }
}

static void on_file(void *context, enum log_fact fact, const char *name, int64_t count)
{
    struct verify *v = context;
    char file[SEGMENT_PATH_MAX];
    (void)snprintf(file, sizeof(file), "wal/%.200s", name);
    if (!v->config->running) { /* there, files behind the end and spares are in flux */
        tell_file(v, fact, file, count);
    }
}

/* Streams. */

static struct seen *seen_find(const struct verify *v, stream_id id)
{
    for (struct map_node *n = map_find(&v->seen, id); n; n = map_find_next(n)) {
        struct seen *s = container_of(n, struct seen, node);
        if (s->id == id) {
            return s;
        }
    }
    return NULL;
}

static struct seen *seen_add(struct verify *v, const struct seen *like)
{
    struct seen *s = malloc(sizeof(*s));
    if (s) {
        *s = *like;
    }
    if (!s || map_insert(&v->seen, &s->node, s->id)) {
        free(s);
        v->error = ERR_NOMEM;
        return NULL;
    }
    return s;
}

static struct seen from_meta(const struct stream_meta *m)
{
    return (struct seen){.id = m->id,
                         .applied = m->applied,
                         .tail = m->tail,
                         .fork_refs = m->fork_refs,
                         .fork_offset = m->fork_offset,
                         .source_id = m->source_id,
                         .life = m->soft_deleted ? SEEN_SOFT : SEEN_ALIVE,
                         .in_catalog = true};
}

/* The stream as it is by now; NULL without memory. The descent to sources ends since their ids are
 * lower; a source that is gone takes the fork with it, as in load.c. */
static struct seen *seen_get(struct verify *v, stream_id id)
{
    struct seen *s = seen_find(v, id);
    if (s || v->error) {
        return s;
    }
    struct stream_meta m;
    struct seen fresh = {.id = id, .life = SEEN_GONE};
    if (verify_get_stream(v, id, &m) == 0) {
        fresh = from_meta(&m);
    }
    if (fresh.source_id != 0 && fresh.source_id < id) {
        const struct seen *source = seen_get(v, fresh.source_id);
        if (!source) {
            return NULL;
        }
        fresh.life = source->life == SEEN_GONE ? SEEN_GONE : fresh.life;
    }
    return seen_add(v, &fresh);
}

struct seen verify_after_log(struct verify *v, const struct stream_meta *meta)
{
    const struct seen *s = seen_find(v, meta->id);
    return s ? *s : from_meta(meta);
}

void verify_log_finish(struct verify *v)
{
    struct map_node *node = map_next(&v->seen, NULL);
    while (node) {
        struct map_node *next = map_next(&v->seen, node);
        free(container_of(node, struct seen, node));
        node = next;
    }
    map_finish(&v->seen);
}

/* Records. */

static bool open_to(const struct seen *s, log_pos end)
{
    return s && s->life != SEEN_GONE && s->applied < end;
}

/* A record that replay refuses, and with it the whole start. */
static void refuse(struct verify *v, const struct record *r, log_pos end, const char *what)
{
    verify_tell(v, VERIFY_DAMAGE, "wal",
                "the record that ends at %llu, of stream %llu: %s: the next start is refused",
                (unsigned long long)end, (unsigned long long)r->id, what);
}

static bool name_taken(struct verify *v, const struct record *r)
{
    struct slice value;
    return verify_get(v, TABLE_NAMES, r->create.name, &value) == 0 && value.len == 8 &&
           bytes_get_u64(value.ptr) > r->id;
}

static void see_create(struct verify *v, const struct record *r, log_pos end)
{
    const struct record_create *c = &r->create;
    struct seen *source = c->source_id ? seen_get(v, c->source_id) : NULL;
    struct seen *s = seen_get(v, r->id);
    bool orphan = c->source_id && (!source || source->life == SEEN_GONE);
    if (!s) {
        return;
    }
    if (source && open_to(source, end)) {
        source->fork_refs++;
        source->applied = end;
    }
    if (s->in_catalog || s->life != SEEN_GONE || orphan || name_taken(v, r)) {
        return;
    }
    if (source && (c->fork_offset > source->tail || c->source_id >= r->id)) {
        refuse(v, r, end, "it forks behind the end of its source");
    }
    s->life = SEEN_ALIVE;
    s->applied = end;
    s->source_id = c->source_id;
    s->fork_offset = c->fork_offset;
    s->tail = c->fork_offset + c->body.len;
}

static void see_append(struct verify *v, const struct record *r, log_pos end)
{
    struct seen *s = seen_get(v, r->id);
    if (!open_to(s, end)) {
        return;
    }
    if (s->life != SEEN_ALIVE) {
        refuse(v, r, end, "it appends to a stream that was deleted");
    } else if (r->append.offset != s->tail) {
        char what[128];
        (void)snprintf(what, sizeof(what), "it appends at %llu, and the stream ends at %llu",
                       (unsigned long long)r->append.offset, (unsigned long long)s->tail);
        refuse(v, r, end, what);
    }
    s->tail = r->append.offset + r->append.body.len;
    s->applied = end;
}

/* Lets one stream of a deletion go, or lose a fork. */
static void let_go(struct verify *v, stream_id id, enum seen_life life, bool release, log_pos end)
{
    struct seen *s = id ? seen_get(v, id) : NULL;
    if (open_to(s, end)) {
        s->life = life > s->life ? life : s->life;
        s->fork_refs -= release && s->fork_refs > 0 ? 1 : 0;
        s->applied = end;
    }
}

static void see_delete(struct verify *v, const struct record *r, log_pos end)
{
    const struct record_delete *d = &r->del;
    let_go(v, r->id, d->soft ? SEEN_SOFT : SEEN_GONE, false, end);
    for (uint32_t i = 0; i < d->cascade_count; i++) {
        let_go(v, bytes_get_u64(d->cascade.ptr + (size_t)i * 8), SEEN_GONE, true, end);
    }
    let_go(v, d->released, SEEN_ALIVE, true, end);
}

static void see_record(struct verify *v, const struct record *r, log_pos end)
{
    switch (r->type) {
    case RECORD_CREATE:
        see_create(v, r, end);
        break;
    case RECORD_APPEND:
        see_append(v, r, end);
        break;
    case RECORD_DELETE:
        see_delete(v, r, end);
        break;
    case RECORD_TOUCH: {
        struct seen *s = seen_get(v, r->id);
        if (open_to(s, end)) {
            s->applied = end;
        }
        break;
    }
    case RECORD_NOTE:
        break; /* its batch was proven with it, and speaks of no stream */
    }
}

/* The walk. */

static void tell_unreadable(struct verify *v, log_pos pos, int rc)
{
    if (rc == ERR_NOMEM) {
        v->error = rc;
    } else {
        verify_tell(v, VERIFY_DAMAGE, "wal", "position %llu: %s: the next start fails",
                    (unsigned long long)pos, err_file_text(rc));
    }
}

static void judge_end(struct verify *v, struct walk *k, log_pos pos)
{
    static const char zeros[RECORD_FRAME_BYTES];
    v->log_end = pos;
    if (v->config->running) {
        if (pos < v->durable) {
            verify_tell(v, VERIFY_DAMAGE, "wal",
                        "position %llu: the record there does not prove itself, and the log is "
                        "acknowledged up to %llu: a restart would lose what is between",
                        (unsigned long long)pos, (unsigned long long)v->durable);
            return;
        }
        v->log_whole = true;
        return;
    }
    uint64_t stranded = 0;
    int rc = walk_count_stranded(k, pos, &stranded);
    const char *head = rc ? NULL : walk_bytes(k, pos, sizeof(zeros));
    rc = rc || head ? rc : walk_error(k);
    if (rc) {
        tell_unreadable(v, pos, rc);
        return;
    }
    if (stranded > 0) {
        verify_tell(v, VERIFY_DAMAGE, "wal",
                    "position %llu: the record there does not prove itself, and %llu whole records "
                    "are behind it: they cannot be replayed; a disk damaged it, or a power loss "
                    "tore what was being written",
                    (unsigned long long)pos, (unsigned long long)stranded);
        return;
    }
    v->log_whole = true;
    if (head && memcmp(head, zeros, sizeof(zeros)) != 0 && bytes_get_u64(head + 16) == pos) {
        verify_tell(v, VERIFY_NOTE, "wal",
                    "position %llu: a record was begun there and not finished: it was not "
                    "acknowledged, and the next start cuts it off",
                    (unsigned long long)pos);
    }
}

static void walk_log(struct verify *v, struct walk *k)
{
    log_pos pos = v->state.checkpoint;
    log_pos told = pos;
    int rc = 0;
    while (!v->error && !(v->config->running && pos >= v->durable)) {
        struct record record;
        log_pos end = pos;
        rc = walk_prove(k, pos, &record, &end);
        if (rc) {
            break;
        }
        v->report.log_records++;
        see_record(v, &record, end);
        pos = end;
        if (pos - told >= PROGRESS_STEP) {
            verify_progress(v, pos - told);
            told = pos;
        }
    }
    v->report.log_bytes = pos - v->state.checkpoint;
    verify_progress(v, pos - told);
    if (rc && rc != ERR_CORRUPT) {
        tell_unreadable(v, pos, rc);
    } else {
        judge_end(v, k, pos);
    }
}

static void read_log(struct verify *v, struct log_files *files)
{
    struct walk k;
    if (list_empty(&files->chain.segments) && v->state.log_made) {
        verify_tell(v, VERIFY_DAMAGE, "wal",
                    "position %llu: no file holds it, where the last checkpoint ended: the next "
                    "start is refused, and what was acknowledged since is lost",
                    (unsigned long long)v->state.checkpoint);
        return;
    }
    int rc = walk_init(&k, &files->chain, v->state.epoch + 1);
    if (rc) {
        v->error = rc;
        return;
    }
    v->total += v->config->running ? v->durable - v->state.checkpoint : 0;
    walk_log(v, &k);
    walk_finish(&k);
}

void verify_log(struct verify *v)
{
    char path[VERIFY_PATH_MAX];
    struct log_files files;
    if (v->report.memory || v->error) {
        return;
    }
    verify_path(v, "wal", path);
    int rc = log_files_open(&files, v->sys, path, v->state.uuid, v->state.checkpoint, on_file, v);
    if (rc == ERR_NOMEM) {
        v->error = rc;
    } else if (rc) {
        verify_tell(v, VERIFY_DAMAGE, "wal", "it cannot be listed (%s): the next start fails",
                    err_file_text(rc));
    } else {
        read_log(v, &files);
    }
    log_files_finish(&files);
}
