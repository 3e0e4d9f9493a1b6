/* The media types of streams, each distinct text once, since millions of streams share a handful.
 * The set has its own lock and is for any thread. */
#ifndef ARBE_STREAM_MEDIA_H
#define ARBE_STREAM_MEDIA_H

#include <pthread.h>

#include "base/attr.h"
#include "base/map.h"
#include "base/slice.h"

struct media {
    struct map_node node; /* in the set */
    uint32_t refs;        /* under the set's lock */
    bool json;            /* media_type_is_json of the text */
    uint16_t len;         /* of the text */
    char text[];          /* as given */
};

struct media_set {
    pthread_mutex_t lock; /* guards all of it */
    struct map types;     /* struct media */
};

/* An empty set. */
void media_set_init(struct media_set *set);

/* Every reference was given back. */
void media_set_finish(struct media_set *set);

/* A reference to the set's copy of `type`, or NULL when memory is out. */
struct media *media_get(struct media_set *set, struct slice type);

/* Gives a reference back; the last frees the copy. Accepts NULL. */
void media_put(struct media_set *set, struct media *m);

/* Lives as long as the reference. */
static inline struct slice media_text(const struct media *m)
{
    return (struct slice){m->text, m->len};
}

#endif
