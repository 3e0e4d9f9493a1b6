/* Keys and sessions in SQLite: what a secret's hash stands for. */
#include "thread/store_agent.h"

#include "thread/store_sqlite.h"

#define KEY_COLUMNS "id, agent_id, name, created_at, last_used_at, revoked_at"

static const char key_count[] =
    "SELECT count(*) FROM api_keys WHERE agent_id = ?1 AND revoked_at IS NULL";
static const char key_create[] =
    "INSERT INTO api_keys (id, agent_id, name, hash, created_at) VALUES (?1, ?2, ?3, ?4, ?5)";
static const char key_get[] = "SELECT " KEY_COLUMNS " FROM api_keys WHERE id = ?1";
static const char key_list[] =
    "SELECT " KEY_COLUMNS " FROM api_keys WHERE agent_id = ?1 AND id > ?2 ORDER BY id LIMIT ?3";
static const char key_any[] = "SELECT 1 FROM api_keys WHERE id = ?1";
static const char key_good[] =
    "SELECT 1 FROM api_keys WHERE id = ?1 AND agent_id = ?2 AND revoked_at IS NULL";
static const char key_revoke[] =
    "UPDATE api_keys SET revoked_at = ?2 WHERE id = ?1 AND revoked_at IS NULL";
static const char key_end_sessions[] = "DELETE FROM sessions WHERE key_id = ?1";
static const char key_find[] =
    "SELECT k.id, k.last_used_at, " AGENT_COLUMNS
    " FROM api_keys k JOIN agents a ON a.id = k.agent_id"
    " WHERE k.hash = ?1 AND k.revoked_at IS NULL AND a.deleted_at IS NULL";
static const char key_touch[] = "UPDATE api_keys SET last_used_at = ?2"
                                " WHERE id = ?1 AND (last_used_at IS NULL OR last_used_at < ?2)";

static const char session_create[] =
    "INSERT INTO sessions (hash, agent_id, key_id, created_at, expires_at)"
    " VALUES (?1, ?2, ?3, ?4, ?5)";
static const char session_find[] =
    "SELECT k.id, k.last_used_at, " AGENT_COLUMNS
    " FROM sessions s JOIN agents a ON a.id = s.agent_id JOIN api_keys k ON k.id = s.key_id"
    " WHERE s.hash = ?1 AND s.expires_at > ?2 AND k.revoked_at IS NULL AND a.deleted_at IS NULL";
static const char session_delete[] = "DELETE FROM sessions WHERE hash = ?1";

static void read_key(struct txn *t, sqlite3_stmt *query, struct key_record *ret_key)
{
    *ret_key = (struct key_record){
        .id = txn_text(t, query, 0),
        .agent_id = txn_text(t, query, 1),
        .name = txn_text(t, query, 2),
        .created_ms = sqlite3_column_int64(query, 3),
        .last_used_ms = sqlite3_column_int64(query, 4),
        .revoked_ms = sqlite3_column_int64(query, 5),
    };
}

void txn_key_create(struct txn *t, const struct key_record *key)
{
    sqlite3_stmt *query = txn_query(t, key_count, PARAMS(T(key->agent_id)));
    if (txn_step(t, query) && sqlite3_column_int64(query, 0) >= STORE_KEYS_MAX) {
        txn_refuse(t, ERR_LIMIT, "the agent has %u keys; revoke one first", STORE_KEYS_MAX);
    }
    txn_stop(query);
    (void)txn_run(
        t, key_create,
        PARAMS(T(key->id), T(key->agent_id), T(key->name), T(key->hash), N(key->created_ms)));
}

int store_key_create(struct thread_store *s, const struct key_record *key, struct errmsg *msg)
{
    struct txn t;
    store_write(&t, s, NULL, msg);
    if (!txn_agent_lives(&t, key->agent_id)) {
        txn_refuse(&t, ERR_NOTFOUND, "there is no such agent, or it was deleted");
    }
    txn_key_create(&t, key);
    return store_end(&t, s);
}

int store_key_get(struct thread_store *s, struct slice id, struct arena *arena,
                  struct key_record *ret_key, struct errmsg *msg)
{
    struct txn t;
    struct key_record key = {0};
    store_read(&t, s, arena, msg);
    sqlite3_stmt *query = txn_query(&t, key_get, PARAMS(T(id)));
    if (txn_step(&t, query)) {
        read_key(&t, query, &key);
    } else {
        txn_refuse(&t, ERR_NOTFOUND, "there is no such key");
    }
    int code = store_end(&t, s);
    if (code == 0) {
        *ret_key = key;
    }
    return code;
}

int store_key_list(struct thread_store *s, struct slice agent_id, const struct store_page *page,
                   struct arena *arena, struct key_list *ret_list, struct errmsg *msg)
{
    struct txn t;
    size_t limit = page_limit(page);
    store_read(&t, s, arena, msg);
    struct key_list list = {.items = txn_array(&t, limit, sizeof(*list.items))};
    struct slice after = txn_after(&t, page);
    sqlite3_stmt *query = txn_query(&t, key_list,
                                    PARAMS(T(agent_id), T(after), N((int64_t)limit + 1)));
    while (txn_step(&t, query)) {
        if (list.count == limit) {
            list.next = list.items[limit - 1].id;
            txn_stop(query);
            break;
        }
        read_key(&t, query, &list.items[list.count++]);
    }
    int code = store_end(&t, s);
    if (code == 0) {
        *ret_list = list;
    }
    return code;
}

int store_key_revoke(struct thread_store *s, struct slice id, int64_t now_ms, struct errmsg *msg)
{
    struct txn t;
    store_write(&t, s, NULL, msg);
    if (!txn_any(&t, key_any, PARAMS(T(id)))) {
        txn_refuse(&t, ERR_NOTFOUND, "there is no such key");
    }
    (void)txn_run(&t, key_revoke, PARAMS(T(id), N(now_ms)));
    (void)txn_run(&t, key_end_sessions, PARAMS(T(id)));
    return store_end(&t, s);
}

/* The caller whom the first row names, if there is one. */
static int find(struct txn *t, struct thread_store *s, sqlite3_stmt *query,
                struct caller_record *ret_caller)
{
    struct caller_record caller = {0};
    if (txn_step(t, query)) {
        caller.key_id = txn_text(t, query, 0);
        caller.last_used_ms = sqlite3_column_int64(query, 1);
        txn_agent_row(t, query, 2, &caller.agent);
    } else {
        txn_refuse(t, ERR_NOTFOUND, "nobody has that key or session");
    }
    int code = store_end(t, s);
    if (code == 0) {
        *ret_caller = caller;
    }
    return code;
}

int store_key_find(struct thread_store *s, struct slice hash, struct arena *arena,
                   struct caller_record *ret_caller, struct errmsg *msg)
{
    struct txn t;
    store_read(&t, s, arena, msg);
    return find(&t, s, txn_query(&t, key_find, PARAMS(T(hash))), ret_caller);
}

int store_key_touch(struct thread_store *s, struct slice id, int64_t now_ms, struct errmsg *msg)
{
    struct txn t;
    store_write(&t, s, NULL, msg);
    (void)txn_run(&t, key_touch, PARAMS(T(id), N(now_ms)));
    return store_end(&t, s);
}

int store_session_create(struct thread_store *s, const struct session_record *session,
                         struct errmsg *msg)
{
    struct txn t;
    store_write(&t, s, NULL, msg);
    if (!txn_any(&t, key_good, PARAMS(T(session->key_id), T(session->agent_id)))) {
        txn_refuse(&t, ERR_NOTFOUND, "there is no such key, or it was revoked");
    }
    (void)txn_run(&t, session_create,
                  PARAMS(T(session->hash), T(session->agent_id), T(session->key_id),
                         N(session->created_ms), N(session->expires_ms)));
    return store_end(&t, s);
}

int store_session_find(struct thread_store *s, struct slice hash, int64_t now_ms,
                       struct arena *arena, struct caller_record *ret_caller, struct errmsg *msg)
{
    struct txn t;
    store_read(&t, s, arena, msg);
    return find(&t, s, txn_query(&t, session_find, PARAMS(T(hash), N(now_ms))), ret_caller);
}

int store_session_delete(struct thread_store *s, struct slice hash, struct errmsg *msg)
{
    struct txn t;
    store_write(&t, s, NULL, msg);
    (void)txn_run(&t, session_delete, PARAMS(T(hash)));
    return store_end(&t, s);
}
