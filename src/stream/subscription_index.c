/* Patterns are paths in a trie whose edges are segments: a literal, "*", or "**". A look-up goes
 * through the segments of the name with the set of all nodes that the segments so far lead to:
 *
 *   - from a node the next segment leads to the child of that literal and to the child "*";
 *   - a node "**" also stays, whatever the segment;
 *   - where a node is reached its child "**" is reached too, since that matches nothing as well.
 *
 * The nodes reached after the last segment are the patterns that match. A node other than "**" is
 * reached by one segment from its parent only, and a "**" stays once it is reached, so no node is
 * in a set twice when each "**" is entered once: the work is at most nodes times segments.
 *
 * Between two literals the order of "*" and "**" does not matter, nor does a second "**": patterns
 * go in with the "*" first and one "**". So "**" never follows "**", and patterns that mean the
 * same share a node.
 *
 * The owner's walk has room for every node; the one that any thread may take works in a fixed
 * number of places and steps, and says yes when they are not enough. */
#include "stream/subscription_index.h"

#include <assert.h>
#include <pthread.h>
#include <stdlib.h>

#include "base/limits.h"
#include "base/map.h"
#include "stream/glob.h"

#define QUICK_NODES 256u  /* in one set of a look-up by any thread */
#define QUICK_ANY   64u   /* "**" that it may enter */
#define QUICK_STEPS 4096u /* nodes that it may leave */

enum node_kind {
    NODE_NAME,    /* an exact name; no part of the trie */
    NODE_ROOT,    /* where patterns begin */
    NODE_LITERAL, /* reached by the segment `text` */
    NODE_ONE,     /* "*" */
    NODE_ANY,     /* "**" */
};

struct index_node {
    struct map_node by_key;    /* kind, parent and text */
    struct index_node *parent; /* NULL for a name and the root */
    struct index_node *one;    /* the child "*", or NULL */
    struct index_node *any;    /* the child "**", or NULL */
    struct list entries;       /* struct index_entry: whose name or pattern this is */
    uint64_t walk;             /* the last walk of the owner that entered this "**" */
    uint32_t children;         /* of any kind */
    uint16_t text_len;         /* bytes of `text` */
    uint8_t kind;              /* enum node_kind */
    char text[];               /* name or segment; empty for the other kinds */
};

struct subscription_index {
    pthread_rwlock_t lock; /* the owner changes under it, others read under it */
    struct map nodes;      /* all but the root */
    struct index_node *root;
    uint64_t seed;
    uint64_t walks;           /* of the owner; names the current one */
    size_t trie_nodes;        /* of patterns, the root too */
    struct index_node **sets; /* two of `sets_cap` places, for the owner's walk */
    size_t sets_cap;          /* at least trie_nodes */
};

/* A look-up on its way. */
struct walk {
    struct subscription_index *x;
    struct index_node **now;  /* the set reached by the segments so far */
    struct index_node **next; /* the set that the next one leads to */
    size_t now_count;
    size_t next_count;
    size_t cap;              /* of either */
    struct index_node **any; /* "**" entered by a quick walk; NULL: the owner's, which marks */
    size_t any_count;        /* of `any`, at most QUICK_ANY */
    size_t steps;            /* nodes left so far */
    bool over;               /* a quick walk ran out of places or steps */
};

static struct index_node *node_create(enum node_kind kind, struct index_node *parent,
                                      struct slice text)
{
    struct index_node *n = calloc(1, sizeof(*n) + text.len);
    if (n) {
        n->kind = (uint8_t)kind;
        n->parent = parent;
        n->text_len = (uint16_t)text.len;
        memcpy(n->text, text.len > 0 ? text.ptr : "", text.len);
        list_init(&n->entries);
    }
    return n;
}

struct subscription_index *subscription_index_create(uint64_t seed)
{
    struct subscription_index *x = calloc(1, sizeof(*x));
    struct index_node *root = node_create(NODE_ROOT, NULL, SLICE(""));
    if (!x || !root) {
        free(x);
        free(root);
        return NULL;
    }
    pthread_rwlock_init(&x->lock, NULL);
    map_init(&x->nodes);
    x->root = root;
    x->seed = seed;
    x->trie_nodes = 1;
    return x;
}

void subscription_index_destroy(struct subscription_index *x)
{
    if (!x) {
        return;
    }
    struct map_node *node = map_next(&x->nodes, NULL);
    while (node) {
        struct map_node *next = map_next(&x->nodes, node);
        free(container_of(node, struct index_node, by_key));
        node = next;
    }
    map_finish(&x->nodes);
    pthread_rwlock_destroy(&x->lock);
    free(x->sets);
    free(x->root);
    free(x);
}

static uint64_t hash_key(const struct subscription_index *x, enum node_kind kind,
                         const struct index_node *parent, struct slice text)
{
    uint64_t place = (uint64_t)(uintptr_t)parent * UINT64_C(0x9e3779b97f4a7c15);
    return slice_hash(text, x->seed ^ place ^ (uint64_t)kind);
}

static struct slice node_text(const struct index_node *n)
{
    return (struct slice){n->text, n->text_len};
}

static struct index_node *find(const struct subscription_index *x, enum node_kind kind,
                               const struct index_node *parent, struct slice text)
{
    struct map_node *node = map_find(&x->nodes, hash_key(x, kind, parent, text));
    for (; node; node = map_find_next(node)) {
        struct index_node *n = container_of(node, struct index_node, by_key);
        if (n->kind == kind && n->parent == parent && slice_equal(node_text(n), text)) {
            return n;
        }
    }
    return NULL;
}

/* Takes out nodes that nobody needs, from `n` towards the root. */
static void prune(struct subscription_index *x, struct index_node *n)
{
    while (n && n->kind != NODE_ROOT && n->children == 0 && list_empty(&n->entries)) {
        struct index_node *parent = n->parent;
        map_remove(&x->nodes, &n->by_key);
        if (parent) {
            assert(parent->children > 0);
            parent->children--;
            parent->one = parent->one == n ? NULL : parent->one;
            parent->any = parent->any == n ? NULL : parent->any;
            x->trie_nodes--;
        }
        free(n);
        n = parent;
    }
}

static int add_node(struct subscription_index *x, enum node_kind kind, struct index_node *parent,
                    struct slice text, struct index_node **ret_node)
{
    if (parent && x->trie_nodes >= INDEX_NODES_MAX) {
        return ERR_LIMIT;
    }
    struct index_node *n = node_create(kind, parent, text);
    if (!n || map_insert(&x->nodes, &n->by_key, hash_key(x, kind, parent, text)) < 0) {
        free(n);
        return ERR_NOMEM;
    }
    if (parent) {
        parent->children++;
        parent->one = kind == NODE_ONE ? n : parent->one;
        parent->any = kind == NODE_ANY ? n : parent->any;
        x->trie_nodes++;
    }
    *ret_node = n;
    return 0;
}

/* Goes from *node to its child, which is made when there is none. */
static int descend(struct subscription_index *x, enum node_kind kind, struct slice text,
                   struct index_node **node)
{
    struct index_node *child = find(x, kind, *node, text);
    if (child) {
        *node = child;
        return 0;
    }
    return add_node(x, kind, *node, text, node);
}

/* The "*" and "**" between two literals, in the one order. */
static int descend_gap(struct subscription_index *x, unsigned ones, bool any,
                       struct index_node **node)
{
    int code = 0;
    for (; ones > 0 && code == 0; ones--) {
        code = descend(x, NODE_ONE, SLICE(""), node);
    }
    return any && code == 0 ? descend(x, NODE_ANY, SLICE(""), node) : code;
}

/* To the node of a pattern; *node is the deepest one reached also on failure. */
static int descend_pattern(struct subscription_index *x, struct slice pattern,
                           struct index_node **node)
{
    struct slice segment;
    struct slice literal;
    unsigned ones = 0;
    bool any = false;
    int code = 0;
    while (code == 0 && slice_split(&pattern, '/', &segment)) {
        switch (glob_segment_read(segment, &literal)) {
        case GLOB_ONE:
            ones++;
            break;
        case GLOB_ANY:
            any = true;
            break;
        case GLOB_LITERAL:
            code = descend_gap(x, ones, any, node);
            code = code == 0 ? descend(x, NODE_LITERAL, literal, node) : code;
            ones = 0;
            any = false;
            break;
        }
    }
    return code == 0 ? descend_gap(x, ones, any, node) : code;
}

/* Room for the owner's walk over all nodes. */
static int grow_sets(struct subscription_index *x)
{
    if (x->trie_nodes <= x->sets_cap) {
        return 0;
    }
    size_t cap = x->trie_nodes < 32 ? 64 : x->trie_nodes * 2;
    struct index_node **sets = realloc(x->sets, 2 * cap * sizeof(struct index_node *));
    if (!sets) {
        return ERR_NOMEM;
    }
    x->sets = sets;
    x->sets_cap = cap;
    return 0;
}

static void enter(struct index_entry *entry, struct index_node *node, bool is_pattern)
{
    entry->node = node;
    entry->is_pattern = is_pattern;
    list_init(&entry->link);
    list_append(&node->entries, &entry->link);
}

int subscription_index_add_name(struct subscription_index *x, struct index_entry *entry,
                                struct slice name)
{
    assert(!entry->node);
    assert(name.len <= STREAM_NAME_BYTES_MAX);
    pthread_rwlock_wrlock(&x->lock);
    struct index_node *n = find(x, NODE_NAME, NULL, name);
    int code = n ? 0 : add_node(x, NODE_NAME, NULL, name, &n);
    if (code == 0) {
        enter(entry, n, false);
    }
    pthread_rwlock_unlock(&x->lock);
    return code;
}

int subscription_index_add_pattern(struct subscription_index *x, struct index_entry *entry,
                                   struct slice pattern)
{
    assert(!entry->node);
    assert(pattern.len <= GLOB_BYTES_MAX);
    struct index_node *n = x->root;
    pthread_rwlock_wrlock(&x->lock);
    int code = descend_pattern(x, pattern, &n);
    code = code == 0 ? grow_sets(x) : code;
    if (code == 0) {
        enter(entry, n, true);
    } else {
        prune(x, n);
    }
    pthread_rwlock_unlock(&x->lock);
    return code;
}

void subscription_index_remove(struct subscription_index *x, struct index_entry *entry)
{
    if (!entry->node) {
        return;
    }
    pthread_rwlock_wrlock(&x->lock);
    list_remove(&entry->link);
    prune(x, entry->node);
    *entry = (struct index_entry){0};
    pthread_rwlock_unlock(&x->lock);
}

/* ---------------------------------------------------------------------------------- looking up */

static void reach(struct walk *w, struct index_node *n)
{
    if (w->next_count == w->cap) {
        w->over = true;
        return;
    }
    w->next[w->next_count++] = n;
}

/* Whether the walk has not been in this "**" before. */
static bool first_time(struct walk *w, struct index_node *any)
{
    if (!w->any) {
        bool first = any->walk != w->x->walks;
        any->walk = w->x->walks;
        return first;
    }
    for (size_t i = 0; i < w->any_count; i++) {
        if (w->any[i] == any) {
            return false;
        }
    }
    if (w->any_count == QUICK_ANY) {
        w->over = true;
        return false;
    }
    w->any[w->any_count++] = any;
    return true;
}

/* The node, and its child "**", which matches nothing too. */
static void reach_both(struct walk *w, struct index_node *n)
{
    reach(w, n);
    if (n->any && first_time(w, n->any)) {
        reach(w, n->any);
    }
}

static void turn(struct walk *w)
{
    struct index_node **now = w->now;
    w->now = w->next;
    w->now_count = w->next_count;
    w->next = now;
    w->next_count = 0;
}

static void step(struct walk *w, struct slice segment)
{
    for (size_t i = 0; i < w->now_count; i++) {
        struct index_node *n = w->now[i];
        struct index_node *literal = n->children > 0 ? find(w->x, NODE_LITERAL, n, segment) : NULL;
        if (n->kind == NODE_ANY) {
            reach(w, n);
        }
        if (literal) {
            reach_both(w, literal);
        }
        if (n->one) {
            reach_both(w, n->one);
        }
    }
    w->steps += w->now_count;
    turn(w);
}

/* Leaves the nodes that the whole name leads to in `now`, or `over`. */
static void walk_name(struct walk *w, struct slice name, size_t steps_max)
{
    struct slice segment;
    reach_both(w, w->x->root);
    turn(w);
    while (w->now_count > 0 && !w->over && slice_split(&name, '/', &segment)) {
        step(w, segment);
        w->over = w->over || w->steps > steps_max;
    }
}

static bool quick_match(struct subscription_index *x, struct slice name)
{
    struct index_node *now[QUICK_NODES];
    struct index_node *next[QUICK_NODES];
    struct index_node *any[QUICK_ANY];
    struct walk w = {.x = x, .now = now, .next = next, .cap = QUICK_NODES, .any = any};
    if (find(x, NODE_NAME, NULL, name)) {
        return true;
    }
    walk_name(&w, name, QUICK_STEPS);
    for (size_t i = 0; i < w.now_count && !w.over; i++) {
        w.over = !list_empty(&w.now[i]->entries);
    }
    return w.over;
}

bool subscription_index_matches(struct subscription_index *x, struct slice name)
{
    pthread_rwlock_rdlock(&x->lock);
    bool matches = quick_match(x, name);
    pthread_rwlock_unlock(&x->lock);
    return matches;
}

static void each_entry(struct index_node *n, void (*each)(void *context, struct index_entry *entry),
                       void *context)
{
    LIST_FOR_EACH(node, &n->entries)
    {
        each(context, container_of(node, struct index_entry, link));
    }
}

/* Without the lock: nobody but the owner, who calls this, changes anything. */
void subscription_index_each(struct subscription_index *x, struct slice name,
                             void (*each)(void *context, struct index_entry *entry), void *context)
{
    struct index_node *exact = find(x, NODE_NAME, NULL, name);
    if (exact) {
        each_entry(exact, each, context);
    }
    if (x->sets_cap == 0) {
        return; /* there never was a pattern */
    }
    x->walks++;
    struct walk w = {.x = x, .now = x->sets, .next = x->sets + x->sets_cap, .cap = x->sets_cap};
    walk_name(&w, name, SIZE_MAX);
    assert(!w.over);
    for (size_t i = 0; i < w.now_count; i++) {
        each_entry(w.now[i], each, context);
    }
}
