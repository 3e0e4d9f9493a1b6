/* An intrusive ordered set: a treap, whose shape is that of a tree built in the order of its nodes'
 * priorities. With priorities that nobody can foresee it is balanced whatever comes in whatever
 * order: insertion and search take O(log n) comparisons, removal and going on to the next node
 * none. Never allocates. Not thread-safe. */
#ifndef ARBE_BASE_TREE_H
#define ARBE_BASE_TREE_H

#include <stdbool.h>
#include <stdint.h>

struct tree_node {
    struct tree_node *parent; /* NULL: it is the root */
    struct tree_node *left;   /* before it */
    struct tree_node *right;  /* behind it */
    uint64_t priority;        /* not below those of its children */
};

/* Below 0 when `a` comes before `b`; 0 for the same node only. */
typedef int (*tree_compare_fn)(const struct tree_node *a, const struct tree_node *b);

struct tree {
    struct tree_node *root; /* NULL: empty */
    tree_compare_fn compare;
};

/* An empty tree. */
static inline void tree_init(struct tree *t, tree_compare_fn compare)
{
    *t = (struct tree){.compare = compare};
}

/* Puts in a node that is in no tree; its key must not change as long as it is there. */
void tree_insert(struct tree *t, struct tree_node *node, uint64_t priority);

/* Takes out a node that is in the tree. */
void tree_remove(struct tree *t, struct tree_node *node);

/* Whether the node lies where a search goes for: false for all nodes up to some place, true from
 * there on. */
typedef bool (*tree_reached_fn)(void *context, const struct tree_node *node);

/* The first node that is reached, or NULL. */
struct tree_node *tree_find(const struct tree *t, tree_reached_fn reached, void *context);

/* The first node of all, or NULL. */
struct tree_node *tree_first(const struct tree *t);

/* The node behind `node`, which is in a tree, or NULL. From the first to the last of many it takes
 * a constant time each. */
struct tree_node *tree_next(const struct tree_node *node);

#endif
