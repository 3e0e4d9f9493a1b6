/* Opening and closing, the pool of readers, housekeeping.
 *
 * A change has the writer for itself, under a mutex, and WAL lets readers go on beside it, so that
 * SQLite never finds the file busy through this process. Other processes are kept away by a lock
 * (flock) on a file of its own: locks on app.db itself are SQLite's. A tool that only reads app.db
 * disturbs nobody. */
#include "thread/store_sqlite.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "thread/migration.h"

#define PATH_BYTES_MAX  1200u
#define FILE_MODE       0600
#define READERS_DEFAULT 4u
#define SWEEP_ROWS      1000 /* that one call removes of each kind */

static int lock_file(const char *path, int *ret_fd, struct errmsg *msg)
{
    char name[PATH_BYTES_MAX + 8];
    if (strlen(path) > PATH_BYTES_MAX) {
        return err_set(msg, ERR_TOOBIG, "the path of app.db is longer than %u bytes",
                       PATH_BYTES_MAX);
    }
    (void)snprintf(name, sizeof(name), "%s.lock", path); /* fits */
    int fd = open(name, O_RDWR | O_CREAT | O_CLOEXEC, FILE_MODE);
    if (fd < 0) {
        int code = err_from_errno(errno);
        return err_set(msg, code, "cannot open %s: %s", name, err_file_text(code));
    }
    if (flock(fd, LOCK_EX | LOCK_NB)) {
        int code = errno == EWOULDBLOCK ? ERR_LOCKED : err_from_errno(errno);
        (void)close(fd); /* nothing was written */
        return code == ERR_LOCKED
                   ? err_set(msg, code, "another arbe uses %s; stop it first", path)
                   : err_set(msg, code, "cannot lock %s: %s", name, err_file_text(code));
    }
    *ret_fd = fd;
    return 0;
}

/* A new name is durable once its directory is. */
static int sync_dir(const char *path)
{
    char copy[PATH_BYTES_MAX + 8];
    (void)snprintf(copy, sizeof(copy), "%s", path); /* fits: lock_file looked */
    int fd = open(dirname(copy), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int code = fd < 0 || fsync(fd) ? err_from_errno(errno) : 0;
    if (fd >= 0) {
        (void)close(fd); /* nothing was written through it */
    }
    return code;
}

/* SQLite gives its other files the mode of this one. Nobody else has it open, see lock_file, so no
 * lock of SQLite's is lost by closing it. */
static int make_file(const char *path, struct errmsg *msg)
{
    int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, FILE_MODE);
    int code = fd < 0 || fchmod(fd, FILE_MODE) ? err_from_errno(errno) : 0;
    if (fd >= 0) {
        (void)close(fd); /* nothing was written */
    }
    code = code ? code : sync_dir(path);
    return code ? err_set(msg, code, "cannot open %s: %s", path, err_file_text(code)) : 0;
}

static int open_writer(struct thread_store *s, const struct thread_store_config *config,
                       struct errmsg *msg)
{
    struct db_config wanted = {.path = config->path, .writes = true, .lazy = config->lazy};
    int code = db_open(&s->writer, &wanted, msg);
    code = code ? code : migration_check(s->writer.handle, migration_count, msg);
    if (code) {
        return code;
    }
    int rc = sqlite3_exec(s->writer.handle, "PRAGMA journal_mode = WAL", NULL, NULL, NULL);
    code = rc ? db_fail(s->writer.handle, rc, msg) : 0;
    return code ? code : migration_run(s->writer.handle, migrations, migration_count, msg);
}

static int open_readers(struct thread_store *s, const struct thread_store_config *config,
                        struct errmsg *msg)
{
    struct db_config wanted = {.path = config->path};
    unsigned count = config->reader_count ? config->reader_count : READERS_DEFAULT;
    assert(count <= STORE_READERS_MAX);
    while (s->reader_count < count) {
        int code = db_open(&s->readers[s->reader_count], &wanted, msg);
        if (code) {
            return code;
        }
        list_append(&s->idle, &s->readers[s->reader_count++].link);
    }
    return 0;
}

int store_open(const struct thread_store_config *config, struct thread_store **ret_store,
               struct errmsg *msg)
{
    struct thread_store *s = calloc(1, sizeof(*s));
    if (!s) {
        return err_set(msg, ERR_NOMEM, "%s", err_text(ERR_NOMEM));
    }
    s->config = *config;
    s->config.path = NULL;
    s->lock_fd = -1;
    list_init(&s->idle);
    (void)pthread_mutex_init(&s->write_lock, NULL); /* with default attributes it cannot fail */
    (void)pthread_mutex_init(&s->read_lock, NULL);
    (void)pthread_cond_init(&s->returned, NULL);
    int code = lock_file(config->path, &s->lock_fd, msg);
    code = code ? code : make_file(config->path, msg);
    code = code ? code : open_writer(s, config, msg);
    code = code ? code : open_readers(s, config, msg);
    if (code) {
        store_close(s);
        return code;
    }
    *ret_store = s;
    return 0;
}

void store_close(struct thread_store *s)
{
    if (!s) {
        return;
    }
    for (unsigned i = 0; i < s->reader_count; i++) {
        db_close(&s->readers[i]);
    }
    db_close(&s->writer); /* the last: it brings the log into app.db and removes it */
    if (s->lock_fd >= 0) {
        (void)close(s->lock_fd); /* and with it the lock */
    }
    (void)pthread_cond_destroy(&s->returned);
    (void)pthread_mutex_destroy(&s->read_lock);
    (void)pthread_mutex_destroy(&s->write_lock);
    free(s);
}

void store_read(struct txn *t, struct thread_store *s, struct arena *arena, struct errmsg *msg)
{
    (void)pthread_mutex_lock(&s->read_lock);
    while (list_empty(&s->idle)) {
        (void)pthread_cond_wait(&s->returned, &s->read_lock);
    }
    struct list *link = list_first(&s->idle);
    list_remove(link);
    (void)pthread_mutex_unlock(&s->read_lock);
    txn_begin(t, container_of(link, struct db, link), false, arena, msg);
}

void store_write(struct txn *t, struct thread_store *s, struct arena *arena, struct errmsg *msg)
{
    (void)pthread_mutex_lock(&s->write_lock);
    txn_begin(t, &s->writer, true, arena, msg);
}

/* Whether a failure says that the file is not as it should be: not a full disk, nor want of memory,
 * nor what a statement refused. */
static bool is_failure(const struct txn *t)
{
    return t->rc && (t->code == ERR_CORRUPT || t->code == ERR_MISMATCH || t->code == ERR_IO ||
                     t->code == ERR_UNKNOWN);
}

static void note_failure(struct thread_store *s, const struct txn *t)
{
    int none = 0;
    struct errmsg msg;
    if (is_failure(t) && atomic_compare_exchange_strong(&s->failure, &none, t->code) &&
        s->config.failed) {
        (void)err_set(&msg, t->code, "app.db: %s (SQLite's %d)", sqlite3_errstr(t->rc), t->rc);
        s->config.failed(s->config.context, msg.text);
    }
}

int store_failure(const struct thread_store *s)
{
    return atomic_load(&s->failure);
}

int store_end(struct txn *t, struct thread_store *s)
{
    int code = txn_finish(t);
    note_failure(s, t);
    if (t->writes) {
        (void)pthread_mutex_unlock(&s->write_lock);
        return code;
    }
    (void)pthread_mutex_lock(&s->read_lock);
    list_append(&s->idle, &t->db->link);
    (void)pthread_cond_signal(&s->returned);
    (void)pthread_mutex_unlock(&s->read_lock);
    return code;
}

size_t page_limit(const struct store_page *page)
{
    assert(page->limit > 0);
    return page->limit < STORE_PAGE_MAX ? page->limit : STORE_PAGE_MAX;
}

struct slice txn_after(struct txn *t, const struct store_page *page)
{
    bool good = page->after.len < STORE_ID_BYTES;
    for (size_t i = 0; good && i < page->after.len; i++) {
        good = strchr("0123456789abcdef-", page->after.ptr[i]) && page->after.ptr[i];
    }
    if (!good) {
        txn_refuse(t, ERR_INVALID, "the cursor is not one that a page before gave");
    }
    return page->after.ptr ? page->after : SLICE("");
}

static const char sweep_sessions[] = "DELETE FROM sessions WHERE hash IN"
                                     " (SELECT hash FROM sessions WHERE expires_at <= ?1 LIMIT ?2)";
static const char sweep_invites[] = "DELETE FROM invites WHERE rowid IN"
                                    " (SELECT rowid FROM invites WHERE expires_at <= ?1 LIMIT ?2)";
static const char sweep_next[] =
    "SELECT id FROM threads WHERE deleted_at IS NOT NULL AND swept = 0 ORDER BY id LIMIT 1";
static const char sweep_index[] =
    "DELETE FROM entry_index WHERE thread_id = ?1 AND entry_id IN"
    " (SELECT entry_id FROM entry_index WHERE thread_id = ?1 LIMIT ?2)";
static const char sweep_mark[] = "DELETE FROM entry_index_marks WHERE thread_id = ?1";
static const char sweep_director[] = "DELETE FROM director_state WHERE thread_id = ?1";
static const char sweep_config[] =
    "DELETE FROM configs WHERE scope_kind = 'thread' AND scope_id = ?1";
static const char swept[] = "UPDATE threads SET swept = 1 WHERE id = ?1";

/* What is left of one deleted thread. Whether there was one. */
static bool sweep_thread(struct txn *t)
{
    char id[STORE_ID_BYTES] = "";
    sqlite3_stmt *query = txn_query(t, sweep_next, NULL, 0);
    if (!txn_step(t, query)) {
        return false;
    }
    (void)snprintf(id, sizeof(id), "%s", txn_word(t, query, 0));
    txn_stop(query);
    struct slice thread_id = slice_of(id);
    if (txn_run(t, sweep_index, PARAMS(T(thread_id), N(SWEEP_ROWS))) < SWEEP_ROWS) {
        (void)txn_run(t, sweep_mark, PARAMS(T(thread_id)));
        (void)txn_run(t, sweep_director, PARAMS(T(thread_id)));
        (void)txn_run(t, sweep_config, PARAMS(T(thread_id)));
        (void)txn_run(t, swept, PARAMS(T(thread_id)));
    }
    return true;
}

int store_sweep(struct thread_store *s, int64_t now_ms, bool *ret_more, struct errmsg *msg)
{
    struct txn t;
    store_write(&t, s, NULL, msg);
    bool more = txn_run(&t, sweep_sessions, PARAMS(N(now_ms), N(SWEEP_ROWS))) == SWEEP_ROWS;
    more = txn_run(&t, sweep_invites, PARAMS(N(now_ms), N(SWEEP_ROWS))) == SWEEP_ROWS || more;
    more = sweep_thread(&t) || more;
    int code = store_end(&t, s);
    if (code == 0) {
        *ret_more = more;
    }
    return code;
}
