/* Configs in SQLite: one patch per house or thread, as text. */
#include "thread/store_sqlite.h"

static const char config_get[] =
    "SELECT patch FROM configs WHERE scope_kind = ?1 AND scope_id = ?2";
static const char config_same[] = "SELECT 1 FROM configs WHERE scope_kind = ?1 AND scope_id = ?2"
                                  " AND patch = ?3";
static const char config_put[] =
    "INSERT INTO configs (scope_kind, scope_id, patch, updated_at) VALUES (?1, ?2, ?3, ?4)"
    " ON CONFLICT (scope_kind, scope_id)"
    " DO UPDATE SET patch = excluded.patch, updated_at = excluded.updated_at";
static const char config_delete[] = "DELETE FROM configs WHERE scope_kind = ?1 AND scope_id = ?2";

static struct slice scope_text(enum config_scope scope)
{
    return scope == CONFIG_HOUSE ? SLICE("house") : SLICE("thread");
}

static void scope_needed(struct txn *t, enum config_scope scope, struct slice id)
{
    if (scope == CONFIG_HOUSE) {
        txn_house_needed(t, id);
    } else {
        txn_thread_needed(t, id);
    }
}

int store_config_get(struct thread_store *s, enum config_scope scope, struct slice id,
                     struct arena *arena, struct slice *ret_patch, struct errmsg *msg)
{
    struct txn t;
    struct slice patch = {0};
    store_read(&t, s, arena, msg);
    scope_needed(&t, scope, id);
    sqlite3_stmt *query = txn_query(&t, config_get, PARAMS(T(scope_text(scope)), T(id)));
    if (txn_step(&t, query)) {
        patch = txn_text(&t, query, 0);
    }
    int code = store_end(&t, s);
    if (code == 0) {
        *ret_patch = patch;
    }
    return code;
}

/* Whether the patch is still what somebody else's change was made from. */
static bool same(struct txn *t, enum config_scope scope, struct slice id, struct slice before)
{
    struct slice kind = scope_text(scope);
    return before.ptr ? txn_any(t, config_same, PARAMS(T(kind), T(id), T(before)))
                      : !txn_any(t, config_get, PARAMS(T(kind), T(id)));
}

int store_config_put(struct thread_store *s, enum config_scope scope, struct slice id,
                     struct slice before, struct slice patch, int64_t now_ms, struct errmsg *msg)
{
    struct txn t;
    store_write(&t, s, NULL, msg);
    scope_needed(&t, scope, id);
    if (!same(&t, scope, id, before)) {
        txn_refuse(&t, ERR_AGAIN, "the config was changed by somebody else meanwhile");
    }
    (void)txn_run(&t, config_put, PARAMS(T(scope_text(scope)), T(id), T(patch), N(now_ms)));
    return store_end(&t, s);
}

int store_config_delete(struct thread_store *s, enum config_scope scope, struct slice id,
                        struct errmsg *msg)
{
    struct txn t;
    store_write(&t, s, NULL, msg);
    scope_needed(&t, scope, id);
    (void)txn_run(&t, config_delete, PARAMS(T(scope_text(scope)), T(id)));
    return store_end(&t, s);
}
