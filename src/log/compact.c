/* What is rewritten:
 *   - Small extents of a stream. Sizes fall into tiers (under 4 KiB, 64 KiB, 1 MiB). When more than
 *     STREAM_EXTENTS_SMALL_MAX extents of a tier or below stand in a row, the row becomes one
 *     extent, or several of EXTENT_BYTES_MAX. The lowest such tier goes first, so a byte is
 *     rewritten about once per tier, whatever the number of checkpoints, and between two large
 *     extents there are never many small ones. An extent is not small either when it has half of
 *     the marks that one may have, RUN_MARKS_BYTES_MAX: two of these would not make one.
 *   - Packs of which less than half is live, and small packs by the same rule of tiers, with all
 *     packs of a tier taken for a row. Each of their extents moves as it is. A round that may not
 *     fill a pack beyond a tier leaves that tier alone: what it wrote would be as small again.
 *
 * How: bytes are read and proven, written to a new pack, and then the catalog replaces the extents
 * that exactly cover the range, in one transaction. If they no longer do (the stream went
 * meanwhile, or somebody else moved them), that one is dropped and its copy is dead space in the
 * new pack. So a round may be cut short anywhere, and done again.
 *
 * A pack without live bytes is unlinked only in the next round: a reader that looked the extent up
 * just before it moved still finds the file. Extents that do not prove themselves are left
 * where they are. */
#include "log/compact.h"

#include <assert.h>
#include <stdlib.h>

#include "base/limits.h"

#define TIER_COUNT    3u
#define PACKS_IN_TIER 16u /* small packs before they are put together */

static const uint64_t extent_tiers[TIER_COUNT] = {4 * KIB, 64 * KIB, MIB};
static const uint64_t pack_tiers[TIER_COUNT] = {256 * KIB, 4 * MIB, 64 * MIB};

/* An extent and whose it is. */
struct owned {
    stream_id id;
    struct extent extent;
};

struct owned_list {
    struct owned *items; /* owned */
    size_t count;
    size_t cap;
};

struct pack_info {
    pack_id id;
    uint64_t live;
    uint64_t total;
};

struct pack_list {
    struct pack_info *items; /* owned */
    size_t count;
    size_t cap;
};

/* One output with what was written to it. */
struct round {
    const struct compaction *k;
    struct output output;
    struct owned_list moved; /* the new extents */
    struct owned_list found; /* those being looked at */
    char *data;              /* owned; of an extent being written */
    size_t data_cap;
    char *marks; /* owned */
    size_t marks_cap;
    uint64_t left; /* bytes that may still be rewritten */
};

static int owned_add(struct owned_list *l, stream_id id, const struct extent *e)
{
    if (l->count == l->cap) {
        size_t cap = l->cap ? l->cap * 2 : 64;
        struct owned *items = realloc(l->items, cap * sizeof(items[0]));
        if (!items) {
            return ERR_NOMEM;
        }
        l->items = items;
        l->cap = cap;
    }
    l->items[l->count++] = (struct owned){id, *e};
    return 0;
}

void compaction_note(struct compaction_ids *ids, stream_id id)
{
    if (ids->count > 0 && ids->ids[ids->count - 1] == id) {
        return;
    }
    if (ids->count == ids->cap) {
        size_t cap = ids->cap ? ids->cap * 2 : 64;
        stream_id *grown = realloc(ids->ids, cap * sizeof(grown[0]));
        if (!grown) {
            return;
        }
        ids->ids = grown;
        ids->cap = cap;
    }
    ids->ids[ids->count++] = id;
}

void compaction_ids_finish(struct compaction_ids *ids)
{
    free(ids->ids);
    *ids = (struct compaction_ids){0};
}

/* Moving extents. */

static void round_init(struct round *r, const struct compaction *k)
{
    *r = (struct round){.k = k, .left = k->bytes_max};
    output_init(&r->output, k->target);
}

static void round_finish(struct round *r, bool keep)
{
    output_close(&r->output, keep);
    free(r->moved.items);
    free(r->found.items);
    free(r->data);
    free(r->marks);
}

static int grow(char **bytes, size_t *cap, size_t wanted)
{
    if (wanted > *cap) {
        char *grown = realloc(*bytes, wanted);
        if (!grown) {
            return ERR_NOMEM;
        }
        *bytes = grown;
        *cap = wanted;
    }
    return 0;
}

/* Reads `count` adjacent extents into the buffers. */
static int read_group(struct round *r, const struct owned *group, size_t count, size_t *ret_len,
                      size_t *ret_marks_len)
{
    size_t len = 0;
    size_t marks_len = 0;
    for (size_t i = 0; i < count; i++) {
        len += group[i].extent.len;
        marks_len += group[i].extent.marks_len;
    }
    int rc = grow(&r->data, &r->data_cap, len);
    rc = rc ? rc : grow(&r->marks, &r->marks_cap, marks_len + 1);
    size_t at = 0;
    size_t marks_at = 0;
    for (size_t i = 0; i < count && rc == 0; i++) {
        const struct extent *e = &group[i].extent;
        rc = pack_read_extent(r->k->target->packs, e, r->data + at, r->marks + marks_at);
        at += e->len;
        marks_at += e->marks_len;
    }
    *ret_len = len;
    *ret_marks_len = marks_len;
    return rc;
}

/* Writes adjacent extents of a stream as one. Those that cannot be proven stay, which is no
 * error. */
static int move_group(struct round *r, const struct owned *group, size_t count)
{
    size_t len = 0;
    size_t marks_len = 0;
    int rc = read_group(r, group, count, &len, &marks_len);
    if (rc == ERR_CORRUPT || rc == ERR_NOTFOUND) {
        return 0;
    }
    struct slice data = {r->data, len};
    struct slice marks = {r->marks, marks_len};
    struct extent e;
    rc = rc ? rc : output_add(&r->output, group->id, group->extent.start, &data, 1, marks, &e);
    rc = rc ? rc : owned_add(&r->moved, group->id, &e);
    if (rc == 0) {
        r->left -= len < r->left ? len : r->left;
    }
    return rc;
}

static void count_moved(const struct compaction *k, uint64_t bytes)
{
    if (k->work) {
        k->work->moved_bytes += bytes;
    }
}

/* Puts the moved extents into the catalog and tells. */
static int round_commit(struct round *r)
{
    const struct compaction *k = r->k;
    if (r->moved.count == 0) {
        round_finish(r, false);
        return 0;
    }
    struct catalog_txn *t = NULL;
    int rc = catalog_begin(k->target->catalog, &t);
    if (rc) {
        round_finish(r, false);
        return rc;
    }
    rc = output_finish(&r->output, t);
    for (size_t i = 0; i < r->moved.count && rc == 0; i++) {
        struct owned *m = &r->moved.items[i];
        rc = catalog_replace_extents(t, m->id, &m->extent);
        if (rc == ERR_NOTFOUND) {
            m->id = 0; /* nothing to tell */
            rc = 0;
        }
    }
    if (rc) {
        catalog_abort(t);
        round_finish(r, false);
        return rc;
    }
    struct catalog_state state = *k->state;
    state.next_pack = *k->target->next_pack;
    catalog_put_state(t, &state);
    rc = catalog_commit(t);
    for (size_t i = 0; i < r->moved.count && rc == 0; i++) {
        if (r->moved.items[i].id != 0) {
            count_moved(k, r->moved.items[i].extent.len);
            k->replaced(k->context, r->moved.items[i].id, &r->moved.items[i].extent);
        }
    }
    round_finish(r, rc == 0 || rc == ERR_UNKNOWN);
    return rc;
}

static int collect_extent(void *context, stream_id id, const struct extent *e)
{
    return owned_add(context, id, e);
}

/* Merging small extents. */

static bool is_small(const struct extent *e, uint64_t size)
{
    return e->len < size && e->marks_len < RUN_MARKS_BYTES_MAX / 2;
}

/* The first row of more than STREAM_EXTENTS_SMALL_MAX extents under `size`; its length, 0: none. */
static size_t find_row(const struct owned_list *l, uint64_t size, size_t *ret_first)
{
    size_t first = 0;
    for (size_t i = 0; i <= l->count; i++) {
        if (i < l->count && is_small(&l->items[i].extent, size)) {
            continue;
        }
        if (i - first > STREAM_EXTENTS_SMALL_MAX) {
            *ret_first = first;
            return i - first;
        }
        first = i + 1;
    }
    return 0;
}

/* Writes a row as extents that are as large as they may be. */
static int move_row(struct round *r, const struct owned *row, size_t count)
{
    size_t first = 0;
    uint64_t len = 0;
    uint64_t marks_len = 0;
    int rc = 0;
    for (size_t i = 0; i <= count && rc == 0; i++) {
        if (i < count && len + row[i].extent.len <= EXTENT_BYTES_MAX &&
            marks_len + row[i].extent.marks_len <= RUN_MARKS_BYTES_MAX) {
            len += row[i].extent.len;
            marks_len += row[i].extent.marks_len;
            continue;
        }
        rc = i - first > 1 ? move_group(r, row + first, i - first) : 0;
        first = i;
        len = i < count ? row[i].extent.len : 0;
        marks_len = i < count ? row[i].extent.marks_len : 0;
    }
    return rc;
}

/* Merges one row of a stream. *ret_again: something moved, so there may be another row. */
static int merge_stream(struct round *r, stream_id id, bool *ret_again)
{
    r->found.count = 0;
    int rc = catalog_each_stream_extent(r->k->target->catalog, id, collect_extent, &r->found);
    for (unsigned tier = 0; tier < TIER_COUNT && rc == 0; tier++) {
        size_t first = 0;
        size_t count = find_row(&r->found, extent_tiers[tier], &first);
        if (count > 0) {
            size_t moved = r->moved.count;
            rc = move_row(r, r->found.items + first, count);
            *ret_again = r->moved.count > moved;
            break;
        }
    }
    return rc;
}

static int compare_ids(const void *a, const void *b)
{
    stream_id left = *(const stream_id *)a;
    stream_id right = *(const stream_id *)b;
    return left < right ? -1 : left > right;
}

/* Each stream once, however many checkpoints it was in since it was last looked at. */
static void remove_repetitions(struct compaction_ids *ids)
{
    size_t kept = 0;
    if (ids->count > 0) {
        qsort(ids->ids, ids->count, sizeof(ids->ids[0]), compare_ids);
    }
    for (size_t i = 0; i < ids->count; i++) {
        if (kept == 0 || ids->ids[kept - 1] != ids->ids[i]) {
            ids->ids[kept++] = ids->ids[i];
        }
    }
    ids->count = kept;
}

static int merge_streams(const struct compaction *k, struct compaction_ids *ids)
{
    struct round r;
    round_init(&r, k);
    remove_repetitions(ids);
    size_t kept = 0;
    size_t at = 0;
    int rc = 0;
    for (; at < ids->count && r.left > 0 && rc == 0; at++) {
        bool again = false;
        rc = merge_stream(&r, ids->ids[at], &again);
        if (again) {
            ids->ids[kept++] = ids->ids[at];
        }
    }
    if (at > kept) {
        memmove(ids->ids + kept, ids->ids + at, (ids->count - at) * sizeof(ids->ids[0]));
        ids->count -= at - kept;
    }
    if (rc) {
        round_finish(&r, false);
        return rc;
    }
    return round_commit(&r);
}

/* Rewriting packs. */

static int collect_pack(void *context, pack_id id, uint64_t live_bytes, uint64_t total_bytes)
{
    struct pack_list *l = context;
    if (l->count == l->cap) {
        size_t cap = l->cap ? l->cap * 2 : 64;
        struct pack_info *items = realloc(l->items, cap * sizeof(items[0]));
        if (!items) {
            return ERR_NOMEM;
        }
        l->items = items;
        l->cap = cap;
    }
    l->items[l->count++] = (struct pack_info){id, live_bytes, total_bytes};
    return 0;
}

/* Forgets packs without live bytes and removes their files. */
static int drop_dead(const struct compaction *k, const struct pack_list *packs)
{
    struct catalog_txn *t = NULL;
    for (size_t i = 0; i < packs->count; i++) {
        if (packs->items[i].live > 0) {
            continue;
        }
        int rc = t ? 0 : catalog_begin(k->target->catalog, &t);
        if (rc) {
            return rc;
        }
        catalog_del_pack(t, packs->items[i].id);
    }
    int rc = t ? catalog_commit(t) : 0;
    size_t gone = 0;
    for (size_t i = 0; i < packs->count && t && rc == 0; i++) {
        if (packs->items[i].live == 0) {
            pack_set_drop(k->target->packs, packs->items[i].id);
            gone++;
        }
    }
    if (k->work) {
        k->work->packs_gone += gone;
    }
    return rc;
}

/* The size under which packs are put together by a round of `bytes_max`; 0: there are not enough
 * small ones. */
static uint64_t small_pack_limit(const struct pack_list *packs, uint64_t bytes_max)
{
    for (unsigned tier = 0; tier < TIER_COUNT && pack_tiers[tier] <= bytes_max; tier++) {
        size_t count = 0;
        for (size_t i = 0; i < packs->count; i++) {
            const struct pack_info *p = &packs->items[i];
            count += p->live > 0 && p->total < pack_tiers[tier];
        }
        if (count > PACKS_IN_TIER) {
            return pack_tiers[tier];
        }
    }
    return 0;
}

static int move_pack(struct round *r, pack_id id)
{
    r->found.count = 0;
    int rc = catalog_each_extent(r->k->target->catalog, id, collect_extent, &r->found);
    for (size_t i = 0; i < r->found.count && r->left > 0 && rc == 0; i++) {
        rc = move_group(r, &r->found.items[i], 1);
    }
    return rc;
}

static bool mostly_dead(const struct pack_info *p)
{
    uint64_t extents = p->total > PACK_HEADER_BYTES ? p->total - PACK_HEADER_BYTES : 0;
    return p->live < extents / 2;
}

static int rewrite_packs(const struct compaction *k, const struct pack_list *packs, bool *ret_more)
{
    struct round r;
    round_init(&r, k);
    uint64_t limit = small_pack_limit(packs, k->bytes_max);
    size_t gains = 0; /* a mostly dead pack is one, and each small one but the first */
    bool joining = false;
    int rc = 0;
    for (size_t i = 0; i < packs->count && r.left > 0 && rc == 0; i++) {
        const struct pack_info *p = &packs->items[i];
        if (p->live > 0 && (mostly_dead(p) || p->total < limit)) {
            size_t moved = r.moved.count;
            rc = move_pack(&r, p->id);
            bool any = r.moved.count > moved;
            gains += any && (mostly_dead(p) || joining);
            joining = joining || any;
        }
    }
    *ret_more = r.left == 0;
    if (rc || gains == 0) { /* one alone, where the others are damaged, would be moved for ever */
        round_finish(&r, false);
        return rc;
    }
    return round_commit(&r);
}

int compact_round(const struct compaction *k, struct compaction_ids *ids, bool *ret_more)
{
    struct pack_list packs = {0};
    bool more = false;
    int rc = catalog_each_pack(k->target->catalog, collect_pack, &packs);
    rc = rc ? rc : drop_dead(k, &packs);
    rc = rc ? rc : merge_streams(k, ids);
    packs.count = 0; /* merging has changed what is live */
    rc = rc ? rc : catalog_each_pack(k->target->catalog, collect_pack, &packs);
    rc = rc ? rc : rewrite_packs(k, &packs, &more);
    free(packs.items);
    if (rc == 0) {
        *ret_more = more || ids->count > 0;
    }
    return rc;
}
