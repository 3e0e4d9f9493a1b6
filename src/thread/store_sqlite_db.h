/* One connection to app.db with its prepared statements, and transactions over it. A transaction is
 * a builder: the first failure sticks, everything after it does nothing, and the caller looks once,
 * at its end. What failed is rolled back.
 *
 * The SQL of an operation stands beside it as a static text; statements are kept per connection by
 * the address of that text. A connection is for one thread at a time. */
#ifndef ARBE_THREAD_STORE_SQLITE_DB_H
#define ARBE_THREAD_STORE_SQLITE_DB_H

#include <sqlite3.h>

#include "base/arena.h"
#include "base/attr.h"
#include "base/err.h"
#include "base/list.h"
#include "base/map.h"
#include "base/slice.h"

struct db {
    sqlite3 *handle;
    struct map statements; /* by the address of their SQL */
    sqlite3_stmt *undo;    /* ROLLBACK, which must not need memory when there is none */
    struct list link;      /* on the idle readers of the store */
};

struct db_config {
    const char *path;
    const char *uri; /* instead of the path, and to be read alone, as tools do; or NULL */
    bool writes;     /* the one that writes; NULL of it in a reader is an error of SQLite */
    bool lazy;       /* no sync at each commit */
};

/* The code of an error of SQLite, with its sentence. */
int db_fail(sqlite3 *handle, int rc, struct errmsg *msg);

/* Opens a connection to a file that is there. */
int db_open(struct db *db, const struct db_config *config, struct errmsg *msg) MUST_USE;

/* Accepts a zeroed connection. */
void db_close(struct db *db);

/* A value for a parameter of a statement. */
struct param {
    enum {
        PARAM_NULL,
        PARAM_NUMBER,
        PARAM_TEXT
    } kind;
    int64_t number;
    struct slice text; /* borrowed until the statement was run */
};

static inline struct param number_param(int64_t number)
{
    return (struct param){.kind = PARAM_NUMBER, .number = number};
}

/* An absent text, whose ptr is NULL, is NULL. */
static inline struct param text_param(struct slice text)
{
    return (struct param){.kind = text.ptr ? PARAM_TEXT : PARAM_NULL, .text = text};
}

/* A time that is absent when 0. */
static inline struct param time_param(int64_t ms)
{
    return (struct param){.kind = ms ? PARAM_NUMBER : PARAM_NULL, .number = ms};
}

/* Short names for the lists below. */
#define N(number) number_param(number)
#define T(text)   text_param(text)
#define MS(time)  time_param(time)

/* All parameters of a statement in the order of their numbers, as two arguments. */
#define PARAMS(...)                      \
    (const struct param[]){__VA_ARGS__}, \
        sizeof((const struct param[]){__VA_ARGS__}) / sizeof(struct param)

struct txn {
    struct db *db;
    bool writes;
    int code;            /* 0, or the first failure */
    int rc;              /* SQLite's own, if it was the one that failed */
    struct arena *arena; /* texts of rows are copied there; NULL: none are read */
    struct errmsg *msg;  /* or NULL */
};

/* Begins a transaction. A reader sees one moment from its first statement on. */
void txn_begin(struct txn *t, struct db *db, bool writes, struct arena *arena, struct errmsg *msg);

/* Commits, or rolls back what failed. The code. */
int txn_finish(struct txn *t) MUST_USE;

/* Makes the transaction fail with a sentence, unless it has failed before. */
void txn_refuse(struct txn *t, int code, const char *format, ...) PRINTF_LIKE(3, 4);

/* Begins a query. NULL once the transaction failed; txn_step bears it. */
sqlite3_stmt *txn_query(struct txn *t, const char *sql, const struct param *params, size_t count);

/* The next row. False at the end, or when it failed; the query has then ended. */
bool txn_step(struct txn *t, sqlite3_stmt *query);

/* Ends a query before its last row. Accepts NULL. */
void txn_stop(sqlite3_stmt *query);

/* Runs a statement whose rows nobody wants. How many rows it changed. */
int64_t txn_run(struct txn *t, const char *sql, const struct param *params, size_t count);

/* Whether the query has a row. */
bool txn_any(struct txn *t, const char *sql, const struct param *params, size_t count);

/* A column as text, until the next step; ptr NULL for NULL. The transaction fails for want of
 * memory. */
struct slice txn_column(struct txn *t, sqlite3_stmt *query, int column);

/* The same, NUL-terminated; "" for NULL. */
const char *txn_word(struct txn *t, sqlite3_stmt *query, int column);

/* A column as text, copied to the arena; ptr NULL for NULL. */
struct slice txn_text(struct txn *t, sqlite3_stmt *query, int column);

/* Room for `count` elements of `size` bytes in the arena, or NULL, and then it failed. */
void *txn_array(struct txn *t, size_t count, size_t size);

#endif
