/* The signals that a change of records causes, kept with the change and told after it: of a thread
 * on itself, of a house on its primary thread. */
#ifndef ARBE_APP_SIGNALS_H
#define ARBE_APP_SIGNALS_H

#include "app/api_call.h"
#include "thread/outbox.h"

#define SIGNALS_MAX 6u

struct signals {
    struct outbox_item items[SIGNALS_MAX];
    size_t count;
    bool failed; /* sticky: the call's memory is full */
};

/* Something to be done to a thread's stream. */
void signals_add_stream(struct signals *s, enum outbox_kind kind, struct slice thread_id);

/* A member of a payload. A list of them ends with one that has no name. */
struct signal_member {
    const char *name;
    struct slice text; /* ptr NULL: the member is left out */
};

/* A signal of that type and with these members (NULL: none) beside its type. */
void signals_add(struct signals *s, struct api_call *c, struct slice thread_id,
                 struct slice author_id, const char *type, const struct signal_member *members);

/* 0, or API_FAILED when one of them could not be composed. */
int signals_check(const struct signals *s, struct api_call *c) MUST_USE;

#endif
