/* Houses in SQLite. */
#include "thread/store_house.h"

#include "thread/store_sqlite.h"

#define HOUSE_COLUMNS "h.id, h.name, h.primary_thread_id, h.created_at"

static const char house_create[] =
    "INSERT INTO houses (id, name, primary_thread_id, created_at) VALUES (?1, ?2, ?3, ?4)";
static const char house_primary[] =
    "INSERT INTO threads (id, house_id, parent_kind, parent_id, name, status, created_by,"
    " created_at) VALUES (?1, ?2, 'house', ?2, ?3, 'open', ?4, ?5)";
static const char house_any[] = "SELECT 1 FROM houses WHERE id = ?1 AND deleted_at IS NULL";
static const char house_get[] = "SELECT " HOUSE_COLUMNS ", m.role FROM houses h"
                                " LEFT JOIN members m ON m.house_id = h.id AND m.agent_id = ?2"
                                " WHERE h.id = ?1 AND h.deleted_at IS NULL";
static const char house_list[] = "SELECT " HOUSE_COLUMNS ", m.role FROM members m"
                                 " JOIN houses h ON h.id = m.house_id"
                                 " WHERE m.agent_id = ?1 AND m.house_id > ?2"
                                 " ORDER BY m.house_id LIMIT ?3";
static const char house_shared[] = "SELECT " HOUSE_COLUMNS ", m.role FROM members m"
                                   " JOIN houses h ON h.id = m.house_id"
                                   " WHERE m.agent_id = ?1 AND m.house_id > ?2 AND EXISTS"
                                   " (SELECT 1 FROM members o"
                                   "  WHERE o.house_id = m.house_id AND o.agent_id = ?4)"
                                   " ORDER BY m.house_id LIMIT ?3";
static const char house_rename[] =
    "UPDATE houses SET name = ?2 WHERE id = ?1 AND deleted_at IS NULL";
static const char house_tombstone[] =
    "UPDATE houses SET deleted_at = ?2 WHERE id = ?1 AND deleted_at IS NULL";
static const char house_drop_streams[] =
    "INSERT INTO outbox (kind, thread_id) SELECT 'drop', id FROM threads"
    " WHERE house_id = ?1 AND deleted_at IS NULL";
static const char house_drop_threads[] =
    "UPDATE threads SET deleted_at = ?2 WHERE house_id = ?1 AND deleted_at IS NULL";
static const char house_drop_tags[] = "DELETE FROM thread_tags WHERE house_id = ?1";
static const char house_drop_members[] = "DELETE FROM members WHERE house_id = ?1";
static const char house_drop_former[] = "DELETE FROM former_members WHERE house_id = ?1";
static const char house_drop_invites[] = "DELETE FROM invites WHERE house_id = ?1";
static const char house_drop_config[] =
    "DELETE FROM configs WHERE scope_kind = 'house' AND scope_id = ?1";

void txn_house_create(struct txn *t, const struct house_create *house)
{
    (void)txn_run(
        t, house_create,
        PARAMS(T(house->id), T(house->name), T(house->primary_thread_id), N(house->now_ms)));
    (void)txn_run(t, house_primary,
                  PARAMS(T(house->primary_thread_id), T(house->id), T(house->thread_name),
                         T(house->owner_id), N(house->now_ms)));
    txn_member_put(t, house->id, house->owner_id, ROLE_OWNER, house->now_ms);
}

int store_house_create(struct thread_store *s, const struct house_create *house,
                       const struct outbox_item *items, size_t count, struct errmsg *msg)
{
    struct txn t;
    store_write(&t, s, NULL, msg);
    if (!txn_agent_lives(&t, house->owner_id)) {
        txn_refuse(&t, ERR_NOTFOUND, "there is no such agent, or it was deleted");
    }
    txn_house_create(&t, house);
    txn_outbox(&t, items, count);
    return store_end(&t, s);
}

int store_first_owner(struct thread_store *s, const struct agent_record *agent,
                      const struct key_record *key, const struct house_create *house,
                      const struct outbox_item *items, size_t count, struct errmsg *msg)
{
    struct txn t;
    store_write(&t, s, NULL, msg);
    if (txn_agent_any(&t)) {
        txn_refuse(&t, ERR_EXISTS, "there are agents already");
    }
    txn_agent_create(&t, agent, key);
    txn_house_create(&t, house);
    txn_outbox(&t, items, count);
    return store_end(&t, s);
}

void txn_house_needed(struct txn *t, struct slice id)
{
    if (!txn_any(t, house_any, PARAMS(T(id)))) {
        txn_refuse(t, ERR_NOTFOUND, "there is no such house");
    }
}

static void read_house(struct txn *t, sqlite3_stmt *query, struct house_record *ret_house)
{
    *ret_house = (struct house_record){
        .id = txn_text(t, query, 0),
        .name = txn_text(t, query, 1),
        .primary_thread_id = txn_text(t, query, 2),
        .created_ms = sqlite3_column_int64(query, 3),
        .role = role_of(txn_word(t, query, 4)),
    };
}

int store_house_get(struct thread_store *s, struct slice id, struct slice agent_id,
                    struct arena *arena, struct house_record *ret_house, struct errmsg *msg)
{
    struct txn t;
    struct house_record house = {0};
    store_read(&t, s, arena, msg);
    sqlite3_stmt *query = txn_query(&t, house_get, PARAMS(T(id), T(agent_id)));
    if (txn_step(&t, query)) {
        read_house(&t, query, &house);
    } else {
        txn_refuse(&t, ERR_NOTFOUND, "there is no such house");
    }
    int code = store_end(&t, s);
    if (code == 0) {
        *ret_house = house;
    }
    return code;
}

static struct house_list read_houses(struct txn *t, sqlite3_stmt *query, size_t limit)
{
    struct house_list list = {.items = txn_array(t, limit, sizeof(*list.items))};
    while (txn_step(t, query)) {
        if (list.count == limit) {
            list.next = list.items[limit - 1].id;
            txn_stop(query);
            break;
        }
        read_house(t, query, &list.items[list.count++]);
    }
    return list;
}

int store_house_list(struct thread_store *s, struct slice agent_id, const struct store_page *page,
                     struct arena *arena, struct house_list *ret_list, struct errmsg *msg)
{
    struct txn t;
    size_t limit = page_limit(page);
    store_read(&t, s, arena, msg);
    struct slice after = txn_after(&t, page);
    sqlite3_stmt *query = txn_query(&t, house_list,
                                    PARAMS(T(agent_id), T(after), N((int64_t)limit + 1)));
    struct house_list list = read_houses(&t, query, limit);
    int code = store_end(&t, s);
    if (code == 0) {
        *ret_list = list;
    }
    return code;
}

int store_house_shared(struct thread_store *s, struct slice agent_id, struct slice other_id,
                       const struct store_page *page, struct arena *arena,
                       struct house_list *ret_list, struct errmsg *msg)
{
    struct txn t;
    size_t limit = page_limit(page);
    store_read(&t, s, arena, msg);
    struct slice after = txn_after(&t, page);
    sqlite3_stmt *query = txn_query(
        &t, house_shared, PARAMS(T(agent_id), T(after), N((int64_t)limit + 1), T(other_id)));
    struct house_list list = read_houses(&t, query, limit);
    int code = store_end(&t, s);
    if (code == 0) {
        *ret_list = list;
    }
    return code;
}

int store_house_rename(struct thread_store *s, struct slice id, struct slice name,
                       const struct outbox_item *items, size_t count, struct errmsg *msg)
{
    struct txn t;
    store_write(&t, s, NULL, msg);
    txn_house_needed(&t, id);
    (void)txn_run(&t, house_rename, PARAMS(T(id), T(name)));
    txn_outbox(&t, items, count);
    return store_end(&t, s);
}

int store_house_delete(struct thread_store *s, struct slice id, int64_t now_ms,
                       const struct outbox_item *items, size_t count, struct errmsg *msg)
{
    struct txn t;
    store_write(&t, s, NULL, msg);
    txn_house_needed(&t, id);
    (void)txn_run(&t, house_tombstone, PARAMS(T(id), N(now_ms)));
    txn_outbox(&t, items, count);
    (void)txn_run(&t, house_drop_streams, PARAMS(T(id)));
    (void)txn_run(&t, house_drop_threads, PARAMS(T(id), N(now_ms)));
    (void)txn_run(&t, house_drop_tags, PARAMS(T(id)));
    (void)txn_run(&t, house_drop_members, PARAMS(T(id)));
    (void)txn_run(&t, house_drop_former, PARAMS(T(id)));
    (void)txn_run(&t, house_drop_invites, PARAMS(T(id)));
    (void)txn_run(&t, house_drop_config, PARAMS(T(id)));
    return store_end(&t, s);
}
