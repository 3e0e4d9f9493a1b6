/* The board as the API shows it: a row for each thread that the T3 hosts tell of, and how each host
 * stands, as JSON and as the event that tells of it, each with the number of its last change. Who
 * has seen all up to some number is given what changed since, once each, whatever happened between.
 *
 * Rows that went stay for a while as tombstones, the newest ones; who is behind the oldest that was
 * dropped begins anew. A change costs O(log n), memory goes with rows, hosts and tombstones.
 *
 * One thread changes the state. Others read it between board_state_lock and board_state_unlock, for
 * which they hold up neither each other for long nor the making of texts: those are made when
 * something changes, outside of the lock, which a change takes to put them in place. */
#ifndef ARBE_APP_BOARD_STATE_H
#define ARBE_APP_BOARD_STATE_H

#include "arbe/t3_board.h"
#include "base/attr.h"
#include "base/list.h"
#include "base/map.h"
#include "base/slice.h"
#include "base/tree.h"
#include "t3/instant.h"

enum board_kind {
    BOARD_HOST,
    BOARD_ROW,
    BOARD_GONE, /* a row that is there no more */
};

/* Where a row stands among all of them: newest activity first, those without any last, then by the
 * bytes of host and thread id. */
struct board_place {
    struct t3_instant active; /* `len` 0: no activity */
    struct slice host;
    struct slice thread_id;
};

/* Something that the board shows. To be read only; it lives until the state next changes. */
struct board_item {
    enum board_kind kind;
    uint64_t number;          /* of its last change: from 1 on, no two alike */
    struct slice event;       /* server-sent, whole: kind, json, and the cursor of the number */
    struct slice json;        /* its object, inside of the event; GONE: with the key alone */
    struct board_place place; /* HOST: its label, and no thread */
    /* private */
    struct tree_node by_number;
    struct tree_node by_place; /* ROW */
    struct map_node node;      /* but HOST */
    struct list tombs;         /* GONE: on state.tombs */
    uint64_t listed;           /* number of the last listing that it was in */
    char *memory;              /* of the event */
    char key[];                /* host and thread id */
};

struct board_state;

struct board_state_config {
    size_t tombs_max; /* tombstones that are kept at most */
    uint64_t epoch;   /* of the cursors in its events */
    uint64_t seed;    /* of hashes and trees, for nobody to foresee */
};

/* An empty one. ERR_NOMEM. */
int board_state_create(const struct board_state_config *config,
                       struct board_state **ret_state) MUST_USE;

/* Accepts NULL. */
void board_state_destroy(struct board_state *s);

/* See above: for as long as it takes to copy a page. Any thread. */
void board_state_lock(const struct board_state *s);
void board_state_unlock(const struct board_state *s);

/* ---- By the thread that changes it, which has not locked it. */

/* The row is as given; one that was so already has not changed. ERR_NOMEM, and nothing is
 * changed. */
int board_state_put(struct board_state *s, const struct t3_board_row *row) MUST_USE;

/* The row is there no more, if it was. As board_state_put. */
int board_state_remove(struct board_state *s, const struct t3_board_row *row) MUST_USE;

/* The i-th host, the next new one at most, is as `json` says. As board_state_put. */
int board_state_put_host(struct board_state *s, size_t i, struct slice label,
                         struct slice json) MUST_USE;

/* From now on all rows there are will be put; those that were not when it ends are removed. */
void board_state_begin_listing(struct board_state *s);

/* See there. ERR_NOMEM, and some were not: it may be called again. */
int board_state_end_listing(struct board_state *s) MUST_USE;

/* ---- By that thread, or between lock and unlock. */

/* The number of the last change; 0: there was none. */
uint64_t board_state_number(const struct board_state *s);

/* Whether who has seen all up to `number` can be told what changed since. */
bool board_state_knows(const struct board_state *s, uint64_t number);

/* What changed first after `number`, or NULL. */
const struct board_item *board_state_after(const struct board_state *s, uint64_t number);

/* What changed next after `item`, or NULL. */
const struct board_item *board_state_later(const struct board_item *item);

/* How many rows there are, and hosts. */
size_t board_state_count(const struct board_state *s);
size_t board_state_host_count(const struct board_state *s);

/* The i-th host. */
const struct board_item *board_state_host_at(const struct board_state *s, size_t i);

/* The first row behind `place`, where none need be; NULL: the very first. NULL: there is none. */
const struct board_item *board_state_behind(const struct board_state *s,
                                            const struct board_place *place);

/* The row behind `row`, or NULL. */
const struct board_item *board_state_next(const struct board_item *row);

#endif
