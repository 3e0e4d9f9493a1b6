/* A change is a copy of the whole sectors that it touched, or a size. A crash chooses for each
 * sector how many of its changes had reached the disk: the kernel writes back whole pages, so an
 * older change of a sector is never lost while a newer one of the same sector is kept. A failed
 * sync settles in the same way, and that is what Linux does: the pages that did not make it are
 * marked clean. */
#include "sim/fakefile.h"

#include <assert.h>
#include <stdlib.h>

#include "base/dice.h"
#include "sim/fakedisk.h"

#define SECTOR FAKEFILE_SECTOR

struct fakefile_change {
    uint64_t order;    /* over the whole disk */
    uint64_t at;       /* of the sectors; a multiple of SECTOR */
    uint64_t len;      /* of the sectors; 0: only the size */
    char *bytes;       /* owned */
    bool resizes;      /* whether the size changed */
    uint64_t new_size; /* when it did */
};

uint64_t fakedisk_next(uint64_t *state)
{
    return dice_roll(state);
}

uint64_t fakedisk_below(uint64_t *state, uint64_t limit)
{
    assert(limit > 0);
    return fakedisk_next(state) % limit;
}

void *fakefile_grow(void *items, size_t count, size_t *cap, size_t item_bytes)
{
    if (count < *cap) {
        return items;
    }
    *cap = *cap ? *cap * 2 : 16;
    void *grown = realloc(items, *cap * item_bytes);
    assert(grown);
    return grown;
}

struct fakefile *fakefile_create(bool is_dir)
{
    struct fakefile *f = calloc(1, sizeof(*f));
    assert(f);
    f->is_dir = is_dir;
    return f;
}

static void forget_changes(struct fakefile *f)
{
    for (size_t i = 0; i < f->change_count; i++) {
        free(f->changes[i].bytes);
    }
    f->change_count = 0;
}

void fakefile_destroy(struct fakefile *f)
{
    forget_changes(f);
    free(f->changes);
    free(f->now);
    free(f->durable);
    free(f);
}

static void make_room(char **bytes, uint64_t *cap, uint64_t size)
{
    uint64_t want = (size + SECTOR - 1) / SECTOR * SECTOR;
    if (want <= *cap) {
        return;
    }
    uint64_t grown = *cap ? *cap : 4096;
    while (grown < want) {
        grown *= 2;
    }
    char *p = realloc(*bytes, grown);
    assert(p);
    memset(p + *cap, 0, grown - *cap);
    *bytes = p;
    *cap = grown;
}

/* Notes that sectors [from, to) and perhaps the size of `f` changed. */
static void note_change(struct fakefile_world *w, struct fakefile *f, uint64_t from, uint64_t to,
                        uint64_t old_size)
{
    f->changes = fakefile_grow(f->changes, f->change_count, &f->change_cap, sizeof(f->changes[0]));
    uint64_t at = from / SECTOR * SECTOR;
    uint64_t end = (to + SECTOR - 1) / SECTOR * SECTOR;
    struct fakefile_change *c = &f->changes[f->change_count++];
    *c = (struct fakefile_change){.order = w->order++,
                                  .at = at,
                                  .len = from < to ? end - at : 0,
                                  .resizes = f->now_size != old_size,
                                  .new_size = f->now_size};
    if (c->len > 0) {
        make_room(&f->now, &f->now_cap, end);
        c->bytes = malloc(c->len);
        assert(c->bytes);
        memcpy(c->bytes, f->now + at, c->len);
    }
}

void fakefile_resize(struct fakefile_world *w, struct fakefile *f, uint64_t size)
{
    uint64_t old = f->now_size;
    make_room(&f->now, &f->now_cap, size);
    f->now_size = size;
    if (size < old) {
        memset(f->now + size, 0, old - size);
        note_change(w, f, size, old, old);
    } else if (size > old) {
        note_change(w, f, 0, 0, old);
    }
}

void fakefile_put(struct fakefile_world *w, struct fakefile *f, uint64_t at, const char *bytes,
                  size_t len)
{
    uint64_t old = f->now_size;
    make_room(&f->now, &f->now_cap, at + len);
    memcpy(f->now + at, bytes, len);
    f->now_size = at + len > old ? at + len : old;
    note_change(w, f, at, at + len, old);
}

enum {
    FATE_NONE,
    FATE_ALL,
    FATE_SECTORS,
    FATE_TIME,
    FATE_TORN_BYTES,
    FATE_MODES
};

struct fakefile_fate fakefile_draw_fate(struct fakefile_world *w, uint64_t first)
{
    struct fakefile_fate fate = {.mode = (unsigned)fakedisk_below(&w->random, FATE_MODES)};
    fate.until = first + fakedisk_below(&w->random, w->order - first + 1);
    return fate;
}

/* How many of a sector's `count` changes are kept; *orders holds them by age. */
static size_t choose_kept(struct fakefile_world *w, const struct fakefile_fate *fate,
                          const uint64_t *orders, size_t count)
{
    size_t kept = 0;
    switch (fate->mode) {
    case FATE_NONE:
        return 0;
    case FATE_ALL:
        return count;
    case FATE_TIME:
        while (kept < count && orders[kept] < fate->until) {
            kept++;
        }
        return kept;
    default:
        return fakedisk_below(&w->random, count + 1);
    }
}

/* Applies to one sector of the durable contents what the fate keeps of its changes. */
static void settle_sector(struct fakefile_world *w, struct fakefile *f,
                          const struct fakefile_fate *fate, uint64_t sector)
{
    uint64_t orders[64];
    const char *versions[64];
    size_t count = 0;
    uint64_t at = sector * SECTOR;
    for (size_t i = 0; i < f->change_count; i++) {
        const struct fakefile_change *c = &f->changes[i];
        if (at < c->at || at >= c->at + c->len) {
            continue;
        }
        if (count == ARRAY_COUNT(orders)) {
            memmove(orders, orders + 1, sizeof(orders) - sizeof(orders[0]));
            memmove(versions, versions + 1, sizeof(versions) - sizeof(versions[0]));
            count--;
        }
        orders[count] = c->order;
        versions[count++] = c->bytes + (at - c->at);
    }
    if (count == 0) {
        return;
    }
    size_t kept = choose_kept(w, fate, orders, count);
    make_room(&f->durable, &f->durable_cap, at + SECTOR);
    if (kept > 0) {
        memcpy(f->durable + at, versions[kept - 1], SECTOR);
    }
    /* Disks write a sector whole or not at all, and headers at the start of a file rely on it.
     * Records do not have to. */
    if (fate->mode == FATE_TORN_BYTES && sector > 0 && kept < count &&
        fakedisk_below(&w->random, 4) == 0) {
        size_t cut = fakedisk_below(&w->random, SECTOR);
        bool front = fakedisk_below(&w->random, 2) == 0;
        memcpy(f->durable + at + (front ? 0 : cut), versions[kept] + (front ? 0 : cut),
               front ? cut : SECTOR - cut);
    }
}

static void settle_size(struct fakefile_world *w, struct fakefile *f,
                        const struct fakefile_fate *fate)
{
    uint64_t orders[256];
    uint64_t sizes[256];
    size_t count = 0;
    for (size_t i = 0; i < f->change_count && count < ARRAY_COUNT(orders); i++) {
        if (f->changes[i].resizes) {
            orders[count] = f->changes[i].order;
            sizes[count++] = f->changes[i].new_size;
        }
    }
    size_t kept = choose_kept(w, fate, orders, count);
    if (kept > 0) {
        f->durable_size = sizes[kept - 1];
    }
    make_room(&f->durable, &f->durable_cap, f->durable_size);
    if (f->durable_cap > f->durable_size) {
        memset(f->durable + f->durable_size, 0, f->durable_cap - f->durable_size);
    }
}

void fakefile_settle(struct fakefile_world *w, struct fakefile *f, const struct fakefile_fate *fate)
{
    uint64_t end = 0;
    for (size_t i = 0; i < f->change_count; i++) {
        uint64_t e = f->changes[i].at + f->changes[i].len;
        end = e > end ? e : end;
    }
    bool *touched = calloc(end / SECTOR + 1, sizeof(bool));
    assert(touched);
    for (size_t i = 0; i < f->change_count; i++) {
        const struct fakefile_change *c = &f->changes[i];
        for (uint64_t s = c->at / SECTOR; s < (c->at + c->len) / SECTOR; s++) {
            touched[s] = true;
        }
    }
    for (uint64_t s = 0; s < end / SECTOR; s++) {
        if (touched[s]) {
            settle_sector(w, f, fate, s);
        }
    }
    free(touched);
    settle_size(w, f, fate);
    forget_changes(f);
}

void fakefile_fail_sync(struct fakefile_world *w, struct fakefile *f)
{
    struct fakefile_fate fate = fakefile_draw_fate(w, fakefile_oldest(w, f));
    fakefile_settle(w, f, &fate);
    if (f->durable_size != f->now_size) {
        note_change(w, f, 0, 0, f->durable_size);
    }
}

void fakefile_sync(struct fakefile *f)
{
    for (size_t i = 0; i < f->change_count; i++) {
        const struct fakefile_change *c = &f->changes[i];
        if (c->len > 0) {
            make_room(&f->durable, &f->durable_cap, c->at + c->len);
            memcpy(f->durable + c->at, c->bytes, c->len);
        }
        if (c->resizes) {
            f->durable_size = c->new_size;
        }
    }
    forget_changes(f);
}

void fakefile_reload(struct fakefile *f)
{
    make_room(&f->now, &f->now_cap, f->durable_size);
    if (f->now_cap > 0) {
        memset(f->now, 0, f->now_cap);
    }
    if (f->durable_size > 0) {
        memcpy(f->now, f->durable, f->durable_size);
    }
    f->now_size = f->durable_size;
    f->allocated = f->durable_size;
}

uint64_t fakefile_oldest(const struct fakefile_world *w, const struct fakefile *f)
{
    return f->change_count > 0 ? f->changes[0].order : w->order;
}
