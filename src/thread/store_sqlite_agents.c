/* Agents in SQLite. */
#include "thread/store_agent.h"

#include "thread/store_sqlite.h"

static const char agent_any[] = "SELECT 1 FROM agents LIMIT 1";
static const char agent_create[] =
    "INSERT INTO agents (id, kind, name, handle, description, model, system_prompt, created_by,"
    " created_at) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)";
static const char agent_get[] = "SELECT " AGENT_COLUMNS " FROM agents a WHERE a.id = ?1";
static const char agent_lives[] = "SELECT 1 FROM agents WHERE id = ?1 AND deleted_at IS NULL";
static const char agent_update[] =
    "UPDATE agents SET name = iif(?2, ?3, name), handle = iif(?2, ?4, handle),"
    " description = iif(?5, ?6, description), model = iif(?7, ?8, model),"
    " system_prompt = iif(?9, ?10, system_prompt) WHERE id = ?1 AND deleted_at IS NULL";
static const char agent_tombstone[] =
    "UPDATE agents SET deleted_at = ?2 WHERE id = ?1 AND deleted_at IS NULL";
static const char agent_revoke_keys[] =
    "UPDATE api_keys SET revoked_at = ?2 WHERE agent_id = ?1 AND revoked_at IS NULL";
static const char agent_end_sessions[] = "DELETE FROM sessions WHERE agent_id = ?1";
static const char agent_leave[] = "DELETE FROM members WHERE agent_id = ?1";
static const char agent_owns_alone[] =
    "SELECT h.name FROM members m JOIN houses h ON h.id = m.house_id"
    " WHERE m.agent_id = ?1 AND m.role = 'owner' AND NOT EXISTS"
    " (SELECT 1 FROM members o INDEXED BY owners"
    "  WHERE o.house_id = m.house_id AND o.role = 'owner' AND o.agent_id <> ?1) LIMIT 1";

/* Whom a viewer (?1) sees; a set of ids, so that a page is found without a look at all agents. */
#define SEEN                                                 \
    "(SELECT ?1 UNION"                                       \
    " SELECT c.id FROM agents c WHERE c.created_by = ?1"     \
    " UNION SELECT m.agent_id FROM members v JOIN members m" \
    " ON m.house_id = v.house_id WHERE v.agent_id = ?1)"

static const char agent_list[] =
    "SELECT " AGENT_COLUMNS " FROM agents a WHERE a.id IN " SEEN
    " AND a.id > ?2 AND a.deleted_at IS NULL"
    " AND (?3 IS NULL OR EXISTS"
    "  (SELECT 1 FROM members h WHERE h.house_id = ?3 AND h.agent_id = a.id))"
    " AND (?4 IS NULL OR lower(substr(a.name, 1, length(?4))) = lower(?4)"
    "  OR lower(substr(a.handle, 1, length(?4))) = lower(?4))"
    " ORDER BY a.id LIMIT ?5";
static const char agent_seen[] =
    "SELECT 1 FROM agents a WHERE a.id = ?2 AND (a.id = ?1 OR a.created_by = ?1 OR EXISTS"
    " (SELECT 1 FROM members v JOIN members m ON m.house_id = v.house_id"
    "  WHERE v.agent_id = ?1 AND m.agent_id = a.id) OR EXISTS"
    " (SELECT 1 FROM members v JOIN former_members m ON m.house_id = v.house_id"
    "  WHERE v.agent_id = ?1 AND m.agent_id = a.id))";

static struct slice kind_text(enum agent_kind kind)
{
    return kind == AGENT_BOT ? SLICE("bot") : SLICE("human");
}

void txn_agent_row(struct txn *t, sqlite3_stmt *query, int first, struct agent_record *ret_agent)
{
    const char *kind = txn_word(t, query, first + 1);
    *ret_agent = (struct agent_record){
        .id = txn_text(t, query, first),
        .kind = kind[0] == 'b' ? AGENT_BOT : AGENT_HUMAN,
        .name = txn_text(t, query, first + 2),
        .handle = txn_text(t, query, first + 3),
        .description = txn_text(t, query, first + 4),
        .model = txn_text(t, query, first + 5),
        .system_prompt = txn_text(t, query, first + 6),
        .created_by = txn_text(t, query, first + 7),
        .created_ms = sqlite3_column_int64(query, first + 8),
        .deleted_ms = sqlite3_column_int64(query, first + 9),
    };
}

bool txn_agent_any(struct txn *t)
{
    return txn_any(t, agent_any, NULL, 0);
}

int store_agent_any(struct thread_store *s, bool *ret_any, struct errmsg *msg)
{
    struct txn t;
    store_read(&t, s, NULL, msg);
    bool any = txn_agent_any(&t);
    int code = store_end(&t, s);
    if (code == 0) {
        *ret_any = any;
    }
    return code;
}

bool txn_agent_lives(struct txn *t, struct slice id)
{
    return txn_any(t, agent_lives, PARAMS(T(id)));
}

int store_agent_create(struct thread_store *s, const struct agent_record *agent,
                       const struct key_record *key, struct errmsg *msg)
{
    struct txn t;
    store_write(&t, s, NULL, msg);
    txn_agent_create(&t, agent, key);
    return store_end(&t, s);
}

void txn_agent_create(struct txn *t, const struct agent_record *agent, const struct key_record *key)
{
    (void)txn_run(t, agent_create,
                  PARAMS(T(agent->id), T(kind_text(agent->kind)), T(agent->name), T(agent->handle),
                         T(agent->description), T(agent->model), T(agent->system_prompt),
                         T(agent->created_by), N(agent->created_ms)));
    if (key) {
        struct key_record own = *key;
        own.agent_id = agent->id;
        txn_key_create(t, &own);
    }
}

/* Reads the agent into ret_agent. Whether it is there; if not, that is refused. */
static bool get(struct txn *t, struct slice id, struct agent_record *ret_agent)
{
    sqlite3_stmt *query = txn_query(t, agent_get, PARAMS(T(id)));
    bool found = txn_step(t, query);
    if (found) {
        txn_agent_row(t, query, 0, ret_agent);
        txn_stop(query);
    } else {
        txn_refuse(t, ERR_NOTFOUND, "there is no such agent");
    }
    return found;
}

int store_agent_get(struct thread_store *s, struct slice id, struct arena *arena,
                    struct agent_record *ret_agent, struct errmsg *msg)
{
    struct txn t;
    struct agent_record agent = {0};
    store_read(&t, s, arena, msg);
    (void)get(&t, id, &agent); /* a failure sticks */
    int code = store_end(&t, s);
    if (code == 0) {
        *ret_agent = agent;
    }
    return code;
}

int store_agent_update(struct thread_store *s, struct slice id, const struct agent_change *change,
                       struct arena *arena, struct agent_record *ret_agent, struct errmsg *msg)
{
    struct txn t;
    struct agent_record agent = {0};
    store_write(&t, s, arena, msg);
    int64_t changed = txn_run(&t, agent_update,
                              PARAMS(T(id), N(change->set_name), T(change->name), T(change->handle),
                                     N(change->set_description), T(change->description),
                                     N(change->set_model), T(change->model),
                                     N(change->set_system_prompt), T(change->system_prompt)));
    if (changed == 0) {
        txn_refuse(&t, ERR_NOTFOUND, "there is no such agent, or it was deleted");
    }
    (void)get(&t, id, &agent); /* a failure sticks */
    int code = store_end(&t, s);
    if (code == 0) {
        *ret_agent = agent;
    }
    return code;
}

static void refuse_last_owner(struct txn *t, struct slice id)
{
    sqlite3_stmt *query = txn_query(t, agent_owns_alone, PARAMS(T(id)));
    if (txn_step(t, query)) {
        txn_refuse(t, ERR_CONFLICT, "the agent is the last owner of the house \"%.100s\"",
                   txn_word(t, query, 0));
    }
    txn_stop(query);
}

int store_agent_delete(struct thread_store *s, struct slice id, int64_t now_ms,
                       const struct outbox_item *items, size_t count, struct errmsg *msg)
{
    struct txn t;
    store_write(&t, s, NULL, msg);
    if (txn_run(&t, agent_tombstone, PARAMS(T(id), N(now_ms))) == 0) {
        txn_refuse(&t, ERR_NOTFOUND, "there is no such agent, or it was deleted");
    }
    refuse_last_owner(&t, id);
    (void)txn_run(&t, agent_revoke_keys, PARAMS(T(id), N(now_ms)));
    (void)txn_run(&t, agent_end_sessions, PARAMS(T(id)));
    (void)txn_run(&t, agent_leave, PARAMS(T(id)));
    txn_outbox(&t, items, count);
    return store_end(&t, s);
}

int store_agent_list(struct thread_store *s, const struct agent_query *query,
                     const struct store_page *page, struct arena *arena,
                     struct agent_list *ret_list, struct errmsg *msg)
{
    struct txn t;
    size_t limit = page_limit(page);
    store_read(&t, s, arena, msg);
    struct agent_list list = {.items = txn_array(&t, limit, sizeof(*list.items))};
    struct slice after = txn_after(&t, page);
    sqlite3_stmt *rows = txn_query(&t, agent_list,
                                   PARAMS(T(query->viewer_id), T(after), T(query->house_id),
                                          T(query->prefix), N((int64_t)limit + 1)));
    while (txn_step(&t, rows)) {
        if (list.count == limit) {
            list.next = list.items[limit - 1].id;
            txn_stop(rows);
            break;
        }
        txn_agent_row(&t, rows, 0, &list.items[list.count++]);
    }
    int code = store_end(&t, s);
    if (code == 0) {
        *ret_list = list;
    }
    return code;
}

int store_agent_seen(struct thread_store *s, struct slice id, struct slice viewer_id,
                     bool *ret_seen, struct errmsg *msg)
{
    struct txn t;
    store_read(&t, s, NULL, msg);
    bool seen = txn_any(&t, agent_seen, PARAMS(T(viewer_id), T(id)));
    int code = store_end(&t, s);
    if (code == 0) {
        *ret_seen = seen;
    }
    return code;
}
