/* The schema, step by step. docs/format.md tells what the tables are for. */
#include "thread/migration.h"

#include <inttypes.h>
#include <stdio.h>

#include "thread/store_sqlite_db.h"

/* Agents, houses and threads leave tombstones, so nothing that refers to them ever dangles; what
 * belongs to them goes. Texts are compared byte by byte. */
static const char schema_1[] =
    "CREATE TABLE agents ("
    "  id TEXT NOT NULL PRIMARY KEY,"
    "  kind TEXT NOT NULL CHECK (kind IN ('human', 'bot')),"
    "  name TEXT NOT NULL,"
    "  handle TEXT NOT NULL,"
    "  description TEXT,"
    "  model TEXT,"
    "  system_prompt TEXT,"
    "  created_by TEXT REFERENCES agents (id),"
    "  created_at INTEGER NOT NULL,"
    "  deleted_at INTEGER"
    ") STRICT;"
    "CREATE INDEX agents_by_creator ON agents (created_by, id);"

    "CREATE TABLE api_keys ("
    "  id TEXT NOT NULL PRIMARY KEY,"
    "  agent_id TEXT NOT NULL REFERENCES agents (id),"
    "  name TEXT,"
    "  hash TEXT NOT NULL UNIQUE,"
    "  created_at INTEGER NOT NULL,"
    "  last_used_at INTEGER,"
    "  revoked_at INTEGER"
    ") STRICT;"
    "CREATE INDEX api_keys_by_agent ON api_keys (agent_id, id);"

    "CREATE TABLE sessions ("
    "  hash TEXT NOT NULL PRIMARY KEY,"
    "  agent_id TEXT NOT NULL REFERENCES agents (id),"
    "  key_id TEXT NOT NULL REFERENCES api_keys (id),"
    "  created_at INTEGER NOT NULL,"
    "  expires_at INTEGER NOT NULL"
    ") STRICT, WITHOUT ROWID;"
    "CREATE INDEX sessions_by_agent ON sessions (agent_id);"
    "CREATE INDEX sessions_by_key ON sessions (key_id);"
    "CREATE INDEX sessions_by_end ON sessions (expires_at);"

    "CREATE TABLE houses ("
    "  id TEXT NOT NULL PRIMARY KEY,"
    "  name TEXT NOT NULL,"
    "  primary_thread_id TEXT NOT NULL REFERENCES threads (id) DEFERRABLE INITIALLY DEFERRED,"
    "  created_at INTEGER NOT NULL,"
    "  deleted_at INTEGER"
    ") STRICT;"
    "CREATE INDEX houses_by_primary ON houses (primary_thread_id);"

    "CREATE TABLE members ("
    "  house_id TEXT NOT NULL REFERENCES houses (id),"
    "  agent_id TEXT NOT NULL REFERENCES agents (id),"
    "  role TEXT NOT NULL CHECK (role IN ('member', 'owner')),"
    "  added_at INTEGER NOT NULL,"
    "  PRIMARY KEY (house_id, agent_id)"
    ") STRICT, WITHOUT ROWID;"
    "CREATE INDEX members_by_agent ON members (agent_id, house_id);"
    "CREATE INDEX owners ON members (house_id, agent_id) WHERE role = 'owner';"

    /* Whose names members still see, for what they wrote. */
    "CREATE TABLE former_members ("
    "  house_id TEXT NOT NULL REFERENCES houses (id),"
    "  agent_id TEXT NOT NULL REFERENCES agents (id),"
    "  PRIMARY KEY (house_id, agent_id)"
    ") STRICT, WITHOUT ROWID;"
    "CREATE TRIGGER former_follow_members AFTER DELETE ON members"
    "  WHEN (SELECT deleted_at FROM houses WHERE id = old.house_id) IS NULL BEGIN"
    "  INSERT OR IGNORE INTO former_members VALUES (old.house_id, old.agent_id);"
    "END;"

    "CREATE TABLE invites ("
    "  id TEXT NOT NULL PRIMARY KEY,"
    "  house_id TEXT NOT NULL REFERENCES houses (id),"
    "  hash TEXT NOT NULL UNIQUE,"
    "  role TEXT NOT NULL CHECK (role IN ('member', 'owner')),"
    "  created_by TEXT NOT NULL REFERENCES agents (id),"
    "  created_at INTEGER NOT NULL,"
    "  expires_at INTEGER NOT NULL,"
    "  used_at INTEGER,"
    "  used_by TEXT REFERENCES agents (id)"
    ") STRICT;"
    "CREATE INDEX invites_by_house ON invites (house_id);"
    "CREATE INDEX invites_by_end ON invites (expires_at);"

    /* activity_at is what lists are sorted by. Deleted threads are in no list's index. */
    "CREATE TABLE threads ("
    "  id TEXT NOT NULL PRIMARY KEY,"
    "  house_id TEXT NOT NULL REFERENCES houses (id),"
    "  parent_kind TEXT NOT NULL CHECK (parent_kind IN ('house', 'agent', 'thread')),"
    "  parent_id TEXT NOT NULL,"
    "  name TEXT,"
    "  pinned_at INTEGER,"
    "  status TEXT NOT NULL CHECK (status IN"
    "    ('open', 'idle', 'running', 'completed', 'failed', 'cancelled')),"
    "  environment_id TEXT,"
    "  last_entry_ts INTEGER,"
    "  last_entry_offset TEXT,"
    "  created_by TEXT REFERENCES agents (id),"
    "  created_at INTEGER NOT NULL,"
    "  deleted_at INTEGER,"
    "  swept INTEGER NOT NULL DEFAULT 0,"
    "  activity_at INTEGER NOT NULL AS (coalesce(last_entry_ts, created_at)) VIRTUAL"
    ") STRICT;"
    "CREATE INDEX threads_by_activity ON threads (house_id, activity_at DESC, id DESC)"
    "  WHERE deleted_at IS NULL;"
    "CREATE INDEX threads_by_parent ON threads (house_id, parent_id, activity_at DESC, id DESC)"
    "  WHERE deleted_at IS NULL;"
    "CREATE INDEX threads_by_status ON threads (house_id, status, activity_at DESC, id DESC)"
    "  WHERE deleted_at IS NULL;"
    "CREATE INDEX threads_pinned ON threads (house_id, activity_at DESC, id DESC)"
    "  WHERE deleted_at IS NULL AND pinned_at IS NOT NULL;"
    "CREATE INDEX threads_unswept ON threads (id) WHERE deleted_at IS NOT NULL AND swept = 0;"

    /* Carries what lists by tag are found and sorted by, so that they need no other table. */
    "CREATE TABLE thread_tags ("
    "  thread_id TEXT NOT NULL REFERENCES threads (id),"
    "  tag TEXT NOT NULL,"
    "  house_id TEXT NOT NULL,"
    "  activity_at INTEGER NOT NULL,"
    "  PRIMARY KEY (thread_id, tag)"
    ") STRICT, WITHOUT ROWID;"
    "CREATE INDEX tags_by_activity ON thread_tags"
    "  (house_id, tag, activity_at DESC, thread_id DESC);"
    "CREATE TRIGGER tags_follow_threads AFTER UPDATE OF last_entry_ts ON threads BEGIN"
    "  UPDATE thread_tags SET activity_at = coalesce(new.last_entry_ts, new.created_at)"
    "    WHERE thread_id = new.id;"
    "END;"

    "CREATE TABLE configs ("
    "  scope_kind TEXT NOT NULL CHECK (scope_kind IN ('house', 'thread')),"
    "  scope_id TEXT NOT NULL,"
    "  patch TEXT NOT NULL,"
    "  updated_at INTEGER NOT NULL,"
    "  PRIMARY KEY (scope_kind, scope_id)"
    ") STRICT;"

    /* Cost in billionths of a dollar. */
    "CREATE TABLE usage_events ("
    "  seq INTEGER PRIMARY KEY,"
    "  house_id TEXT NOT NULL,"
    "  agent_id TEXT,"
    "  thread_id TEXT,"
    "  entry_id TEXT,"
    "  trace_id TEXT,"
    "  capability TEXT NOT NULL,"
    "  seam TEXT,"
    "  key_source TEXT,"
    "  model TEXT,"
    "  input_tokens INTEGER NOT NULL,"
    "  output_tokens INTEGER NOT NULL,"
    "  cache_read_tokens INTEGER NOT NULL,"
    "  cache_write_tokens INTEGER NOT NULL,"
    "  cost_nusd INTEGER NOT NULL,"
    "  created_at INTEGER NOT NULL"
    ") STRICT;"
    "CREATE UNIQUE INDEX usage_once ON usage_events (thread_id, entry_id)"
    "  WHERE entry_id IS NOT NULL;"

    /* Their sums, so that what was spent is known without a look at each event. '' is absent. */
    "CREATE TABLE usage_totals ("
    "  house_id TEXT NOT NULL,"
    "  thread_id TEXT NOT NULL,"
    "  agent_id TEXT NOT NULL,"
    "  model TEXT NOT NULL,"
    "  input_tokens INTEGER NOT NULL,"
    "  output_tokens INTEGER NOT NULL,"
    "  cache_read_tokens INTEGER NOT NULL,"
    "  cache_write_tokens INTEGER NOT NULL,"
    "  cost_nusd INTEGER NOT NULL,"
    "  events INTEGER NOT NULL,"
    "  PRIMARY KEY (house_id, thread_id, agent_id, model)"
    ") STRICT, WITHOUT ROWID;"
    "CREATE INDEX totals_by_thread ON usage_totals (thread_id);"
    "CREATE TRIGGER totals_follow_usage AFTER INSERT ON usage_events BEGIN"
    "  INSERT INTO usage_totals VALUES (new.house_id, coalesce(new.thread_id, ''),"
    "    coalesce(new.agent_id, ''), coalesce(new.model, ''), new.input_tokens,"
    "    new.output_tokens, new.cache_read_tokens, new.cache_write_tokens, new.cost_nusd, 1)"
    "  ON CONFLICT DO UPDATE SET"
    "    input_tokens = input_tokens + excluded.input_tokens,"
    "    output_tokens = output_tokens + excluded.output_tokens,"
    "    cache_read_tokens = cache_read_tokens + excluded.cache_read_tokens,"
    "    cache_write_tokens = cache_write_tokens + excluded.cache_write_tokens,"
    "    cost_nusd = cost_nusd + excluded.cost_nusd, events = events + 1;"
    "END;"

    "CREATE TABLE outbox ("
    "  seq INTEGER PRIMARY KEY AUTOINCREMENT,"
    "  kind TEXT NOT NULL CHECK (kind IN ('create', 'append', 'drop')),"
    "  thread_id TEXT NOT NULL,"
    "  entry_id TEXT,"
    "  entry TEXT"
    ") STRICT;"
    "CREATE INDEX outbox_by_thread ON outbox (thread_id, seq);"

    "CREATE TABLE entry_index ("
    "  thread_id TEXT NOT NULL,"
    "  entry_id TEXT NOT NULL,"
    "  at_offset TEXT NOT NULL,"
    "  PRIMARY KEY (thread_id, entry_id)"
    ") STRICT, WITHOUT ROWID;"
    "CREATE TABLE entry_index_marks ("
    "  thread_id TEXT NOT NULL PRIMARY KEY REFERENCES threads (id),"
    "  next_offset TEXT NOT NULL"
    ") STRICT, WITHOUT ROWID;"

    "CREATE TABLE director_state ("
    "  thread_id TEXT NOT NULL PRIMARY KEY REFERENCES threads (id),"
    "  read_offset TEXT NOT NULL,"
    "  updated_at INTEGER NOT NULL"
    ") STRICT, WITHOUT ROWID;"
    "CREATE TABLE dispatches ("
    "  id TEXT NOT NULL PRIMARY KEY,"
    "  thread_id TEXT NOT NULL REFERENCES threads (id),"
    "  agent_id TEXT NOT NULL REFERENCES agents (id),"
    "  trigger_entry_id TEXT NOT NULL,"
    "  depth INTEGER NOT NULL,"
    "  state TEXT NOT NULL,"
    "  created_at INTEGER NOT NULL,"
    "  updated_at INTEGER NOT NULL"
    ") STRICT;"
    "CREATE INDEX dispatches_by_thread ON dispatches (thread_id, id);";

/* Tokens of sandboxes say which epoch of the membership they are of; another one's are over. */
static const char schema_2[] =
    "ALTER TABLE members ADD COLUMN sandbox_epoch INTEGER NOT NULL DEFAULT 0;";

const char *const migrations[] = {schema_1, schema_2};
const size_t migration_count = ARRAY_COUNT(migrations);

/* The number that `sql` answers with. */
static int ask(sqlite3 *db, const char *sql, int64_t *ret_number, struct errmsg *msg)
{
    sqlite3_stmt *stmt = NULL;
    int rc = sqlite3_prepare_v2(db, sql, -1, &stmt, NULL);
    rc = rc ? rc : sqlite3_step(stmt);
    int64_t number = rc == SQLITE_ROW ? sqlite3_column_int64(stmt, 0) : 0;
    int code = rc == SQLITE_ROW ? 0 : db_fail(db, rc, msg);
    (void)sqlite3_finalize(stmt); /* says again what step said */
    if (code == 0) {
        *ret_number = number;
    }
    return code;
}

static int run(sqlite3 *db, const char *sql, struct errmsg *msg)
{
    int rc = sqlite3_exec(db, sql, NULL, NULL, NULL);
    return rc ? db_fail(db, rc, msg) : 0;
}

int migration_check(sqlite3 *db, size_t count, struct errmsg *msg)
{
    int64_t id = 0;
    int64_t number = 0;
    int64_t things = 0;
    int code = ask(db, "PRAGMA application_id", &id, msg);
    code = code ? code : ask(db, "PRAGMA user_version", &number, msg);
    code = code ? code : ask(db, "SELECT count(*) FROM sqlite_schema", &things, msg);
    if (code) {
        return code;
    }
    if (id != MIGRATION_APPLICATION_ID && (id != 0 || number != 0 || things != 0)) {
        return err_set(msg, ERR_MISMATCH, "app.db is a database, but not one of arbe's");
    }
    if (number < 0 || number > (int64_t)count) {
        return err_set(msg, ERR_MISMATCH,
                       "app.db was written by a newer arbe (schema %" PRId64
                       ", this one knows %zu)",
                       number, count);
    }
    return 0;
}

static int take(sqlite3 *db, const char *step, size_t number, struct errmsg *msg)
{
    char marks[96];
    (void)snprintf(marks, sizeof(marks), "PRAGMA application_id = %d; PRAGMA user_version = %zu",
                   MIGRATION_APPLICATION_ID, number);
    int code = run(db, "BEGIN IMMEDIATE", msg);
    code = code ? code : run(db, step, msg);
    code = code ? code : run(db, marks, msg);
    code = code ? code : run(db, "COMMIT", msg);
    if (code && !sqlite3_get_autocommit(db)) {
        (void)sqlite3_exec(db, "ROLLBACK", NULL, NULL, NULL); /* the first error is the one told */
    }
    return code ? err_prefix(msg, code, "schema %zu", number) : 0;
}

int migration_run(sqlite3 *db, const char *const *steps, size_t count, struct errmsg *msg)
{
    int64_t number = 0;
    int code = ask(db, "PRAGMA user_version", &number, msg);
    for (size_t i = (size_t)number; code == 0 && i < count; i++) {
        code = take(db, steps[i], i + 1, msg);
    }
    return code;
}
