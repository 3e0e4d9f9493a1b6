/* An intrusive hash map: the caller embeds a map_node, computes the hash, and compares keys itself
 * by walking the candidates. Chained; the table doubles when it is full and halves when a quarter
 * is used. Growth that finds no memory is put off, never an error. Not thread-safe. */
#ifndef ARBE_BASE_MAP_H
#define ARBE_BASE_MAP_H

#include <stddef.h>
#include <stdint.h>

struct map_node {
    struct map_node *next; /* on the chain of its slot */
    uint64_t hash;         /* of the key, by the caller's function */
};

struct map {
    struct map_node **slots; /* owned; NULL until the first insertion */
    size_t slot_count;       /* a power of two, or 0 */
    size_t count;            /* nodes */
};

/* An empty map; allocates nothing until the first insertion. */
void map_init(struct map *m);

/* Frees the table; the nodes are the caller's. Accepts a zeroed map. */
void map_finish(struct map *m);

/* Adds `node` under `hash`; the caller has made sure the key is new. 0, or ERR_NOMEM when not even
 * the first table could be allocated. */
int map_insert(struct map *m, struct map_node *node, uint64_t hash);

/* Takes out `node`, which must be in the map. */
void map_remove(struct map *m, struct map_node *node);

/* The first node whose hash is `hash`, or NULL. */
struct map_node *map_find(const struct map *m, uint64_t hash);

/* The next node after `node` with the same hash, or NULL. */
struct map_node *map_find_next(const struct map_node *node);

/* Walks all nodes in no order: NULL starts; returns NULL at the end. Nothing may be inserted or
 * removed meanwhile, other than the node before the one just returned. */
struct map_node *map_next(const struct map *m, const struct map_node *node);

#endif
