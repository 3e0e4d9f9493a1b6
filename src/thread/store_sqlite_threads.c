/* Threads in SQLite: one at a time. Lists are in store_sqlite_thread_list.c. */
#include "thread/store_thread.h"

#include <stdio.h>

#include "thread/store_sqlite.h"

static const char *const parents[] = {
    [PARENT_HOUSE] = "house",
    [PARENT_AGENT] = "agent",
    [PARENT_THREAD] = "thread",
};

static const char thread_create[] =
    "INSERT INTO threads (id, house_id, parent_kind, parent_id, name, pinned_at, status,"
    " environment_id, created_by, created_at) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)";
static const char thread_config[] =
    "INSERT INTO configs (scope_kind, scope_id, patch, updated_at) VALUES ('thread', ?1, ?2, ?3)";
static const char thread_any[] = "SELECT 1 FROM threads WHERE id = ?1 AND deleted_at IS NULL";
static const char thread_in_house[] =
    "SELECT 1 FROM threads WHERE id = ?1 AND house_id = ?2 AND deleted_at IS NULL";
static const char thread_get[] = "SELECT " THREAD_COLUMNS
                                 " FROM threads t WHERE t.id = ?1 AND t.deleted_at IS NULL";
static const char thread_tags[] = "SELECT tag FROM thread_tags WHERE thread_id = ?1 ORDER BY tag";
static const char thread_access[] =
    "SELECT t.house_id, h.primary_thread_id, t.status, m.role, m.sandbox_epoch"
    " FROM threads t"
    " JOIN houses h ON h.id = t.house_id"
    " LEFT JOIN members m ON m.house_id = t.house_id AND m.agent_id = ?2"
    " WHERE t.id = ?1 AND t.deleted_at IS NULL";
static const char thread_update[] =
    "UPDATE threads SET name = iif(?2, ?3, name),"
    " pinned_at = iif(?4, iif(?5 IS NULL, NULL, coalesce(pinned_at, ?5)), pinned_at),"
    " environment_id = iif(?6, ?7, environment_id) WHERE id = ?1";
static const char thread_clear_tags[] = "DELETE FROM thread_tags WHERE thread_id = ?1";
static const char thread_add_tag[] =
    "INSERT INTO thread_tags (thread_id, tag, house_id, activity_at)"
    " SELECT id, ?2, house_id, activity_at FROM threads WHERE id = ?1"
    " ON CONFLICT (thread_id, tag) DO NOTHING";
static const char thread_move[] =
    "UPDATE threads SET status = ?3 WHERE id = ?1 AND status = ?2 AND deleted_at IS NULL";
static const char thread_primary[] = "SELECT 1 FROM houses WHERE primary_thread_id = ?1";
static const char thread_tombstone[] =
    "UPDATE threads SET deleted_at = ?2 WHERE id = ?1 AND deleted_at IS NULL";

static struct slice status_slice(enum thread_status status)
{
    return slice_of(status_text(status));
}

static enum thread_status status_of(struct txn *t, sqlite3_stmt *query, int column)
{
    enum thread_status status = THREAD_OPEN;
    if (!status_parse(txn_column(t, query, column), &status)) {
        txn_refuse(t, ERR_CORRUPT, "app.db: a status that is none");
    }
    return status;
}

void txn_thread_needed(struct txn *t, struct slice id)
{
    if (!txn_any(t, thread_any, PARAMS(T(id)))) {
        txn_refuse(t, ERR_NOTFOUND, "there is no such thread");
    }
}

static void read_tags(struct txn *t, struct thread_record *thread)
{
    struct slice tags[STORE_TAGS_MAX];
    size_t count = 0;
    sqlite3_stmt *query = txn_query(t, thread_tags, PARAMS(T(thread->id)));
    while (count < STORE_TAGS_MAX && txn_step(t, query)) {
        tags[count++] = txn_text(t, query, 0);
    }
    txn_stop(query);
    if (count > 0) {
        thread->tags = txn_array(t, count, sizeof(*tags));
    }
    if (thread->tags) {
        memcpy(thread->tags, tags, count * sizeof(*tags));
        thread->tag_count = count;
    }
}

void txn_thread_row(struct txn *t, sqlite3_stmt *query, struct thread_record *ret_thread)
{
    const char *parent = txn_word(t, query, 2);
    *ret_thread = (struct thread_record){
        .id = txn_text(t, query, 0),
        .house_id = txn_text(t, query, 1),
        .parent_kind = parent[0] == 'h'   ? PARENT_HOUSE
                       : parent[0] == 'a' ? PARENT_AGENT
                                          : PARENT_THREAD,
        .parent_id = txn_text(t, query, 3),
        .name = txn_text(t, query, 4),
        .pinned_ms = sqlite3_column_int64(query, 5),
        .status = status_of(t, query, 6),
        .environment_id = txn_text(t, query, 7),
        .last_entry_ts = sqlite3_column_int64(query, 8),
        .created_by = txn_text(t, query, 9),
        .created_ms = sqlite3_column_int64(query, 10),
    };
    read_tags(t, ret_thread);
}

static void add_tags(struct txn *t, struct slice id, const struct slice *tags, size_t count)
{
    if (count > STORE_TAGS_MAX) {
        txn_refuse(t, ERR_INVALID, "a thread has at most %u tags", STORE_TAGS_MAX);
        return;
    }
    for (size_t i = 0; i < count; i++) {
        (void)txn_run(t, thread_add_tag, PARAMS(T(id), T(tags[i])));
    }
}

static void check_parent(struct txn *t, const struct thread_record *thread)
{
    bool good = false;
    switch (thread->parent_kind) {
    case PARENT_HOUSE:
        good = slice_equal(thread->parent_id, thread->house_id);
        break;
    case PARENT_AGENT:
        good = txn_agent_lives(t, thread->parent_id);
        break;
    case PARENT_THREAD:
        good = txn_any(t, thread_in_house, PARAMS(T(thread->parent_id), T(thread->house_id)));
        break;
    }
    if (!good) {
        txn_refuse(t, ERR_NOTFOUND,
                   "the parent is not there: a house, a thread of the same house,"
                   " or an agent");
    }
}

int store_thread_create(struct thread_store *s, const struct thread_record *thread,
                        struct slice config, const struct outbox_item *items, size_t count,
                        struct errmsg *msg)
{
    struct txn t;
    store_write(&t, s, NULL, msg);
    txn_house_needed(&t, thread->house_id);
    check_parent(&t, thread);
    (void)txn_run(&t, thread_create,
                  PARAMS(T(thread->id), T(thread->house_id),
                         T(slice_of(parents[thread->parent_kind])), T(thread->parent_id),
                         T(thread->name), MS(thread->pinned_ms), T(status_slice(thread->status)),
                         T(thread->environment_id), T(thread->created_by), N(thread->created_ms)));
    add_tags(&t, thread->id, thread->tags, thread->tag_count);
    if (config.ptr) {
        (void)txn_run(&t, thread_config, PARAMS(T(thread->id), T(config), N(thread->created_ms)));
    }
    txn_outbox(&t, items, count);
    return store_end(&t, s);
}

/* Reads the thread into ret_thread; refused when it is not there. */
static void get(struct txn *t, struct slice id, struct thread_record *ret_thread)
{
    sqlite3_stmt *query = txn_query(t, thread_get, PARAMS(T(id)));
    if (txn_step(t, query)) {
        txn_thread_row(t, query, ret_thread);
        txn_stop(query);
    } else {
        txn_refuse(t, ERR_NOTFOUND, "there is no such thread");
    }
}

int store_thread_get(struct thread_store *s, struct slice id, struct arena *arena,
                     struct thread_record *ret_thread, struct errmsg *msg)
{
    struct txn t;
    struct thread_record thread = {0};
    store_read(&t, s, arena, msg);
    get(&t, id, &thread);
    int code = store_end(&t, s);
    if (code == 0) {
        *ret_thread = thread;
    }
    return code;
}

static void copy_id(struct txn *t, sqlite3_stmt *query, int column, char out[static STORE_ID_BYTES])
{
    (void)snprintf(out, STORE_ID_BYTES, "%s", txn_word(t, query, column));
}

int store_thread_access(struct thread_store *s, struct slice thread_id, struct slice agent_id,
                        struct thread_access *ret_access, struct errmsg *msg)
{
    struct txn t;
    struct thread_access access = {0};
    store_read(&t, s, NULL, msg);
    sqlite3_stmt *query = txn_query(&t, thread_access, PARAMS(T(thread_id), T(agent_id)));
    if (txn_step(&t, query)) {
        copy_id(&t, query, 0, access.house_id);
        copy_id(&t, query, 1, access.primary_thread_id);
        access.status = status_of(&t, query, 2);
        access.role = role_of(txn_word(&t, query, 3));
        access.sandbox_epoch = sqlite3_column_int64(query, 4);
    } else {
        txn_refuse(&t, ERR_NOTFOUND, "there is no such thread");
    }
    int code = store_end(&t, s);
    if (code == 0) {
        *ret_access = access;
    }
    return code;
}

static void move(struct txn *t, struct slice id, enum thread_status from, enum thread_status to)
{
    int64_t moved = txn_run(t, thread_move,
                            PARAMS(T(id), T(status_slice(from)), T(status_slice(to))));
    if (moved == 0) {
        txn_refuse(t, ERR_CONFLICT, "the thread is not %s any more", status_text(from));
    }
}

int store_thread_update(struct thread_store *s, struct slice id, const struct thread_change *change,
                        const struct outbox_item *items, size_t count, struct arena *arena,
                        struct thread_record *ret_thread, struct errmsg *msg)
{
    struct txn t;
    struct thread_record thread = {0};
    store_write(&t, s, arena, msg);
    txn_thread_needed(&t, id);
    (void)txn_run(&t, thread_update,
                  PARAMS(T(id), N(change->set_name), T(change->name), N(change->set_pinned),
                         MS(change->pinned_ms), N(change->set_environment),
                         T(change->environment_id)));
    if (change->set_tags) {
        (void)txn_run(&t, thread_clear_tags, PARAMS(T(id)));
        add_tags(&t, id, change->tags, change->tag_count);
    }
    if (change->set_status) {
        move(&t, id, change->status_from, change->status);
    }
    txn_outbox(&t, items, count);
    get(&t, id, &thread);
    int code = store_end(&t, s);
    if (code == 0) {
        *ret_thread = thread;
    }
    return code;
}

int store_thread_status_move(struct thread_store *s, struct slice id, enum thread_status from,
                             enum thread_status to, const struct outbox_item *items, size_t count,
                             struct errmsg *msg)
{
    struct txn t;
    store_write(&t, s, NULL, msg);
    txn_thread_needed(&t, id);
    move(&t, id, from, to);
    txn_outbox(&t, items, count);
    return store_end(&t, s);
}

int store_thread_delete(struct thread_store *s, struct slice id, int64_t now_ms,
                        const struct outbox_item *items, size_t count, struct errmsg *msg)
{
    struct txn t;
    store_write(&t, s, NULL, msg);
    txn_thread_needed(&t, id);
    if (txn_any(&t, thread_primary, PARAMS(T(id)))) {
        txn_refuse(&t, ERR_CONFLICT, "this is the primary thread of its house and goes with it");
    }
    (void)txn_run(&t, thread_tombstone, PARAMS(T(id), N(now_ms)));
    (void)txn_run(&t, thread_clear_tags, PARAMS(T(id)));
    txn_outbox(&t, items, count);
    return store_end(&t, s);
}
