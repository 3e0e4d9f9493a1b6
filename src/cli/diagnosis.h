/* How far the last dispatch of a thread got: a fold over its entries, oldest first. What counts is
 * the last chat, and what came of it. Pure; no allocation. */
#ifndef ARBE_CLI_DIAGNOSIS_H
#define ARBE_CLI_DIAGNOSIS_H

#include "arbe/scoped_client.h"

#include <stddef.h>

/* In the order in which a dispatch goes through them; the last five are ends. */
#define DIAGNOSIS_LIST(X)                                                   \
    X(EMPTY, "empty", "nobody has written anything")                        \
    X(POSTED, "posted", "a message is there; nothing came of it")           \
    X(WOKEN, "woken", "the director was woken and has decided nothing yet") \
    X(DECIDED, "decided", "the director decided; nobody has begun")         \
    X(STARTED, "started", "an agent began and has said nothing yet")        \
    X(WORKING, "working", "an agent is at work")                            \
    X(SKIPPED, "skipped", "nobody saw a reason to answer")                  \
    X(COMPLETED, "completed", "it was done")                                \
    X(CANCELLED, "cancelled", "it was stopped")                             \
    X(FAILED, "failed", "an agent failed")                                  \
    X(UNWOKEN, "unwoken", "the director could not be woken, so that nobody is going to answer")

enum diagnosis_stage {
#define X(name, word, text) DIAGNOSIS_##name,
    DIAGNOSIS_LIST(X)
#undef X
};

struct diagnosis {
    enum diagnosis_stage stage;
    char trigger_id[SCOPED_ID_BYTES]; /* the last chat; empty: none */
    char author_id[SCOPED_ID_BYTES];  /* who wrote it */
    long long posted_ts;              /* when; unix ms */
    char dispatch_id[SCOPED_ID_BYTES];
    char agent_id[SCOPED_ID_BYTES]; /* who began last; empty: nobody */
    long long last_ts;              /* of what told the stage */
    size_t answers;                 /* entries of models and tools since */
    char reason[256];               /* of an end; empty: not said */
};

/* All zeros is a thread without entries. Takes the next one. */
void diagnosis_take(struct diagnosis *d, const struct scoped_entry *entry);

/* The word for a stage, such as "working". Static storage. */
const char *diagnosis_word(enum diagnosis_stage stage);

/* A sentence for it. Static storage. */
const char *diagnosis_text(enum diagnosis_stage stage);

#endif
