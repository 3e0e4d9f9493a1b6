/* Tables of the LMDB environment; values are in catalog_value.c, numbers in keys are big-endian:
 *
 *   meta          "state"                   -> state
 *   names         name                      -> u64 stream id (little-endian)
 *   streams       stream id                 -> stream
 *   extents       stream id, start          -> extent
 *   producers     stream id, producer id    -> producer
 *   expiry        deadline in ms, stream id -> nothing
 *   packs         pack id                   -> pack
 *   pack_extents  pack id, at               -> entry: whose extent begins there
 *
 * What must always hold together, and is kept so by the functions of a write transaction:
 *   - expiry has exactly one entry per stream with a deadline, under catalog_deadline of its value;
 *   - pack_extents mirrors extents; a pack's live bytes are the sum over its entries of data, marks and
 *     extent header;
 *   - names[n] is the stream that bears the name n: of several in the catalog the newest, since ids
 *     grow and a name is given to a new stream only after the old one went.
 *
 * LMDB keeps two generations of its root and syncs data before the root, so a crash leaves the catalog
 * as it was before or after a transaction. */
#include "log/catalog.h"

#include <assert.h>
#include <errno.h>
#include <lmdb.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/bytes.h"
#include "log/catalog_value.h"

#define MAP_BYTES      (64ull << 30) /* address space, not memory or disk */
#define MAP_BYTES_LESS (4ull << 30)  /* where so much address space is refused */
#define READERS_MAX    512u
#define STATE_KEY      "state"
#define FILE_MODE      0600

enum table {
    TABLE_META,
    TABLE_NAMES,
    TABLE_STREAMS,
    TABLE_EXTENTS,
    TABLE_PRODUCERS,
    TABLE_EXPIRY,
    TABLE_PACKS,
    TABLE_PACK_EXTENTS,
    TABLE_COUNT
};

static const char *const table_names[TABLE_COUNT] = {
    "meta", "names", "streams", "extents", "producers", "expiry", "packs", "pack_extents",
};

struct catalog {
    struct sys *sys;
    MDB_env *env;
    MDB_dbi tables[TABLE_COUNT];
    bool unknown; /* a commit failed in the middle: no more transactions */
};

struct catalog_txn {
    struct catalog *catalog;
    MDB_txn *txn;
    int error; /* sticky */
};

static int from_mdb(int rc)
{
    switch (rc) {
    case MDB_SUCCESS:
        return 0;
    case MDB_NOTFOUND:
        return ERR_NOTFOUND;
    case MDB_MAP_FULL:
        return ERR_NOSPC;
    case MDB_CORRUPTED:
    case MDB_PAGE_NOTFOUND:
    case MDB_INVALID:
        return ERR_CORRUPT;
    case MDB_VERSION_MISMATCH:
        return ERR_MISMATCH;
    case MDB_READERS_FULL:
        return ERR_AGAIN;
    default:
        return rc > 0 ? err_from_errno(rc) : ERR_IO;
    }
}

static MDB_val val_of(const void *bytes, size_t len)
{
    return (MDB_val){.mv_size = len, .mv_data = (void *)(uintptr_t)bytes};
}

static struct slice slice_of_val(MDB_val v)
{
    return (struct slice){v.mv_data, v.mv_size};
}

/* Opening. */

static int open_env(struct catalog *c, const char *dir, bool sync)
{
    int rc = mdb_env_create(&c->env);
    if (rc) {
        return from_mdb(rc);
    }
    unsigned flags = MDB_NOTLS | MDB_NORDAHEAD | (sync ? 0 : MDB_NOSYNC);
    rc = mdb_env_set_maxdbs(c->env, TABLE_COUNT);
    rc = rc ? rc : mdb_env_set_maxreaders(c->env, READERS_MAX);
    rc = rc ? rc : mdb_env_set_mapsize(c->env, MAP_BYTES);
    rc = rc ? rc : mdb_env_open(c->env, dir, flags, FILE_MODE);
    if (rc == ENOMEM) {
        mdb_env_close(c->env);
        rc = mdb_env_create(&c->env);
        rc = rc ? rc : mdb_env_set_maxdbs(c->env, TABLE_COUNT);
        rc = rc ? rc : mdb_env_set_maxreaders(c->env, READERS_MAX);
        rc = rc ? rc : mdb_env_set_mapsize(c->env, MAP_BYTES_LESS);
        rc = rc ? rc : mdb_env_open(c->env, dir, flags, FILE_MODE);
    }
    int dead = 0;
    rc = rc ? rc : mdb_reader_check(c->env, &dead); /* slots of processes that were killed */
    return from_mdb(rc);
}

static int new_state(struct catalog *c, MDB_txn *txn, struct catalog_state *ret_state)
{
    MDB_stat stat;
    int rc = mdb_stat(txn, c->tables[TABLE_STREAMS], &stat);
    if (rc || stat.ms_entries > 0) {
        return rc ? from_mdb(rc) : ERR_CORRUPT; /* streams without a state: something ate it */
    }
    struct catalog_state state = {.format = CATALOG_FORMAT, .next_stream = 1, .next_pack = 1};
    c->sys->random(c->sys->context, state.uuid, sizeof(state.uuid));
    uint8_t bytes[CATALOG_STATE_BYTES];
    catalog_encode_state(&state, bytes);
    MDB_val key = val_of(STATE_KEY, strlen(STATE_KEY));
    MDB_val value = val_of(bytes, sizeof(bytes));
    rc = mdb_put(txn, c->tables[TABLE_META], &key, &value, 0);
    if (rc == 0) {
        *ret_state = state;
    }
    return from_mdb(rc);
}

/* Makes the tables when they are missing, and reads or makes the state. */
static int open_tables(struct catalog *c, MDB_txn *txn, struct catalog_state *ret_state)
{
    for (unsigned i = 0; i < TABLE_COUNT; i++) {
        int rc = mdb_dbi_open(txn, table_names[i], MDB_CREATE, &c->tables[i]);
        if (rc) {
            return from_mdb(rc);
        }
    }
    MDB_val key = val_of(STATE_KEY, strlen(STATE_KEY));
    MDB_val value;
    int rc = mdb_get(txn, c->tables[TABLE_META], &key, &value);
    if (rc == MDB_NOTFOUND) {
        return new_state(c, txn, ret_state);
    }
    return rc ? from_mdb(rc) : catalog_decode_state(slice_of_val(value), ret_state);
}

static int read_tables(struct catalog *c, struct catalog_state *ret_state)
{
    MDB_txn *txn = NULL;
    int rc = mdb_txn_begin(c->env, NULL, 0, &txn);
    if (rc) {
        return from_mdb(rc);
    }
    struct catalog_state state;
    rc = open_tables(c, txn, &state);
    rc = rc ? rc : c->sys->catalog_commit(c->sys->context);
    if (rc) {
        mdb_txn_abort(txn);
        return rc;
    }
    rc = from_mdb(mdb_txn_commit(txn));
    if (rc == 0) {
        *ret_state = state;
    }
    return rc;
}

int catalog_open(struct sys *sys, const char *dir, bool sync, struct catalog **ret_catalog,
                 struct catalog_state *ret_state, struct errmsg *msg)
{
    struct catalog *c = calloc(1, sizeof(*c));
    if (!c) {
        return err_set(msg, ERR_NOMEM, "%s", err_text(ERR_NOMEM));
    }
    c->sys = sys;
    struct catalog_state state;
    int rc = open_env(c, dir, sync);
    rc = rc ? rc : read_tables(c, &state);
    if (rc) {
        (void)err_set(msg, rc, "cannot open the catalog %s: %s", dir, err_text(rc));
    } else if (state.format != CATALOG_FORMAT) {
        rc = err_set(msg, ERR_MISMATCH, "the catalog %s has format %u; this version knows %u", dir,
                     state.format, CATALOG_FORMAT);
    }
    if (rc) {
        catalog_close(c);
        return rc;
    }
    *ret_catalog = c;
    *ret_state = state;
    return 0;
}

void catalog_close(struct catalog *c)
{
    if (c) {
        if (c->env) {
            mdb_env_close(c->env);
        }
        free(c);
    }
}

/* Reading. */

static int begin_read(struct catalog *c, MDB_txn **ret_txn)
{
    return from_mdb(mdb_txn_begin(c->env, NULL, MDB_RDONLY, ret_txn));
}

static int get_stream(struct catalog *c, MDB_txn *txn, stream_id id, struct stream_meta *ret_meta)
{
    uint8_t key_bytes[8];
    bytes_put_u64_be(key_bytes, id);
    MDB_val key = val_of(key_bytes, sizeof(key_bytes));
    MDB_val value;
    int rc = mdb_get(txn, c->tables[TABLE_STREAMS], &key, &value);
    return rc ? from_mdb(rc) : catalog_decode_stream(slice_of_val(value), id, ret_meta);
}

static int get_name(struct catalog *c, MDB_txn *txn, struct slice name, stream_id *ret_id)
{
    if (name.len == 0 || name.len > STREAM_NAME_BYTES_MAX) {
        return ERR_NOTFOUND;
    }
    MDB_val key = val_of(name.ptr, name.len);
    MDB_val value;
    int rc = mdb_get(txn, c->tables[TABLE_NAMES], &key, &value);
    if (rc) {
        return from_mdb(rc);
    }
    if (value.mv_size != 8) {
        return ERR_CORRUPT;
    }
    *ret_id = bytes_get_u64(value.mv_data);
    return 0;
}

int catalog_find(struct catalog *c, struct slice name, stream_id *ret_id)
{
    MDB_txn *txn = NULL;
    int rc = begin_read(c, &txn);
    if (rc) {
        return rc;
    }
    rc = get_name(c, txn, name, ret_id);
    mdb_txn_abort(txn);
    return rc;
}

/* Called for each entry of a walk; a result other than 0 ends it. */
typedef int (*entry_fn)(void *context, struct slice key, struct slice value);

/* Walks a table from `from` on, for as long as keys begin with `prefix`. */
static int walk(MDB_txn *txn, MDB_dbi dbi, struct slice from, struct slice prefix, entry_fn each,
                void *context)
{
    MDB_cursor *cursor = NULL;
    int rc = from_mdb(mdb_cursor_open(txn, dbi, &cursor));
    if (rc) {
        return rc;
    }
    MDB_val key = val_of(from.ptr, from.len);
    MDB_val value;
    int got = mdb_cursor_get(cursor, &key, &value, from.len > 0 ? MDB_SET_RANGE : MDB_FIRST);
    while (got == 0 && rc == 0 && slice_starts_with(slice_of_val(key), prefix)) {
        rc = each(context, slice_of_val(key), slice_of_val(value));
        got = rc ? 0 : mdb_cursor_get(cursor, &key, &value, MDB_NEXT);
    }
    mdb_cursor_close(cursor);
    return rc ? rc : got == 0 || got == MDB_NOTFOUND ? 0 : from_mdb(got);
}

/* Walks the entries of one stream in extents or producers. */
static int walk_stream(struct catalog *c, MDB_txn *txn, enum table table, stream_id id,
                       entry_fn each, void *context)
{
    uint8_t key_bytes[8];
    bytes_put_u64_be(key_bytes, id);
    struct slice prefix = {(const char *)key_bytes, sizeof(key_bytes)};
    return walk(txn, c->tables[table], prefix, prefix, each, context);
}

static int decode_extent_entry(struct slice key, struct slice value, stream_id *ret_id,
                               struct extent *ret_extent)
{
    uint64_t start = 0;
    int rc = catalog_decode_pair_key(key, ret_id, &start);
    return rc ? rc : catalog_decode_extent(value, start, ret_extent);
}

/* Loading a stream goes over its entries twice: once to know how much memory it takes, once to fill. */
struct load {
    struct catalog_stream *stream;
    size_t extent_count;
    size_t producer_count;
    size_t bytes; /* of ids of producers and of the slices of meta */
    char *at;     /* where the next bytes go; NULL while counting */
    uint64_t end; /* of the extents so far */
};

static struct slice keep(struct load *l, struct slice s)
{
    if (!l->at) {
        l->bytes += s.len;
        return s;
    }
    struct slice kept = {l->at, s.len};
    if (s.len > 0) {
        memcpy(l->at, s.ptr, s.len);
    }
    l->at += s.len;
    return kept;
}

static int load_extent(void *context, struct slice key, struct slice value)
{
    struct load *l = context;
    stream_id id = 0;
    struct extent e;
    int rc = decode_extent_entry(key, value, &id, &e);
    if (rc) {
        return rc;
    }
    if (e.start != l->end) {
        return ERR_CORRUPT; /* a gap or an overlap */
    }
    l->end = e.start + e.len;
    if (l->at) {
        l->stream->extents[l->extent_count] = e;
    }
    l->extent_count++;
    return 0;
}

static int load_producer(void *context, struct slice key, struct slice value)
{
    struct load *l = context;
    struct producer_meta p;
    int rc = catalog_decode_producer(value, (struct slice){key.ptr + 8, key.len - 8}, &p);
    if (rc) {
        return rc;
    }
    p.id = keep(l, p.id);
    if (l->at) {
        l->stream->producers[l->producer_count] = p;
    }
    l->producer_count++;
    return 0;
}

static int load_entries(struct catalog *c, MDB_txn *txn, const struct stream_meta *meta,
                        struct load *l)
{
    l->extent_count = 0;
    l->producer_count = 0;
    l->end = meta->fork_offset;
    int rc = walk_stream(c, txn, TABLE_EXTENTS, meta->id, load_extent, l);
    rc = rc ? rc : walk_stream(c, txn, TABLE_PRODUCERS, meta->id, load_producer, l);
    return rc ? rc : l->end == meta->tail ? 0 : ERR_CORRUPT;
}

static void keep_meta(struct load *l, struct stream_meta *meta)
{
    meta->name = keep(l, meta->name);
    meta->content_type = keep(l, meta->content_type);
    meta->seq = keep(l, meta->seq);
    meta->closer.id = keep(l, meta->closer.id);
}

/* Memory for what was counted; none of the sizes is 0, so that NULL means no memory. */
static int load_allocate(struct load *l)
{
    struct catalog_stream *s = l->stream;
    s->extents = malloc((l->extent_count + 1) * sizeof(s->extents[0]));
    s->producers = malloc((l->producer_count + 1) * sizeof(s->producers[0]));
    s->bytes = malloc(l->bytes + 1);
    if (!s->extents || !s->producers || !s->bytes) {
        return ERR_NOMEM;
    }
    s->extent_count = l->extent_count;
    s->producer_count = l->producer_count;
    l->at = s->bytes;
    return 0;
}

static int load_stream(struct catalog *c, MDB_txn *txn, stream_id id, struct catalog_stream *s)
{
    int rc = get_stream(c, txn, id, &s->meta);
    if (rc) {
        return rc;
    }
    struct load l = {.stream = s};
    keep_meta(&l, &s->meta);
    rc = load_entries(c, txn, &s->meta, &l);
    rc = rc ? rc : load_allocate(&l);
    if (rc) {
        return rc;
    }
    keep_meta(&l, &s->meta);
    rc = load_entries(c, txn, &s->meta, &l);
    assert(rc || l.at == s->bytes + l.bytes);
    return rc;
}

int catalog_load(struct catalog *c, stream_id id, struct catalog_stream *ret_stream)
{
    MDB_txn *txn = NULL;
    int rc = begin_read(c, &txn);
    if (rc) {
        return rc;
    }
    struct catalog_stream s = {0};
    rc = load_stream(c, txn, id, &s);
    mdb_txn_abort(txn);
    if (rc) {
        catalog_stream_finish(&s);
        return rc;
    }
    *ret_stream = s;
    return 0;
}

void catalog_stream_finish(struct catalog_stream *s)
{
    free(s->extents);
    free(s->producers);
    free(s->bytes);
    *s = (struct catalog_stream){0};
}

/* A walk that shows streams. */
struct show {
    struct catalog *catalog;
    MDB_txn *txn;
    struct slice after; /* a name that is not shown */
    int64_t now_ms;     /* the latest deadline that is */
    size_t left;
    catalog_each_fn each;
    void *context;
};

#define SHOW_ENOUGH 1 /* ends a walk that has nothing more to show; no error is above 0 */

static int show_stream(struct show *w, stream_id id)
{
    if (w->left == 0) {
        return SHOW_ENOUGH;
    }
    struct stream_meta meta;
    int rc = get_stream(w->catalog, w->txn, id, &meta);
    if (rc) {
        return rc == ERR_NOTFOUND ? ERR_CORRUPT : rc;
    }
    w->left--;
    return w->each(w->context, &meta);
}

static int show_name(void *context, struct slice key, struct slice value)
{
    struct show *w = context;
    if (slice_equal(key, w->after)) {
        return 0;
    }
    return value.len == 8 ? show_stream(w, bytes_get_u64(value.ptr)) : ERR_CORRUPT;
}

static int show_expired(void *context, struct slice key, struct slice value)
{
    struct show *w = context;
    (void)value; /* empty */
    uint64_t deadline = 0;
    stream_id id = 0;
    int rc = catalog_decode_pair_key(key, &deadline, &id);
    if (rc) {
        return rc;
    }
    if (w->now_ms < 0 || deadline > (uint64_t)w->now_ms) {
        return SHOW_ENOUGH;
    }
    return show_stream(w, id);
}

static int show_all(struct show *w, enum table table, struct slice from, struct slice prefix,
                    entry_fn each)
{
    int rc = begin_read(w->catalog, &w->txn);
    if (rc) {
        return rc;
    }
    rc = walk(w->txn, w->catalog->tables[table], from, prefix, each, w);
    mdb_txn_abort(w->txn);
    return rc == SHOW_ENOUGH ? 0 : rc;
}

int catalog_list(struct catalog *c, struct slice prefix, struct slice after, size_t limit,
                 catalog_each_fn each, void *context)
{
    struct show w = {.catalog = c, .after = after, .left = limit, .each = each, .context = context};
    struct slice from = slice_compare(after, prefix) > 0 ? after : prefix;
    if (from.len > STREAM_NAME_BYTES_MAX) {
        return 0; /* no name is so long, and LMDB refuses such keys */
    }
    return show_all(&w, TABLE_NAMES, from, prefix, show_name);
}

int catalog_expired(struct catalog *c, int64_t now_ms, size_t limit, catalog_each_fn each,
                    void *context)
{
    struct show w = {
        .catalog = c, .now_ms = now_ms, .left = limit, .each = each, .context = context};
    return show_all(&w, TABLE_EXPIRY, (struct slice){0}, (struct slice){0}, show_expired);
}

uint64_t catalog_count(struct catalog *c)
{
    MDB_txn *txn = NULL;
    MDB_stat stat = {0};
    if (begin_read(c, &txn)) {
        return 0;
    }
    int rc = mdb_stat(txn, c->tables[TABLE_STREAMS], &stat);
    mdb_txn_abort(txn);
    return rc ? 0 : stat.ms_entries;
}

/* A walk over packs or extents. */
struct pack_walk {
    struct catalog *catalog;
    MDB_txn *txn;
    catalog_pack_fn each_pack;
    catalog_extent_fn each_extent;
    void *context;
};

static int pack_entry(void *context, struct slice key, struct slice value)
{
    struct pack_walk *w = context;
    uint64_t live = 0;
    uint64_t total = 0;
    int rc = key.len == 8 ? catalog_decode_pair(value, &live, &total) : ERR_CORRUPT;
    return rc ? rc : w->each_pack(w->context, bytes_get_u64_be(key.ptr), live, total);
}

static int run_pack_walk(struct pack_walk *w, enum table table, struct slice prefix, entry_fn each)
{
    int rc = begin_read(w->catalog, &w->txn);
    if (rc) {
        return rc;
    }
    rc = walk(w->txn, w->catalog->tables[table], prefix, prefix, each, w);
    mdb_txn_abort(w->txn);
    return rc;
}

int catalog_each_pack(struct catalog *c, catalog_pack_fn each, void *context)
{
    struct pack_walk w = {.catalog = c, .each_pack = each, .context = context};
    return run_pack_walk(&w, TABLE_PACKS, (struct slice){0}, pack_entry);
}

static int get_extent(struct catalog *c, MDB_txn *txn, stream_id id, uint64_t start,
                      struct extent *ret_extent)
{
    uint8_t key_bytes[CATALOG_PAIR_KEY_BYTES];
    catalog_encode_pair_key(id, start, key_bytes);
    MDB_val key = val_of(key_bytes, sizeof(key_bytes));
    MDB_val value;
    int rc = mdb_get(txn, c->tables[TABLE_EXTENTS], &key, &value);
    return rc ? from_mdb(rc) : catalog_decode_extent(slice_of_val(value), start, ret_extent);
}

static int pack_extent_entry(void *context, struct slice key, struct slice value)
{
    struct pack_walk *w = context;
    (void)key; /* the extent says the same */
    stream_id id = 0;
    uint64_t start = 0;
    int rc = catalog_decode_pair(value, &id, &start);
    if (rc) {
        return rc;
    }
    struct extent e;
    rc = get_extent(w->catalog, w->txn, id, start, &e);
    return rc == ERR_NOTFOUND ? ERR_CORRUPT : rc ? rc : w->each_extent(w->context, id, &e);
}

int catalog_each_extent(struct catalog *c, pack_id pack, catalog_extent_fn each, void *context)
{
    struct pack_walk w = {.catalog = c, .each_extent = each, .context = context};
    uint8_t key_bytes[8];
    bytes_put_u64_be(key_bytes, pack);
    struct slice prefix = {(const char *)key_bytes, sizeof(key_bytes)};
    return run_pack_walk(&w, TABLE_PACK_EXTENTS, prefix, pack_extent_entry);
}

static int stream_extent_entry(void *context, struct slice key, struct slice value)
{
    struct pack_walk *w = context;
    stream_id id = 0;
    struct extent e;
    int rc = decode_extent_entry(key, value, &id, &e);
    return rc ? rc : w->each_extent(w->context, id, &e);
}

int catalog_each_stream_extent(struct catalog *c, stream_id id, catalog_extent_fn each,
                               void *context)
{
    struct pack_walk w = {.catalog = c, .each_extent = each, .context = context};
    uint8_t key_bytes[8];
    bytes_put_u64_be(key_bytes, id);
    struct slice prefix = {(const char *)key_bytes, sizeof(key_bytes)};
    return run_pack_walk(&w, TABLE_EXTENTS, prefix, stream_extent_entry);
}

/* Writing. */

int catalog_begin(struct catalog *c, struct catalog_txn **ret_txn)
{
    if (c->unknown) {
        return ERR_UNKNOWN;
    }
    struct catalog_txn *t = malloc(sizeof(*t));
    if (!t) {
        return ERR_NOMEM;
    }
    *t = (struct catalog_txn){.catalog = c};
    int rc = mdb_txn_begin(c->env, NULL, 0, &t->txn);
    if (rc) {
        free(t);
        return from_mdb(rc);
    }
    *ret_txn = t;
    return 0;
}

static void note_error(struct catalog_txn *t, int rc)
{
    if (t->error == 0 && rc != 0) {
        t->error = rc;
    }
}

static void put(struct catalog_txn *t, enum table table, const void *key, size_t key_len,
                const void *value, size_t value_len)
{
    if (t->error == 0) {
        MDB_val k = val_of(key, key_len);
        MDB_val v = val_of(value, value_len);
        note_error(t, from_mdb(mdb_put(t->txn, t->catalog->tables[table], &k, &v, 0)));
    }
}

/* Removes an entry; one that is not there is fine. */
static void del(struct catalog_txn *t, enum table table, const void *key, size_t key_len)
{
    if (t->error == 0) {
        MDB_val k = val_of(key, key_len);
        int rc = mdb_del(t->txn, t->catalog->tables[table], &k, NULL);
        note_error(t, rc == MDB_NOTFOUND ? 0 : from_mdb(rc));
    }
}

static void del_deadline(struct catalog_txn *t, const struct stream_meta *meta)
{
    int64_t deadline = catalog_deadline(meta);
    if (deadline != INT64_MAX) {
        uint8_t key[CATALOG_PAIR_KEY_BYTES];
        catalog_encode_pair_key(deadline < 0 ? 0 : (uint64_t)deadline, meta->id, key);
        del(t, TABLE_EXPIRY, key, sizeof(key));
    }
}

static void put_deadline(struct catalog_txn *t, const struct stream_meta *meta)
{
    int64_t deadline = catalog_deadline(meta);
    if (deadline != INT64_MAX) {
        uint8_t key[CATALOG_PAIR_KEY_BYTES];
        catalog_encode_pair_key(deadline < 0 ? 0 : (uint64_t)deadline, meta->id, key);
        put(t, TABLE_EXPIRY, key, sizeof(key), "", 0);
    }
}

static void put_name(struct catalog_txn *t, const struct stream_meta *meta)
{
    stream_id holder = 0;
    int rc = get_name(t->catalog, t->txn, meta->name, &holder);
    if (rc && rc != ERR_NOTFOUND) {
        note_error(t, rc);
        return;
    }
    if (rc == ERR_NOTFOUND || holder < meta->id) {
        uint8_t value[8];
        bytes_put_u64(value, meta->id);
        put(t, TABLE_NAMES, meta->name.ptr, meta->name.len, value, sizeof(value));
    }
}

void catalog_put_stream(struct catalog_txn *t, const struct stream_meta *meta)
{
    if (t->error) {
        return;
    }
    struct stream_meta old;
    int rc = get_stream(t->catalog, t->txn, meta->id, &old);
    note_error(t, rc == ERR_NOTFOUND ? 0 : rc);
    if (rc || catalog_deadline(&old) != catalog_deadline(meta)) {
        if (rc == 0) {
            del_deadline(t, &old);
        }
        put_deadline(t, meta);
    }
    put_name(t, meta);
    uint8_t key[8];
    uint8_t value[CATALOG_STREAM_BYTES_MAX];
    bytes_put_u64_be(key, meta->id);
    put(t, TABLE_STREAMS, key, sizeof(key), value, catalog_encode_stream(meta, value));
}

/* The key of a producer, 8 + PRODUCER_ID_BYTES_MAX bytes; returns its length. */
static size_t producer_key(stream_id id, struct slice producer_id, uint8_t *out)
{
    assert(producer_id.len > 0 && producer_id.len <= PRODUCER_ID_BYTES_MAX);
    bytes_put_u64_be(out, id);
    memcpy(out + 8, producer_id.ptr, producer_id.len);
    return 8 + producer_id.len;
}

void catalog_put_producer(struct catalog_txn *t, stream_id id, const struct producer_meta *p)
{
    uint8_t key[8 + PRODUCER_ID_BYTES_MAX];
    uint8_t value[CATALOG_PRODUCER_BYTES];
    size_t key_len = producer_key(id, p->id, key);
    catalog_encode_producer(p, value);
    put(t, TABLE_PRODUCERS, key, key_len, value, sizeof(value));
}

void catalog_del_producer(struct catalog_txn *t, stream_id id, struct slice producer_id)
{
    uint8_t key[8 + PRODUCER_ID_BYTES_MAX];
    del(t, TABLE_PRODUCERS, key, producer_key(id, producer_id, key));
}

static int get_pack(struct catalog_txn *t, pack_id id, uint64_t *ret_live, uint64_t *ret_total)
{
    uint8_t key_bytes[8];
    bytes_put_u64_be(key_bytes, id);
    MDB_val key = val_of(key_bytes, sizeof(key_bytes));
    MDB_val value;
    int rc = mdb_get(t->txn, t->catalog->tables[TABLE_PACKS], &key, &value);
    return rc ? from_mdb(rc) : catalog_decode_pair(slice_of_val(value), ret_live, ret_total);
}

static void set_pack(struct catalog_txn *t, pack_id id, uint64_t live, uint64_t total)
{
    uint8_t key[8];
    uint8_t value[CATALOG_PACK_BYTES];
    bytes_put_u64_be(key, id);
    catalog_encode_pair(live, total, value);
    put(t, TABLE_PACKS, key, sizeof(key), value, sizeof(value));
}

void catalog_put_pack(struct catalog_txn *t, pack_id id, uint64_t total_bytes)
{
    uint64_t live = 0;
    uint64_t total = 0;
    int rc = get_pack(t, id, &live, &total);
    if (rc && rc != ERR_NOTFOUND) {
        note_error(t, rc);
    }
    set_pack(t, id, live, total_bytes);
}

void catalog_del_pack(struct catalog_txn *t, pack_id id)
{
    uint64_t live = 0;
    uint64_t total = 0;
    int rc = get_pack(t, id, &live, &total);
    if (rc == 0 && live > 0) {
        rc = ERR_CORRUPT;
    }
    note_error(t, rc == ERR_NOTFOUND ? 0 : rc);
    uint8_t key[8];
    bytes_put_u64_be(key, id);
    del(t, TABLE_PACKS, key, sizeof(key));
}

static uint64_t extent_footprint(const struct extent *e)
{
    return PACK_EXTENT_HEADER_BYTES + (uint64_t)e->len + e->marks_len;
}

static void insert_extent(struct catalog_txn *t, stream_id id, const struct extent *e)
{
    uint8_t key[CATALOG_PAIR_KEY_BYTES];
    uint8_t value[CATALOG_EXTENT_BYTES];
    uint8_t entry[CATALOG_PACK_ENTRY_BYTES];
    uint64_t live = 0;
    uint64_t total = 0;
    int rc = get_pack(t, e->pack, &live, &total);
    if (rc && rc != ERR_NOTFOUND) {
        note_error(t, rc);
    }
    set_pack(t, e->pack, live + extent_footprint(e), total);
    catalog_encode_pair_key(id, e->start, key);
    catalog_encode_extent(e, value);
    put(t, TABLE_EXTENTS, key, sizeof(key), value, sizeof(value));
    catalog_encode_pair_key(e->pack, e->at, key);
    catalog_encode_pair(id, e->start, entry);
    put(t, TABLE_PACK_EXTENTS, key, sizeof(key), entry, sizeof(entry));
}

static void remove_extent(struct catalog_txn *t, stream_id id, const struct extent *e)
{
    uint8_t key[CATALOG_PAIR_KEY_BYTES];
    uint64_t live = 0;
    uint64_t total = 0;
    int rc = get_pack(t, e->pack, &live, &total);
    if (rc == 0 && live < extent_footprint(e)) {
        rc = ERR_CORRUPT;
    }
    if (rc) {
        note_error(t, rc == ERR_NOTFOUND ? ERR_CORRUPT : rc);
        return;
    }
    set_pack(t, e->pack, live - extent_footprint(e), total);
    catalog_encode_pair_key(id, e->start, key);
    del(t, TABLE_EXTENTS, key, sizeof(key));
    catalog_encode_pair_key(e->pack, e->at, key);
    del(t, TABLE_PACK_EXTENTS, key, sizeof(key));
}

/* The end of the last extent of a stream, 0 when it has none. */
static int last_end(struct catalog_txn *t, stream_id id, uint64_t *ret_end)
{
    MDB_cursor *cursor = NULL;
    int rc = from_mdb(mdb_cursor_open(t->txn, t->catalog->tables[TABLE_EXTENTS], &cursor));
    if (rc) {
        return rc;
    }
    uint8_t key_bytes[CATALOG_PAIR_KEY_BYTES];
    catalog_encode_pair_key(id, UINT64_MAX, key_bytes); /* behind all that an extent can have */
    MDB_val key = val_of(key_bytes, sizeof(key_bytes));
    MDB_val value;
    rc = mdb_cursor_get(cursor, &key, &value, MDB_SET_RANGE);
    rc = mdb_cursor_get(cursor, &key, &value, rc == MDB_NOTFOUND ? MDB_LAST : MDB_PREV);
    stream_id owner = 0;
    struct extent e = {0};
    if (rc == 0) {
        rc = decode_extent_entry(slice_of_val(key), slice_of_val(value), &owner, &e);
    } else {
        rc = rc == MDB_NOTFOUND ? 0 : from_mdb(rc);
    }
    mdb_cursor_close(cursor);
    if (rc == 0) {
        *ret_end = owner == id ? e.start + e.len : 0;
    }
    return rc;
}

void catalog_add_extent(struct catalog_txn *t, stream_id id, const struct extent *e)
{
    if (t->error) {
        return;
    }
    uint64_t end = 0;
    int rc = last_end(t, id, &end);
    if (rc) {
        note_error(t, rc);
    } else if (end == 0 || end == e->start) {
        insert_extent(t, id, e);
    } else if (end < e->start + e->len) {
        note_error(t, ERR_CORRUPT); /* a gap, or half of it is there */
    }
}

/* Extents in a range that another one is to replace. */
struct covered {
    uint64_t from;        /* where the next one must begin */
    uint64_t to;          /* where the last one must end */
    struct extent *found; /* owned */
    size_t count;
    size_t cap;
};

static int add_covered(void *context, struct slice key, struct slice value)
{
    struct covered *v = context;
    stream_id id = 0;
    struct extent e;
    int rc = decode_extent_entry(key, value, &id, &e);
    if (rc) {
        return rc;
    }
    if (v->from == v->to) {
        return SHOW_ENOUGH;
    }
    if (e.start != v->from || e.len > v->to - v->from) {
        return ERR_NOTFOUND;
    }
    if (v->count == v->cap) {
        size_t cap = v->cap ? v->cap * 2 : 16;
        struct extent *found = realloc(v->found, cap * sizeof(found[0]));
        if (!found) {
            return ERR_NOMEM;
        }
        v->found = found;
        v->cap = cap;
    }
    v->found[v->count++] = e;
    v->from += e.len;
    return 0;
}

int catalog_replace_extents(struct catalog_txn *t, stream_id id, const struct extent *e)
{
    if (t->error) {
        return t->error;
    }
    struct covered v = {.from = e->start, .to = e->start + e->len};
    uint8_t from[CATALOG_PAIR_KEY_BYTES];
    catalog_encode_pair_key(id, e->start, from);
    struct slice key = {(const char *)from, sizeof(from)};
    struct slice prefix = {(const char *)from, 8};
    int rc = walk(t->txn, t->catalog->tables[TABLE_EXTENTS], key, prefix, add_covered, &v);
    rc = rc == SHOW_ENOUGH ? 0 : rc;
    if (rc == 0 && v.from != v.to) {
        rc = ERR_NOTFOUND;
    }
    for (size_t i = 0; i < v.count && rc == 0; i++) {
        remove_extent(t, id, &v.found[i]);
    }
    free(v.found);
    if (rc == 0) {
        insert_extent(t, id, e);
        rc = t->error;
    } else if (rc != ERR_NOTFOUND) {
        note_error(t, rc);
    }
    return rc;
}

/* Removes the first entry of a stream from extents or producers; false when there is none left. An
 * entry at a time, since a cursor does not outlive the writes that remove_extent makes. */
static bool remove_first(struct catalog_txn *t, enum table table, stream_id id)
{
    MDB_cursor *cursor = NULL;
    int rc = mdb_cursor_open(t->txn, t->catalog->tables[table], &cursor);
    if (rc) {
        note_error(t, from_mdb(rc));
        return false;
    }
    uint8_t key_bytes[8];
    bytes_put_u64_be(key_bytes, id);
    MDB_val key = val_of(key_bytes, sizeof(key_bytes));
    MDB_val value;
    rc = mdb_cursor_get(cursor, &key, &value, MDB_SET_RANGE);
    bool found = rc == 0 && key.mv_size >= 8 && bytes_get_u64_be(key.mv_data) == id;
    struct extent e;
    stream_id owner = 0;
    if (found && table == TABLE_EXTENTS) {
        rc = decode_extent_entry(slice_of_val(key), slice_of_val(value), &owner, &e);
        note_error(t, rc);
    } else if (found) {
        note_error(t, from_mdb(mdb_cursor_del(cursor, 0)));
    } else {
        note_error(t, rc == 0 || rc == MDB_NOTFOUND ? 0 : from_mdb(rc));
    }
    mdb_cursor_close(cursor);
    if (found && table == TABLE_EXTENTS && t->error == 0) {
        remove_extent(t, id, &e);
    }
    return found && t->error == 0;
}

void catalog_drop_stream(struct catalog_txn *t, stream_id id)
{
    if (t->error) {
        return;
    }
    while (remove_first(t, TABLE_EXTENTS, id)) {
    }
    while (remove_first(t, TABLE_PRODUCERS, id)) {
    }
    struct stream_meta old;
    int rc = t->error ? t->error : get_stream(t->catalog, t->txn, id, &old);
    if (rc) {
        note_error(t, rc == ERR_NOTFOUND ? 0 : rc);
        return;
    }
    stream_id holder = 0;
    rc = get_name(t->catalog, t->txn, old.name, &holder);
    note_error(t, rc == ERR_NOTFOUND ? 0 : rc);
    char name[STREAM_NAME_BYTES_MAX];
    size_t name_len = old.name.len;
    memcpy(name, old.name.ptr, name_len); /* it lies in a page that deletions change */
    del_deadline(t, &old);
    if (rc == 0 && holder == id) {
        del(t, TABLE_NAMES, name, name_len);
    }
    uint8_t key[8];
    bytes_put_u64_be(key, id);
    del(t, TABLE_STREAMS, key, sizeof(key));
}

void catalog_put_state(struct catalog_txn *t, const struct catalog_state *state)
{
    uint8_t value[CATALOG_STATE_BYTES];
    catalog_encode_state(state, value);
    put(t, TABLE_META, STATE_KEY, strlen(STATE_KEY), value, sizeof(value));
}

int catalog_commit(struct catalog_txn *t)
{
    struct catalog *c = t->catalog;
    int rc = t->error ? t->error : c->sys->catalog_commit(c->sys->context);
    if (rc) {
        catalog_abort(t);
        return rc;
    }
    rc = mdb_txn_commit(t->txn);
    free(t);
    if (rc == 0) {
        return 0;
    }
    /* Only writing data pages can run out of space, and then the root was not touched. */
    if (rc == MDB_MAP_FULL || rc == ENOSPC || rc == EDQUOT) {
        return ERR_NOSPC;
    }
    c->unknown = true;
    return ERR_UNKNOWN;
}

int catalog_clear(struct catalog *c, const struct catalog_state *state)
{
    struct catalog_txn *t = NULL;
    int rc = catalog_begin(c, &t);
    if (rc) {
        return rc;
    }
    for (unsigned i = 0; i < TABLE_COUNT; i++) {
        if (i != TABLE_META) {
            note_error(t, from_mdb(mdb_drop(t->txn, c->tables[i], 0)));
        }
    }
    catalog_put_state(t, state);
    return catalog_commit(t);
}

void catalog_abort(struct catalog_txn *t)
{
    mdb_txn_abort(t->txn);
    free(t);
}
