/* What a page of a list costs in a house of 10,000 threads, for each combination of filters: in
 * steps of SQLite's machine, which no busy computer changes. A step takes well below 100 ns. */
#include "thread/store_sqlite_thread_list.c"

#include "unit/thread/store_sqlite_fixture.h"

#define THREADS    10000
#define PAGE_STEPS 15000 /* below 5 ms on any machine that somebody uses */

/* 10,000 threads: a tenth is tagged and runs, a twentieth is pinned, a hundredth is below
 * thread 0 and has all of that. */
static const char fill[] =
    "WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < 9999)"
    " INSERT INTO threads (id, house_id, parent_kind, parent_id, name, pinned_at, status,"
    " created_at) SELECT format('t%05d', i), h.id, iif(i % 100, 'house', 'thread'),"
    " iif(i % 100, h.id, 't00000'), 'name', iif(i % 20, NULL, 5), iif(i % 10, 'open', 'running'),"
    " 100000 + (i * 7919) % 10000 FROM n, houses h;"
    "INSERT INTO thread_tags (thread_id, tag, house_id, activity_at)"
    " SELECT id, 'tag', house_id, activity_at FROM threads"
    " WHERE name = 'name' AND substr(id, -1) = '0'";

static void add_many(struct store_rig *rig)
{
    add_house(rig, 1);
    assert_int_equal(sqlite3_exec(rig->store->writer.handle, fill, NULL, NULL, NULL), SQLITE_OK);
}

/* The combination of filters that the bits of `number` stand for. */
static struct thread_query query_of(struct store_rig *rig, unsigned number)
{
    return (struct thread_query){
        .house_id = HOUSE(1),
        .parent_id = number & 1 ? SLICE("t00000") : NONE,
        .tag = number & 2 ? SLICE("tag") : NONE,
        .with_status = number & 4,
        .status = THREAD_RUNNING,
        .pinned = number & 8,
    };
}

static size_t wanted_of(unsigned number)
{
    return number & 1 ? 100 : number & 8 ? 500 : number & 6 ? 1000 : THREADS + 1;
}

/* Reads one page as store_thread_list does. The steps it took. */
static int page_steps(struct store_rig *rig, const struct thread_query *query,
                      const struct store_page *page)
{
    struct txn t;
    int rows = 0;
    store_read(&t, rig->store, &rig->arena, &rig->msg);
    sqlite3_stmt *stmt = begin(&t, query, page, page->limit);
    (void)sqlite3_stmt_status(stmt, SQLITE_STMTSTATUS_VM_STEP, 1);
    while (rows < (int)page->limit + 1 && txn_step(&t, stmt)) {
        rows++;
    }
    int steps = sqlite3_stmt_status(stmt, SQLITE_STMTSTATUS_VM_STEP, 0);
    assert_int_equal(sqlite3_stmt_status(stmt, SQLITE_STMTSTATUS_SORT, 0), 0);
    assert_int_equal(sqlite3_stmt_status(stmt, SQLITE_STMTSTATUS_FULLSCAN_STEP, 0), 0);
    assert_int_equal(sqlite3_stmt_status(stmt, SQLITE_STMTSTATUS_AUTOINDEX, 0), 0);
    OK(store_end(&t, rig->store));
    return steps;
}

/* Every page of every combination is cheap, and together they have each thread once, in order. */
static void costs_little(void **state)
{
    struct store_rig *rig = *state;
    add_many(rig);
    for (unsigned number = 0; number < 16; number++) {
        struct thread_query query = query_of(rig, number);
        struct store_page page = {.limit = 50};
        struct thread_list list;
        size_t seen = 0;
        int64_t last = INT64_MAX;
        do {
            int steps = page_steps(rig, &query, &page);
            if (steps > PAGE_STEPS) {
                fail_msg("filters %u: %d steps for the page behind %zu", number, steps, seen);
            }
            OK(store_thread_list(rig->store, &query, &page, &rig->arena, &list, &rig->msg));
            for (size_t i = 0; i < list.count; i++) {
                assert_true(list.items[i].created_ms <= last);
                last = list.items[i].created_ms;
            }
            seen += list.count;
            page.after = list.next;
        } while (list.next.ptr);
        assert_int_equal(seen, wanted_of(number));
    }
}

/* Filters that hold for nothing: the most selective one bounds what is looked at. */
static void finds_nothing_fast(void **state)
{
    struct store_rig *rig = *state;
    const struct store_page page = {.limit = 50};
    add_many(rig);
    struct thread_query query = {.house_id = HOUSE(1), .tag = SLICE("none")};
    assert_in_range(page_steps(rig, &query, &page), 1, 100);
    query = (struct thread_query){.house_id = HOUSE(1), .parent_id = SLICE("none")};
    assert_in_range(page_steps(rig, &query, &page), 1, 100);
    query = (struct thread_query){
        .house_id = HOUSE(1), .with_status = true, .status = THREAD_FAILED};
    assert_in_range(page_steps(rig, &query, &page), 1, 100);
    query = (struct thread_query){.house_id = HOUSE(2)};
    assert_in_range(page_steps(rig, &query, &page), 1, 100);
    query = (struct thread_query){.house_id = HOUSE(2), .pinned = true};
    assert_in_range(page_steps(rig, &query, &page), 1, 100);
}

/* The plan of each statement, without a row in the tables: an index, in its order, and no sorting.
 * What plans_check holds for statements that tests ran is said here of all of them. */
static void plans_are_searches(void **state)
{
    struct store_rig *rig = *state;
    for (unsigned number = 0; number < 16; number++) {
        struct thread_query query = query_of(rig, number);
        plan_check(rig->store->writer.handle, choose(&query));
    }
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, rig_open, rig_close)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(costs_little),
        TEST(finds_nothing_fast),
        TEST(plans_are_searches),
    };
    return UNIT_RUN(tests);
}
