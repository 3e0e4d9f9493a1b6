/* The settings that may change while a server runs, as one value that is replaced whole: a reader
 * sees all of an old one or all of a new one. Readers take it without a lock, at any time, so an
 * old value is kept until the server ends: some hundred bytes for each reload that changed
 * something. */
#ifndef ARBE_SERVE_TUNABLES_H
#define ARBE_SERVE_TUNABLES_H

#include "base/err.h"
#include "serve/config.h"

#include <stdatomic.h>

struct tunables_version;

/* The newest and those before it. */
struct tunables {
    _Atomic(struct tunables_version *) newest;
};

struct tunables_version {
    struct tunables_version *older;
    struct serve_tunables value; /* the secret is below */
    char secret[];
};

/* Puts a copy of `value` in force, unless it is in force already. One thread. ERR_NOMEM. */
int tunables_set(struct tunables *t, const struct serve_tunables *value) MUST_USE;

/* Nobody reads any more. Accepts a zeroed struct. */
void tunables_finish(struct tunables *t);

/* What is in force; good until tunables_finish. Any thread. */
static inline const struct serve_tunables *tunables_get(const struct tunables *t)
{
    return &atomic_load_explicit(&t->newest, memory_order_acquire)->value;
}

#endif
