/* The first start: an agent who owns a house, and its key, so that somebody can sign in. */
#ifndef ARBE_APP_FIRST_OWNER_H
#define ARBE_APP_FIRST_OWNER_H

#include "base/err.h"

struct app;

/* Makes them unless there are agents. The key is told before it is stored: one that was told
 * and is lost in a crash is of no use to anybody, and the next start tells another. ERR_* with a
 * sentence. Blocks. */
int first_owner_make(struct app *app, struct errmsg *msg) MUST_USE;

#endif
