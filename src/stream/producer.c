/* The verdict follows PROTOCOL.md 5.2.1, validation logic, line by line. */
#include "stream/producer.h"

#include <assert.h>
#include <stdlib.h>

#include "base/err.h"
#include "base/limits.h"

enum producer_verdict producer_judge(const struct producer_state *state, uint64_t epoch,
                                     uint64_t seq)
{
    if (!state) {
        return seq == 0 ? PRODUCER_ACCEPT : PRODUCER_GAP;
    }
    if (epoch < state->epoch) {
        return PRODUCER_STALE_EPOCH;
    }
    if (epoch > state->epoch) {
        return seq == 0 ? PRODUCER_ACCEPT : PRODUCER_EPOCH_SEQ;
    }
    if (seq <= state->seq) {
        return PRODUCER_DUPLICATE;
    }
    return seq == state->seq + 1 ? PRODUCER_ACCEPT : PRODUCER_GAP;
}

struct producers *producers_create(void)
{
    struct producers *p = calloc(1, sizeof(*p));
    if (p) {
        map_init(&p->map);
    }
    return p;
}

static void free_all(struct producers *p)
{
    struct map_node *node = map_next(&p->map, NULL);
    while (node) {
        struct map_node *next = map_next(&p->map, node);
        free(container_of(node, struct producer, node));
        node = next;
    }
}

void producers_destroy(struct producers *p)
{
    if (p) {
        free_all(p);
        map_finish(&p->map);
        producers_clear_gone(p, p->gone_count);
        free(p);
    }
}

struct producer *producers_find(const struct producers *p, struct slice id)
{
    if (!p) {
        return NULL;
    }
    for (struct map_node *n = map_find(&p->map, slice_hash(id, 0)); n; n = map_find_next(n)) {
        struct producer *producer = container_of(n, struct producer, node);
        if (slice_equal(producer_id(producer), id)) {
            return producer;
        }
    }
    return NULL;
}

static bool idle(const struct producer *p, int64_t now_ms)
{
    return p->pins == 0 && now_ms - p->staged.used_ms >= (int64_t)PRODUCER_IDLE_MS;
}

/* Forgets every idle producer. The walk costs the whole map, so it is only done at the cap, and it
 * frees many at once. */
static int forget_idle(struct producers *p, int64_t now_ms)
{
    size_t count = 0;
    for (struct map_node *n = map_next(&p->map, NULL); n; n = map_next(&p->map, n)) {
        count += idle(container_of(n, struct producer, node), now_ms);
    }
    if (count == 0) {
        return ERR_LIMIT;
    }
    struct producer **gone = realloc(p->gone, (p->gone_count + count) * sizeof(gone[0]));
    if (!gone) {
        return ERR_NOMEM;
    }
    p->gone = gone;
    for (struct map_node *n = map_next(&p->map, NULL); n; n = map_next(&p->map, n)) {
        struct producer *producer = container_of(n, struct producer, node);
        if (idle(producer, now_ms)) {
            gone[p->gone_count++] = producer;
        }
    }
    for (size_t i = p->gone_count - count; i < p->gone_count; i++) {
        map_remove(&p->map, &gone[i]->node);
    }
    return 0;
}

int producers_make_room(struct producers *p, int64_t now_ms)
{
    return p->map.count >= PRODUCERS_PER_STREAM_MAX ? forget_idle(p, now_ms) : 0;
}

int producers_add(struct producers *p, struct slice id, struct producer **ret_producer)
{
    assert(id.len > 0);
    assert(id.len <= PRODUCER_ID_BYTES_MAX);
    struct producer *producer = calloc(1, sizeof(*producer) + id.len);
    if (!producer) {
        return ERR_NOMEM;
    }
    producer->id_len = (uint16_t)id.len;
    memcpy(producer->id, id.ptr, id.len);
    if (map_insert(&p->map, &producer->node, slice_hash(id, 0)) < 0) {
        free(producer);
        return ERR_NOMEM;
    }
    *ret_producer = producer;
    return 0;
}

void producers_remove(struct producers *p, struct producer *producer)
{
    assert(producer->pins == 0);
    map_remove(&p->map, &producer->node);
    free(producer);
}

void producers_clear_gone(struct producers *p, size_t count)
{
    assert(count <= p->gone_count);
    for (size_t i = 0; i < count; i++) {
        free(p->gone[i]);
    }
    p->gone_count -= count;
    if (p->gone_count == 0) {
        free(p->gone);
        p->gone = NULL;
        return;
    }
    memmove(p->gone, p->gone + count, p->gone_count * sizeof(p->gone[0]));
}
