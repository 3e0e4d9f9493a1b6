/* The outbox: what is still to be done to streams. Items come with the change that caused them (see
 * struct outbox_item) and go when they are done; what a crash left is found here at the start. */
#ifndef ARBE_THREAD_STORE_OUTBOX_H
#define ARBE_THREAD_STORE_OUTBOX_H

#include "thread/store.h"

struct outbox_list {
    struct outbox_item *items; /* in the arena; seq ascends */
    size_t count;              /* less than the limit: these were all */
};

/* Keeps items that no other change of records goes with. */
int store_outbox_add(struct thread_store *s, const struct outbox_item *items, size_t count,
                     struct errmsg *msg) MUST_USE;

/* Items with a seq above `after_seq`, the oldest first. A seq is never given twice. */
int store_outbox_list(struct thread_store *s, uint64_t after_seq, size_t limit, struct arena *arena,
                      struct outbox_list *ret_list, struct errmsg *msg) MUST_USE;

/* The same of one thread. */
int store_outbox_list_thread(struct thread_store *s, struct slice thread_id, uint64_t after_seq,
                             size_t limit, struct arena *arena, struct outbox_list *ret_list,
                             struct errmsg *msg) MUST_USE;

/* Those items are done; no error for what is not there. */
int store_outbox_done(struct thread_store *s, const uint64_t *seqs, size_t count,
                      struct errmsg *msg) MUST_USE;

#endif
