/* The records of threads: what store_agent.h, store_house.h, store_thread.h, store_usage.h and
 * store_outbox.h have functions for, in one SQLite file (store_sqlite*.c). Another back end could
 * stand behind these headers: they know no SQL. One function per thing that happens, and each is
 * one transaction: all of it durably, or nothing.
 *
 * Blocking and thread-safe, for application threads only. One writer at a time, readers beside it.
 * Ids, hashes and times come from the caller. A slice in a record whose ptr is NULL is an absent
 * value; what is handed out lives as long as the arena that it was copied to. Outputs are untouched
 * on failure. Tags begin with thread_store where log/store.h has the shorter name. */
#ifndef ARBE_THREAD_STORE_H
#define ARBE_THREAD_STORE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/attr.h"
#include "base/err.h"
#include "base/slice.h"

/* Every function below and beside here may fail with ERR_IO, ERR_NOSPC, ERR_NOMEM (also: the arena
 * is full), ERR_CORRUPT, and ERR_BUSY when another program keeps the file locked. Their comments
 * name what else they answer. Refusals come with a sentence; `msg` may be NULL. After an error
 * nothing was changed. Only after ERR_UNKNOWN, when the disk failed in the middle of a commit,
 * it may turn out at the next start that all of the change was made. */

#define STORE_ID_BYTES     37u  /* a UUID as text with its NUL */
#define STORE_PAGE_MAX     200u /* records on one page of a list; more are cut to that */
#define STORE_READERS_MAX  16u
#define STORE_KEYS_MAX     1000u /* of one agent, not revoked; ERR_LIMIT */
#define STORE_TAGS_MAX     32u   /* of one thread; ERR_INVALID */
#define STORE_KEY_TOUCH_MS 60000 /* a key's last use is kept to the minute */

struct thread_store; /* one open store */

struct thread_store_config {
    const char *path;      /* of app.db; its directory exists */
    unsigned reader_count; /* connections that read at once; 0: 4 */
    bool lazy;             /* a power loss may take the newest changes, but never a part of one */
    /* Called once, by whoever meets it: the file is damaged, or its disk failed. Any thread. May be
     * NULL. */
    void (*failed)(void *context, const char *sentence);
    void *context;
};

/* Opens the store, makes it (mode 0600) if it is not there, and brings an older one up to date.
 * ERR_LOCKED: another process has it (a lock on PATH.lock, held until close). ERR_MISMATCH: written
 * by a newer arbe, or no file of arbe's. */
int store_open(const struct thread_store_config *config, struct thread_store **ret_store,
               struct errmsg *msg) MUST_USE;

/* No call is in progress any more. Accepts NULL. */
void store_close(struct thread_store *s);

/* 0, or what the file failed with first since it was opened: ERR_CORRUPT or ERR_MISMATCH when it is
 * damaged, ERR_IO or ERR_UNKNOWN when its disk failed. Work that needs other pages goes on, which
 * proves nothing: only opening it anew forgets that. Any thread; does not block. */
int store_failure(const struct thread_store *s);

/* A look at every page and reference. ERR_CORRUPT with the first finding. Takes long. */
int store_verify(struct thread_store *s, struct errmsg *msg) MUST_USE;

/* Housekeeping, a bounded piece of it: sessions and invites past their time, and what is left of
 * deleted threads (entry index, tags, configs). ret_more: call again. */
int store_sweep(struct thread_store *s, int64_t now_ms, bool *ret_more,
                struct errmsg *msg) MUST_USE;

/* Which part of a list. `after` is what the page before gave as `next`; anything else is
 * ERR_INVALID. */
struct store_page {
    struct slice after; /* empty: from the first */
    size_t limit;       /* at most so many, above 0 */
};

/* Fields that many lists share: an array in the arena, and where the next page begins. */
#define STORE_LIST_OF(record)                                        \
    {                                                                \
        struct record *items; /* in the arena */                     \
        size_t count;                                                \
        struct slice next; /* ptr NULL: this was the last of them */ \
    }

/* What is to be done to a thread's stream once the change is durable: kept in the same transaction,
 * done afterwards, as often as it takes, in the order of `seq`. See store_outbox.h. */
enum outbox_kind {
    OUTBOX_CREATE, /* make the stream */
    OUTBOX_APPEND, /* append `entry`, whose id is `entry_id` */
    OUTBOX_DROP,   /* delete the stream */
};

struct outbox_item {
    enum outbox_kind kind;
    struct slice thread_id;
    struct slice entry_id; /* APPEND */
    struct slice entry;    /* APPEND: JSON */
    uint64_t seq;          /* set where items are listed; not looked at where they are given */
};

#endif
