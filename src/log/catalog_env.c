/* The LMDB environment below the catalog: opening it, and what becomes of it after a failed commit.
 *
 * How a commit fails. LMDB writes the pages of a transaction, syncs them, and then writes one of
 * its two root pages, in that order.
 *   - A failure before the root: nothing refers to the new pages. The transaction did not happen,
 *     and the next one may be tried.
 *   - A failure at the root: LMDB takes back what it wrote if it can, and from then on answers
 *     every call with MDB_PANIC. The disk may have either root. To go on as if it had the one while
 *     it has the other is not safe: the next transaction reuses the pages of the one that is
 *     thought not to have happened, and a crash would bring back a root that refers to them.
 * So the environment is closed; both root pages are read, written again just as they are, and
 * synced; and only when that has succeeded, which makes the disk agree with what is read, is the
 * environment opened and its newest transaction compared with the one in doubt. Readers wait for
 * that. The watch is asked for how long it is tried.
 *
 * What LMDB cannot bear is a page that is damaged in a way that its own checks stop at: then it
 * ends the process. The operator is told before. */
#include "log/catalog_env.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/limits.h"

#define MAP_BYTES      (64ull << 30) /* address space, not memory or disk */
#define MAP_BYTES_LESS (4ull << 30)  /* where so much address space is refused */
#define READERS_MAX    512u
#define FILE_MODE      0600
#define ROOT_PAGES     2u
#define AHEAD_BYTES    (512 * KIB) /* room that is kept in the file, at least; twice that is made */
#define PATH_MAX_BYTES 1200u

static const char *const table_names[TABLE_COUNT] = {
    "meta", "names", "streams", "extents", "producers", "expiry", "packs", "pack_extents", "notes",
};

const char *catalog_table_name(enum catalog_table table)
{
    return table_names[table];
}

static void on_assert(MDB_env *env, const char *text)
{
    const struct catalog *c = mdb_env_get_userctx(env);
    char sentence[512];
    (void)snprintf(sentence, sizeof(sentence),
                   "the catalog %s is damaged and the process must end (%s); restore the data "
                   "directory from a backup",
                   c->dir, text);
    if (c->watch.damaged) {
        c->watch.damaged(c->watch.context, sentence);
    }
}

static int file_of(struct catalog *c, int *ret_fd, uint64_t *ret_used_bytes,
                   uint64_t *ret_file_bytes)
{
    MDB_envinfo info;
    MDB_stat stat;
    struct stat file;
    int rc = mdb_env_info(c->env, &info);
    rc = rc ? rc : mdb_env_stat(c->env, &stat);
    rc = rc ? rc : mdb_env_get_fd(c->env, ret_fd);
    if (rc) {
        return catalog_from_mdb(rc);
    }
    if (fstat(*ret_fd, &file)) {
        return err_from_errno(errno);
    }
    c->page_bytes = stat.ms_psize;
    *ret_used_bytes = (uint64_t)(info.me_last_pgno + 1) * stat.ms_psize;
    *ret_file_bytes = (uint64_t)file.st_size;
    return 0;
}

/* LMDB maps its file and believes its own count of pages: a file that was cut short would end the
 * process with SIGBUS at the first look at a page behind the cut. Made whole again, the missing
 * pages are zeros, which LMDB knows for damage. A file may be short by pages that nothing refers
 * to, so being short alone is no damage. */
static int fill_cut(struct catalog *c)
{
    int fd = -1;
    uint64_t used = 0;
    uint64_t size = 0;
    int rc = file_of(c, &fd, &used, &size);
    if (rc == 0 && size < used && ftruncate(fd, (off_t)used)) {
        rc = err_from_errno(errno);
    }
    return rc;
}

void catalog_env_grow(struct catalog *c)
{
    int fd = -1;
    uint64_t used = 0;
    uint64_t size = 0;
    if (file_of(c, &fd, &used, &size) == 0 && size < used + AHEAD_BYTES) {
        (void)posix_fallocate(fd, 0, (off_t)(used + 2 * AHEAD_BYTES)); /* a comfort, not a need */
    }
}

static int try_open(struct catalog *c, size_t map_bytes)
{
    int rc = mdb_env_create(&c->env);
    if (rc) {
        c->env = NULL;
        return rc;
    }
    unsigned flags = MDB_NOTLS | MDB_NORDAHEAD | (c->sync ? 0 : MDB_NOSYNC);
    rc = mdb_env_set_maxdbs(c->env, TABLE_COUNT);
    rc = rc ? rc : mdb_env_set_maxreaders(c->env, READERS_MAX);
    rc = rc ? rc : mdb_env_set_mapsize(c->env, map_bytes);
    rc = rc ? rc : mdb_env_set_userctx(c->env, c);
    rc = rc ? rc : mdb_env_set_assert(c->env, on_assert);
    rc = rc ? rc : mdb_env_open(c->env, c->dir, flags, FILE_MODE);
    if (rc) {
        mdb_env_close(c->env);
        c->env = NULL;
    }
    return rc;
}

int catalog_env_open(struct catalog *c)
{
    int rc = try_open(c, MAP_BYTES);
    if (rc == ENOMEM) {
        rc = try_open(c, MAP_BYTES_LESS);
    }
    if (rc) {
        return catalog_from_mdb(rc);
    }
    int dead = 0;
    rc = catalog_from_mdb(
        mdb_reader_check(c->env, &dead)); /* slots of processes that were killed */
    rc = rc ? rc : fill_cut(c);
    if (rc) {
        mdb_env_close(c->env);
        c->env = NULL;
    }
    return rc;
}

int catalog_env_tables(struct catalog *c, MDB_txn *txn, unsigned flags)
{
    for (unsigned i = 0; i < TABLE_COUNT; i++) {
        int rc = mdb_dbi_open(txn, table_names[i], flags, &c->tables[i]);
        if (rc) {
            return catalog_from_mdb(rc);
        }
    }
    return 0;
}

static int verify_table(MDB_txn *txn, MDB_dbi table)
{
    MDB_cursor *cursor = NULL;
    int rc = mdb_cursor_open(txn, table, &cursor);
    if (rc) {
        return catalog_from_mdb(rc);
    }
    MDB_val key;
    MDB_val value;
    rc = mdb_cursor_get(cursor, &key, &value, MDB_FIRST);
    rc = rc ? rc : mdb_cursor_get(cursor, &key, &value, MDB_LAST);
    mdb_cursor_close(cursor);
    return rc == MDB_NOTFOUND ? 0 : catalog_from_mdb(rc);
}

int catalog_env_verify(struct catalog *c)
{
    MDB_txn *txn = NULL;
    int rc = catalog_from_mdb(mdb_txn_begin(c->env, NULL, MDB_RDONLY, &txn));
    if (rc) {
        return rc;
    }
    for (unsigned i = 0; i < TABLE_COUNT && rc == 0; i++) {
        rc = verify_table(txn, c->tables[i]);
    }
    mdb_txn_abort(txn);
    return rc;
}

/* Reads the root pages, writes them again as they are, and syncs. */
static int rewrite_roots(struct catalog *c)
{
    char path[PATH_MAX_BYTES];
    int len = snprintf(path, sizeof(path), "%s/data.mdb", c->dir);
    if (len < 0 || len >= (int)sizeof(path)) {
        return ERR_INVALID;
    }
    int fd = open(path, O_RDWR | O_CLOEXEC | O_NOFOLLOW);
    if (fd < 0) {
        return err_from_errno(errno);
    }
    ssize_t size = (ssize_t)(ROOT_PAGES * c->page_bytes);
    char *roots = malloc((size_t)size);
    int rc = roots ? 0 : ERR_NOMEM;
    if (rc == 0 && (pread(fd, roots, (size_t)size, 0) != size ||
                    pwrite(fd, roots, (size_t)size, 0) != size || fdatasync(fd))) {
        rc = ERR_IO;
    }
    free(roots);
    (void)close(fd); /* synced, or failed already */
    return rc;
}

static int open_again(struct catalog *c)
{
    MDB_txn *txn = NULL;
    int rc = catalog_env_open(c);
    if (rc) {
        return rc;
    }
    rc = catalog_from_mdb(mdb_txn_begin(c->env, NULL, MDB_RDONLY, &txn));
    if (rc == 0) {
        rc = catalog_env_tables(c, txn, 0);
        int ended = catalog_from_mdb(mdb_txn_commit(txn)); /* which keeps the tables open */
        rc = rc ? rc : ended;
    }
    if (rc) {
        mdb_env_close(c->env);
        c->env = NULL;
    }
    return rc;
}

/* One attempt to learn how transaction `txn_id` ended. */
static int settle_once(struct catalog *c, size_t txn_id, bool *ret_committed)
{
    pthread_rwlock_wrlock(&c->lock);
    catalog_lose_pins(c);
    if (c->env) {
        mdb_env_close(c->env);
        c->env = NULL;
    }
    int rc = rewrite_roots(c);
    int opened = open_again(c); /* also after a failure: what is there can be read */
    rc = rc ? rc : opened;
    MDB_envinfo info;
    rc = rc ? rc : catalog_from_mdb(mdb_env_info(c->env, &info));
    pthread_rwlock_unlock(&c->lock);
    if (rc == 0) {
        *ret_committed = info.me_last_txnid >= txn_id;
    }
    return rc;
}

/* Whether LMDB got as far as the root. */
static bool panics(struct catalog *c)
{
    MDB_txn *txn = NULL;
    int rc = mdb_txn_begin(c->env, NULL, MDB_RDONLY, &txn);
    if (rc == 0) {
        mdb_txn_abort(txn);
    }
    return rc == MDB_PANIC;
}

int catalog_env_settle(struct catalog *c, size_t txn_id, int error)
{
    assert(error < 0 && error != ERR_UNKNOWN);
    if (!panics(c)) {
        return error;
    }
    bool committed = false;
    for (unsigned attempt = 0; settle_once(c, txn_id, &committed); attempt++) {
        if (!c->watch.pause || !c->watch.pause(c->watch.context, attempt)) {
            c->unknown = true;
            return ERR_UNKNOWN;
        }
    }
    return committed ? 0 : error;
}
