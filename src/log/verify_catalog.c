/* Pages first, all of them; then each table once, in the order of its keys, looking into the others
 * for what they must say too. Streams and extents are walked side by side, since both are sorted by
 * stream: so an extent that belongs to no stream is seen without a look. */
#include <stdio.h>
#include <stdlib.h>

#include "base/bytes.h"
#include "log/catalog_value.h"
#include "log/verify_parts.h"

/* Pages. */

struct pages {
    struct verify *verify;
    const char *table; /* being looked at */
};

static void on_problem(void *context, uint64_t page, const char *what)
{
    struct pages *p = context;
    verify_tell(p->verify, VERIFY_DAMAGE, CATALOG_FILE,
                "page %llu, of table %s: %s: a server may not start, or end when it meets the page",
                (unsigned long long)page, p->table, what);
}

static void note_error(struct verify *v, int rc)
{
    if (rc == ERR_NOMEM) {
        v->error = rc;
    }
}

void verify_missing(struct verify *v, enum catalog_table table)
{
    verify_tell(v, VERIFY_DAMAGE, CATALOG_FILE, "table %s is missing: all it held is lost",
                catalog_table_name(table));
}

static void check_table(struct verify *v, enum catalog_table table, struct btree_usage *usage)
{
    struct pages p = {.verify = v, .table = catalog_table_name(table)};
    int rc = btree_file_table(v->catalog, p.table, &v->tables[table]);
    if (rc == ERR_NOTFOUND) {
        v->tables[table].flags = TREE_MISSING;
        if (table != TABLE_NOTES) { /* which the first format did not have */
            verify_missing(v, table);
        }
        return;
    }
    if (rc == ERR_CORRUPT) {
        on_problem(&p, v->catalog->fault_page, v->catalog->fault);
    }
    rc = rc ? rc : btree_check_tree(v->catalog, &v->tables[table], usage, on_problem, &p);
    note_error(v, rc);
    v->usable[table] = rc == 0;
    btree_cursor_init(&v->finders[table], v->catalog, &v->tables[table]);
}

static void check_roots(struct verify *v)
{
    for (unsigned i = 0; i < 2; i++) {
        if (v->catalog->root_damaged[i]) {
            verify_tell(v, VERIFY_DAMAGE, CATALOG_FILE,
                        "page %u, a root: it does not prove itself: a server cannot open the "
                        "catalog, which is checked by its other root",
                        i);
        }
    }
}

void verify_pages(struct verify *v)
{
    struct btree_usage usage;
    struct pages p = {.verify = v, .table = "of tables"};
    check_roots(v);
    int rc = btree_usage_init(&usage, v->catalog);
    rc = rc ? rc : btree_check_tree(v->catalog, &v->catalog->main, &usage, on_problem, &p);
    note_error(v, rc);
    bool whole = rc == 0;
    for (unsigned i = 0; i < TABLE_COUNT && whole; i++) {
        check_table(v, (enum catalog_table)i, &usage);
    }
    p.table = "of free pages";
    if (whole && !v->error) {
        note_error(v, btree_check_free(v->catalog, &usage, on_problem, &p));
    }
    btree_usage_finish(&usage);
    verify_progress(v, v->report.catalog_bytes);
}

/* Streams with their extents. */

struct streams {
    struct verify *verify;
    struct btree_cursor extents;
    bool any;         /* an extent is at hand, not yet looked at */
    stream_id owner;  /* of it */
    struct extent at; /* it */
};

static void bad_entry(struct verify *v, enum catalog_table table, const char *means)
{
    verify_tell(v, VERIFY_DAMAGE, CATALOG_FILE, "table %s: an entry does not decode: %s",
                catalog_table_name(table), means);
}

/* Takes the next extent to hand. */
static void next_extent(struct streams *s)
{
    struct verify *v = s->verify;
    struct slice key;
    struct slice value;
    s->any = false;
    while (!s->any && verify_next(v, TABLE_EXTENTS, &s->extents, &key, &value)) {
        if (catalog_decode_extent_entry(key, value, &s->owner, &s->at)) {
            bad_entry(v, TABLE_EXTENTS, "some bytes of a stream cannot be read");
        } else {
            s->any = true;
            v->report.extents++;
            v->report.stream_bytes += s->at.len;
        }
    }
}

/* Extents of ids below `id` belong to nobody. */
static void skip_orphans(struct streams *s, stream_id id)
{
    stream_id told = 0;
    while (s->any && s->owner < id) {
        if (s->owner != told) {
            verify_tell(s->verify, VERIFY_DAMAGE, CATALOG_FILE,
                        "table extents: stream %llu has extents and is not in table streams: "
                        "its bytes cannot be read and keep their space",
                        (unsigned long long)s->owner);
        }
        told = s->owner;
        next_extent(s);
    }
}

/* What the index by pack says of the extent. */
static void check_indexed(struct streams *s, const char *name)
{
    struct verify *v = s->verify;
    uint8_t key[CATALOG_PAIR_KEY_BYTES];
    struct slice value;
    uint64_t id = 0;
    uint64_t start = 0;
    catalog_encode_pair_key(s->at.pack, s->at.at, key);
    int rc = verify_get(v, TABLE_PACK_EXTENTS, (struct slice){(const char *)key, sizeof(key)},
                        &value);
    rc = rc ? rc : catalog_decode_pair(value, &id, &start);
    if (rc == ERR_NOTFOUND || (rc == 0 && (id != s->owner || start != s->at.start))) {
        verify_tell(v, VERIFY_DAMAGE, CATALOG_FILE,
                    "table pack_extents: stream %llu (%s): the extent at %llu is in pack %llu at "
                    "%llu, and the index of that pack does not say so: compaction would lose it",
                    (unsigned long long)s->owner, name, (unsigned long long)s->at.start,
                    (unsigned long long)s->at.pack, (unsigned long long)s->at.at);
    }
}

/* The extents of a stream cover its own bytes, each once. */
static void check_extents(struct streams *s, const struct stream_meta *m, const char *name)
{
    struct verify *v = s->verify;
    uint64_t end = m->fork_offset;
    while (s->any && s->owner == m->id) {
        if (s->at.start != end) {
            verify_tell(v, VERIFY_DAMAGE, CATALOG_FILE,
                        "table extents: stream %llu (%s): the bytes before %llu %s at %llu: the "
                        "stream cannot be loaded",
                        (unsigned long long)m->id, name, (unsigned long long)s->at.start,
                        s->at.start > end ? "are in no extent; the last one ends"
                                          : "are in two extents; the last one ends",
                        (unsigned long long)end);
        }
        check_indexed(s, name);
        end = s->at.start + s->at.len;
        next_extent(s);
    }
    if (end != m->tail && v->usable[TABLE_EXTENTS]) {
        verify_tell(v, VERIFY_DAMAGE, CATALOG_FILE,
                    "table streams: stream %llu (%s): it ends at %llu, its extents at %llu: the "
                    "stream cannot be loaded",
                    (unsigned long long)m->id, name, (unsigned long long)m->tail,
                    (unsigned long long)end);
    }
}

static void check_name(struct verify *v, const struct stream_meta *m, const char *name)
{
    struct slice value;
    int rc = verify_get(v, TABLE_NAMES, m->name, &value);
    if (rc == ERR_NOTFOUND) {
        verify_tell(v, VERIFY_DAMAGE, CATALOG_FILE,
                    "table names: stream %llu (%s) is not there: nobody finds it",
                    (unsigned long long)m->id, name);
        return;
    }
    stream_id holder = rc == 0 && value.len == 8 ? bytes_get_u64(value.ptr) : m->id;
    if (holder < m->id ||
        (holder > m->id && v->log_whole && verify_after_log(v, m).life != SEEN_GONE)) {
        verify_tell(v, VERIFY_DAMAGE, CATALOG_FILE,
                    "table names: %s belongs to stream %llu, and stream %llu bears it too: only "
                    "one of them is found",
                    name, (unsigned long long)holder, (unsigned long long)m->id);
    }
}

static void check_positions(struct verify *v, const struct stream_meta *m, const char *name)
{
    if (m->id >= v->state.next_stream) {
        verify_tell(v, VERIFY_DAMAGE, CATALOG_FILE,
                    "table meta: the next stream is to be %llu, and stream %llu (%s) exists: a new "
                    "stream would get its bytes",
                    (unsigned long long)v->state.next_stream, (unsigned long long)m->id, name);
    }
    if (v->log_whole && m->applied > v->log_end) {
        verify_tell(v, VERIFY_DAMAGE, CATALOG_FILE,
                    "table streams: stream %llu (%s): it is known up to log position %llu, and the "
                    "log ends at %llu: acknowledged records are missing from the log",
                    (unsigned long long)m->id, name, (unsigned long long)m->applied,
                    (unsigned long long)v->log_end);
    }
}

static void check_deadline(struct verify *v, const struct stream_meta *m, const char *name)
{
    int64_t deadline = catalog_deadline(m);
    uint8_t key[CATALOG_PAIR_KEY_BYTES];
    struct slice value;
    if (deadline == INT64_MAX) {
        return;
    }
    catalog_encode_pair_key(deadline < 0 ? 0 : (uint64_t)deadline, m->id, key);
    if (verify_get(v, TABLE_EXPIRY, (struct slice){(const char *)key, sizeof(key)}, &value) ==
        ERR_NOTFOUND) {
        verify_tell(v, VERIFY_DAMAGE, CATALOG_FILE,
                    "table expiry: stream %llu (%s) is not there at %lld: it expires only when "
                    "somebody asks for it",
                    (unsigned long long)m->id, name, (long long)deadline);
    }
}

static void check_stream(struct streams *s, stream_id id, struct slice value)
{
    struct verify *v = s->verify;
    struct stream_meta m;
    char name[VERIFY_NAME_BYTES];
    skip_orphans(s, id);
    v->report.streams++;
    if (catalog_decode_stream(value, id, &m)) {
        verify_tell(v, VERIFY_DAMAGE, CATALOG_FILE,
                    "table streams: stream %llu: its entry does not match its checksum: the stream "
                    "cannot be loaded",
                    (unsigned long long)id);
        while (s->any && s->owner == id) {
            next_extent(s);
        }
        return;
    }
    v->report.forks += m.source_id != 0;
    v->report.soft_deleted += m.soft_deleted;
    v->own_bytes += m.tail - m.fork_offset;
    (void)verify_name(m.name, name);
    check_extents(s, &m, name);
    check_name(v, &m, name);
    check_positions(v, &m, name);
    check_deadline(v, &m, name);
}

static void check_streams(struct verify *v)
{
    struct streams s = {.verify = v};
    struct btree_cursor c;
    struct slice key;
    struct slice value;
    bool extents = verify_walk(v, TABLE_EXTENTS, &s.extents);
    if (extents) {
        next_extent(&s);
    }
    if (verify_walk(v, TABLE_STREAMS, &c)) {
        while (verify_next(v, TABLE_STREAMS, &c, &key, &value)) {
            if (key.len != 8) {
                bad_entry(v, TABLE_STREAMS, "a stream is lost");
            } else {
                check_stream(&s, bytes_get_u64_be(key.ptr), value);
            }
        }
        if (v->usable[TABLE_STREAMS]) {
            skip_orphans(&s, UINT64_MAX);
        }
    }
    btree_cursor_finish(&c);
    btree_cursor_finish(&s.extents);
}

/* The other tables. */

static void check_name_entry(struct verify *v, struct slice key, struct slice value)
{
    struct stream_meta m;
    char name[VERIFY_NAME_BYTES];
    if (value.len != 8) {
        bad_entry(v, TABLE_NAMES, "the stream of that name is not found");
        return;
    }
    stream_id id = bytes_get_u64(value.ptr);
    int rc = verify_get_stream(v, id, &m);
    if (rc == ERR_NOTFOUND || (rc == 0 && !slice_equal(m.name, key))) {
        verify_tell(v, VERIFY_DAMAGE, CATALOG_FILE,
                    "table names: %s is said to be stream %llu, which %s: the name is taken by "
                    "nothing",
                    verify_name(key, name), (unsigned long long)id,
                    rc ? "does not exist" : "bears another name");
    }
}

static void check_producer_entry(struct verify *v, struct slice key, struct slice value)
{
    struct producer_meta p;
    struct stream_meta m;
    v->report.producers++;
    if (key.len <= 8 ||
        catalog_decode_producer(value, (struct slice){key.ptr + 8, key.len - 8}, &p)) {
        bad_entry(v, TABLE_PRODUCERS, "a producer's next request is judged wrongly");
        return;
    }
    stream_id id = bytes_get_u64_be(key.ptr);
    if (verify_get_stream(v, id, &m) == ERR_NOTFOUND) {
        char name[VERIFY_NAME_BYTES];
        verify_tell(v, VERIFY_DAMAGE, CATALOG_FILE,
                    "table producers: producer %s is of stream %llu, which does not exist: it is "
                    "never forgotten",
                    verify_name(p.id, name), (unsigned long long)id);
    }
}

static void check_expiry_entry(struct verify *v, struct slice key, struct slice value)
{
    struct stream_meta m;
    uint64_t deadline = 0;
    stream_id id = 0;
    if (catalog_decode_pair_key(key, &deadline, &id) || value.len > 0) {
        bad_entry(v, TABLE_EXPIRY, "streams behind it expire late");
        return;
    }
    int rc = verify_get_stream(v, id, &m);
    int64_t wanted = rc == 0 ? catalog_deadline(&m) : 0;
    wanted = wanted < 0 ? 0 : wanted;
    if (rc == ERR_NOTFOUND || (rc == 0 && (uint64_t)wanted != deadline)) {
        verify_tell(v, VERIFY_DAMAGE, CATALOG_FILE,
                    "table expiry: stream %llu is there at %llu, and %s: the search for what has "
                    "expired fails at it",
                    (unsigned long long)id, (unsigned long long)deadline,
                    rc ? "does not exist" : "expires at another time or never");
    }
}

static void check_note_entry(struct verify *v, struct slice key, struct slice entry)
{
    struct slice value;
    v->report.note_entries++;
    if (catalog_decode_note(key, entry, &value)) {
        char name[VERIFY_NAME_BYTES];
        verify_tell(v, VERIFY_DAMAGE, CATALOG_FILE,
                    "table notes: %s does not match its checksum: a server does not start without "
                    "what it said",
                    verify_name(key, name));
    }
}

/* What the state says of all streams; a value that did not decode makes it wrong as well. */
static void check_totals(struct verify *v)
{
    if (v->usable[TABLE_STREAMS] && v->state.counted && v->report.damages == 0 &&
        v->own_bytes != v->state.own_bytes) {
        verify_tell(v, VERIFY_DAMAGE, CATALOG_FILE,
                    "table meta: all streams are said to have %llu bytes, and have %llu: "
                    "--max-bytes counts wrongly",
                    (unsigned long long)v->state.own_bytes, (unsigned long long)v->own_bytes);
    }
}

typedef void (*entry_fn)(struct verify *v, struct slice key, struct slice value);

static void check_entries(struct verify *v, enum catalog_table table, entry_fn each)
{
    struct btree_cursor c;
    struct slice key;
    struct slice value;
    if (verify_walk(v, table, &c)) {
        while (verify_next(v, table, &c, &key, &value)) {
            each(v, key, value);
        }
    }
    btree_cursor_finish(&c);
}

void verify_tables(struct verify *v)
{
    check_streams(v);
    check_entries(v, TABLE_NAMES, check_name_entry);
    check_entries(v, TABLE_PRODUCERS, check_producer_entry);
    check_entries(v, TABLE_EXPIRY, check_expiry_entry);
    check_entries(v, TABLE_NOTES, check_note_entry);
    check_totals(v);
}
