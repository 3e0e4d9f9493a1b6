/* One request to the API and its answer, on its way through the stream client below: composed once,
 * with memory of its own, then either waited for or started. */
#ifndef ARBE_CLIENT_SCOPED_EXCHANGE_H
#define ARBE_CLIENT_SCOPED_EXCHANGE_H

#include "base/buf.h"
#include "client/call.h"
#include "client/scoped.h"

struct scoped_exchange {
    struct buf path;              /* behind the app's URL, with the query */
    struct buf body;              /* JSON; empty: none */
    char what[SCOPED_WHAT_BYTES]; /* the words that errors begin with */
    char method[8];
    bool removes;    /* finding nothing is as good, once a try may have done it */
    bool repeatable; /* done twice it does no more than done once */
    /* The answer must be an entry; of this id, if there is one. */
    bool wants_entry;
    char entry_id[SCOPED_ID_BYTES];

    /* private */
    struct call call;
    struct buf answer;
    struct refusal refusal;
    scoped_done_fn done;
    void *context;
};

/* Empty; to be finished, or started. */
void scoped_exchange_init(struct scoped_exchange *x, const struct scoped_client *client);

/* Frees what it holds. */
void scoped_exchange_finish(struct scoped_exchange *x);

/* Makes the path that of a thread's entries; the id was checked, so it needs no escapes. */
void scoped_exchange_set_entries(struct scoped_exchange *x, const char *thread_id);

/* Adds a parameter to the query, escaped as needed. */
void scoped_exchange_add_query(struct scoped_exchange *x, const char *name, const char *value);

/* Sends it and waits for its end. ret_answer gets the body, which is the caller's now. */
int scoped_exchange_run(struct scoped_exchange *x, struct scoped_client *client,
                        struct scoped_answer *ret_answer, struct scoped_error *ret_error);

/* Starts a copy of it on the heap, which owns all that *x held; *x is finished also on failure. */
int scoped_exchange_start(struct scoped_exchange *x, struct scoped_client *client,
                          scoped_done_fn done, void *context, struct scoped_error *ret_error);

#endif
