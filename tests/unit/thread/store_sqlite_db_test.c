/* The disk fails: at the i-th write or sync, for every i, once and for ever, full or broken, under
 * each operation. What a caller is told failed has not happened, to no reader and in no part; what
 * the next start finds is the same, or, if the outcome was said to be unknown, all of it. */
#include "thread/store_sqlite_db.c"

#include <sys/syscall.h>

#include "base/buf.h"
#include "unit/thread/store_sqlite_fixture.h"

/* ---- the disk */

/* The program's pwrite64, write and fdatasync stand before those of the C library, for SQLite
 * too. */
static struct {
    long countdown; /* calls that still succeed; below 0: all */
    bool forever;   /* all later ones fail too */
    enum fault {
        WRITE,
        SYNC,
        MEMORY
    } kind;
    int error; /* errno */
    bool hit;  /* something failed */
} disk = {.countdown = -1};

static bool disk_fails(enum fault kind)
{
    if (kind != disk.kind || disk.countdown < 0) {
        return false;
    }
    if (disk.countdown > 0) {
        disk.countdown--;
        return false;
    }
    disk.countdown = disk.forever ? 0 : -1;
    disk.hit = true;
    errno = disk.error;
    return true;
}

ssize_t pwrite64(int fd, const void *buf, size_t n, off64_t offset)
{
    return disk_fails(WRITE) ? -1 : (ssize_t)syscall(SYS_pwrite64, fd, buf, n, offset);
}

ssize_t write(int fd, const void *buf, size_t n)
{
    bool file = fd > STDERR_FILENO; /* cmocka says something meanwhile */
    return file && disk_fails(WRITE) ? -1 : (ssize_t)syscall(SYS_write, fd, buf, n);
}

/* No sync is waited for: what a crash leaves is looked at in a copy. */
int fdatasync(int fd)
{
    (void)fd;
    return disk_fails(SYNC) ? -1 : 0;
}

int fsync(int fd)
{
    return fdatasync(fd);
}

static sqlite3_mem_methods memory; /* SQLite's own */

static void *memory_get(int bytes)
{
    return disk_fails(MEMORY) ? NULL : memory.xMalloc(bytes);
}

static void *memory_resize(void *old, int bytes)
{
    return disk_fails(MEMORY) ? NULL : memory.xRealloc(old, bytes);
}

/* Before SQLite is first used. */
static void memory_wrap(void)
{
    assert_int_equal(sqlite3_config(SQLITE_CONFIG_GETMALLOC, &memory), SQLITE_OK);
    sqlite3_mem_methods ours = memory;
    ours.xMalloc = memory_get;
    ours.xRealloc = memory_resize;
    assert_int_equal(sqlite3_config(SQLITE_CONFIG_MALLOC, &ours), SQLITE_OK);
}

static void disk_heal(void)
{
    disk.countdown = -1;
    disk.hit = false;
}

/* ---- what there is */

/* All rows of all tables as text. */
static struct slice dump(struct store_rig *rig, const char *path)
{
    sqlite3 *db = NULL;
    sqlite3_stmt *tables = NULL;
    struct buf out;
    buf_init(&out, 16u << 20);
    assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
    assert_int_equal(sqlite3_prepare_v2(db,
                                        "SELECT 'SELECT * FROM ' || name || ' ORDER BY 1, 2' FROM"
                                        " sqlite_schema WHERE type = 'table' ORDER BY name",
                                        -1, &tables, NULL),
                     SQLITE_OK);
    while (sqlite3_step(tables) == SQLITE_ROW) {
        sqlite3_stmt *rows = NULL;
        const char *sql = (const char *)sqlite3_column_text(tables, 0);
        assert_int_equal(sqlite3_prepare_v2(db, sql, -1, &rows, NULL), SQLITE_OK);
        buf_append_format(&out, "%s\n", sql);
        while (sqlite3_step(rows) == SQLITE_ROW) {
            for (int i = 0; i < sqlite3_column_count(rows); i++) {
                const char *text = (const char *)sqlite3_column_text(rows, i);
                buf_append_format(&out, "%s|", text ? text : "NULL");
            }
            buf_append_char(&out, '\n');
        }
        assert_int_equal(sqlite3_finalize(rows), SQLITE_OK);
    }
    assert_int_equal(sqlite3_finalize(tables), SQLITE_OK);
    assert_int_equal(sqlite3_close(db), SQLITE_OK);
    assert_false(out.failed);
    char *copy = arena_try_copy(&rig->arena, buf_slice(&out));
    assert_non_null(copy);
    struct slice text = {copy, out.len};
    buf_finish(&out);
    return text;
}

static void copy_file(const char *from, const char *to)
{
    char bytes[65536];
    FILE *in = fopen(from, "r");
    FILE *out = fopen(to, "w");
    size_t n = 0;
    assert_non_null(out);
    while (in && (n = fread(bytes, 1, sizeof(bytes), in)) > 0) {
        assert_int_equal(fwrite(bytes, 1, n, out), n);
    }
    if (in) {
        assert_int_equal(fclose(in), 0);
    }
    assert_int_equal(fclose(out), 0);
}

/* Keeps what a start would find if the process ended now. */
static void crash(struct store_rig *rig)
{
    const struct sqlite_fixture *f = rig->back_end;
    char from[128];
    char to[128];
    (void)snprintf(to, sizeof(to), "%s/copy.db", f->dir);
    copy_file(f->path, to);
    (void)snprintf(from, sizeof(from), "%s-wal", f->path);
    (void)snprintf(to, sizeof(to), "%s/copy.db-wal", f->dir);
    copy_file(from, to);
}

static struct slice dump_after_crash(struct store_rig *rig)
{
    const struct sqlite_fixture *f = rig->back_end;
    char path[128];
    (void)snprintf(path, sizeof(path), "%s/copy.db", f->dir);
    return dump(rig, path);
}

static struct slice dump_now(struct store_rig *rig)
{
    const struct sqlite_fixture *f = rig->back_end;
    return dump(rig, f->path);
}

/* ---- operations */

static int do_agent(struct store_rig *rig)
{
    struct agent_record agent = agent_of(rig, 50);
    struct key_record key = key_of(rig, 50, 50);
    return store_agent_create(rig->store, &agent, &key, &rig->msg);
}

static int do_agent_delete(struct store_rig *rig)
{
    return store_agent_delete(rig->store, AGENT(2), 9, NULL, 0, &rig->msg);
}

static int do_house(struct store_rig *rig)
{
    struct house_create house = house_of(rig, 9, 1);
    struct outbox_item item = item_of(rig, 1);
    return store_house_create(rig->store, &house, &item, 1, &rig->msg);
}

static int do_house_delete(struct store_rig *rig)
{
    struct outbox_item item = item_of(rig, 1);
    return store_house_delete(rig->store, HOUSE(1), 9, &item, 1, &rig->msg);
}

static int do_claim(struct store_rig *rig)
{
    struct agent_record agent = agent_of(rig, 60);
    struct key_record key = key_of(rig, 60, 60);
    struct invite_claim claim = {
        .hash = HASH(1), .agent_id = agent.id, .agent = &agent, .key = &key, .now_ms = 5};
    struct outbox_item item = item_of(rig, 1);
    return store_invite_claim(rig->store, &claim, &item, 1, &rig->msg);
}

static int do_thread(struct store_rig *rig)
{
    struct slice tags[] = {SLICE("a"), SLICE("b")};
    struct thread_record thread = thread_of(rig, 70, 1);
    struct outbox_item item = item_of(rig, 70);
    thread.tags = tags;
    thread.tag_count = 2;
    return store_thread_create(rig->store, &thread, SLICE("{}"), &item, 1, &rig->msg);
}

static int do_thread_delete(struct store_rig *rig)
{
    struct outbox_item item = item_of(rig, 1);
    return store_thread_delete(rig->store, THREAD(1), 5, &item, 1, &rig->msg);
}

static int do_recency(struct store_rig *rig)
{
    struct recency_row rows[] = {
        {.thread_id = THREAD(1), .ts = 999999, .offset = SLICE("5")},
        {.thread_id = THREAD(2), .ts = 999999, .offset = SLICE("5")},
    };
    return store_recency_write(rig->store, rows, 2, &rig->msg);
}

/* Large enough to bring the log into app.db after its commit. */
static int do_index(struct store_rig *rig)
{
    struct index_row *rows = arena_try_alloc(&rig->arena, 6000 * sizeof(*rows));
    char *ids = arena_try_alloc(&rig->arena, 6000 * 100);
    assert_non_null(rows);
    assert_non_null(ids);
    for (int i = 0; i < 6000; i++) {
        (void)snprintf(ids + i * 100, 100, "%090d", i);
        rows[i] = (struct index_row){.entry_id = slice_of(ids + i * 100),
                                     .at_offset = SLICE("0000000000000001_0000000000000001")};
    }
    return store_index_put(rig->store, THREAD(1), SLICE("9"), rows, 6000, &rig->msg);
}

static int do_usage(struct store_rig *rig)
{
    size_t added = 0;
    struct usage_record event = {
        .house_id = HOUSE(1), .capability = SLICE("llm"), .input_tokens = 1, .cost_usd = 1};
    return store_usage_add(rig->store, &event, 1, &added, &rig->msg);
}

static int do_sweep(struct store_rig *rig)
{
    bool more = false;
    return store_sweep(rig->store, 100000, &more, &rig->msg);
}

struct operation {
    const char *name;
    int (*run)(struct store_rig *rig);
};

static const struct operation operations[] = {
    {"agent", do_agent},     {"agent delete", do_agent_delete},
    {"house", do_house},     {"house delete", do_house_delete},
    {"claim", do_claim},     {"thread", do_thread},
    {"recency", do_recency}, {"thread delete", do_thread_delete},
    {"usage", do_usage},     {"sweep", do_sweep},
};

static const struct operation large = {"index", do_index};

static void open_durably(struct store_rig *rig)
{
    struct thread_store_config config = fixture_config(rig->back_end);
    config.lazy = false;
    config.reader_count = 1;
    OK(store_open(&config, &rig->store, &rig->msg));
}

static void fill(struct store_rig *rig)
{
    add_house(rig, 1);
    add_agent(rig, 2);
    add_member(rig, 1, 2, ROLE_OWNER);
    struct invite_record invite = {.id = INVITE(1),
                                   .house_id = HOUSE(1),
                                   .hash = HASH(1),
                                   .role = ROLE_MEMBER,
                                   .created_by = AGENT(1),
                                   .expires_ms = 100};
    OK(store_invite_create(rig->store, &invite, &rig->msg));
    for (unsigned i = 1; i <= 4; i++) {
        struct slice tag = SLICE("tag");
        struct thread_record thread = thread_of(rig, i, 1);
        thread.tags = &tag;
        thread.tag_count = 1;
        OK(store_thread_create(rig->store, &thread, NONE, NULL, 0, &rig->msg));
    }
    OK(store_thread_delete(rig->store, THREAD(4), 5, NULL, 0, &rig->msg));
}

/* A filled store that each run gets a copy of. */
static struct sqlite_fixture filled;

static int fill_once(void **state)
{
    (void)state;
    struct store_rig own = {.back_end = &filled};
    struct store_rig *rig = &own;
    fixture_init(&filled);
    arena_init(&rig->arena, RIG_ARENA_BYTES);
    fixture_open(rig);
    fill(rig);
    store_close(rig->store);
    arena_finish(&rig->arena);
    return 0;
}

static int forget(void **state)
{
    (void)state;
    fixture_finish(&filled);
    return 0;
}

static bool fits(int code)
{
    switch (disk.kind) {
    case WRITE:
        return code == (disk.error == EIO ? ERR_IO : ERR_NOSPC);
    case SYNC:
        return code == ERR_UNKNOWN || code == ERR_IO;
    case MEMORY:
        break;
    }
    return code == ERR_NOMEM;
}

/* What is to hold after a failure: no reader sees any of it, a start would find nothing, or all
 * where the outcome was said to be unknown, and the same again goes through. */
static void check_failed(struct store_rig *rig, const struct operation *operation,
                         struct slice before, int code)
{
    if (!fits(code)) {
        fail_msg("%s: %s: %s", operation->name, err_name(code), rig->msg.text);
    }
    crash(rig);
    disk_heal();
    struct slice found = dump_after_crash(rig);
    assert_true(slice_equal(dump_now(rig), before));
    OK(operation->run(rig));
    assert_true(slice_equal(found, before) ||
                (code == ERR_UNKNOWN && slice_equal(found, dump_now(rig))));
}

/* One run of the operation, whose disk fails as `disk` is set. Whether it failed. */
static bool run_once(const struct operation *operation)
{
    struct sqlite_fixture f;
    struct store_rig own = {.back_end = &f};
    struct store_rig *rig = &own;
    long countdown = disk.countdown;
    disk_heal();
    fixture_init(&f);
    copy_file(filled.path, f.path);
    arena_init(&rig->arena, 64u << 20);
    open_durably(rig);
    struct slice before = dump_now(rig);
    disk.countdown = countdown;
    int code = operation->run(rig);
    bool hit = disk.hit;
    if (code) {
        assert_true(hit);
        check_failed(rig, operation, before, code);
    }
    disk_heal();
    struct slice after = dump_now(rig);
    assert_false(slice_equal(after, before));
    crash(rig);
    assert_true(slice_equal(dump_after_crash(rig), after));
    store_close(rig->store);
    open_durably(rig);
    OK(store_verify(rig->store, &rig->msg));
    assert_true(slice_equal(dump_now(rig), after));
    store_close(rig->store);
    arena_finish(&rig->arena);
    fixture_finish(&f);
    return hit;
}

/* For every i, until the operation comes to its end before. */
static void run_each(const struct operation *operation, enum fault kind, int error, bool forever,
                     long step)
{
    for (long i = 0;; i += step) {
        disk.countdown = i;
        disk.kind = kind;
        disk.error = error;
        disk.forever = forever;
        if (!run_once(operation)) {
            assert_true(i > 0);
            return;
        }
    }
}

static void loop(int error, bool forever)
{
    for (size_t i = 0; i < ARRAY_COUNT(operations); i++) {
        run_each(&operations[i], WRITE, error, forever, 1);
    }
    run_each(&large, WRITE, error, forever, 97);
}

/* The disk is full for a moment. */
static void full_once(void **state)
{
    (void)state;
    loop(ENOSPC, false);
}

/* The disk is full and stays so. */
static void full_forever(void **state)
{
    (void)state;
    loop(ENOSPC, true);
}

/* The disk reports errors, and goes on doing so. */
static void broken_forever(void **state)
{
    (void)state;
    loop(EIO, true);
}

/* A file may not grow any more (RLIMIT_FSIZE): as a full disk. */
static void too_large(void **state)
{
    (void)state;
    run_each(&operations[0], WRITE, EFBIG, false, 1);
}

/* A commit whose sync failed has an unknown outcome. */
static void syncs_fail(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_COUNT(operations); i++) {
        run_each(&operations[i], SYNC, EIO, false, 1);
        run_each(&operations[i], SYNC, EIO, true, 1);
    }
    run_each(&large, SYNC, EIO, true, 1);
}

/* Memory runs out at any of SQLite's allocations, a little further each time. */
static void memory_fails(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_COUNT(operations); i++) {
        run_each(&operations[i], MEMORY, 0, false, 41);
        run_each(&operations[i], MEMORY, 0, true, 53);
    }
}

/* A first start on a failing disk fails with a sentence, and the next one makes the store. */
static void first_starts_fail(void **state)
{
    (void)state;
    bool hit = true;
    for (long i = 0; hit; i++) {
        struct sqlite_fixture f;
        struct store_rig own = {.back_end = &f};
        struct store_rig *rig = &own;
        fixture_init(&f);
        arena_init(&rig->arena, RIG_ARENA_BYTES);
        struct thread_store_config config = fixture_config(&f);
        disk.countdown = i;
        disk.kind = WRITE;
        disk.error = ENOSPC;
        disk.forever = true;
        int code = store_open(&config, &rig->store, &rig->msg);
        hit = disk.hit;
        disk_heal();
        if (code) {
            assert_int_equal(code, ERR_NOSPC);
            assert_non_null(strstr(rig->msg.text, "app.db"));
            OK(store_open(&config, &rig->store, &rig->msg));
        }
        fill(rig);
        OK(store_verify(rig->store, &rig->msg));
        store_close(rig->store);
        arena_finish(&rig->arena);
        fixture_finish(&f);
    }
}

int main(void)
{
    memory_wrap();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(full_once),         cmocka_unit_test(full_forever),
        cmocka_unit_test(broken_forever),    cmocka_unit_test(too_large),
        cmocka_unit_test(syncs_fail),        cmocka_unit_test(memory_fails),
        cmocka_unit_test(first_starts_fail),
    };
    return cmocka_run_group_tests(tests, fill_once, forget);
}
