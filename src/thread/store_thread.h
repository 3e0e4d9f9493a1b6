/* Threads with their configs, recency, entry index and director's position. See store.h for what
 * holds for all. A deleted thread, or one of a deleted house, is not there. */
#ifndef ARBE_THREAD_STORE_THREAD_H
#define ARBE_THREAD_STORE_THREAD_H

#include "thread/status.h"
#include "thread/store_house.h"

enum thread_parent {
    PARENT_HOUSE,
    PARENT_AGENT,
    PARENT_THREAD
};

struct thread_record {
    struct slice id;
    struct slice house_id;
    enum thread_parent parent_kind;
    struct slice parent_id;
    struct slice name; /* or absent */
    int64_t pinned_ms; /* 0: not pinned */
    struct slice *tags;
    size_t tag_count; /* in byte order, each once, when handed out */
    enum thread_status status;
    struct slice environment_id; /* or absent */
    int64_t last_entry_ts;       /* 0: no entry yet */
    struct slice created_by;     /* or absent */
    int64_t created_ms;
};

struct thread_list STORE_LIST_OF(thread_record);

/* Adds a thread (last_entry_ts is not looked at) with a config unless `config` is absent.
 * ERR_EXISTS: the id is taken. ERR_NOTFOUND: the house, its creator, or the parent is not there: an
 * agent that was deleted, a thread of another house. ERR_INVALID: too many tags. */
int store_thread_create(struct thread_store *s, const struct thread_record *thread,
                        struct slice config, const struct outbox_item *items, size_t count,
                        struct errmsg *msg) MUST_USE;

/* ERR_NOTFOUND. */
int store_thread_get(struct thread_store *s, struct slice id, struct arena *arena,
                     struct thread_record *ret_thread, struct errmsg *msg) MUST_USE;

/* What an agent may do with a thread, from one query and without an arena. */
struct thread_access {
    char house_id[STORE_ID_BYTES];
    char primary_thread_id[STORE_ID_BYTES]; /* of the house */
    enum member_role role;                  /* ROLE_NONE: no member */
    int64_t sandbox_epoch;                  /* of the member, see store_member_end_tokens */
    enum thread_status status;
};

/* ERR_NOTFOUND: not there, or deleted. */
int store_thread_access(struct thread_store *s, struct slice thread_id, struct slice agent_id,
                        struct thread_access *ret_access, struct errmsg *msg) MUST_USE;

struct thread_query {
    struct slice house_id;
    struct slice parent_id; /* absent: any */
    struct slice tag;       /* absent: any */
    bool with_status;       /* only those of `status` */
    enum thread_status status;
    bool pinned; /* only pinned ones */
};

#define STORE_CURSOR_BYTES 64u

/* Writes the cursor of a list of threads behind the place of a thread in it, whose last entry was
 * then (its creation where there is none), NUL-terminated: for who puts something in between. */
void store_thread_cursor(int64_t activity_ms, struct slice id, char out[static STORE_CURSOR_BYTES]);

/* Newest activity first: of the last entry, or of the creation where there is none. Cost of a page:
 * see docs/format.md. ERR_INVALID: the page. */
int store_thread_list(struct thread_store *s, const struct thread_query *query,
                      const struct store_page *page, struct arena *arena,
                      struct thread_list *ret_list, struct errmsg *msg) MUST_USE;

/* Which fields are to change, and into what. */
struct thread_change {
    bool set_name;
    bool set_pinned;
    bool set_tags; /* replaces all */
    bool set_environment;
    bool set_status;
    struct slice name; /* absent: none */
    int64_t pinned_ms; /* 0: not pinned; a thread that is pinned keeps its time */
    const struct slice *tags;
    size_t tag_count;
    struct slice environment_id;    /* absent: none */
    enum thread_status status_from; /* that the caller judged the move by */
    enum thread_status status;      /* the one to come */
};

/* ERR_NOTFOUND. ERR_CONFLICT: the status is not `status_from` any more. ERR_INVALID: too many
 * tags. */
int store_thread_update(struct thread_store *s, struct slice id, const struct thread_change *change,
                        const struct outbox_item *items, size_t count, struct arena *arena,
                        struct thread_record *ret_thread, struct errmsg *msg) MUST_USE;

/* Moves the status if it is `from`; which moves are legal is status.h's. ERR_NOTFOUND.
 * ERR_CONFLICT: it is another by now. */
int store_thread_status_move(struct thread_store *s, struct slice id, enum thread_status from,
                             enum thread_status to, const struct outbox_item *items, size_t count,
                             struct errmsg *msg) MUST_USE;

/* Leaves a tombstone; the caller's items drop the stream. ERR_NOTFOUND. ERR_CONFLICT: the primary
 * thread of a house. */
int store_thread_delete(struct thread_store *s, struct slice id, int64_t now_ms,
                        const struct outbox_item *items, size_t count, struct errmsg *msg) MUST_USE;

enum config_scope {
    CONFIG_HOUSE,
    CONFIG_THREAD
};

/* The patch as it was put; ptr NULL where there is none. ERR_NOTFOUND: the house or thread. */
int store_config_get(struct thread_store *s, enum config_scope scope, struct slice id,
                     struct arena *arena, struct slice *ret_patch, struct errmsg *msg) MUST_USE;

/* Puts `patch` in the place of `before`, which is what the caller merged it from; absent: none.
 * ERR_AGAIN: it is another by now; get it and merge again. ERR_NOTFOUND as above. */
int store_config_put(struct thread_store *s, enum config_scope scope, struct slice id,
                     struct slice before, struct slice patch, int64_t now_ms,
                     struct errmsg *msg) MUST_USE;

/* Takes the patch away, if there is one. ERR_NOTFOUND as above. */
int store_config_delete(struct thread_store *s, enum config_scope scope, struct slice id,
                        struct errmsg *msg) MUST_USE;

/* How far a thread has come. */
struct recency_row {
    struct slice thread_id;
    int64_t ts;          /* of the newest entry, unix ms */
    struct slice offset; /* behind it in the stream; opaque, in byte order */
};

/* Moves threads forward, never back: ts and offset count each if it is above what is known (a clock
 * may have been set back, and the offset still goes on). Threads that are not there are passed
 * over. */
int store_recency_write(struct thread_store *s, const struct recency_row *rows, size_t count,
                        struct errmsg *msg) MUST_USE;

/* An error ends the walk and is returned. Slices live during the call, which may call the store. */
typedef int (*recency_fn)(void *context, const struct recency_row *row);

/* Shows all threads that live, as they were at one moment; ts 0 and offset absent where none was
 * written. */
int store_recency_each(struct thread_store *s, recency_fn each, void *context,
                       struct errmsg *msg) MUST_USE;

/* Where an entry stands in its thread's stream. */
struct index_row {
    struct slice entry_id;
    struct slice at_offset; /* where a read finds it first */
};

/* Up to where the thread's entries are in the index; ptr NULL: nothing is. */
int store_index_get(struct thread_store *s, struct slice thread_id, struct arena *arena,
                    struct slice *ret_next_offset, struct errmsg *msg) MUST_USE;

/* Adds entries (of equal ids the first stays) and moves the mark to next_offset, whatever it was:
 * one writer per thread. ERR_NOTFOUND: the thread is not there. */
int store_index_put(struct thread_store *s, struct slice thread_id, struct slice next_offset,
                    const struct index_row *rows, size_t count, struct errmsg *msg) MUST_USE;

/* ERR_NOTFOUND: no entry of that id is in the index of that thread. */
int store_index_find(struct thread_store *s, struct slice thread_id, struct slice entry_id,
                     struct arena *arena, struct slice *ret_at_offset, struct errmsg *msg) MUST_USE;

/* How far the director has read; ptr NULL: nothing yet. */
int store_director_get(struct thread_store *s, struct slice thread_id, struct arena *arena,
                       struct slice *ret_offset, struct errmsg *msg) MUST_USE;

/* ERR_NOTFOUND: the thread is not there. */
int store_director_put(struct thread_store *s, struct slice thread_id, struct slice offset,
                       int64_t now_ms, struct errmsg *msg) MUST_USE;

#endif
