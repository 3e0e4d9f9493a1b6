/* Removal takes both shards, so that nobody can find by id what has just left by name, and load it
 * a second time. */
#include "stream/table.h"

#include <assert.h>
#include <stdlib.h>

#include "stream/core.h"
#include "stream/op.h"

static void shards_init(struct table_shard *shards)
{
    for (unsigned i = 0; i < TABLE_SHARDS; i++) {
        pthread_mutex_init(&shards[i].lock, NULL);
        map_init(&shards[i].map);
    }
}

void table_init(struct table *t, uint64_t seed)
{
    t->seed = seed;
    t->count = 0;
    shards_init(t->names);
    shards_init(t->ids);
}

static void shard_finish(struct table_shard *shard)
{
    assert(shard->map.count == 0);
    map_finish(&shard->map);
    pthread_mutex_destroy(&shard->lock);
}

/* Shards are told apart by the upper bits; a map takes its slots by the lower ones. */
static struct table_shard *name_shard(struct table *t, uint64_t hash)
{
    return &t->names[hash >> 58];
}

static struct table_shard *id_shard(struct table *t, uint64_t hash)
{
    return &t->ids[hash >> 58];
}

/* Ids are consecutive: a multiplication spreads them over shards and slots (Fibonacci hashing). */
static uint64_t id_hash(stream_id id)
{
    uint64_t hash = id * UINT64_C(0x9e3779b97f4a7c15);
    return hash ^ hash >> 32;
}

static uint64_t name_hash(const struct table *t, struct slice name)
{
    return slice_hash(name, t->seed);
}

static struct stream *find_name(const struct map *m, uint64_t hash, struct slice name)
{
    for (struct map_node *n = map_find(m, hash); n; n = map_find_next(n)) {
        struct stream *s = container_of(n, struct stream, by_name);
        if (slice_equal(stream_name(s), name)) {
            return s;
        }
    }
    return NULL;
}

static struct stream *find_id(const struct map *m, stream_id id)
{
    for (struct map_node *n = map_find(m, id_hash(id)); n; n = map_find_next(n)) {
        struct stream *s = container_of(n, struct stream, by_id);
        if (s->id == id) {
            return s;
        }
    }
    return NULL;
}

/* The shard is locked, the name new in it. The table takes over a reference. */
static int insert_name(struct table *t, struct table_shard *shard, struct stream *s, uint64_t hash)
{
    if (map_insert(&shard->map, &s->by_name, hash) < 0) {
        return ERR_NOMEM;
    }
    s->named = true;
    atomic_fetch_add(&t->count, 1);
    return 0;
}

/* A new placeholder in the locked shard, or NULL when memory is out. */
static struct stream *add_placeholder(struct engine *e, struct table_shard *shard, uint64_t hash,
                                      struct slice name, enum stream_phase phase)
{
    struct stream *s = stream_create(e, name, phase);
    if (s && insert_name(&e->table, shard, s, hash) < 0) {
        stream_unref(s);
        return NULL;
    }
    return s;
}

int table_resolve(struct engine *e, struct slice name, struct stream_op *op)
{
    uint64_t hash = name_hash(&e->table, name);
    struct table_shard *shard = name_shard(&e->table, hash);
    struct stream *fresh = NULL;
    int code = 0;
    pthread_mutex_lock(&shard->lock);
    struct stream *s = find_name(&shard->map, hash, name);
    if (!s) {
        s = fresh = add_placeholder(e, shard, hash, name, PHASE_LOADING);
    }
    if (!s) {
        code = ERR_NOMEM;
    } else if (s->phase == PHASE_LIVE) {
        op->stream = stream_ref(s);
    } else {
        list_append(&s->queue, &op->link);
        code = STREAM_PENDING;
        if (fresh) {
            stream_ref(fresh);
        }
    }
    pthread_mutex_unlock(&shard->lock);
    if (fresh) {
        loader_add(e, fresh);
    }
    return code;
}

struct stream *table_id(struct engine *e, stream_id id)
{
    struct table_shard *shard = id_shard(&e->table, id_hash(id));
    pthread_mutex_lock(&shard->lock);
    struct stream *s = find_id(&shard->map, id);
    if (s) {
        stream_ref(s);
    }
    pthread_mutex_unlock(&shard->lock);
    return s;
}

struct stream *table_name(struct engine *e, struct slice name)
{
    uint64_t hash = name_hash(&e->table, name);
    struct table_shard *shard = name_shard(&e->table, hash);
    pthread_mutex_lock(&shard->lock);
    struct stream *s = find_name(&shard->map, hash, name);
    s = s && s->phase == PHASE_LIVE ? stream_ref(s) : NULL;
    pthread_mutex_unlock(&shard->lock);
    return s;
}

/* The shard is locked. The stream stays listed by id until a checkpoint has dropped it. */
static void take_name(struct table_shard *shard, struct stream *s)
{
    assert(s->named);
    assert(s->listed);
    map_remove(&shard->map, &s->by_name);
    s->named = false;
}

static bool staged_gone(struct stream *s)
{
    pthread_mutex_lock(&s->lock);
    bool gone = s->staged.life == LIFE_GONE;
    pthread_mutex_unlock(&s->lock);
    return gone;
}

int table_adopt(struct engine *e, struct slice name, struct stream **ret_placeholder)
{
    uint64_t hash = name_hash(&e->table, name);
    struct table_shard *shard = name_shard(&e->table, hash);
    int code = 0;
    pthread_mutex_lock(&shard->lock);
    struct stream *s = find_name(&shard->map, hash, name);
    if (s && s->phase == PHASE_LIVE && staged_gone(s)) {
        take_name(shard, s);
        s = NULL;
    }
    if (s && s->phase != PHASE_LOADING) {
        code = ERR_CORRUPT;
    } else if (!s && !(s = add_placeholder(e, shard, hash, name, PHASE_LOADING))) {
        code = ERR_NOMEM;
    }
    if (code == 0) {
        *ret_placeholder = stream_ref(s);
    }
    pthread_mutex_unlock(&shard->lock);
    return code;
}

bool table_loading(struct engine *e, const struct stream *s)
{
    struct table_shard *shard = name_shard(&e->table, name_hash(&e->table, stream_name(s)));
    pthread_mutex_lock(&shard->lock);
    bool loading = s->named && s->phase == PHASE_LOADING;
    pthread_mutex_unlock(&shard->lock);
    return loading;
}

int table_list(struct engine *e, struct stream *s, stream_id id)
{
    struct table_shard *shard = id_shard(&e->table, id_hash(id));
    pthread_mutex_lock(&shard->lock);
    assert(!s->listed);
    assert(!find_id(&shard->map, id));
    if (s->id != id) { /* an id that is kept may be read by the checkpoint thread meanwhile */
        s->id = id;
    }
    int code = map_insert(&shard->map, &s->by_id, id_hash(id));
    s->listed = code == 0;
    pthread_mutex_unlock(&shard->lock);
    return code;
}

void table_unlist(struct engine *e, struct stream *s)
{
    struct table_shard *shard = id_shard(&e->table, id_hash(s->id));
    pthread_mutex_lock(&shard->lock);
    if (s->listed) {
        map_remove(&shard->map, &s->by_id);
        s->listed = false;
    }
    pthread_mutex_unlock(&shard->lock);
}

/* Sends every operation of a list back to its worker. */
static void post_all(struct list *ops)
{
    struct list *first;
    while ((first = list_first(ops)) != NULL) {
        list_remove(first);
        op_post(container_of(first, struct stream_op, link));
    }
}

void table_live(struct engine *e, struct stream *s)
{
    struct table_shard *shard = name_shard(&e->table, name_hash(&e->table, stream_name(s)));
    struct list queue;
    list_init(&queue);
    pthread_mutex_lock(&shard->lock);
    assert(s->phase != PHASE_LIVE);
    s->phase = PHASE_LIVE;
    LIST_FOR_EACH(node, &s->queue)
    {
        struct stream_op *op = container_of(node, struct stream_op, link);
        op->found = 0;
        op->stream = stream_ref(s);
    }
    list_append_all(&queue, &s->queue);
    pthread_mutex_unlock(&shard->lock);
    post_all(&queue);
}

/* Moves the operations that are answered now from the placeholder's queue, the one that claims it
 * last. Returns whether there is one. */
static bool settle_queue(struct stream *s, int code, struct list *ops)
{
    struct list *first;
    while ((first = list_first(&s->queue)) != NULL) {
        struct stream_op *op = container_of(first, struct stream_op, link);
        list_remove(first);
        list_append(ops, first);
        op->found = code;
        if (code == ERR_NOTFOUND && op->claims) {
            op->found = 0;
            op->stream = stream_ref(s);
            return true;
        }
    }
    return false;
}

void table_absent(struct engine *e, struct stream *s, int code)
{
    struct table_shard *shard = name_shard(&e->table, name_hash(&e->table, stream_name(s)));
    struct list ops;
    list_init(&ops);
    pthread_mutex_lock(&shard->lock);
    assert(s->phase != PHASE_LIVE);
    assert(s->named);
    bool claimed = settle_queue(s, code, &ops);
    if (claimed) {
        s->phase = PHASE_CLAIMED;
    } else {
        map_remove(&shard->map, &s->by_name);
        s->named = false;
    }
    pthread_mutex_unlock(&shard->lock);
    post_all(&ops);
    if (!claimed) {
        atomic_fetch_sub(&e->table.count, 1);
        stream_unref(s);
    }
}

int table_replace(struct engine *e, struct stream *old, struct stream_op *op)
{
    uint64_t hash = name_hash(&e->table, stream_name(old));
    struct table_shard *shard = name_shard(&e->table, hash);
    int code = ERR_AGAIN;
    pthread_mutex_lock(&shard->lock);
    if (old->named) {
        take_name(shard, old);
        struct stream *s = add_placeholder(e, shard, hash, stream_name(old), PHASE_CLAIMED);
        if (s) {
            op->stream = stream_ref(s);
            code = 0;
        } else {
            /* The slot that was just left is free: putting it back cannot fail. */
            (void)map_insert(&shard->map, &old->by_name, hash);
            old->named = true;
            code = ERR_NOMEM;
        }
    }
    pthread_mutex_unlock(&shard->lock);
    if (code == 0) {
        stream_unref(old);
    }
    return code;
}

/* Both shards are locked. */
static void remove_locked(struct engine *e, struct table_shard *names, struct table_shard *ids,
                          struct stream *s)
{
    if (s->named) {
        map_remove(&names->map, &s->by_name);
        s->named = false;
    }
    assert(s->listed);
    map_remove(&ids->map, &s->by_id);
    s->listed = false;
    atomic_fetch_sub(&e->table.count, 1);
}

void table_remove(struct engine *e, struct stream *s)
{
    struct table_shard *names = name_shard(&e->table, name_hash(&e->table, stream_name(s)));
    struct table_shard *ids = id_shard(&e->table, id_hash(s->id));
    pthread_mutex_lock(&names->lock);
    pthread_mutex_lock(&ids->lock);
    bool listed = s->listed;
    if (listed) {
        remove_locked(e, names, ids, s);
    }
    pthread_mutex_unlock(&ids->lock);
    pthread_mutex_unlock(&names->lock);
    if (listed) {
        stream_unref(s);
    }
}

/* The name shard is locked. With the id shard locked too nobody can find the stream, so when the
 * tables' reference is the only one it stays so. */
static bool try_evict(struct engine *e, struct table_shard *names, struct stream *s,
                      table_each_fn each, void *context)
{
    struct table_shard *ids = id_shard(&e->table, id_hash(s->id));
    pthread_mutex_lock(&ids->lock);
    bool evict = each(context, s) && atomic_load(&s->refs) == 1;
    if (evict) {
        remove_locked(e, names, ids, s);
    }
    pthread_mutex_unlock(&ids->lock);
    return evict;
}

size_t table_each(struct engine *e, unsigned shard, table_each_fn each, void *context)
{
    assert(shard < TABLE_SHARDS);
    size_t evicted = 0;
    struct table_shard *names = &e->table.names[shard];
    pthread_mutex_lock(&names->lock);
    struct map_node *node = map_next(&names->map, NULL);
    while (node) {
        struct map_node *next = map_next(&names->map, node);
        struct stream *s = container_of(node, struct stream, by_name);
        if (s->phase == PHASE_LIVE && try_evict(e, names, s, each, context)) {
            stream_unref(s);
            evicted++;
        }
        node = next;
    }
    pthread_mutex_unlock(&names->lock);
    return evicted;
}

static void finish_shard(struct engine *e, struct table_shard *shard)
{
    struct map_node *node;
    while ((node = map_next(&shard->map, NULL)) != NULL) {
        table_remove(e, container_of(node, struct stream, by_id));
    }
}

/* Sources outlive their forks: a removed stream that has forks lives on until they are removed. */
void table_finish(struct table *t)
{
    struct engine *e = container_of(t, struct engine, table);
    for (unsigned i = 0; i < TABLE_SHARDS; i++) {
        finish_shard(e, &t->ids[i]);
    }
    for (unsigned i = 0; i < TABLE_SHARDS; i++) {
        shard_finish(&t->names[i]);
        shard_finish(&t->ids[i]);
    }
    assert(t->count == 0);
}
