/* What is known of who somebody is and which threads they may see, so that a request does not wait
 * for the records each time. Bounded; a new answer takes the place of an older one.
 *
 * It never outlives a change: whoever takes something away (a membership, a key, a session, a
 * thread) first changes the records, then calls grants_forget, then answers. Any thread. */
#ifndef ARBE_APP_GRANTS_H
#define ARBE_APP_GRANTS_H

#include "app/caller.h"
#include "thread/store_thread.h"

struct grants;

/* ERR_NOMEM. */
int grants_create(struct grants **ret_grants) MUST_USE;

/* Accepts NULL. */
void grants_destroy(struct grants *g);

/* Taken before the records are asked; what they said is kept only if nothing was taken away since
 * then. */
uint64_t grants_epoch(const struct grants *g);

/* Everything that is known may be wrong by now. */
void grants_forget(struct grants *g);

/* Who a key or session of that hash belongs to, at the wall clock's `now_ms`. */
bool grants_find_caller(struct grants *g, const char *hash, int64_t now_ms,
                        struct caller *ret_caller) MUST_USE;

/* Keeps it, until `until_ms`. */
void grants_keep_caller(struct grants *g, uint64_t epoch, const struct caller *caller,
                        int64_t until_ms);

/* What an agent may do with a thread that exists. Its status is not of use: it changes. */
bool grants_find_access(struct grants *g, struct slice thread_id, const char *agent_id,
                        struct thread_access *ret_access) MUST_USE;

/* The house of a thread, which never changes, so that this is not forgotten. */
bool grants_find_house(struct grants *g, struct slice thread_id,
                       char ret_house_id[static STORE_ID_BYTES]) MUST_USE;
/* Keeps it. */
void grants_keep_house(struct grants *g, struct slice thread_id, struct slice house_id);

/* Keeps it. Ids longer than STORE_ID_BYTES are passed over. */
void grants_keep_access(struct grants *g, uint64_t epoch, struct slice thread_id,
                        const char *agent_id, const struct thread_access *access);

#endif
