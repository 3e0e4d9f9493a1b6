/* The happy path:
 *   1. The durable position P of the log is read. What the streams hold from here on includes at
 *      least every record before P. They may hold some behind P as well: replay meets those again
 *      and skips them by stream_meta.applied.
 *   2. The streams hand in their dirty state (checkpoint_add). Ranges are written to packs at once
 *      and the rest goes into an open catalog transaction, which nobody sees.
 *   3. The packs are synced, then the transaction commits with P in it.
 *   4. Streams learn their new extents, and log segments before P are released.
 *
 * The failure modes:
 *   - Anything before the commit: transaction aborted, new packs removed, streams dirty as before.
 *   - The commit itself fails with ERR_UNKNOWN: the transaction may be on disk, so its packs stay;
 *     the next start removes those that the catalog does not name.
 *   - A crash before the commit leaves packs that nobody names; after it, the log behind P is
 *     replayed onto the new catalog. */
#include "log/checkpoint.h"

#include <assert.h>
#include <stdlib.h>

/* An extent that was added. */
struct added {
    stream_id id;
    struct extent extent;
};

struct checkpoint {
    struct output output;
    struct catalog_txn *txn; /* NULL once it ended */
    struct added *added;     /* owned */
    size_t added_count;
    size_t added_cap;
    stream_id last_id; /* of the stream added last, to see that ids ascend */
    bool keep_packs;   /* they are named by the catalog, or may be */
};

int checkpoint_create(const struct output_target *target, struct checkpoint **ret_checkpoint)
{
    struct checkpoint *c = calloc(1, sizeof(*c));
    if (!c) {
        return ERR_NOMEM;
    }
    int rc = catalog_begin(target->catalog, &c->txn);
    if (rc) {
        free(c);
        return rc;
    }
    output_init(&c->output, target);
    *ret_checkpoint = c;
    return 0;
}

static int remember(struct checkpoint *c, stream_id id, const struct extent *e)
{
    if (c->added_count == c->added_cap) {
        size_t cap = c->added_cap ? c->added_cap * 2 : 64;
        struct added *added = realloc(c->added, cap * sizeof(added[0]));
        if (!added) {
            return ERR_NOMEM;
        }
        c->added = added;
        c->added_cap = cap;
    }
    c->added[c->added_count++] = (struct added){id, *e};
    return 0;
}

static int add_ranges(struct checkpoint *c, const struct checkpoint_item *item)
{
    for (size_t i = 0; i < item->range_count; i++) {
        const struct checkpoint_range *r = &item->ranges[i];
        struct extent e;
        int rc = output_add(&c->output, item->id, r->start, r->pieces, r->piece_count, r->marks,
                            &e);
        rc = rc ? rc : remember(c, item->id, &e);
        if (rc) {
            return rc;
        }
        catalog_add_extent(c->txn, item->id, &e);
        assert(i + 1 < item->range_count || e.start + e.len == item->meta.tail);
    }
    return 0;
}

int checkpoint_add(struct checkpoint *c, const struct checkpoint_item *item)
{
    assert(c->txn);
    assert(item->id > c->last_id);
    c->last_id = item->id;
    if (item->dropped) {
        catalog_drop_stream(c->txn, item->id);
        return 0;
    }
    assert(item->meta.id == item->id);
    int rc = add_ranges(c, item);
    if (rc) {
        return rc;
    }
    catalog_put_stream(c->txn, &item->meta);
    for (size_t i = 0; i < item->producer_count; i++) {
        catalog_put_producer(c->txn, item->id, &item->producers[i]);
    }
    for (size_t i = 0; i < item->forgotten_count; i++) {
        catalog_del_producer(c->txn, item->id, item->forgotten_producers[i]);
    }
    return 0;
}

void checkpoint_note(struct checkpoint *c, struct slice key, const struct slice *value)
{
    assert(c->txn);
    if (value) {
        catalog_put_note(c->txn, key, *value);
    } else {
        catalog_del_note(c->txn, key);
    }
}

int checkpoint_commit(struct checkpoint *c, const struct catalog_state *state)
{
    assert(c->txn);
    int rc = output_finish(&c->output, c->txn);
    if (rc) {
        return rc;
    }
    struct catalog_state now = *state;
    now.next_pack = *c->output.target->next_pack;
    catalog_put_state(c->txn, &now);
    rc = catalog_commit(c->txn);
    c->txn = NULL;
    c->keep_packs = rc == 0 || rc == ERR_UNKNOWN;
    return rc;
}

void checkpoint_each_added(const struct checkpoint *c,
                           void (*each)(void *context, stream_id id, const struct extent *e),
                           void *context)
{
    assert(c->keep_packs);
    for (size_t i = 0; i < c->added_count; i++) {
        each(context, c->added[i].id, &c->added[i].extent);
    }
}

void checkpoint_destroy(struct checkpoint *c)
{
    if (!c) {
        return;
    }
    if (c->txn) {
        catalog_abort(c->txn);
    }
    output_close(&c->output, c->keep_packs);
    free(c->added);
    free(c);
}
