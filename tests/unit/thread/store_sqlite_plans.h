/* Whether statements find their rows by an index, in the order that they want: asked of SQLite for
 * each statement that a connection has prepared. */
#ifndef ARBE_TESTS_UNIT_THREAD_STORE_SQLITE_PLANS_H
#define ARBE_TESTS_UNIT_THREAD_STORE_SQLITE_PLANS_H

#include "thread/store_sqlite.h"
#include "unit/base/unit.h"

/* Statements that have to look at a whole table, or to sort: by what is in them. */
static const char *const plans_waived[] = {
    "SELECT 1 FROM agents LIMIT 1",                /* the first that comes */
    "deleted_at IS NOT NULL AND swept = 0",        /* an index that has those alone */
    "SELECT id, last_entry_ts, last_entry_offset", /* all threads, at the start */
    "GROUP BY",                                    /* sums, of what an index has found */
    "SELECT 1 FROM houses h WHERE",                /* verification, to the end */
    "SELECT 1 FROM members m JOIN",
    "SELECT 1 FROM threads t JOIN",
    "SELECT 1 FROM agents a WHERE a.deleted_at",
    "SELECT 1 FROM thread_tags g JOIN",
    "SELECT 1 FROM (SELECT count(*) AS events",
    "PRAGMA",
};

static inline bool plan_waived(const char *sql)
{
    for (size_t i = 0; i < ARRAY_COUNT(plans_waived); i++) {
        if (strstr(sql, plans_waived[i])) {
            return true;
        }
    }
    return false;
}

static inline void plan_check(sqlite3 *handle, const char *sql)
{
    char explain[8192];
    sqlite3_stmt *stmt = NULL;
    int len = snprintf(explain, sizeof(explain), "EXPLAIN QUERY PLAN %s", sql);
    assert_true(len > 0 && (size_t)len < sizeof(explain));
    assert_int_equal(sqlite3_prepare_v2(handle, explain, -1, &stmt, NULL), SQLITE_OK);
    while (sqlite3_step(stmt) == SQLITE_ROW) {
        const char *detail = (const char *)sqlite3_column_text(stmt, 3);
        bool scans = strncmp(detail, "SCAN ", 5) == 0 && strcmp(detail, "SCAN CONSTANT ROW") != 0;
        if (scans || strstr(detail, "ORDER BY") || strstr(detail, "AUTOMATIC")) {
            fail_msg("%s: %s", detail, sql);
        }
    }
    assert_int_equal(sqlite3_finalize(stmt), SQLITE_OK);
}

/* Checks all statements of a connection. How many there were. */
static inline size_t plans_check(sqlite3 *handle)
{
    const char *texts[256];
    size_t count = 0;
    for (sqlite3_stmt *stmt = sqlite3_next_stmt(handle, NULL); stmt;
         stmt = sqlite3_next_stmt(handle, stmt)) {
        assert_true(count < ARRAY_COUNT(texts));
        texts[count++] = sqlite3_sql(stmt);
    }
    for (size_t i = 0; i < count; i++) {
        if (!plan_waived(texts[i])) {
            plan_check(handle, texts[i]);
        }
    }
    return count;
}

#endif
