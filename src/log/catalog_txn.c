/* The writing half of the catalog: one LMDB write transaction at a time, with functions that keep
 * the tables consistent with each other. catalog.c opens with the tables and what must hold
 * between them. */
#include <assert.h>
#include <stdlib.h>

#include "base/bytes.h"
#include "log/catalog_env.h"
#include "log/catalog_value.h"

struct catalog_txn {
    struct catalog *catalog;
    MDB_txn *txn;
    struct catalog_totals totals; /* after what was done so far */
    int error;                    /* sticky */
};

int catalog_begin(struct catalog *c, struct catalog_txn **ret_txn)
{
    if (c->unknown) {
        return ERR_UNKNOWN;
    }
    struct catalog_txn *t = malloc(sizeof(*t));
    if (!t) {
        return ERR_NOMEM;
    }
    *t = (struct catalog_txn){.catalog = c, .totals = c->totals};
    int rc = mdb_txn_begin(c->env, NULL, 0, &t->txn);
    if (rc) {
        free(t);
        return catalog_from_mdb(rc);
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

static void put(struct catalog_txn *t, enum catalog_table table, const void *key, size_t key_len,
                const void *value, size_t value_len)
{
    if (t->error == 0) {
        MDB_val k = catalog_val(key, key_len);
        MDB_val v = catalog_val(value, value_len);
        note_error(t, catalog_from_mdb(mdb_put(t->txn, t->catalog->tables[table], &k, &v, 0)));
    }
}

/* Removes an entry; one that is not there is fine. */
static void del(struct catalog_txn *t, enum catalog_table table, const void *key, size_t key_len)
{
    if (t->error == 0) {
        MDB_val k = catalog_val(key, key_len);
        int rc = mdb_del(t->txn, t->catalog->tables[table], &k, NULL);
        note_error(t, rc == MDB_NOTFOUND ? 0 : catalog_from_mdb(rc));
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
    int rc = catalog_get_name(t->catalog, t->txn, meta->name, &holder);
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

/* A stream takes the place of another in the totals; either may be NULL. */
static void count(struct catalog_txn *t, const struct stream_meta *old,
                  const struct stream_meta *now)
{
    if (now) {
        t->totals.streams++;
        t->totals.bytes += now->tail - now->fork_offset;
    }
    if (old) {
        t->totals.streams--;
        t->totals.bytes -= old->tail - old->fork_offset;
    }
}

void catalog_put_stream(struct catalog_txn *t, const struct stream_meta *meta)
{
    if (t->error) {
        return;
    }
    struct stream_meta old;
    int rc = catalog_get_stream(t->catalog, t->txn, meta->id, &old);
    note_error(t, rc == ERR_NOTFOUND ? 0 : rc);
    count(t, rc == 0 ? &old : NULL, meta);
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
    MDB_val key = catalog_val(key_bytes, sizeof(key_bytes));
    MDB_val value;
    int rc = mdb_get(t->txn, t->catalog->tables[TABLE_PACKS], &key, &value);
    return rc ? catalog_from_mdb(rc)
              : catalog_decode_pair(catalog_slice(value), ret_live, ret_total);
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
    int rc = catalog_from_mdb(mdb_cursor_open(t->txn, t->catalog->tables[TABLE_EXTENTS], &cursor));
    if (rc) {
        return rc;
    }
    uint8_t key_bytes[CATALOG_PAIR_KEY_BYTES];
    catalog_encode_pair_key(id, UINT64_MAX, key_bytes); /* behind all that an extent can have */
    MDB_val key = catalog_val(key_bytes, sizeof(key_bytes));
    MDB_val value;
    rc = mdb_cursor_get(cursor, &key, &value, MDB_SET_RANGE);
    rc = mdb_cursor_get(cursor, &key, &value, rc == MDB_NOTFOUND ? MDB_LAST : MDB_PREV);
    stream_id owner = 0;
    struct extent e = {0};
    if (rc == 0) {
        rc = catalog_decode_extent_entry(catalog_slice(key), catalog_slice(value), &owner, &e);
    } else {
        rc = rc == MDB_NOTFOUND ? 0 : catalog_from_mdb(rc);
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
    int rc = catalog_decode_extent_entry(key, value, &id, &e);
    if (rc) {
        return rc;
    }
    if (v->from == v->to) {
        return CATALOG_ENOUGH;
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
    int rc = catalog_walk(t->txn, t->catalog->tables[TABLE_EXTENTS], key, prefix, add_covered, &v);
    rc = rc == CATALOG_ENOUGH ? 0 : rc;
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
static bool remove_first(struct catalog_txn *t, enum catalog_table table, stream_id id)
{
    MDB_cursor *cursor = NULL;
    int rc = mdb_cursor_open(t->txn, t->catalog->tables[table], &cursor);
    if (rc) {
        note_error(t, catalog_from_mdb(rc));
        return false;
    }
    uint8_t key_bytes[8];
    bytes_put_u64_be(key_bytes, id);
    MDB_val key = catalog_val(key_bytes, sizeof(key_bytes));
    MDB_val value;
    rc = mdb_cursor_get(cursor, &key, &value, MDB_SET_RANGE);
    bool found = rc == 0 && key.mv_size >= 8 && bytes_get_u64_be(key.mv_data) == id;
    struct extent e;
    stream_id owner = 0;
    if (found && table == TABLE_EXTENTS) {
        rc = catalog_decode_extent_entry(catalog_slice(key), catalog_slice(value), &owner, &e);
        note_error(t, rc);
    } else if (found) {
        note_error(t, catalog_from_mdb(mdb_cursor_del(cursor, 0)));
    } else {
        note_error(t, rc == 0 || rc == MDB_NOTFOUND ? 0 : catalog_from_mdb(rc));
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
    int rc = t->error ? t->error : catalog_get_stream(t->catalog, t->txn, id, &old);
    if (rc) {
        note_error(t, rc == ERR_NOTFOUND ? 0 : rc);
        return;
    }
    count(t, &old, NULL);
    stream_id holder = 0;
    rc = catalog_get_name(t->catalog, t->txn, old.name, &holder);
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

void catalog_put_note(struct catalog_txn *t, struct slice key, struct slice value)
{
    assert(key.len >= 1 && key.len <= NOTE_KEY_BYTES_MAX);
    uint8_t *entry = malloc(1 + value.len + 4);
    if (!entry) {
        note_error(t, ERR_NOMEM);
        return;
    }
    put(t, TABLE_NOTES, key.ptr, key.len, entry, catalog_encode_note(key, value, entry));
    free(entry);
}

void catalog_del_note(struct catalog_txn *t, struct slice key)
{
    assert(key.len >= 1 && key.len <= NOTE_KEY_BYTES_MAX);
    del(t, TABLE_NOTES, key.ptr, key.len);
}

void catalog_put_state(struct catalog_txn *t, const struct catalog_state *state)
{
    uint8_t value[CATALOG_STATE_BYTES];
    struct catalog_state now = *state;
    now.counted = 1;
    now.own_bytes = t->totals.bytes;
    catalog_encode_state(&now, value);
    put(t, TABLE_META, CATALOG_STATE_KEY, strlen(CATALOG_STATE_KEY), value, sizeof(value));
}

/* The bytes in the state are those of the streams, also when these changed after it was written, or
 * alone. */
static void settle_totals(struct catalog_txn *t)
{
    MDB_val key = catalog_val(CATALOG_STATE_KEY, strlen(CATALOG_STATE_KEY));
    MDB_val value;
    struct catalog_state state;
    if (t->error == 0) {
        int rc = mdb_get(t->txn, t->catalog->tables[TABLE_META], &key, &value);
        note_error(t,
                   rc ? catalog_from_mdb(rc) : catalog_decode_state(catalog_slice(value), &state));
    }
    if (t->error == 0 && state.own_bytes != t->totals.bytes) {
        catalog_put_state(t, &state);
    }
}

int catalog_commit(struct catalog_txn *t)
{
    struct catalog *c = t->catalog;
    const struct catalog_totals totals = t->totals;
    settle_totals(t);
    int rc = t->error ? t->error : c->sys->catalog_commit(c->sys->context);
    if (rc) {
        catalog_abort(t);
        return rc;
    }
    size_t txn_id = mdb_txn_id(t->txn);
    rc = catalog_from_mdb(mdb_txn_commit(t->txn));
    free(t);
    rc = rc ? catalog_env_settle(c, txn_id, rc) : 0;
    if (rc == 0) {
        c->totals = totals;
        catalog_env_grow(c);
    }
    return rc;
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
            note_error(t, catalog_from_mdb(mdb_drop(t->txn, c->tables[i], 0)));
        }
    }
    t->totals = (struct catalog_totals){0};
    catalog_put_state(t, state);
    return catalog_commit(t);
}

void catalog_abort(struct catalog_txn *t)
{
    mdb_txn_abort(t->txn);
    free(t);
}
