/* What the tests of the verifier share: a real directory, made by the real engine, with streams of
 * every sort in the catalog and more in the log; ways to damage it; and what the verifier says. */
#ifndef ARBE_TESTS_UNIT_LOG_VERIFY_FIXTURE_H
#define ARBE_TESTS_UNIT_LOG_VERIFY_FIXTURE_H

#include <fcntl.h>
#include <lmdb.h>
#include <sys/stat.h>

#include "base/buf.h"
#include "base/bytes.h"
#include "log/catalog_env.h"
#include "log/catalog_value.h"
#include "log/local_store.h"
#include "log/note.h"
#include "log/pack_format.h"
#include "log/segment.h"
#include "log/verify.h"
#include "log/verify_parts.h"
#include "unit/stream/rig.h"

/* Streams by id, as site_build makes them. */
enum {
    SITE_TEXT = 1, /* in two extents, and goes on in the log */
    SITE_JSON,     /* in two extents */
    SITE_TTL,      /* expires */
    SITE_PRODUCED, /* has a producer */
    SITE_FORK,     /* of SITE_TEXT */
    SITE_FORK_2,   /* of SITE_FORK */
    SITE_SOFT,     /* deleted, kept for SITE_HEIR */
    SITE_HEIR,
    SITE_LATE,   /* of the second checkpoint */
    SITE_LOGGED, /* of the log alone, like its fork */
    SITE_LOGGED_FORK,
    SITE_NEXT
};

struct site {
    struct rig rig;
    char text[1024 * 1024]; /* all findings, a line each */
    size_t len;
    struct verify_report report;
};

static inline void site_found(void *context, const struct verify_finding *f)
{
    struct site *s = context;
    int len = snprintf(s->text + s->len, sizeof(s->text) - s->len, "%s %s: %s\n",
                       f->level == VERIFY_DAMAGE ? "damage" : "note", f->file, f->text);
    s->len += (size_t)len;
    assert_true(s->len < sizeof(s->text));
}

/* Checks the directory; nobody has it. */
static inline void site_verify(struct site *s)
{
    struct errmsg msg = {{0}};
    const struct verify_config config = {
        .sys = &s->rig.sys, .dir = s->rig.dir, .context = s, .found = site_found};
    s->len = 0;
    s->text[0] = '\0';
    if (verify_run(&config, &s->report, &msg) != 0) {
        fail_msg("verify_run: %s", msg.text);
    }
}

static inline void site_expect_good(struct site *s)
{
    site_verify(s);
    if (s->report.damages != 0) {
        fail_msg("a good directory:\n%s", s->text);
    }
}

static inline void site_save(struct rig *rig)
{
    struct store *store = rig->engine->store;
    assert_int_equal(store->ops->checkpoint(store), 0);
    rig_run(rig);
}

static struct rig *site_appending;
static int (*site_collect)(void *context, struct checkpoint *c);

static inline int site_append_and_collect(void *context, struct checkpoint *c)
{
    assert_int_equal(rig_post_body(site_appending, "text", "text/plain", ", late"), 0);
    return site_collect(context, c);
}

/* Somebody appends while a checkpoint is under way: its streams are ahead of its position. */
static inline void site_save_while_appending(struct rig *rig)
{
    struct store_events *events = &local_of(rig->engine->store)->events;
    site_appending = rig;
    site_collect = events->collect;
    events->collect = site_append_and_collect;
    site_save(rig);
    events->collect = site_collect;
}

static inline void site_produce(struct rig *rig, const char *name, uint64_t seq)
{
    struct stream_op op = {.verb = STREAM_APPEND, .name = slice_of(name)};
    op.append.content_type = SLICE("text/plain");
    op.append.body = SLICE("made");
    op.append.producer = (struct record_producer){SLICE("maker"), 1, seq};
    op.append.has_seq = true;
    op.append.seq = SLICE("s1");
    assert_int_equal(rig_op(rig, &op), 0);
}

static inline void site_note(struct rig *rig, const char *key, const char *value)
{
    struct buf batch;
    buf_init(&batch, 4096);
    note_put(&batch, slice_of(key), slice_of(value));
    struct stream_op op = {.verb = STREAM_NOTE, .note = {.changes = buf_slice(&batch)}};
    assert_int_equal(rig_op(rig, &op), 0);
    buf_finish(&batch);
}

static inline void site_fill(struct rig *rig)
{
    struct stream_op op = {0};
    assert_int_equal(rig_put(rig, "text", "text/plain", "hello"), 0);
    assert_int_equal(rig_put(rig, "json", "application/json", "[1,2,3]"), 0);
    op.create.expiry = (struct stream_expiry){.has_ttl = true, .ttl_seconds = 3600};
    assert_int_equal(rig_create(rig, &op, "ttl", "text/plain", "soon gone"), 0);
    assert_int_equal(rig_put(rig, "produced", "text/plain", ""), 0);
    site_produce(rig, "produced", 0);
    assert_int_equal(rig_fork(rig, "fork", "text"), 0);
    assert_int_equal(rig_fork(rig, "fork2", "fork"), 0);
    assert_int_equal(rig_put(rig, "soft", "text/plain", "kept for the heir"), 0);
    assert_int_equal(rig_fork(rig, "heir", "soft"), 0);
    assert_int_equal(rig_delete(rig, "soft"), 0);
    site_note(rig, "first", "of notes");
    site_save(rig);
    assert_int_equal(rig_post_body(rig, "text", "text/plain", " world"), 0);
    assert_int_equal(rig_post_body(rig, "json", "application/json", "{\"a\":1}"), 0);
    assert_int_equal(rig_put(rig, "late", "text/plain", "late"), 0);
    site_save(rig);
    assert_int_equal(rig_post_body(rig, "text", "text/plain", ", again"), 0);
    assert_int_equal(rig_put(rig, "logged", "text/plain", "in the log"), 0);
    assert_int_equal(rig_fork(rig, "logged-fork", "logged"), 0);
    site_note(rig, "second", "in the log");
}

static inline void site_down(struct site *s)
{
    rig_detach(&s->rig, false);
    pool_destroy(s->rig.pool);
}

/* Makes the directory, as a process that was killed leaves it. */
static inline void site_build(struct site *s)
{
    *s = (struct site){0};
    rig_open(&s->rig);
    site_fill(&s->rig);
    site_down(s);
}

static inline void site_remove(struct site *s)
{
    assert_int_equal(nftw(s->rig.dir, rig_remove, 8, FTW_DEPTH | FTW_PHYS), 0);
}

/* Files. */

static inline void site_path(const struct site *s, const char *file, char out[static 256])
{
    (void)snprintf(out, 256, "%s/%s", s->rig.dir, file);
}

static inline int site_open(const struct site *s, const char *file)
{
    char path[256];
    site_path(s, file, path);
    int fd = open(path, O_RDWR);
    assert_true(fd >= 0);
    return fd;
}

/* Turns one bit over. */
static inline void site_flip(const struct site *s, const char *file, uint64_t at)
{
    char byte = 0;
    int fd = site_open(s, file);
    assert_int_equal(pread(fd, &byte, 1, (off_t)at), 1);
    byte ^= 4;
    assert_int_equal(pwrite(fd, &byte, 1, (off_t)at), 1);
    close(fd);
}

static inline void site_write(const struct site *s, const char *file, uint64_t at,
                              const void *bytes, size_t len)
{
    int fd = site_open(s, file);
    assert_int_equal(pwrite(fd, bytes, len, (off_t)at), len);
    close(fd);
}

static inline void site_cut(const struct site *s, const char *file, uint64_t bytes)
{
    char path[256];
    site_path(s, file, path);
    assert_int_equal(truncate(path, (off_t)bytes), 0);
}

static inline uint64_t site_size(const struct site *s, const char *file)
{
    char path[256];
    struct stat st;
    site_path(s, file, path);
    assert_int_equal(stat(path, &st), 0);
    return (uint64_t)st.st_size;
}

static inline void site_unlink(const struct site *s, const char *file)
{
    char path[256];
    site_path(s, file, path);
    assert_int_equal(unlink(path), 0);
}

/* The catalog, edited by LMDB itself. */

struct edit {
    MDB_env *env;
    MDB_txn *txn;
    MDB_dbi tables[TABLE_COUNT];
};

static inline void edit_begin(const struct site *s, struct edit *e)
{
    char path[256];
    site_path(s, "catalog", path);
    assert_int_equal(mdb_env_create(&e->env), 0);
    assert_int_equal(mdb_env_set_maxdbs(e->env, TABLE_COUNT), 0);
    assert_int_equal(mdb_env_set_mapsize(e->env, (size_t)1 << 30), 0);
    assert_int_equal(mdb_env_open(e->env, path, 0, 0600), 0);
    assert_int_equal(mdb_txn_begin(e->env, NULL, 0, &e->txn), 0);
    for (unsigned i = 0; i < TABLE_COUNT; i++) {
        const char *name = catalog_table_name((enum catalog_table)i);
        assert_int_equal(mdb_dbi_open(e->txn, name, 0, &e->tables[i]), 0);
    }
}

static inline void edit_end(struct edit *e)
{
    assert_int_equal(mdb_txn_commit(e->txn), 0);
    mdb_env_close(e->env);
}

/* The value of a key, copied; its length. */
static inline size_t edit_get(struct edit *e, enum catalog_table table, struct slice key, void *out,
                              size_t room)
{
    MDB_val k = catalog_val(key.ptr, key.len);
    MDB_val v;
    assert_int_equal(mdb_get(e->txn, e->tables[table], &k, &v), 0);
    assert_true(v.mv_size <= room);
    memcpy(out, v.mv_data, v.mv_size);
    return v.mv_size;
}

static inline void edit_put(struct edit *e, enum catalog_table table, struct slice key,
                            struct slice value)
{
    MDB_val k = catalog_val(key.ptr, key.len);
    MDB_val v = catalog_val(value.ptr, value.len);
    assert_int_equal(mdb_put(e->txn, e->tables[table], &k, &v, 0), 0);
}

static inline void edit_del(struct edit *e, enum catalog_table table, struct slice key)
{
    MDB_val k = catalog_val(key.ptr, key.len);
    assert_int_equal(mdb_del(e->txn, e->tables[table], &k, NULL), 0);
}

/* Keys of one number and of two; they live until the next call. */
static inline struct slice key_of(uint64_t id)
{
    static char bytes[8];
    bytes_put_u64_be(bytes, id);
    return (struct slice){bytes, sizeof(bytes)};
}

static inline struct slice pair_of(uint64_t first, uint64_t second)
{
    static char bytes[CATALOG_PAIR_KEY_BYTES];
    catalog_encode_pair_key(first, second, bytes);
    return (struct slice){bytes, sizeof(bytes)};
}

/* The value of a stream, which borrows from `bytes`. */
static inline struct stream_meta edit_stream(struct edit *e, stream_id id,
                                             char bytes[static CATALOG_STREAM_BYTES_MAX])
{
    struct stream_meta m;
    size_t len = edit_get(e, TABLE_STREAMS, key_of(id), bytes, CATALOG_STREAM_BYTES_MAX);
    assert_int_equal(catalog_decode_stream((struct slice){bytes, len}, id, &m), 0);
    return m;
}

static inline void edit_put_stream(struct edit *e, const struct stream_meta *m)
{
    char value[CATALOG_STREAM_BYTES_MAX];
    size_t len = catalog_encode_stream(m, value);
    edit_put(e, TABLE_STREAMS, key_of(m->id), (struct slice){value, len});
}

static inline struct extent edit_extent(struct edit *e, stream_id id, uint64_t start)
{
    char value[CATALOG_EXTENT_BYTES];
    struct extent x;
    size_t len = edit_get(e, TABLE_EXTENTS, pair_of(id, start), value, sizeof(value));
    assert_int_equal(catalog_decode_extent((struct slice){value, len}, start, &x), 0);
    return x;
}

static inline void edit_put_extent(struct edit *e, stream_id id, const struct extent *x)
{
    char value[CATALOG_EXTENT_BYTES];
    catalog_encode_extent(x, value);
    edit_put(e, TABLE_EXTENTS, pair_of(id, x->start), (struct slice){value, sizeof(value)});
}

static inline struct catalog_state edit_state(struct edit *e)
{
    char value[CATALOG_STATE_BYTES];
    struct catalog_state state;
    size_t len = edit_get(e, TABLE_META, SLICE(CATALOG_STATE_KEY), value, sizeof(value));
    assert_int_equal(catalog_decode_state((struct slice){value, len}, &state), 0);
    return state;
}

static inline void edit_put_state(struct edit *e, const struct catalog_state *state)
{
    char value[CATALOG_STATE_BYTES];
    catalog_encode_state(state, value);
    edit_put(e, TABLE_META, SLICE(CATALOG_STATE_KEY), (struct slice){value, sizeof(value)});
}

/* Where the data of an extent lie. */
static inline struct extent site_extent(const struct site *s, stream_id id, uint64_t start)
{
    struct edit e;
    edit_begin(s, &e);
    struct extent x = edit_extent(&e, id, start);
    edit_end(&e);
    return x;
}

static inline const char *site_pack(pack_id id)
{
    static char name[64];
    char file[PACK_NAME_BYTES];
    pack_format_name(id, file);
    (void)snprintf(name, sizeof(name), "packs/%s", file);
    return name;
}

#ifdef ARBE_TESTS_UNIT_BASE_FAULT_H
/* Each allocation of the file under test fails, and all later ones: the verifier ends and says that
 * memory ran out. */
static inline void site_try_memory(void)
{
    struct site s;
    site_build(&s);
    int rc = ERR_NOMEM;
    for (long i = 0; rc != 0; i++) {
        struct errmsg msg = {{0}};
        const struct verify_config config = {
            .sys = &s.rig.sys, .dir = s.rig.dir, .context = &s, .found = site_found};
        s.len = 0;
        fault_countdown = i;
        rc = verify_run(&config, &s.report, &msg);
        fault_countdown = -1;
        assert_true(rc == 0 || rc == ERR_NOMEM);
        assert_true(i < 1000);
    }
    assert_int_equal(s.report.damages, 0);
    site_remove(&s);
}
#endif

/* One kind of damage, and the sentence that must be said of it. */
struct damage {
    const char *name;
    void (*inflict)(struct site *s);
    const char *file; /* that the sentence begins with */
    const char *text; /* that is in it */
};

/* Whether a line is about the file and holds the text. */
static inline bool site_says(const struct site *s, const char *file, const char *text)
{
    char begin[128];
    (void)snprintf(begin, sizeof(begin), "damage %s: ", file);
    for (const char *line = s->text; *line;) {
        const char *end = strchr(line, '\n');
        const char *hit = strstr(line, text);
        if (strncmp(line, begin, strlen(begin)) == 0 && hit && hit < end) {
            return true;
        }
        line = end + 1;
    }
    return false;
}

/* Builds, damages, and expects the sentence, for each kind. */
static inline void site_try(const struct damage *list, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        struct site s;
        site_build(&s);
        site_expect_good(&s);
        list[i].inflict(&s);
        site_verify(&s);
        if (s.report.damages == 0 || !site_says(&s, list[i].file, list[i].text)) {
            fail_msg("%s: nobody says \"%s: %s\" but:\n%s", list[i].name, list[i].file,
                     list[i].text, s.text);
        }
        site_remove(&s);
    }
}

#endif
