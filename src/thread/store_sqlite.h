/* The store on SQLite, for the files that implement it: one connection that writes, some that read,
 * and what several nouns need of each other. An operation is store_read or store_write, statements,
 * store_end. */
#ifndef ARBE_THREAD_STORE_SQLITE_H
#define ARBE_THREAD_STORE_SQLITE_H

#include <pthread.h>
#include <stdatomic.h>

#include "thread/store.h"
#include "thread/store_house.h"
#include "thread/store_sqlite_db.h"
#include "thread/store_thread.h"

struct thread_store {
    struct thread_store_config config; /* constant; without the path */
    int lock_fd;                       /* of PATH.lock: no other process has the store */
    atomic_int failure;                /* see store_failure */

    pthread_mutex_t write_lock; /* held during a change */
    struct db writer;           /* under write_lock */

    pthread_mutex_t read_lock; /* of the two below */
    pthread_cond_t returned;   /* a reader came back */
    struct list idle;          /* readers that nobody uses */
    struct db readers[STORE_READERS_MAX];
    unsigned reader_count; /* open ones */
};

/* Begins a transaction that reads; waits for a connection. */
void store_read(struct txn *t, struct thread_store *s, struct arena *arena, struct errmsg *msg);

/* Begins the one transaction that writes; waits for the one before. */
void store_write(struct txn *t, struct thread_store *s, struct arena *arena, struct errmsg *msg);

/* Ends the transaction, and gives its connection back. The code. */
int store_end(struct txn *t, struct thread_store *s) MUST_USE;

/* Keeps items in the transaction. */
void txn_outbox(struct txn *t, const struct outbox_item *items, size_t count);

/* Who is told what verification finds; the text lives during the call. */
struct verification {
    void (*found)(void *context, const char *text);
    void *context;
};

/* Tells of every page and record that is not as it should be. */
void txn_verify(struct txn *t, struct verification *v);

/* How many rows to show, of which one more is asked for. */
size_t page_limit(const struct store_page *page);

/* The id behind which a page begins, empty for the first. Anything that is no id is refused. */
struct slice txn_after(struct txn *t, const struct store_page *page);

/* Adds an agent and its key, which may be NULL. */
void txn_agent_create(struct txn *t, const struct agent_record *agent,
                      const struct key_record *key);

/* Adds a key of an agent that is there. */
void txn_key_create(struct txn *t, const struct key_record *key);

/* Whether there are agents, deleted ones counted. */
bool txn_agent_any(struct txn *t);

/* Whether an agent is there and was not deleted. */
bool txn_agent_lives(struct txn *t, struct slice id);

/* The columns of an agent, as AGENT_COLUMNS has them, from column `first` on. */
void txn_agent_row(struct txn *t, sqlite3_stmt *query, int first, struct agent_record *ret_agent);

#define AGENT_COLUMNS                                                                        \
    "a.id, a.kind, a.name, a.handle, a.description, a.model, a.system_prompt, a.created_by," \
    " a.created_at, a.deleted_at"

/* Adds a house with its owner and primary thread. */
void txn_house_create(struct txn *t, const struct house_create *house);

/* Fails with ERR_NOTFOUND unless the house is there. */
void txn_house_needed(struct txn *t, struct slice id);

/* The role of an agent in a house. */
enum member_role txn_role(struct txn *t, struct slice house_id, struct slice agent_id);

/* Puts a membership in the place of what there is. */
void txn_member_put(struct txn *t, struct slice house_id, struct slice agent_id,
                    enum member_role role, int64_t now_ms);

/* The role of a word of the tables; ROLE_NONE for none. */
enum member_role role_of(const char *text);

/* The thread of a row of THREAD_COLUMNS, with its tags. */
void txn_thread_row(struct txn *t, sqlite3_stmt *query, struct thread_record *ret_thread);

#define THREAD_COLUMNS                                                             \
    "t.id, t.house_id, t.parent_kind, t.parent_id, t.name, t.pinned_at, t.status," \
    " t.environment_id, t.last_entry_ts, t.created_by, t.created_at, t.activity_at"
#define THREAD_COLUMN_ACTIVITY 11

/* Fails with ERR_NOTFOUND unless the thread is there. */
void txn_thread_needed(struct txn *t, struct slice id);

#endif
