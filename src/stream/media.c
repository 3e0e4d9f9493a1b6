/* A map under a lock; texts are compared byte by byte, since each is kept as it was given. */
#include "stream/media.h"

#include <assert.h>
#include <stdlib.h>

#include "base/limits.h"
#include "base/media_type.h"

void media_set_init(struct media_set *set)
{
    pthread_mutex_init(&set->lock, NULL);
    map_init(&set->types);
}

void media_set_finish(struct media_set *set)
{
    assert(set->types.count == 0);
    map_finish(&set->types);
    pthread_mutex_destroy(&set->lock);
}

static struct media *find(struct media_set *set, struct slice type, uint64_t hash)
{
    for (struct map_node *n = map_find(&set->types, hash); n; n = map_find_next(n)) {
        struct media *m = container_of(n, struct media, node);
        if (slice_equal(media_text(m), type)) {
            return m;
        }
    }
    return NULL;
}

static struct media *insert(struct media_set *set, struct slice type, uint64_t hash)
{
    struct media *m = malloc(sizeof(*m) + type.len);
    if (!m || map_insert(&set->types, &m->node, hash) < 0) {
        free(m);
        return NULL;
    }
    m->refs = 0;
    m->json = media_type_is_json(type);
    m->len = (uint16_t)type.len;
    if (type.len > 0) {
        memcpy(m->text, type.ptr, type.len);
    }
    return m;
}

struct media *media_get(struct media_set *set, struct slice type)
{
    assert(type.len <= STREAM_CONTENT_TYPE_BYTES_MAX);
    uint64_t hash = slice_hash(type, 0);
    pthread_mutex_lock(&set->lock);
    struct media *m = find(set, type, hash);
    if (!m) {
        m = insert(set, type, hash);
    }
    if (m) {
        m->refs++;
    }
    pthread_mutex_unlock(&set->lock);
    return m;
}

void media_put(struct media_set *set, struct media *m)
{
    if (!m) {
        return;
    }
    pthread_mutex_lock(&set->lock);
    assert(m->refs > 0);
    if (--m->refs == 0) {
        map_remove(&set->types, &m->node);
        free(m);
    }
    pthread_mutex_unlock(&set->lock);
}
