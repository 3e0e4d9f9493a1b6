/* Insertion and removal walk down by links, the places that hold the pointers, so that neither
 * recursion nor pointers to parents are needed. */
#include "base/tree.h"

#include <assert.h>
#include <stddef.h>

void tree_insert(struct tree *t, struct tree_node *node, uint64_t priority)
{
    struct tree_node **link = &t->root;
    node->priority = priority;
    while (*link && (*link)->priority >= priority) {
        link = t->compare(node, *link) < 0 ? &(*link)->left : &(*link)->right;
    }
    /* What was there is split into what is before the node and what is behind it. */
    struct tree_node *rest = *link;
    struct tree_node **before = &node->left;
    struct tree_node **behind = &node->right;
    *link = node;
    while (rest) {
        int order = t->compare(rest, node);
        assert(order != 0);
        if (order < 0) {
            *before = rest;
            before = &rest->right;
            rest = rest->right;
        } else {
            *behind = rest;
            behind = &rest->left;
            rest = rest->left;
        }
    }
    *before = NULL;
    *behind = NULL;
}

void tree_remove(struct tree *t, struct tree_node *node)
{
    struct tree_node **link = &t->root;
    while (*link != node) {
        assert(*link);
        link = t->compare(node, *link) < 0 ? &(*link)->left : &(*link)->right;
    }
    /* Its subtrees are joined in its place. */
    struct tree_node *before = node->left;
    struct tree_node *behind = node->right;
    while (before && behind) {
        if (before->priority >= behind->priority) {
            *link = before;
            link = &before->right;
            before = before->right;
        } else {
            *link = behind;
            link = &behind->left;
            behind = behind->left;
        }
    }
    *link = before ? before : behind;
    *node = (struct tree_node){0};
}

struct tree_node *tree_find(const struct tree *t, tree_reached_fn reached, void *context)
{
    struct tree_node *first = NULL;
    struct tree_node *at = t->root;
    while (at) {
        if (reached(context, at)) {
            first = at;
            at = at->left;
        } else {
            at = at->right;
        }
    }
    return first;
}

struct tree_node *tree_next(const struct tree *t, const struct tree_node *node)
{
    struct tree_node *first = NULL;
    struct tree_node *at = t->root;
    while (at) {
        if (t->compare(node, at) < 0) {
            first = at;
            at = at->left;
        } else {
            at = at->right;
        }
    }
    return first;
}
