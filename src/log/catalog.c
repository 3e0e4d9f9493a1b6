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
 *   notes         key                       -> note
 *
 * What must always hold together, and is kept so by the functions of a write transaction:
 *   - expiry has exactly one entry per stream with a deadline, under catalog_deadline of its value;
 *   - pack_extents mirrors extents; a pack's live bytes are the sum over its entries of data,
 *     marks and extent header;
 *   - names[n] is the stream that bears the name n: of several in the catalog the newest, since ids
 *     grow and a name is given to a new stream only after the old one went.
 *
 * LMDB keeps two generations of its root and syncs data before the root, so a crash leaves the
 * catalog as it was before or after a transaction. */
#include "log/catalog.h"

#include <assert.h>
#include <stdlib.h>

#include "base/bytes.h"
#include "log/catalog_env.h"
#include "log/catalog_value.h"

int catalog_from_mdb(int rc)
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

MDB_val catalog_val(const void *bytes, size_t len)
{
    return (MDB_val){.mv_size = len, .mv_data = (void *)(uintptr_t)bytes};
}

struct slice catalog_slice(MDB_val v)
{
    return (struct slice){v.mv_data, v.mv_size};
}

/* Opening. */

static int put_state(struct catalog *c, MDB_txn *txn, const struct catalog_state *state)
{
    uint8_t bytes[CATALOG_STATE_BYTES];
    catalog_encode_state(state, bytes);
    MDB_val key = catalog_val(CATALOG_STATE_KEY, strlen(CATALOG_STATE_KEY));
    MDB_val value = catalog_val(bytes, sizeof(bytes));
    return catalog_from_mdb(mdb_put(txn, c->tables[TABLE_META], &key, &value, 0));
}

static int new_state(struct catalog *c, MDB_txn *txn, struct catalog_state *ret_state)
{
    MDB_stat stat;
    int rc = mdb_stat(txn, c->tables[TABLE_STREAMS], &stat);
    if (rc || stat.ms_entries > 0) {
        return rc ? catalog_from_mdb(rc)
                  : ERR_CORRUPT; /* streams without a state: something ate it */
    }
    struct catalog_state state = {
        .format = CATALOG_FORMAT, .next_stream = 1, .next_pack = 1, .counted = 1};
    c->sys->random(c->sys->context, state.uuid, sizeof(state.uuid));
    rc = put_state(c, txn, &state);
    if (rc == 0) {
        *ret_state = state;
    }
    return rc;
}

/* Fills c->totals; counts the bytes once where no version that does so has been at work before. */
static int take_totals(struct catalog *c, MDB_txn *txn, struct catalog_state *state)
{
    MDB_stat stat;
    int rc = catalog_from_mdb(mdb_stat(txn, c->tables[TABLE_STREAMS], &stat));
    struct catalog_totals totals = {.bytes = state->own_bytes};
    if (rc == 0 && state->counted) {
        totals.streams = stat.ms_entries;
    } else if (rc == 0) {
        rc = catalog_count_all(c, txn, &totals);
        state->counted = 1;
        state->own_bytes = totals.bytes;
        rc = rc ? rc : put_state(c, txn, state);
    }
    if (rc == 0) {
        c->totals = totals;
    }
    return rc;
}

static bool known_format(const struct catalog_state *state)
{
    return state->format >= CATALOG_FORMAT_FIRST && state->format <= CATALOG_FORMAT;
}

/* Makes the tables when they are missing, and reads or makes the state. */
static int open_tables(struct catalog *c, MDB_txn *txn, struct catalog_state *ret_state)
{
    int rc = catalog_env_tables(c, txn, MDB_CREATE);
    if (rc) {
        return rc;
    }
    MDB_val key = catalog_val(CATALOG_STATE_KEY, strlen(CATALOG_STATE_KEY));
    MDB_val value;
    rc = mdb_get(txn, c->tables[TABLE_META], &key, &value);
    if (rc == MDB_NOTFOUND) {
        return new_state(c, txn, ret_state);
    }
    return rc ? catalog_from_mdb(rc) : catalog_decode_state(catalog_slice(value), ret_state);
}

static int read_tables(struct catalog *c, struct catalog_state *ret_state)
{
    MDB_txn *txn = NULL;
    int rc = mdb_txn_begin(c->env, NULL, 0, &txn);
    if (rc) {
        return catalog_from_mdb(rc);
    }
    struct catalog_state state;
    rc = open_tables(c, txn, &state);
    if (rc == 0 && known_format(&state)) {
        rc = take_totals(c, txn, &state);
    }
    rc = rc ? rc : c->sys->catalog_commit(c->sys->context);
    if (rc) {
        mdb_txn_abort(txn);
        return rc;
    }
    rc = catalog_from_mdb(mdb_txn_commit(txn));
    if (rc == 0) {
        *ret_state = state;
    }
    return rc;
}

static struct catalog *create(struct sys *sys, const char *dir, bool sync,
                              const struct catalog_watch *watch)
{
    struct catalog *c = calloc(1, sizeof(*c));
    if (!c) {
        return NULL;
    }
    c->sys = sys;
    c->sync = sync;
    c->watch = watch ? *watch : (struct catalog_watch){0};
    c->dir = strdup(dir);
    if (!c->dir) {
        free(c);
        return NULL;
    }
    pthread_rwlock_init(&c->lock, NULL);
    pthread_mutex_init(&c->pin_lock, NULL);
    list_init(&c->pins);
    return c;
}

int catalog_open(struct sys *sys, const char *dir, bool sync, const struct catalog_watch *watch,
                 struct catalog **ret_catalog, struct catalog_state *ret_state, struct errmsg *msg)
{
    struct catalog *c = create(sys, dir, sync, watch);
    if (!c) {
        return err_set(msg, ERR_NOMEM, "%s", err_text(ERR_NOMEM));
    }
    struct catalog_state state;
    int rc = catalog_env_open(c);
    rc = rc ? rc : read_tables(c, &state);
    rc = rc ? rc : catalog_env_verify(c);
    if (rc) {
        (void)err_set(msg, rc, "cannot open the catalog %s: %s", dir, err_file_text(rc));
    } else if (!known_format(&state)) {
        rc = err_set(msg, ERR_MISMATCH, "the catalog %s has format %u; this version knows %u to %u",
                     dir, state.format, CATALOG_FORMAT_FIRST, CATALOG_FORMAT);
    }
    if (rc) {
        catalog_close(c);
        return rc;
    }
    catalog_env_grow(c);
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
        assert(list_empty(&c->pins));
        pthread_mutex_destroy(&c->pin_lock);
        pthread_rwlock_destroy(&c->lock);
        free(c->dir);
        free(c);
    }
}

/* Reading. */

/* While the environment is closed and opened again, readers wait; if that failed they are told to
 * come again. */
static int begin_read(struct catalog *c, MDB_txn **ret_txn)
{
    pthread_rwlock_rdlock(&c->lock);
    int rc = ERR_AGAIN;
    if (c->env) {
        rc = catalog_from_mdb(mdb_txn_begin(c->env, NULL, MDB_RDONLY, ret_txn));
    }
    if (rc) {
        pthread_rwlock_unlock(&c->lock);
    }
    return rc;
}

static void end_read(struct catalog *c, MDB_txn *txn)
{
    mdb_txn_abort(txn);
    pthread_rwlock_unlock(&c->lock);
}

int catalog_get_stream(struct catalog *c, MDB_txn *txn, stream_id id, struct stream_meta *ret_meta)
{
    uint8_t key_bytes[8];
    bytes_put_u64_be(key_bytes, id);
    MDB_val key = catalog_val(key_bytes, sizeof(key_bytes));
    MDB_val value;
    int rc = mdb_get(txn, c->tables[TABLE_STREAMS], &key, &value);
    return rc ? catalog_from_mdb(rc) : catalog_decode_stream(catalog_slice(value), id, ret_meta);
}

int catalog_get_name(struct catalog *c, MDB_txn *txn, struct slice name, stream_id *ret_id)
{
    if (name.len == 0 || name.len > STREAM_NAME_BYTES_MAX) {
        return ERR_NOTFOUND;
    }
    MDB_val key = catalog_val(name.ptr, name.len);
    MDB_val value;
    int rc = mdb_get(txn, c->tables[TABLE_NAMES], &key, &value);
    if (rc) {
        return catalog_from_mdb(rc);
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
    rc = catalog_get_name(c, txn, name, ret_id);
    end_read(c, txn);
    return rc;
}

/* Called for each entry of a catalog_walk; a result other than 0 ends it. */
typedef int (*catalog_entry_fn)(void *context, struct slice key, struct slice value);

/* Walks a table from `from` on, for as long as keys begin with `prefix`. */
int catalog_walk(MDB_txn *txn, MDB_dbi dbi, struct slice from, struct slice prefix,
                 catalog_entry_fn each, void *context)
{
    MDB_cursor *cursor = NULL;
    int rc = catalog_from_mdb(mdb_cursor_open(txn, dbi, &cursor));
    if (rc) {
        return rc;
    }
    MDB_val key = catalog_val(from.ptr, from.len);
    MDB_val value;
    int got = mdb_cursor_get(cursor, &key, &value, from.len > 0 ? MDB_SET_RANGE : MDB_FIRST);
    while (got == 0 && rc == 0 && slice_starts_with(catalog_slice(key), prefix)) {
        rc = each(context, catalog_slice(key), catalog_slice(value));
        got = rc ? 0 : mdb_cursor_get(cursor, &key, &value, MDB_NEXT);
    }
    mdb_cursor_close(cursor);
    return rc ? rc : got == 0 || got == MDB_NOTFOUND ? 0 : catalog_from_mdb(got);
}

/* Walks the entries of one stream in extents or producers. */
static int walk_stream(struct catalog *c, MDB_txn *txn, enum catalog_table table, stream_id id,
                       catalog_entry_fn each, void *context)
{
    uint8_t key_bytes[8];
    bytes_put_u64_be(key_bytes, id);
    struct slice prefix = {(const char *)key_bytes, sizeof(key_bytes)};
    return catalog_walk(txn, c->tables[table], prefix, prefix, each, context);
}

int catalog_decode_extent_entry(struct slice key, struct slice value, stream_id *ret_id,
                                struct extent *ret_extent)
{
    uint64_t start = 0;
    int rc = catalog_decode_pair_key(key, ret_id, &start);
    return rc ? rc : catalog_decode_extent(value, start, ret_extent);
}

/* Loading a stream goes over its entries twice: once to know how much memory it takes, once to
 * fill. */
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
    int rc = catalog_decode_extent_entry(key, value, &id, &e);
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
    int rc = catalog_get_stream(c, txn, id, &s->meta);
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
    end_read(c, txn);
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

/* A catalog_walk that shows streams. */
struct show {
    struct catalog *catalog;
    MDB_txn *txn;
    struct slice after; /* a name that is not shown */
    int64_t now_ms;     /* the latest deadline that is */
    size_t left;
    catalog_each_fn each;
    void *context;
};

static int show_stream(struct show *w, stream_id id)
{
    if (w->left == 0) {
        return CATALOG_ENOUGH;
    }
    struct stream_meta meta;
    int rc = catalog_get_stream(w->catalog, w->txn, id, &meta);
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
        return CATALOG_ENOUGH;
    }
    return show_stream(w, id);
}

static int show_all(struct show *w, enum catalog_table table, struct slice from,
                    struct slice prefix, catalog_entry_fn each)
{
    int rc = begin_read(w->catalog, &w->txn);
    if (rc) {
        return rc;
    }
    rc = catalog_walk(w->txn, w->catalog->tables[table], from, prefix, each, w);
    end_read(w->catalog, w->txn);
    return rc == CATALOG_ENOUGH ? 0 : rc;
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

/* A catalog_walk that counts. A damaged value is a stream that nobody can read and whose bytes
 * nobody knows: no reason to keep all the others from being served. */
static int count_stream(void *context, struct slice key, struct slice value)
{
    struct catalog_totals *totals = context;
    struct stream_meta meta;
    totals->streams++;
    if (key.len == 8 && catalog_decode_stream(value, bytes_get_u64_be(key.ptr), &meta) == 0) {
        totals->bytes += meta.tail - meta.fork_offset;
    }
    return 0;
}

int catalog_count_all(struct catalog *c, MDB_txn *txn, struct catalog_totals *ret_totals)
{
    struct catalog_totals totals = {0};
    const struct slice all = {0};
    int rc = catalog_walk(txn, c->tables[TABLE_STREAMS], all, all, count_stream, &totals);
    if (rc == 0) {
        *ret_totals = totals;
    }
    return rc;
}

int catalog_measure(struct catalog *c, struct catalog_totals *ret_totals)
{
    MDB_txn *txn = NULL;
    int rc = begin_read(c, &txn);
    if (rc) {
        return rc;
    }
    rc = catalog_count_all(c, txn, ret_totals);
    end_read(c, txn);
    return rc;
}

struct catalog_totals catalog_get_totals(const struct catalog *c)
{
    return c->totals;
}

uint64_t catalog_count(struct catalog *c)
{
    MDB_txn *txn = NULL;
    MDB_stat stat = {0};
    if (begin_read(c, &txn)) {
        return 0;
    }
    int rc = mdb_stat(txn, c->tables[TABLE_STREAMS], &stat);
    end_read(c, txn);
    return rc ? 0 : stat.ms_entries;
}

/* A catalog_walk over packs or extents. */
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

static int run_pack_walk(struct pack_walk *w, enum catalog_table table, struct slice prefix,
                         catalog_entry_fn each)
{
    int rc = begin_read(w->catalog, &w->txn);
    if (rc) {
        return rc;
    }
    rc = catalog_walk(w->txn, w->catalog->tables[table], prefix, prefix, each, w);
    end_read(w->catalog, w->txn);
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
    MDB_val key = catalog_val(key_bytes, sizeof(key_bytes));
    MDB_val value;
    int rc = mdb_get(txn, c->tables[TABLE_EXTENTS], &key, &value);
    return rc ? catalog_from_mdb(rc)
              : catalog_decode_extent(catalog_slice(value), start, ret_extent);
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
    int rc = catalog_decode_extent_entry(key, value, &id, &e);
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

/* A catalog_walk over notes. */
struct note_walk {
    catalog_note_fn each;
    void *context;
    struct errmsg *msg;
    bool told; /* the error is the caller's, or has its sentence */
};

/* Keys may hold any bytes; a sentence may not. */
static void print_key(struct slice key, char *out, size_t size)
{
    size_t len = key.len < size - 1 ? key.len : size - 1;
    for (size_t i = 0; i < len; i++) {
        out[i] = key.ptr[i] > ' ' && key.ptr[i] < 127 ? key.ptr[i] : '?';
    }
    out[len] = '\0';
}

static int note_entry(void *context, struct slice key, struct slice entry)
{
    struct note_walk *w = context;
    struct slice value;
    int rc = catalog_decode_note(key, entry, &value);
    if (rc) {
        char text[80];
        print_key(key, text, sizeof(text));
        (void)err_set(w->msg, rc, "the note %s in the catalog is damaged: %s", text, err_text(rc));
    } else {
        rc = w->each(w->context, key, value);
    }
    w->told = rc != 0;
    return rc;
}

int catalog_each_note(struct catalog *c, struct slice prefix, catalog_note_fn each, void *context,
                      struct errmsg *msg)
{
    struct note_walk w = {.each = each, .context = context, .msg = msg};
    MDB_txn *txn = NULL;
    if (prefix.len > NOTE_KEY_BYTES_MAX) {
        return 0; /* no key is so long, and LMDB refuses such keys */
    }
    int rc = begin_read(c, &txn);
    if (rc == 0) {
        rc = catalog_walk(txn, c->tables[TABLE_NOTES], prefix, prefix, note_entry, &w);
        end_read(c, txn);
    }
    if (rc && !w.told) {
        (void)err_set(msg, rc, "the notes of the catalog %s cannot be read: %s", c->dir,
                      err_file_text(rc));
    }
    return rc;
}
