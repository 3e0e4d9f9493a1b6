/* Insertion and removal walk down by links, the places that hold the pointers, so that no recursion
 * is needed. */
#include "base/tree.h"

#include <assert.h>
#include <stddef.h>

static void hang(struct tree_node **link, struct tree_node *node, struct tree_node *parent)
{
    *link = node;
    if (node) {
        node->parent = parent;
    }
}

void tree_insert(struct tree *t, struct tree_node *node, uint64_t priority)
{
    struct tree_node **link = &t->root;
    struct tree_node *parent = NULL;
    while (*link && (*link)->priority >= priority) {
        parent = *link;
        link = t->compare(node, parent) < 0 ? &parent->left : &parent->right;
    }
    /* What was there is split into what is before the node and what is behind it. */
    struct tree_node *rest = *link;
    struct tree_node *last_before = node;
    struct tree_node *last_behind = node;
    struct tree_node **before = &node->left;
    struct tree_node **behind = &node->right;
    node->priority = priority;
    hang(link, node, parent);
    while (rest) {
        int order = t->compare(rest, node);
        assert(order != 0);
        if (order < 0) {
            hang(before, rest, last_before);
            last_before = rest;
            before = &rest->right;
            rest = rest->right;
        } else {
            hang(behind, rest, last_behind);
            last_behind = rest;
            behind = &rest->left;
            rest = rest->left;
        }
    }
    *before = NULL;
    *behind = NULL;
}

void tree_remove(struct tree *t, struct tree_node *node)
{
    struct tree_node *parent = node->parent;
    struct tree_node **link = &t->root;
    if (parent) {
        link = parent->left == node ? &parent->left : &parent->right;
    }
    assert(*link == node);
    /* Its subtrees are joined in its place. */
    struct tree_node *before = node->left;
    struct tree_node *behind = node->right;
    while (before && behind) {
        if (before->priority >= behind->priority) {
            hang(link, before, parent);
            parent = before;
            link = &before->right;
            before = before->right;
        } else {
            hang(link, behind, parent);
            parent = behind;
            link = &behind->left;
            behind = behind->left;
        }
    }
    hang(link, before ? before : behind, parent);
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

static struct tree_node *leftmost(struct tree_node *node)
{
    while (node && node->left) {
        node = node->left;
    }
    return node;
}

struct tree_node *tree_first(const struct tree *t)
{
    return leftmost(t->root);
}

struct tree_node *tree_next(const struct tree_node *node)
{
    if (node->right) {
        return leftmost(node->right);
    }
    while (node->parent && node->parent->right == node) {
        node = node->parent;
    }
    return node->parent;
}
