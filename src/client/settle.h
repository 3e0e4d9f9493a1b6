/* When a thread has settled: the rule of observers (arbe/scoped_client.h), as a fold over entries.
 * Pure; no allocation. */
#ifndef ARBE_CLIENT_SETTLE_H
#define ARBE_CLIENT_SETTLE_H

#include "client/scoped.h"

#define SETTLE_OPEN_MAX 64u /* dispatches and agents waited for; further ones are not waited for */

/* Somebody whose end is waited for. */
struct settle_open {
    char id[SCOPED_ID_BYTES]; /* of a dispatch, or of an agent that is to start one */
    bool is_agent;
};

/* An end: how it came out, why, and by which entry. */
struct settle_end {
    enum scoped_outcome outcome;
    char reason[256];               /* empty: not said */
    char entry_id[SCOPED_ID_BYTES]; /* the one that said so */
};

struct settle {
    struct settle_end end; /* once settled: how */

    /* private */
    char trigger[SCOPED_ID_BYTES]; /* empty: none is named */
    bool counts;                   /* entries from now on do, and not only those of the trigger */
    bool backfilled;
    bool has_ended; /* something that counts did: `end` is the worst of it */
    bool rests;     /* the backfill so far ends at rest: `rest` says how */
    struct settle_end rest;
    size_t open_count;
    struct settle_open open[SETTLE_OPEN_MAX];
};

/* Before the first entry. `trigger` fits SCOPED_ID_BYTES, or is NULL. */
void settle_init(struct settle *s, const char *trigger);

/* Takes the next entry: true when it settles the thread. */
bool settle_take(struct settle *s, const struct scoped_entry *entry);

/* The tail is reached, for the first time: all entries so far were of the past. Returns how the
 * thread came to rest; NULL when they show it at work. Lives as long as *s. */
const struct settle_end *settle_backfilled(struct settle *s);

#endif
