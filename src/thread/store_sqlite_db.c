/* Connections, statements, transactions.
 *
 * How SQLite fails. A write that finds no room, or that the disk refuses, ends the statement and
 * often the whole transaction; the rest is rolled back here, so that nothing of it is left. The
 * exception is the sync of a commit: the commit record may be on disk or not. SQLite goes on as if
 * it were not and would write over it, but after a crash it may be found: ERR_UNKNOWN. */
#include "thread/store_sqlite_db.h"

#include <assert.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#define BUSY_TIMEOUT_MS 10000 /* for other programs that look at the file */

/* A prepared statement of a connection. */
struct statement {
    struct map_node node; /* on the connection's map */
    const char *sql;      /* static */
    sqlite3_stmt *stmt;   /* owned */
};

static int code_of_constraint(int rc)
{
    switch (rc) {
    case SQLITE_CONSTRAINT_PRIMARYKEY:
    case SQLITE_CONSTRAINT_UNIQUE:
    case SQLITE_CONSTRAINT_ROWID:
        return ERR_EXISTS;
    case SQLITE_CONSTRAINT_FOREIGNKEY:
        return ERR_NOTFOUND;
    default:
        return ERR_INVALID;
    }
}

static int code_of_io(sqlite3 *handle, int rc, int last)
{
    if (rc == SQLITE_IOERR_NOMEM) {
        return ERR_NOMEM;
    }
    int number = handle ? sqlite3_system_errno(handle) : 0;
    number = number ? number : last; /* of a commit SQLite keeps none */
    return number == EFBIG || err_from_errno(number) == ERR_NOSPC ? ERR_NOSPC : ERR_IO;
}

/* `last` is errno as SQLite left it. */
static int code_of(sqlite3 *handle, int rc, int last)
{
    switch (rc & 0xff) {
    case SQLITE_NOMEM:
        return ERR_NOMEM;
    case SQLITE_FULL:
        return ERR_NOSPC;
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
        return ERR_BUSY;
    case SQLITE_CORRUPT:
        return ERR_CORRUPT;
    case SQLITE_NOTADB:
        return ERR_MISMATCH;
    case SQLITE_TOOBIG:
        return ERR_TOOBIG;
    case SQLITE_CONSTRAINT:
        return code_of_constraint(rc);
    case SQLITE_IOERR:
        return code_of_io(handle, rc, last);
    default:
        return ERR_IO;
    }
}

int db_fail(sqlite3 *handle, int rc, struct errmsg *msg)
{
    int last = errno;
    const char *text = handle ? sqlite3_errmsg(handle) : sqlite3_errstr(rc);
    int code = code_of(handle, rc, last);
    if ((rc & 0xff) == SQLITE_CONSTRAINT && code == ERR_EXISTS) {
        text = "a record with that id or secret is there already";
    } else if ((rc & 0xff) == SQLITE_CONSTRAINT && code == ERR_NOTFOUND) {
        text = "the record that this refers to is not there";
    }
    return err_set(msg, code, "app.db: %s", text);
}

static int setting(struct db *db, const char *sql, struct errmsg *msg)
{
    int rc = sqlite3_exec(db->handle, sql, NULL, NULL, NULL);
    return rc ? db_fail(db->handle, rc, msg) : 0;
}

int db_open(struct db *db, const struct db_config *config, struct errmsg *msg)
{
    int flags = SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_EXRESCODE;
    *db = (struct db){0};
    map_init(&db->statements);
    list_init(&db->link);
    flags |= config->uri ? SQLITE_OPEN_READONLY | SQLITE_OPEN_URI : SQLITE_OPEN_READWRITE;
    int rc = sqlite3_open_v2(config->uri ? config->uri : config->path, &db->handle, flags, NULL);
    if (rc) {
        int code = db_fail(db->handle, rc, msg);
        db_close(db);
        return code;
    }
    (void)sqlite3_busy_timeout(db->handle, BUSY_TIMEOUT_MS); /* cannot fail */
    (void)sqlite3_db_config(db->handle, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
    if (config->uri) { /* the log stays where it is */
        (void)sqlite3_db_config(db->handle, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, NULL);
    }
    int code = setting(db, "PRAGMA foreign_keys = ON", msg);
    code = code ? code : setting(db, "PRAGMA trusted_schema = OFF", msg);
    code = code ? code : setting(db, "PRAGMA cell_size_check = ON", msg);
    code = code ? code : setting(db, "PRAGMA temp_store = MEMORY", msg);
    code = code ? code : setting(db, "PRAGMA cache_size = -8192", msg);
    code = code ? code : setting(db, "PRAGMA journal_size_limit = 67108864", msg);
    code = code
               ? code
               : setting(db,
                         config->lazy ? "PRAGMA synchronous = NORMAL" : "PRAGMA synchronous = FULL",
                         msg);
    if (code == 0 && !config->writes) {
        code = setting(db, "PRAGMA query_only = ON", msg);
    }
    if (code == 0) {
        rc = sqlite3_prepare_v2(db->handle, "ROLLBACK", -1, &db->undo, NULL);
        code = rc ? db_fail(db->handle, rc, msg) : 0;
    }
    if (code) {
        db_close(db);
    }
    return code;
}

static void statement_free(struct statement *statement)
{
    (void)sqlite3_finalize(statement->stmt); /* tells of the last failure again */
    free(statement);
}

void db_close(struct db *db)
{
    struct map_node *next = NULL;
    for (struct map_node *node = map_next(&db->statements, NULL); node; node = next) {
        next = map_next(&db->statements, node);
        map_remove(&db->statements, node);
        statement_free(container_of(node, struct statement, node));
    }
    map_finish(&db->statements);
    (void)sqlite3_finalize(db->undo); /* likewise */
    int rc = sqlite3_close(db->handle);
    assert(rc == SQLITE_OK); /* every statement was finalized */
    *db = (struct db){0};
}

static uint64_t hash_of(const char *sql)
{
    uint64_t address = (uint64_t)(uintptr_t)sql;
    return slice_hash((struct slice){(const char *)&address, sizeof(address)}, 0);
}

static sqlite3_stmt *statement_find(const struct db *db, const char *sql, uint64_t hash)
{
    for (struct map_node *node = map_find(&db->statements, hash); node;
         node = map_find_next(node)) {
        struct statement *statement = container_of(node, struct statement, node);
        if (statement->sql == sql) {
            return statement->stmt;
        }
    }
    return NULL;
}

/* SQLite failed; nothing has before. */
static void fail(struct txn *t, int rc)
{
    t->code = db_fail(t->db->handle, rc, t->msg);
    t->rc = rc;
}

static sqlite3_stmt *statement_get(struct txn *t, const char *sql)
{
    struct db *db = t->db;
    uint64_t hash = hash_of(sql);
    sqlite3_stmt *stmt = statement_find(db, sql, hash);
    if (stmt) {
        return stmt;
    }
    struct statement *statement = calloc(1, sizeof(*statement));
    if (!statement) {
        txn_refuse(t, ERR_NOMEM, "%s", err_text(ERR_NOMEM));
        return NULL;
    }
    statement->sql = sql;
    int rc = sqlite3_prepare_v3(db->handle, sql, -1, SQLITE_PREPARE_PERSISTENT, &statement->stmt,
                                NULL);
    if (rc) {
        fail(t, rc);
    } else if (map_insert(&db->statements, &statement->node, hash)) {
        txn_refuse(t, ERR_NOMEM, "%s", err_text(ERR_NOMEM));
    }
    if (t->code) {
        statement_free(statement);
        return NULL;
    }
    return statement->stmt;
}

static int bind(sqlite3_stmt *stmt, int at, const struct param *param)
{
    switch (param->kind) {
    case PARAM_NUMBER:
        return sqlite3_bind_int64(stmt, at, param->number);
    case PARAM_TEXT:
        return sqlite3_bind_text64(stmt, at, param->text.ptr, param->text.len, SQLITE_STATIC,
                                   SQLITE_UTF8);
    case PARAM_NULL:
        break;
    }
    return sqlite3_bind_null(stmt, at);
}

sqlite3_stmt *txn_query(struct txn *t, const char *sql, const struct param *params, size_t count)
{
    sqlite3_stmt *stmt = t->code ? NULL : statement_get(t, sql);
    if (!stmt) {
        return NULL;
    }
    assert(count == (size_t)sqlite3_bind_parameter_count(stmt));
    (void)sqlite3_reset(stmt); /* tells of the last run */
    for (size_t i = 0; i < count; i++) {
        int rc = bind(stmt, (int)i + 1, &params[i]);
        if (rc) {
            fail(t, rc);
            return NULL;
        }
    }
    return stmt;
}

bool txn_step(struct txn *t, sqlite3_stmt *query)
{
    if (!query || t->code) {
        txn_stop(query);
        return false;
    }
    int rc = sqlite3_step(query);
    if (rc == SQLITE_ROW) {
        return true;
    }
    if (rc != SQLITE_DONE) {
        fail(t, rc);
    }
    txn_stop(query);
    return false;
}

void txn_stop(sqlite3_stmt *query)
{
    (void)sqlite3_reset(query); /* tells of the last run */
}

int64_t txn_run(struct txn *t, const char *sql, const struct param *params, size_t count)
{
    sqlite3_stmt *stmt = txn_query(t, sql, params, count);
    while (txn_step(t, stmt)) {
    }
    return t->code ? 0 : sqlite3_changes64(t->db->handle);
}

bool txn_any(struct txn *t, const char *sql, const struct param *params, size_t count)
{
    sqlite3_stmt *stmt = txn_query(t, sql, params, count);
    bool any = txn_step(t, stmt);
    txn_stop(stmt);
    return any;
}

struct slice txn_column(struct txn *t, sqlite3_stmt *query, int column)
{
    const char *text = (const char *)sqlite3_column_text(query, column);
    if (!text && sqlite3_column_type(query, column) != SQLITE_NULL) {
        txn_refuse(t, ERR_NOMEM, "%s", err_text(ERR_NOMEM));
    }
    return (struct slice){text, text ? (size_t)sqlite3_column_bytes(query, column) : 0};
}

const char *txn_word(struct txn *t, sqlite3_stmt *query, int column)
{
    struct slice text = txn_column(t, query, column);
    return text.ptr ? text.ptr : "";
}

struct slice txn_text(struct txn *t, sqlite3_stmt *query, int column)
{
    struct slice text = txn_column(t, query, column);
    if (!text.ptr) {
        return text;
    }
    char *copy = arena_try_copy(t->arena, text);
    if (!copy) {
        txn_refuse(t, ERR_NOMEM, "%s", err_text(ERR_NOMEM));
        return (struct slice){0};
    }
    return (struct slice){copy, text.len};
}

void *txn_array(struct txn *t, size_t count, size_t size)
{
    void *array = t->code ? NULL : arena_try_alloc(t->arena, (count ? count : 1) * size);
    if (!array) {
        txn_refuse(t, ERR_NOMEM, "%s", err_text(ERR_NOMEM));
    }
    return array;
}

void txn_refuse(struct txn *t, int code, const char *format, ...)
{
    char text[sizeof(t->msg->text)];
    va_list args;
    if (t->code) {
        return;
    }
    va_start(args, format);
    (void)vsnprintf(text, sizeof(text), format, args); /* a sentence may be cut */
    va_end(args);
    t->code = err_set(t->msg, code, "%s", text);
}

static const char begin_read[] = "BEGIN";
static const char begin_write[] = "BEGIN IMMEDIATE";
static const char commit[] = "COMMIT";

/* Rolls back what has not ended; txn_begin tries again what could not be. */
static void undo(struct db *db)
{
    if (!sqlite3_get_autocommit(db->handle)) {
        (void)sqlite3_step(db->undo); /* see above */
        (void)sqlite3_reset(db->undo);
    }
}

void txn_begin(struct txn *t, struct db *db, bool writes, struct arena *arena, struct errmsg *msg)
{
    *t = (struct txn){.db = db, .writes = writes, .arena = arena, .msg = msg};
    undo(db); /* if the one before could not even be rolled back */
    (void)txn_run(t, writes ? begin_write : begin_read, NULL, 0); /* a failure sticks */
}

/* A query whose rows were not all read would keep its moment alive. */
static void stop_all(sqlite3 *handle)
{
    for (sqlite3_stmt *stmt = sqlite3_next_stmt(handle, NULL); stmt;
         stmt = sqlite3_next_stmt(handle, stmt)) {
        if (sqlite3_stmt_busy(stmt)) {
            txn_stop(stmt);
        }
    }
}

int txn_finish(struct txn *t)
{
    sqlite3 *handle = t->db->handle;
    stop_all(handle);
    if (t->code == 0) {
        (void)txn_run(t, commit, NULL, 0); /* a failure sticks */
        if (t->code && sqlite3_extended_errcode(handle) == SQLITE_IOERR_FSYNC) {
            t->code = ERR_UNKNOWN;
        }
    }
    undo(t->db);
    return t->code;
}
