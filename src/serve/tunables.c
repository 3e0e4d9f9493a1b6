/* Versions are a list from the newest to the oldest, freed at the end. */
#include "serve/tunables.h"

#include <stdlib.h>
#include <string.h>

static bool same_limits(const struct serve_limits *a, const struct serve_limits *b)
{
    return a->streams_max == b->streams_max && a->bytes_max == b->bytes_max &&
           a->requests_per_second == b->requests_per_second &&
           a->body_bytes_per_second == b->body_bytes_per_second && a->waiters_max == b->waiters_max;
}

static bool equal(const struct serve_tunables *a, const struct serve_tunables *b)
{
    return slice_equal(a->secret, b->secret) &&
           a->connection_count_max == b->connection_count_max &&
           same_limits(&a->limits, &b->limits);
}

int tunables_set(struct tunables *t, const struct serve_tunables *value)
{
    struct tunables_version *newest = atomic_load(&t->newest);

    if (newest != NULL && equal(&newest->value, value)) {
        return 0;
    }
    struct tunables_version *v = malloc(sizeof(*v) + value->secret.len);

    if (v == NULL) {
        return ERR_NOMEM;
    }
    v->older = newest;
    v->value = *value;
    memcpy(v->secret, value->secret.len > 0 ? value->secret.ptr : "", value->secret.len);
    v->value.secret.ptr = v->secret;
    atomic_store_explicit(&t->newest, v, memory_order_release);
    return 0;
}

void tunables_finish(struct tunables *t)
{
    struct tunables_version *v = atomic_load(&t->newest);

    while (v != NULL) {
        struct tunables_version *older = v->older;

        explicit_bzero(v->secret, v->value.secret.len);
        free(v);
        v = older;
    }
    atomic_store(&t->newest, NULL);
}
