/* Reading app.db beside its owner, without leaving a trace. Whether it has one, its lock tells:
 *
 * - a process has it: SQLite's own way, over the index of the log (app.db-shm) that both share;
 * - nobody has it, and it was closed in order: the file alone, as one that does not change. SQLite
 *   would otherwise make files beside it;
 * - nobody has it, and a crash left a log: with it. Its index is then made in memory, since that of
 *   the crash says nothing; only where that is missing too SQLite makes one.
 *
 * A copy is made under one transaction that reads, so that it is of one moment however long it
 * takes, and nobody who writes makes it begin anew. */
#include "thread/store_tool.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "thread/migration.h"
#include "thread/store_sqlite.h"

#define PATH_BYTES_MAX 1300u
#define COPY_PAGES     64    /* between two questions whether to go on */
#define CHECK_STEPS    20000 /* likewise, instructions of SQLite */

/* An open look at app.db. */
struct look {
    const struct store_tool *tool;
    int lock_fd; /* keeps others from opening it; below 0: a process has it, or nobody ever had */
    bool given_up;
    struct db db;
};

static int lock_failed(const char *name, int number, struct errmsg *msg)
{
    int code = err_from_errno(number);
    return err_set(msg, code, "cannot lock %.200s: %s", name, err_file_text(code));
}

/* *ret_fd is below 0 and *ret_used true when a process has it; a file that was only copied here has
 * no lock, and nobody. */
static int lock_out(const char *path, int *ret_fd, bool *ret_used, struct errmsg *msg)
{
    char name[PATH_BYTES_MAX + 8];
    (void)snprintf(name, sizeof(name), "%s.lock", path); /* fits: begin looked */
    *ret_used = false;
    *ret_fd = open(name, O_RDONLY | O_CLOEXEC);
    if (*ret_fd < 0) {
        return errno == ENOENT ? 0 : lock_failed(name, errno, msg);
    }
    if (flock(*ret_fd, LOCK_SH | LOCK_NB) == 0) {
        return 0;
    }
    int number = errno;
    (void)close(*ret_fd); /* it was only locked */
    *ret_fd = -1;
    *ret_used = number == EWOULDBLOCK;
    return *ret_used ? 0 : lock_failed(name, number, msg);
}

/* Whether there is a file of that suffix, and something in it. */
static bool has_file(const char *path, const char *suffix, bool with_bytes)
{
    char name[PATH_BYTES_MAX + 8];
    struct stat st;
    (void)snprintf(name, sizeof(name), "%s%s", path, suffix); /* likewise */
    return stat(name, &st) == 0 && (!with_bytes || st.st_size > 0);
}

static const char *options_for(const char *path, bool used)
{
    if (used) {
        return "";
    }
    if (!has_file(path, "-wal", true)) {
        return "?immutable=1";
    }
    return has_file(path, "-shm", false) ? "?readonly_shm=1" : "";
}

/* A path as SQLite reads it: what means something in a URI is escaped. */
static void format_uri(const char *path, const char *options, char *out)
{
    out += snprintf(out, sizeof("file:"), "file:");
    for (; *path; path++) {
        bool special = strchr("%?#", *path) != NULL;
        out += special ? snprintf(out, 4, "%%%02X", (unsigned)*path)
                       : snprintf(out, 2, "%c", *path);
    }
    (void)snprintf(out, 32, "%s", options);
}

static int judge_file(const char *path, struct errmsg *msg)
{
    struct stat st;
    if (strlen(path) > PATH_BYTES_MAX) {
        return err_set(msg, ERR_TOOBIG, "the path of app.db is longer than %u bytes",
                       PATH_BYTES_MAX);
    }
    if (lstat(path, &st) != 0) {
        int code = err_from_errno(errno);
        return err_set(msg, code, "cannot open %.200s: %s", path, err_file_text(code));
    }
    return S_ISREG(st.st_mode) ? 0 : err_set(msg, ERR_FILEKIND, "%.200s is no file", path);
}

static void look_end(struct look *l)
{
    db_close(&l->db);
    if (l->lock_fd >= 0) {
        (void)close(l->lock_fd); /* and with it the lock */
    }
}

static int look_begin(struct look *l, const struct store_tool *tool, struct errmsg *msg)
{
    char uri[3 * PATH_BYTES_MAX + 64];
    const struct db_config config = {.uri = uri};
    bool used = false;
    *l = (struct look){.tool = tool, .lock_fd = -1};
    int code = judge_file(tool->path, msg);
    code = code ? code : lock_out(tool->path, &l->lock_fd, &used, msg);
    if (code) {
        return code;
    }
    format_uri(tool->path, options_for(tool->path, used), uri);
    code = db_open(&l->db, &config, msg);
    if (code) {
        look_end(l);
    }
    return code;
}

static bool goes_on(struct look *l)
{
    l->given_up = l->given_up || !l->tool->go_on(l->tool->context);
    return !l->given_up;
}

static int give_up(struct errmsg *msg)
{
    return err_set(msg, ERR_AGAIN, "app.db: it was not read to its end");
}

/* ------------------------------------------------------------------------------------- a copy */

/* An empty database. Nothing is synced and nothing can be undone: it counts for nothing yet. */
static int make_target(const char *to, sqlite3 **ret_db, struct errmsg *msg)
{
    int fd = open(to, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
    int code = fd < 0 || fchmod(fd, 0600) ? err_from_errno(errno) : 0;
    if (fd >= 0) {
        (void)close(fd); /* nothing was written */
    }
    if (code) {
        return err_set(msg, code, "cannot make %.200s: %s", to, err_file_text(code));
    }
    int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_EXRESCODE;
    int rc = sqlite3_open_v2(to, ret_db, flags, NULL);
    rc = rc ? rc
            : sqlite3_exec(*ret_db,
                           "PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF;"
                           " PRAGMA locking_mode = EXCLUSIVE",
                           NULL, NULL, NULL);
    return rc ? db_fail(*ret_db, rc, msg) : 0;
}

static int copy_pages(struct look *l, sqlite3 *target, struct errmsg *msg)
{
    sqlite3_backup *backup = sqlite3_backup_init(target, "main", l->db.handle, "main");
    if (!backup) {
        return db_fail(target, sqlite3_extended_errcode(target), msg);
    }
    int rc = SQLITE_OK;
    while (rc == SQLITE_OK && goes_on(l)) {
        rc = sqlite3_backup_step(backup, COPY_PAGES);
    }
    rc = sqlite3_backup_finish(backup);
    return l->given_up ? give_up(msg) : rc ? db_fail(target, rc, msg) : 0;
}

/* The transaction has its moment from the first question on. */
static int copy_moment(struct look *l, const char *to, struct errmsg *msg)
{
    sqlite3 *target = NULL;
    struct txn t;
    txn_begin(&t, &l->db, false, NULL, msg);
    int code = t.code ? t.code : migration_check(l->db.handle, migration_count, msg);
    code = code ? code : make_target(to, &target, msg);
    code = code ? code : copy_pages(l, target, msg);
    t.code = t.code ? t.code : code;
    int rc = sqlite3_close(target); /* all is written */
    assert(rc == SQLITE_OK);        /* nothing of it is in use */
    return txn_finish(&t);
}

int store_copy(const struct store_tool *tool, const char *to, struct errmsg *msg)
{
    struct look look;
    int code = look_begin(&look, tool, msg);
    if (code == 0) {
        code = copy_moment(&look, to, msg);
        look_end(&look);
    }
    return code;
}

/* ------------------------------------------------------------------------------- verification */

static int on_steps(void *context)
{
    return goes_on(context) ? 0 : 1;
}

/* What keeps SQLite from reading on is a finding like others. */
static bool is_finding(int code)
{
    return code == ERR_CORRUPT || code == ERR_MISMATCH || code == ERR_IO;
}

/* An error's sentence begins with the name that findings have anyway: "app.db: ...", or "app.db
 * was ...". */
static void tell_error(struct verification *v, int code, const struct errmsg *msg)
{
    static const char name[] = STORE_FILE;
    char text[sizeof(msg->text) + 64];
    const char *rest = msg->text + sizeof(name) - 1;
    bool named = strncmp(msg->text, name, sizeof(name) - 1) == 0;
    bool colon = named && strncmp(rest, ": ", 2) == 0;
    (void)snprintf(text, sizeof(text), "%s%s%s", named && !colon ? "it" : "",
                   !named  ? msg->text
                   : colon ? rest + 2
                           : rest,
                   code == ERR_CORRUPT ? ": it cannot be read any further" : "");
    v->found(v->context, text);
}

static int check(struct look *l, struct verification *v, struct errmsg *msg)
{
    struct txn t;
    sqlite3_progress_handler(l->db.handle, CHECK_STEPS, on_steps, l);
    txn_begin(&t, &l->db, false, NULL, msg);
    t.code = t.code ? t.code : migration_check(l->db.handle, migration_count, msg);
    if (t.code == 0) {
        txn_verify(&t, v);
    }
    int code = txn_finish(&t);
    return l->given_up ? give_up(msg) : code;
}

int store_check(const struct store_tool *tool, void (*found)(void *context, const char *text),
                struct errmsg *msg)
{
    struct verification v = {.found = found, .context = tool->context};
    struct errmsg why = {.text = ""};
    struct look look;
    int code = look_begin(&look, tool, &why);
    if (code == 0) {
        code = check(&look, &v, &why);
        look_end(&look);
    }
    if (is_finding(code)) {
        tell_error(&v, code, &why);
        code = 0;
    }
    return code ? err_set(msg, code, "%s", why.text) : 0;
}
