/* A checkpoint takes a source and its forks at different moments, so the catalog alone need not
 * agree with itself: what is compared here is what the log makes of it. A stream counts for its
 * source for as long as it is there, deleted and kept for forks of its own included.
 *
 * All sources are put in a list, one entry per fork, and sorted; then each stream is compared with
 * the number of its entries. */
#include <stdio.h>
#include <stdlib.h>

#include "base/bytes.h"
#include "base/limits.h"
#include "log/catalog_value.h"
#include "log/verify_parts.h"

typedef void (*stream_fn)(struct verify *v, const struct seen *s);

/* Calls `each` for all streams that are there after the log. */
static void each_stream(struct verify *v, stream_fn each)
{
    struct btree_cursor c;
    struct slice key;
    struct slice value;
    if (verify_walk(v, TABLE_STREAMS, &c)) {
        while (verify_next(v, TABLE_STREAMS, &c, &key, &value)) {
            struct stream_meta m;
            if (key.len == 8 && catalog_decode_stream(value, bytes_get_u64_be(key.ptr), &m) == 0) {
                struct seen s = verify_after_log(v, &m);
                each(v, &s);
            }
        }
    }
    btree_cursor_finish(&c);
    for (struct map_node *n = map_next(&v->seen, NULL); n; n = map_next(&v->seen, n)) {
        const struct seen *s = container_of(n, struct seen, node);
        if (!s->in_catalog) {
            each(v, s);
        }
    }
}

static void add_source(struct verify *v, stream_id id)
{
    struct source_list *l = &v->sources;
    if (l->count == l->cap) {
        size_t cap = l->cap ? l->cap * 2 : 1024;
        stream_id *ids = realloc(l->ids, cap * sizeof(ids[0]));
        if (!ids) {
            v->error = ERR_NOMEM;
            return;
        }
        l->ids = ids;
        l->cap = cap;
    }
    l->ids[l->count++] = id;
}

/* The stream of that id after the log; life is SEEN_GONE when there is none. */
static struct seen after_log(struct verify *v, stream_id id)
{
    struct stream_meta m = {.id = id};
    int rc = verify_get_stream(v, id, &m);
    struct seen s = verify_after_log(v, &m);
    bool seen = s.node.hash != 0; /* it came from the log's map, where the hash is the id */
    s.life = rc == 0 || seen ? s.life : SEEN_GONE;
    return s;
}

static void check_source(struct verify *v, const struct seen *s)
{
    struct seen source = after_log(v, s->source_id);
    if (s->source_id >= s->id) {
        verify_tell(v, VERIFY_DAMAGE, CATALOG_FILE,
                    "table streams: stream %llu says that it is a fork of the later stream %llu: "
                    "it cannot be loaded",
                    (unsigned long long)s->id, (unsigned long long)s->source_id);
    } else if (source.life == SEEN_GONE) {
        verify_tell(v, VERIFY_DAMAGE, CATALOG_FILE,
                    "table streams: stream %llu is a fork of stream %llu, which does not exist: "
                    "it cannot be loaded",
                    (unsigned long long)s->id, (unsigned long long)s->source_id);
    } else if (s->fork_offset > source.tail) {
        verify_tell(v, VERIFY_DAMAGE, CATALOG_FILE,
                    "table streams: stream %llu has %llu bytes of stream %llu, which ends at %llu: "
                    "reads of the rest fail",
                    (unsigned long long)s->id, (unsigned long long)s->fork_offset,
                    (unsigned long long)s->source_id, (unsigned long long)source.tail);
    }
}

/* Follows the chain of sources, which ends since ids fall along it. */
static void check_depth(struct verify *v, const struct seen *s)
{
    unsigned depth = 0;
    struct seen at = *s;
    while (at.source_id != 0 && at.source_id < at.id && depth <= FORK_DEPTH_MAX) {
        at = after_log(v, at.source_id);
        depth++;
    }
    if (depth > FORK_DEPTH_MAX) {
        verify_tell(v, VERIFY_DAMAGE, CATALOG_FILE,
                    "table streams: stream %llu is a fork over more than %u streams: it cannot be "
                    "loaded",
                    (unsigned long long)s->id, FORK_DEPTH_MAX);
    }
}

static void check_fork(struct verify *v, const struct seen *s)
{
    if (s->life != SEEN_GONE && s->source_id != 0) {
        add_source(v, s->source_id);
        check_source(v, s);
        check_depth(v, s);
    }
}

static int compare_ids(const void *a, const void *b)
{
    stream_id left = *(const stream_id *)a;
    stream_id right = *(const stream_id *)b;
    return left < right ? -1 : left > right;
}

/* Entries below `id`. */
static size_t count_below(const struct source_list *l, stream_id id)
{
    size_t low = 0;
    size_t high = l->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (l->ids[middle] < id) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

static void check_count(struct verify *v, const struct seen *s)
{
    if (s->life == SEEN_GONE) {
        return;
    }
    uint64_t forks = count_below(&v->sources, s->id + 1) - count_below(&v->sources, s->id);
    if (forks != s->fork_refs) {
        verify_tell(v, VERIFY_DAMAGE, CATALOG_FILE,
                    "table streams: stream %llu says that it has %llu forks, and there are %llu: "
                    "%s",
                    (unsigned long long)s->id, (unsigned long long)s->fork_refs,
                    (unsigned long long)forks,
                    forks > s->fork_refs ? "deleting it may take the bytes of forks away"
                                         : "once deleted it is never removed");
    } else if (s->life == SEEN_SOFT && forks == 0) {
        verify_tell(v, VERIFY_DAMAGE, CATALOG_FILE,
                    "table streams: stream %llu was deleted and is kept for forks, and has none: "
                    "its name is never free again",
                    (unsigned long long)s->id);
    }
}

void verify_forks(struct verify *v)
{
    if (v->report.memory || v->error) {
        return; /* in memory mode a part of the truth died with the process */
    }
    if (!v->log_whole || !v->usable[TABLE_STREAMS]) {
        verify_tell(v, VERIFY_NOTE, CATALOG_FILE,
                    "forks were not compared with their sources: for that, table streams and the "
                    "log must be whole");
        return;
    }
    each_stream(v, check_fork);
    if (v->sources.count > 0) {
        qsort(v->sources.ids, v->sources.count, sizeof(v->sources.ids[0]), compare_ids);
    }
    if (!v->error) {
        each_stream(v, check_count);
    }
}
