/* One file of the fake disk: what the process sees, what is durable, and the list of changes in
 * between; and the decision what a crash leaves of them. Used by libfakedisk.c alone, under its
 * lock. Running out of memory aborts. */
#ifndef ARBE_TESTS_SIM_FAKEFILE_H
#define ARBE_TESTS_SIM_FAKEFILE_H

#include "base/attr.h"
#include "base/slice.h"

#define FAKEFILE_SECTOR 512u

/* What all files of a disk share. */
struct fakefile_world {
    uint64_t order;  /* of the next change */
    uint64_t random; /* state of the generator */
};

struct fakefile_change; /* since the last sync */

struct fakefile {
    bool is_dir;
    bool marked; /* the disk's, when it looks for files that nothing leads to */
    bool locked; /* by a descriptor */
    unsigned open_count;
    uint64_t allocated; /* bytes that it occupies */
    char *now;          /* owned; now_cap bytes, zeros behind now_size */
    uint64_t now_size;
    uint64_t now_cap;
    char *durable; /* owned */
    uint64_t durable_size;
    uint64_t durable_cap;
    struct fakefile_change *changes; /* owned */
    size_t change_count;
    size_t change_cap;
};

/* How a crash, or a failed sync, treats what was not durable. */
struct fakefile_fate {
    unsigned mode;
    uint64_t until; /* changes before this order are there, in the mode that goes by time */
};

struct fakefile *fakefile_create(bool is_dir);
void fakefile_destroy(struct fakefile *f);

/* Writes bytes, seen at once, durable later. */
void fakefile_put(struct fakefile_world *w, struct fakefile *f, uint64_t at, const char *bytes,
                  size_t len);

/* Cuts or extends with zeros. */
void fakefile_resize(struct fakefile_world *w, struct fakefile *f, uint64_t size);

/* All changes are durable. */
void fakefile_sync(struct fakefile *f);

/* Order of the oldest change that is not durable, or that of the next one. */
uint64_t fakefile_oldest(const struct fakefile_world *w, const struct fakefile *f);

/* Draws a fate for changes of order `first` and later. */
struct fakefile_fate fakefile_draw_fate(struct fakefile_world *w, uint64_t first);

/* Decides which changes become durable, and forgets the others: they stay to be seen until the file
 * is reloaded. */
void fakefile_settle(struct fakefile_world *w, struct fakefile *f,
                     const struct fakefile_fate *fate);

/* A sync fails: some changes become durable, the pages of the others look clean from now on. The
 * size stays to be synced: it is not in a page. */
void fakefile_fail_sync(struct fakefile_world *w, struct fakefile *f);

/* What is seen becomes what is durable. */
void fakefile_reload(struct fakefile *f);

/* `items` with room for one more. */
void *fakefile_grow(void *items, size_t count, size_t *cap, size_t item_bytes) MUST_USE;

#endif
