/* Steps from each number to the newest, what is refused, and steps that fail half-way. */
#include "thread/migration.c"

#include <string.h>

#include "unit/base/unit.h"

static const char *const steps[] = {
    "CREATE TABLE a (x); INSERT INTO a VALUES (1)",
    "ALTER TABLE a ADD COLUMN y DEFAULT 7",
    "CREATE TABLE b AS SELECT x + y AS z FROM a",
};

static sqlite3 *db_new(void)
{
    sqlite3 *db = NULL;
    assert_int_equal(sqlite3_open(":memory:", &db), SQLITE_OK);
    return db;
}

static int64_t number_of(sqlite3 *db, const char *sql)
{
    int64_t number = -1;
    struct errmsg msg;
    if (ask(db, sql, &number, &msg)) {
        fail_msg("%s", msg.text);
    }
    return number;
}

/* From each older number the newest is reached, once. */
static void test_from_each(void **state)
{
    (void)state;
    for (size_t from = 0; from <= ARRAY_COUNT(steps); from++) {
        sqlite3 *db = db_new();
        assert_int_equal(migration_run(db, steps, from, NULL), 0);
        assert_int_equal(number_of(db, "PRAGMA user_version"), from);
        for (int twice = 0; twice < 2; twice++) {
            assert_int_equal(migration_check(db, ARRAY_COUNT(steps), NULL), 0);
            assert_int_equal(migration_run(db, steps, ARRAY_COUNT(steps), NULL), 0);
            assert_int_equal(number_of(db, "PRAGMA user_version"), ARRAY_COUNT(steps));
            assert_int_equal(number_of(db, "SELECT z FROM b"), 8);
            assert_int_equal(number_of(db, "PRAGMA application_id"), MIGRATION_APPLICATION_ID);
        }
        assert_int_equal(sqlite3_close(db), SQLITE_OK);
    }
}

/* A file of a newer program is refused with both numbers, and stays as it is. */
static void test_newer(void **state)
{
    (void)state;
    struct errmsg msg;
    sqlite3 *db = db_new();
    assert_int_equal(migration_run(db, steps, 3, NULL), 0);
    assert_int_equal(migration_check(db, 2, &msg), ERR_MISMATCH);
    assert_string_equal(msg.text,
                        "app.db was written by a newer arbe (schema 3, this one knows 2)");
    assert_int_equal(sqlite3_close(db), SQLITE_OK);
}

static void check_foreign(const char *sql)
{
    struct errmsg msg;
    sqlite3 *db = db_new();
    assert_int_equal(sqlite3_exec(db, sql, NULL, NULL, NULL), SQLITE_OK);
    assert_int_equal(migration_check(db, 3, &msg), ERR_MISMATCH);
    assert_string_equal(msg.text, "app.db is a database, but not one of arbe's");
    assert_int_equal(sqlite3_close(db), SQLITE_OK);
}

/* Nobody else's database is taken for ours. */
static void test_foreign(void **state)
{
    (void)state;
    check_foreign("CREATE TABLE theirs (x)");
    check_foreign("PRAGMA user_version = 1");
    check_foreign("PRAGMA application_id = 5");
    check_foreign("PRAGMA application_id = 5; PRAGMA user_version = 1; CREATE TABLE theirs (x)");
}

/* A step that fails leaves the number and the tables of the one before. */
static void test_failing(void **state)
{
    (void)state;
    static const char *const bad[] = {
        "CREATE TABLE a (x)",
        "CREATE TABLE b (x); INSERT INTO b VALUES (1); INSERT INTO nowhere VALUES (1)",
    };
    struct errmsg msg;
    sqlite3 *db = db_new();
    assert_true(migration_run(db, bad, 2, &msg) < 0);
    assert_non_null(strstr(msg.text, "schema 2"));
    assert_non_null(strstr(msg.text, "nowhere"));
    assert_int_equal(sqlite3_get_autocommit(db), 1);
    assert_int_equal(number_of(db, "PRAGMA user_version"), 1);
    assert_int_equal(number_of(db, "SELECT count(*) FROM sqlite_schema"), 1);
    assert_int_equal(migration_run(db, steps, 1, NULL), 0);
    assert_int_equal(sqlite3_close(db), SQLITE_OK);
}

/* The program's own steps, from each number on. */
static void test_own(void **state)
{
    (void)state;
    for (size_t from = 0; from <= migration_count; from++) {
        struct errmsg msg = {0};
        sqlite3 *db = db_new();
        int code = migration_run(db, migrations, from, &msg);
        code = code ? code : migration_run(db, migrations, migration_count, &msg);
        if (code) {
            fail_msg("from %zu: %s", from, msg.text);
        }
        assert_int_equal(number_of(db, "SELECT count(*) FROM threads"), 0);
        assert_int_equal(number_of(db, "SELECT count(*) FROM pragma_foreign_key_check"), 0);
        assert_int_equal(sqlite3_close(db), SQLITE_OK);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_from_each), cmocka_unit_test(test_newer),
        cmocka_unit_test(test_foreign),   cmocka_unit_test(test_failing),
        cmocka_unit_test(test_own),
    };
    return UNIT_RUN(tests);
}
