/* Lists of threads in SQLite, newest activity first.
 *
 * Each of the statements walks one index that has the order of the list, begins behind the cursor,
 * and stops after a page: nothing is sorted, and no house is walked through for its first page. The
 * most selective filter chooses the index; the others are looked at row by row. INDEXED BY makes an
 * error of what would otherwise be a slow answer. */
#include <inttypes.h>
#include <stdio.h>

#include "base/number.h"
#include "thread/store_sqlite.h"

/* ?1 house, ?2 and ?3 the cursor, ?4 parent, ?5 status, ?6 tag, ?7 pinned, ?8 rows. A filter that
 * is NULL holds for all. */
#define HEAD "SELECT " THREAD_COLUMNS " FROM threads t INDEXED BY "
#define IN_HOUSE                                      \
    " WHERE t.deleted_at IS NULL AND t.house_id = ?1" \
    " AND (t.activity_at, t.id) < (?2, ?3)"
#define PARENT " AND (?4 IS NULL OR t.parent_id = ?4)"
#define STATUS " AND (?5 IS NULL OR t.status = ?5)"
#define TAG                      \
    " AND (?6 IS NULL OR EXISTS" \
    " (SELECT 1 FROM thread_tags g WHERE g.thread_id = t.id AND g.tag = ?6))"
#define PINNED " AND (?7 = 0 OR t.pinned_at IS NOT NULL)"
#define ORDER  " ORDER BY t.activity_at DESC, t.id DESC LIMIT ?8"

static const char list_all[] = HEAD "threads_by_activity" IN_HOUSE PARENT STATUS TAG PINNED ORDER;
static const char list_parent[] = HEAD "threads_by_parent" IN_HOUSE
                                       " AND t.parent_id = ?4" STATUS TAG PINNED ORDER;
static const char list_status[] = HEAD "threads_by_status" IN_HOUSE
                                       " AND t.status = ?5" PARENT TAG PINNED ORDER;
static const char list_pinned[] = HEAD
    "threads_pinned" IN_HOUSE " AND t.pinned_at IS NOT NULL" PARENT STATUS TAG PINNED ORDER;
static const char list_tag[] =
    "SELECT " THREAD_COLUMNS " FROM thread_tags g INDEXED BY tags_by_activity"
    " CROSS JOIN threads t ON t.id = g.thread_id"
    " WHERE g.house_id = ?1 AND g.tag = ?6 AND (g.activity_at, g.thread_id) < (?2, ?3)"
    " AND t.deleted_at IS NULL" PARENT STATUS PINNED
    " ORDER BY g.activity_at DESC, g.thread_id DESC LIMIT ?8";

static const char *choose(const struct thread_query *query)
{
    if (query->tag.ptr) {
        return list_tag;
    }
    if (query->parent_id.ptr) {
        return list_parent;
    }
    if (query->pinned) {
        return list_pinned;
    }
    return query->with_status ? list_status : list_all;
}

/* A cursor is "ACTIVITY.ID". Behind the first page of all there is everything. */
static void read_cursor(struct txn *t, struct slice cursor, int64_t *ret_activity,
                        struct slice *ret_id)
{
    struct slice rest = cursor;
    struct slice number = {0};
    uint64_t activity = INT64_MAX;
    if (cursor.len > 0) {
        (void)slice_split(&rest, '.', &number); /* what it left shows whether there was one */
        if (!number_parse_u64(number, INT64_MAX, false, &activity) || rest.len == 0) {
            txn_refuse(t, ERR_INVALID, "the cursor is not one that a page before gave");
        }
    }
    *ret_activity = (int64_t)activity;
    *ret_id = cursor.len > 0 ? rest : SLICE("");
}

void store_thread_cursor(int64_t activity_ms, struct slice id, char out[static STORE_CURSOR_BYTES])
{
    (void)snprintf(out, STORE_CURSOR_BYTES, "%" PRId64 ".%.*s", activity_ms, (int)id.len, id.ptr);
}

static struct slice make_cursor(struct txn *t, int64_t activity, struct slice id)
{
    char text[STORE_CURSOR_BYTES];
    store_thread_cursor(activity, id, text);
    char *copy = arena_try_copy(t->arena, slice_of(text));
    if (!copy) {
        txn_refuse(t, ERR_NOMEM, "%s", err_text(ERR_NOMEM));
        return (struct slice){0};
    }
    return slice_of(copy);
}

static sqlite3_stmt *begin(struct txn *t, const struct thread_query *query,
                           const struct store_page *page, size_t limit)
{
    int64_t activity = 0;
    struct slice id = {0};
    read_cursor(t, page->after, &activity, &id);
    struct slice status = query->with_status ? slice_of(status_text(query->status))
                                             : (struct slice){0};
    return txn_query(t, choose(query),
                     PARAMS(T(query->house_id), N(activity), T(id), T(query->parent_id), T(status),
                            T(query->tag), N(query->pinned), N((int64_t)limit + 1)));
}

int store_thread_list(struct thread_store *s, const struct thread_query *query,
                      const struct store_page *page, struct arena *arena,
                      struct thread_list *ret_list, struct errmsg *msg)
{
    struct txn t;
    size_t limit = page_limit(page);
    int64_t activity = 0;
    store_read(&t, s, arena, msg);
    struct thread_list list = {.items = txn_array(&t, limit, sizeof(*list.items))};
    sqlite3_stmt *rows = begin(&t, query, page, limit);
    while (txn_step(&t, rows)) {
        if (list.count == limit) {
            list.next = make_cursor(&t, activity, list.items[limit - 1].id);
            txn_stop(rows);
            break;
        }
        activity = sqlite3_column_int64(rows, THREAD_COLUMN_ACTIVITY);
        txn_thread_row(&t, rows, &list.items[list.count++]);
    }
    int code = store_end(&t, s);
    if (code == 0) {
        *ret_list = list;
    }
    return code;
}
