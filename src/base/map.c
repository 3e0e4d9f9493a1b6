/* The slot of a hash is given by the top bits of its product with a constant. So a table of half or
 * twice the size keeps the order in which map_next walks: slot k splits into 2k and 2k + 1, and
 * chains are split and joined in order. That is why a walk survives the removal of nodes behind it
 * even when the removal shrinks the table. */
#include "base/map.h"

#include "base/err.h"

#include <assert.h>
#include <stdlib.h>

#define SLOTS_MIN 8

void map_init(struct map *m)
{
    *m = (struct map){0};
}

void map_finish(struct map *m)
{
    free(m->slots);
    map_init(m);
}

/* Multiplying first spreads hashes that differ in their low bits alone, such as plain numbers. */
static size_t slot_of(uint64_t hash, size_t slot_count)
{
    int bits = __builtin_ctzll(slot_count);

    assert(slot_count >= SLOTS_MIN);
    return (size_t)((hash * UINT64_C(0x9e3779b97f4a7c15)) >> (64 - bits));
}

/* Moves every node, in walking order, to a table of `slot_count`. Without memory the old table goes
 * on serving with longer or emptier chains. */
static void resize(struct map *m, size_t slot_count)
{
    struct map_node **slots = calloc(slot_count, sizeof(*slots));
    struct map_node **tail = NULL;
    size_t tail_slot = SIZE_MAX;

    if (slots == NULL) {
        return;
    }
    for (size_t i = 0; i < m->slot_count; i++) {
        struct map_node *next;

        for (struct map_node *node = m->slots[i]; node != NULL; node = next) {
            size_t slot = slot_of(node->hash, slot_count);

            next = node->next;
            /* A chain that splits alternates between two slots, so the tail is found anew then. */
            if (slot != tail_slot) {
                tail_slot = slot;
                tail = &slots[slot];
                while (*tail != NULL) {
                    tail = &(*tail)->next;
                }
            }
            node->next = NULL;
            *tail = node;
            tail = &node->next;
        }
    }
    free(m->slots);
    m->slots = slots;
    m->slot_count = slot_count;
}

int map_insert(struct map *m, struct map_node *node, uint64_t hash)
{
    struct map_node **slot;

    if (m->count >= m->slot_count) {
        resize(m, m->slot_count == 0 ? SLOTS_MIN : m->slot_count * 2);
        if (m->slots == NULL) {
            return ERR_NOMEM;
        }
    }
    slot = &m->slots[slot_of(hash, m->slot_count)];
    node->hash = hash;
    node->next = *slot;
    *slot = node;
    m->count++;
    return 0;
}

void map_remove(struct map *m, struct map_node *node)
{
    struct map_node **link;

    assert(m->count > 0);
    link = &m->slots[slot_of(node->hash, m->slot_count)];
    while (*link != node) {
        assert(*link != NULL);
        link = &(*link)->next;
    }
    *link = node->next;
    node->next = NULL;
    m->count--;
    if (m->slot_count > SLOTS_MIN && m->count < m->slot_count / 4) {
        resize(m, m->slot_count / 2);
    }
}

static struct map_node *first_with_hash(struct map_node *node, uint64_t hash)
{
    while (node != NULL && node->hash != hash) {
        node = node->next;
    }
    return node;
}

struct map_node *map_find(const struct map *m, uint64_t hash)
{
    if (m->count == 0) {
        return NULL;
    }
    return first_with_hash(m->slots[slot_of(hash, m->slot_count)], hash);
}

struct map_node *map_find_next(const struct map_node *node)
{
    return first_with_hash(node->next, node->hash);
}

struct map_node *map_next(const struct map *m, const struct map_node *node)
{
    size_t slot = 0;

    if (m->count == 0) {
        return NULL;
    }
    if (node != NULL) {
        if (node->next != NULL) {
            return node->next;
        }
        slot = slot_of(node->hash, m->slot_count) + 1;
    }
    while (slot < m->slot_count) {
        if (m->slots[slot] != NULL) {
            return m->slots[slot];
        }
        slot++;
    }
    return NULL;
}
