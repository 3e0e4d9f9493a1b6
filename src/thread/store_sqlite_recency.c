/* How far threads have come, in SQLite: their newest entry, what of them is in the entry index, and
 * what their director has read. */
#include "thread/store_sqlite.h"

/* A row that would move nothing is not written at all. */
static const char recency_write[] =
    "UPDATE threads SET last_entry_ts = max(coalesce(last_entry_ts, ?2), ?2),"
    " last_entry_offset = max(coalesce(last_entry_offset, ?3), ?3)"
    " WHERE id = ?1 AND deleted_at IS NULL"
    " AND (last_entry_ts IS NULL OR last_entry_ts < ?2 OR last_entry_offset < ?3)";
static const char recency_each[] =
    "SELECT id, last_entry_ts, last_entry_offset FROM threads WHERE deleted_at IS NULL";

static const char index_get[] = "SELECT next_offset FROM entry_index_marks WHERE thread_id = ?1";
static const char index_mark[] =
    "INSERT INTO entry_index_marks (thread_id, next_offset) VALUES (?1, ?2)"
    " ON CONFLICT (thread_id) DO UPDATE SET next_offset = excluded.next_offset";
static const char index_put[] =
    "INSERT INTO entry_index (thread_id, entry_id, at_offset) VALUES (?1, ?2, ?3)"
    " ON CONFLICT (thread_id, entry_id) DO NOTHING";
static const char index_find[] =
    "SELECT at_offset FROM entry_index WHERE thread_id = ?1 AND entry_id = ?2";

static const char director_get[] = "SELECT read_offset FROM director_state WHERE thread_id = ?1";
static const char director_put[] =
    "INSERT INTO director_state (thread_id, read_offset, updated_at) VALUES (?1, ?2, ?3)"
    " ON CONFLICT (thread_id)"
    " DO UPDATE SET read_offset = excluded.read_offset, updated_at = excluded.updated_at";

int store_recency_write(struct thread_store *s, const struct recency_row *rows, size_t count,
                        struct errmsg *msg)
{
    struct txn t;
    store_write(&t, s, NULL, msg);
    for (size_t i = 0; i < count; i++) {
        (void)txn_run(&t, recency_write,
                      PARAMS(T(rows[i].thread_id), N(rows[i].ts), T(rows[i].offset)));
    }
    return store_end(&t, s);
}

int store_recency_each(struct thread_store *s, recency_fn each, void *context, struct errmsg *msg)
{
    struct txn t;
    int code = 0;
    store_read(&t, s, NULL, msg);
    sqlite3_stmt *query = txn_query(&t, recency_each, NULL, 0);
    while (code == 0 && txn_step(&t, query)) {
        struct recency_row row = {
            .thread_id = txn_column(&t, query, 0),
            .ts = sqlite3_column_int64(query, 1),
            .offset = txn_column(&t, query, 2),
        };
        code = each(context, &row);
    }
    int end = store_end(&t, s);
    return code ? code : end;
}

/* The text that a query of one row and column finds. */
static int ask(struct txn *t, struct thread_store *s, sqlite3_stmt *query, struct slice *ret_text)
{
    struct slice text = {0};
    if (txn_step(t, query)) {
        text = txn_text(t, query, 0);
    }
    int code = store_end(t, s);
    if (code == 0) {
        *ret_text = text;
    }
    return code;
}

int store_index_get(struct thread_store *s, struct slice thread_id, struct arena *arena,
                    struct slice *ret_next_offset, struct errmsg *msg)
{
    struct txn t;
    store_read(&t, s, arena, msg);
    return ask(&t, s, txn_query(&t, index_get, PARAMS(T(thread_id))), ret_next_offset);
}

int store_index_put(struct thread_store *s, struct slice thread_id, struct slice next_offset,
                    const struct index_row *rows, size_t count, struct errmsg *msg)
{
    struct txn t;
    store_write(&t, s, NULL, msg);
    txn_thread_needed(&t, thread_id);
    for (size_t i = 0; i < count; i++) {
        (void)txn_run(&t, index_put,
                      PARAMS(T(thread_id), T(rows[i].entry_id), T(rows[i].at_offset)));
    }
    (void)txn_run(&t, index_mark, PARAMS(T(thread_id), T(next_offset)));
    return store_end(&t, s);
}

int store_index_find(struct thread_store *s, struct slice thread_id, struct slice entry_id,
                     struct arena *arena, struct slice *ret_at_offset, struct errmsg *msg)
{
    struct txn t;
    struct slice at = {0};
    store_read(&t, s, arena, msg);
    int code = ask(&t, s, txn_query(&t, index_find, PARAMS(T(thread_id), T(entry_id))), &at);
    if (code == 0 && !at.ptr) {
        return err_set(msg, ERR_NOTFOUND, "the thread has no such entry");
    }
    if (code == 0) {
        *ret_at_offset = at;
    }
    return code;
}

int store_director_get(struct thread_store *s, struct slice thread_id, struct arena *arena,
                       struct slice *ret_offset, struct errmsg *msg)
{
    struct txn t;
    store_read(&t, s, arena, msg);
    return ask(&t, s, txn_query(&t, director_get, PARAMS(T(thread_id))), ret_offset);
}

int store_director_put(struct thread_store *s, struct slice thread_id, struct slice offset,
                       int64_t now_ms, struct errmsg *msg)
{
    struct txn t;
    store_write(&t, s, NULL, msg);
    txn_thread_needed(&t, thread_id);
    (void)txn_run(&t, director_put, PARAMS(T(thread_id), T(offset), N(now_ms)));
    return store_end(&t, s);
}
