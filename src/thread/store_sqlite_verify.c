/* Verification: what SQLite knows of its file, and what the headers promise of the records. */
#include "thread/store_sqlite.h"

#include <stdio.h>

#define TEXT_BYTES 400u /* of a finding */

static const char integrity[] = "PRAGMA integrity_check(100)";
static const char references[] = "PRAGMA foreign_key_check";

/* Statements that find a record which breaks a promise of the headers. */
static const char *const broken[][2] = {
    {"a house without an owner",
     "SELECT 1 FROM houses h WHERE h.deleted_at IS NULL AND NOT EXISTS"
     " (SELECT 1 FROM members m WHERE m.house_id = h.id AND m.role = 'owner')"},
    {"a house without its primary thread",
     "SELECT 1 FROM houses h WHERE h.deleted_at IS NULL AND NOT EXISTS"
     " (SELECT 1 FROM threads t WHERE t.id = h.primary_thread_id AND t.house_id = h.id"
     "  AND t.deleted_at IS NULL)"},
    {"a member that was deleted, or of a deleted house",
     "SELECT 1 FROM members m JOIN agents a ON a.id = m.agent_id JOIN houses h ON h.id = m.house_id"
     " WHERE a.deleted_at IS NOT NULL OR h.deleted_at IS NOT NULL"},
    {"a thread that lives in a deleted house",
     "SELECT 1 FROM threads t JOIN houses h ON h.id = t.house_id"
     " WHERE t.deleted_at IS NULL AND h.deleted_at IS NOT NULL"},
    {"a good key or a session of a deleted agent",
     "SELECT 1 FROM agents a WHERE a.deleted_at IS NOT NULL AND (EXISTS"
     " (SELECT 1 FROM api_keys k WHERE k.agent_id = a.id AND k.revoked_at IS NULL) OR EXISTS"
     " (SELECT 1 FROM sessions s WHERE s.agent_id = a.id))"},
    {"usage that its sums do not have",
     "SELECT 1 FROM (SELECT count(*) AS events, total(cost_nusd) AS cost FROM usage_events) u,"
     " (SELECT total(events) AS events, total(cost_nusd) AS cost FROM usage_totals) s"
     " WHERE u.events <> s.events OR u.cost <> s.cost"},
    {"a tag that is sorted as its thread is not",
     "SELECT 1 FROM thread_tags g JOIN threads t ON t.id = g.thread_id WHERE t.deleted_at IS NULL"
     " AND (g.activity_at <> t.activity_at OR g.house_id <> t.house_id)"},
};

/* SQLite's findings have a head and may have several lines. */
static void tell_page(struct verification *v, const char *text)
{
    static const char head[] = "*** in database main ***\n";
    char line[TEXT_BYTES];
    text += strncmp(text, head, sizeof(head) - 1) == 0 ? sizeof(head) - 1 : 0;
    (void)snprintf(line, sizeof(line), "%s", text); /* a sentence may be cut */
    for (char *at = strchr(line, '\n'); at; at = strchr(at, '\n')) {
        *at = ';';
    }
    v->found(v->context, line);
}

static void check_pages(struct txn *t, struct verification *v)
{
    sqlite3_stmt *query = txn_query(t, integrity, NULL, 0);
    while (txn_step(t, query)) {
        const char *text = txn_word(t, query, 0);
        if (strcmp(text, "ok") != 0) {
            tell_page(v, text);
        }
    }
}

/* A row for each record, of which one per pair of tables is told. */
static void check_references(struct txn *t, struct verification *v)
{
    char last[TEXT_BYTES] = "";
    sqlite3_stmt *query = txn_query(t, references, NULL, 0);
    while (txn_step(t, query)) {
        char text[TEXT_BYTES];
        (void)snprintf(text, sizeof(text), "%s refer to %s that are not there",
                       txn_word(t, query, 0), txn_word(t, query, 2));
        if (strcmp(text, last) != 0) {
            memcpy(last, text, sizeof(last));
            v->found(v->context, text);
        }
    }
}

void txn_verify(struct txn *t, struct verification *v)
{
    check_pages(t, v);
    check_references(t, v);
    for (size_t i = 0; i < ARRAY_COUNT(broken); i++) {
        if (txn_any(t, broken[i][1], NULL, 0)) {
            char text[TEXT_BYTES];
            (void)snprintf(text, sizeof(text), "it has %s", broken[i][0]);
            v->found(v->context, text);
        }
    }
}

/* The first finding is told. */
static void refuse(void *context, const char *text)
{
    txn_refuse(context, ERR_CORRUPT, "app.db: %s", text);
}

int store_verify(struct thread_store *s, struct errmsg *msg)
{
    struct txn t;
    struct verification v = {.found = refuse, .context = &t};
    store_read(&t, s, NULL, msg);
    txn_verify(&t, &v);
    return store_end(&t, s);
}
