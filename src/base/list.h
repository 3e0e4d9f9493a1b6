/* An intrusive doubly linked ring. A head that points to itself is empty; a node that is on no list
 * points to itself as well, so list_remove may be called twice. Never allocates. */
#ifndef ARBE_BASE_LIST_H
#define ARBE_BASE_LIST_H

#include <stdbool.h>
#include <stddef.h>

#include "base/attr.h"

struct list {
    struct list *prev; /* itself when alone */
    struct list *next; /* itself when alone */
};

/* An empty head, or a node that is on no list. */
static inline void list_init(struct list *node)
{
    node->prev = node;
    node->next = node;
}

/* Whether the head has no nodes, or the node is on no list. */
static inline bool list_empty(const struct list *node)
{
    return node->next == node;
}

/* Puts `node`, which must be on no list, last. */
static inline void list_append(struct list *head, struct list *node)
{
    node->prev = head->prev;
    node->next = head;
    head->prev->next = node;
    head->prev = node;
}

/* Takes `node` off whatever list it is on. */
static inline void list_remove(struct list *node)
{
    node->prev->next = node->next;
    node->next->prev = node->prev;
    list_init(node);
}

/* The first node, or NULL when the list is empty. */
static inline struct list *list_first(const struct list *head)
{
    return head->next == head ? NULL : head->next;
}

/* Moves every node of `from` to the end of `to`. */
static inline void list_append_all(struct list *to, struct list *from)
{
    if (list_empty(from)) {
        return;
    }
    from->next->prev = to->prev;
    from->prev->next = to;
    to->prev->next = from->next;
    to->prev = from->prev;
    list_init(from);
}

/* Walks the nodes; the body may remove `node` itself. */
#define LIST_FOR_EACH(node, head)                                                     \
    for (struct list *node = (head)->next, *node##_next = node->next; node != (head); \
         node = node##_next, node##_next = node->next)

#endif
