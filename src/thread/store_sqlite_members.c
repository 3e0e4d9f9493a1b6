/* Members and invites in SQLite: rows of members are the only access there is. */
#include "thread/store_house.h"

#include <assert.h>

#include "thread/store_sqlite.h"

#define MEMBER_COLUMNS "m.agent_id, m.role, a.kind, a.name, a.handle, m.added_at"

static const char member_list[] =
    "SELECT " MEMBER_COLUMNS " FROM members m JOIN agents a ON a.id = m.agent_id"
    " WHERE m.house_id = ?1 AND m.agent_id > ?2 ORDER BY m.agent_id LIMIT ?3";
static const char member_get[] = "SELECT " MEMBER_COLUMNS
                                 " FROM members m JOIN agents a ON a.id = m.agent_id"
                                 " WHERE m.house_id = ?1 AND m.agent_id = ?2";
static const char member_role[] = "SELECT role FROM members WHERE house_id = ?1 AND agent_id = ?2";
static const char member_put[] =
    "INSERT INTO members (house_id, agent_id, role, added_at, sandbox_epoch)"
    " VALUES (?1, ?2, ?3, ?4, ?4)"
    " ON CONFLICT (house_id, agent_id) DO UPDATE SET role = excluded.role";
/* Times make epochs that a membership before did not have; the clock may have been set back. */
static const char member_end_tokens[] =
    "UPDATE members SET sandbox_epoch = max(sandbox_epoch + 1, ?3)"
    " WHERE house_id = ?1 AND agent_id = ?2";
static const char member_remove[] = "DELETE FROM members WHERE house_id = ?1 AND agent_id = ?2";
static const char member_owner[] =
    "SELECT 1 FROM members INDEXED BY owners WHERE house_id = ?1 AND role = 'owner' LIMIT 1";

static const char invite_create[] =
    "INSERT INTO invites (id, house_id, hash, role, created_by, created_at, expires_at)"
    " VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)";
static const char invite_find[] =
    "SELECT i.id, i.house_id, i.role, i.created_by, i.created_at, i.expires_at,"
    " h.primary_thread_id FROM invites i JOIN houses h ON h.id = i.house_id"
    " WHERE i.hash = ?1 AND i.used_at IS NULL AND i.expires_at > ?2 AND h.deleted_at IS NULL";
static const char invite_use[] =
    "UPDATE invites SET used_at = ?2, used_by = ?3 WHERE hash = ?1 AND used_at IS NULL";

enum member_role role_of(const char *text)
{
    return text[0] == 'o' ? ROLE_OWNER : text[0] == 'm' ? ROLE_MEMBER : ROLE_NONE;
}

enum member_role txn_role(struct txn *t, struct slice house_id, struct slice agent_id)
{
    enum member_role role = ROLE_NONE;
    sqlite3_stmt *query = txn_query(t, member_role, PARAMS(T(house_id), T(agent_id)));
    if (txn_step(t, query)) {
        role = role_of(txn_word(t, query, 0));
    }
    txn_stop(query);
    return role;
}

void txn_member_put(struct txn *t, struct slice house_id, struct slice agent_id,
                    enum member_role role, int64_t now_ms)
{
    (void)txn_run(t, member_put, PARAMS(T(house_id), T(agent_id), T(role_text(role)), N(now_ms)));
}

/* After a change: a house has an owner, always. */
static void refuse_no_owner(struct txn *t, struct slice house_id)
{
    if (!txn_any(t, member_owner, PARAMS(T(house_id)))) {
        txn_refuse(t, ERR_CONFLICT, "the house would be without an owner; make another one first");
    }
}

/* The member of a row of MEMBER_COLUMNS. */
static struct member_record member_row(struct txn *t, sqlite3_stmt *query)
{
    const char *kind = txn_word(t, query, 2);
    return (struct member_record){
        .agent_id = txn_text(t, query, 0),
        .role = role_of(txn_word(t, query, 1)),
        .kind = kind[0] == 'b' ? AGENT_BOT : AGENT_HUMAN,
        .name = txn_text(t, query, 3),
        .handle = txn_text(t, query, 4),
        .added_ms = sqlite3_column_int64(query, 5),
    };
}

int store_member_list(struct thread_store *s, struct slice house_id, const struct store_page *page,
                      struct arena *arena, struct member_list *ret_list, struct errmsg *msg)
{
    struct txn t;
    size_t limit = page_limit(page);
    store_read(&t, s, arena, msg);
    txn_house_needed(&t, house_id);
    struct member_list list = {.items = txn_array(&t, limit, sizeof(*list.items))};
    struct slice after = txn_after(&t, page);
    sqlite3_stmt *query = txn_query(&t, member_list,
                                    PARAMS(T(house_id), T(after), N((int64_t)limit + 1)));
    while (txn_step(&t, query)) {
        if (list.count == limit) {
            list.next = list.items[limit - 1].agent_id;
            txn_stop(query);
            break;
        }
        list.items[list.count++] = member_row(&t, query);
    }
    int code = store_end(&t, s);
    if (code == 0) {
        *ret_list = list;
    }
    return code;
}

int store_member_get(struct thread_store *s, struct slice house_id, struct slice agent_id,
                     struct arena *arena, struct member_record *ret_member, struct errmsg *msg)
{
    struct txn t;
    struct member_record member = {.added_ms = 0};
    store_read(&t, s, arena, msg);
    txn_house_needed(&t, house_id);
    sqlite3_stmt *query = txn_query(&t, member_get, PARAMS(T(house_id), T(agent_id)));
    if (txn_step(&t, query)) {
        member = member_row(&t, query);
    } else {
        txn_refuse(&t, ERR_NOTFOUND, "the agent is no member of the house");
    }
    txn_stop(query);
    int code = store_end(&t, s);
    if (code == 0) {
        *ret_member = member;
    }
    return code;
}

int store_member_role(struct thread_store *s, struct slice house_id, struct slice agent_id,
                      enum member_role *ret_role, struct errmsg *msg)
{
    struct txn t;
    store_read(&t, s, NULL, msg);
    txn_house_needed(&t, house_id);
    enum member_role role = txn_role(&t, house_id, agent_id);
    int code = store_end(&t, s);
    if (code == 0) {
        *ret_role = role;
    }
    return code;
}

int store_member_put(struct thread_store *s, struct slice house_id,
                     const struct member_record *member, const struct outbox_item *items,
                     size_t count, enum member_role *ret_before, struct errmsg *msg)
{
    struct txn t;
    assert(member->role != ROLE_NONE); /* that is what store_member_remove is for */
    store_write(&t, s, NULL, msg);
    txn_house_needed(&t, house_id);
    if (!txn_agent_lives(&t, member->agent_id)) {
        txn_refuse(&t, ERR_NOTFOUND, "there is no such agent, or it was deleted");
    }
    enum member_role before = txn_role(&t, house_id, member->agent_id);
    if (before != member->role) {
        txn_member_put(&t, house_id, member->agent_id, member->role, member->added_ms);
        refuse_no_owner(&t, house_id);
        txn_outbox(&t, items, count);
    }
    int code = store_end(&t, s);
    if (code == 0) {
        *ret_before = before;
    }
    return code;
}

int store_member_remove(struct thread_store *s, struct slice house_id, struct slice agent_id,
                        const struct outbox_item *items, size_t count, struct errmsg *msg)
{
    struct txn t;
    store_write(&t, s, NULL, msg);
    txn_house_needed(&t, house_id);
    if (txn_run(&t, member_remove, PARAMS(T(house_id), T(agent_id))) == 0) {
        txn_refuse(&t, ERR_NOTFOUND, "the agent is no member of the house");
    }
    refuse_no_owner(&t, house_id);
    txn_outbox(&t, items, count);
    return store_end(&t, s);
}

int store_member_end_tokens(struct thread_store *s, struct slice house_id, struct slice agent_id,
                            int64_t now_ms, struct errmsg *msg)
{
    struct txn t;
    store_write(&t, s, NULL, msg);
    txn_house_needed(&t, house_id);
    if (txn_run(&t, member_end_tokens, PARAMS(T(house_id), T(agent_id), N(now_ms))) == 0) {
        txn_refuse(&t, ERR_NOTFOUND, "the agent is no member of the house");
    }
    return store_end(&t, s);
}

int store_invite_create(struct thread_store *s, const struct invite_record *invite,
                        struct errmsg *msg)
{
    struct txn t;
    assert(invite->role != ROLE_NONE);
    store_write(&t, s, NULL, msg);
    txn_house_needed(&t, invite->house_id);
    (void)txn_run(&t, invite_create,
                  PARAMS(T(invite->id), T(invite->house_id), T(invite->hash),
                         T(role_text(invite->role)), T(invite->created_by), N(invite->created_ms),
                         N(invite->expires_ms)));
    return store_end(&t, s);
}

/* The invite, if it can be used; if not, that is refused. */
static struct invite_record find(struct txn *t, struct slice hash, int64_t now_ms)
{
    struct invite_record invite = {0};
    sqlite3_stmt *query = txn_query(t, invite_find, PARAMS(T(hash), N(now_ms)));
    if (txn_step(t, query)) {
        invite = (struct invite_record){
            .id = txn_text(t, query, 0),
            .house_id = txn_text(t, query, 1),
            .role = role_of(txn_word(t, query, 2)),
            .created_by = txn_text(t, query, 3),
            .created_ms = sqlite3_column_int64(query, 4),
            .expires_ms = sqlite3_column_int64(query, 5),
            .primary_thread_id = txn_text(t, query, 6),
        };
    } else {
        txn_refuse(t, ERR_NOTFOUND, "the invite is unknown, used or past its time");
    }
    txn_stop(query);
    return invite;
}

int store_invite_find(struct thread_store *s, struct slice hash, int64_t now_ms,
                      struct arena *arena, struct invite_record *ret_invite, struct errmsg *msg)
{
    struct txn t;
    store_read(&t, s, arena, msg);
    struct invite_record invite = find(&t, hash, now_ms);
    int code = store_end(&t, s);
    if (code == 0) {
        *ret_invite = invite;
    }
    return code;
}

int store_invite_claim(struct thread_store *s, const struct invite_claim *claim,
                       const struct outbox_item *items, size_t count, struct errmsg *msg)
{
    struct txn t;
    struct arena arena;
    arena_init(&arena, 4096);
    store_write(&t, s, &arena, msg);
    struct invite_record invite = find(&t, claim->hash, claim->now_ms);
    if (claim->agent) {
        txn_agent_create(&t, claim->agent, claim->key);
    } else if (!txn_agent_lives(&t, claim->agent_id)) {
        txn_refuse(&t, ERR_NOTFOUND, "there is no such agent, or it was deleted");
    }
    if (txn_role(&t, invite.house_id, claim->agent_id) >= invite.role) {
        txn_refuse(&t, ERR_EXISTS, "the agent is a member of the house already");
    }
    txn_member_put(&t, invite.house_id, claim->agent_id, invite.role, claim->now_ms);
    (void)txn_run(&t, invite_use, PARAMS(T(claim->hash), N(claim->now_ms), T(claim->agent_id)));
    txn_outbox(&t, items, count);
    int code = store_end(&t, s);
    arena_finish(&arena);
    return code;
}
