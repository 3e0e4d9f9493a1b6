/* Which subscriptions a stream name concerns: names in a hash, patterns in a trie of segments, so
 * that neither the number of subscriptions nor that of patterns tells in the cost of a look-up.
 *
 * Threads: one owner adds, removes and walks; any thread may ask subscription_index_matches
 * meanwhile. Entries are embedded in what the owner keeps per pattern and per named stream; the
 * index copies names and patterns, and owns no entry. */
#ifndef ARBE_STREAM_SUBSCRIPTION_INDEX_H
#define ARBE_STREAM_SUBSCRIPTION_INDEX_H

#include "base/attr.h"
#include "base/err.h"
#include "base/list.h"
#include "base/slice.h"

struct subscription_index;
struct index_node;

/* One name or one pattern of a subscription. Zeroed while it is in no index. */
struct index_entry {
    bool is_pattern; /* added as a pattern */

    /* private */
    struct list link;        /* on the entries of its node */
    struct index_node *node; /* NULL: in no index */
};

/* An empty index, or NULL when memory is out. `seed` is random: clients choose the keys. */
struct subscription_index *subscription_index_create(uint64_t seed);

/* Forgets all entries without touching them, and frees the index. Accepts NULL. */
void subscription_index_destroy(struct subscription_index *x);

/* Adds an entry for a canonical name. ERR_NOMEM; the entry is as before then. */
int subscription_index_add_name(struct subscription_index *x, struct index_entry *entry,
                                struct slice name) MUST_USE;

/* Adds an entry for a canonical pattern, see glob.h. ERR_NOMEM; ERR_LIMIT: all patterns together
 * have more than INDEX_NODES_MAX segments. */
int subscription_index_add_pattern(struct subscription_index *x, struct index_entry *entry,
                                   struct slice pattern) MUST_USE;

/* Takes an entry out; it may be in none. */
void subscription_index_remove(struct subscription_index *x, struct index_entry *entry);

/* Whether any entry may match: never false when one does, and true without one only for patterns
 * made to be costly, which this does not follow to the end. Bounded time, no allocation. Any
 * thread. */
bool subscription_index_matches(struct subscription_index *x, struct slice name);

/* Calls `each` for every entry that matches, once each, in no order. It must not change the index.
 * Exact; time is bounded by the number of pattern segments times that of the name's. */
void subscription_index_each(struct subscription_index *x, struct slice name,
                             void (*each)(void *context, struct index_entry *entry), void *context);

#endif
