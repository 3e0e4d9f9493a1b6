/* Every item is in a tree by the number of its last change, which is the order in which readers are
 * given them; rows are in a second one by their place. A row that goes keeps its item as a
 * tombstone, so that going needs no memory. */
#include "app/board_state.h"

#include "base/buf.h"
#include "base/dice.h"
#include "base/json.h"
#include "base/limits.h"
#include "t3/row_json.h"

#include <assert.h>
#include <stdlib.h>

#define ROW_BYTES_MAX (1u * MIB) /* of JSON; what a row holds is capped far below */

struct board_state {
    struct map map;        /* rows and tombstones, by host and thread id */
    struct tree by_number; /* all */
    struct tree by_place;  /* rows */
    struct list tombs;     /* oldest first */
    size_t tomb_count;
    size_t tombs_max;
    size_t count;     /* of rows */
    uint64_t number;  /* of the last change */
    uint64_t dropped; /* of the newest tombstone that was dropped; 0: none */
    uint64_t listing; /* number of the last listing */
    uint64_t seed;
    uint64_t dice; /* of the trees */
    struct board_item **hosts;
    size_t host_count;
    size_t host_cap;
};

static struct board_item *of_number(const struct tree_node *node)
{
    return container_of(node, struct board_item, by_number);
}

static struct board_item *of_place(const struct tree_node *node)
{
    return container_of(node, struct board_item, by_place);
}

static int compare_numbers(const struct tree_node *a, const struct tree_node *b)
{
    uint64_t x = of_number(a)->number;
    uint64_t y = of_number(b)->number;

    return (x > y) - (x < y);
}

static int compare_places(const struct board_place *a, const struct board_place *b)
{
    int order = t3_instant_compare(&b->active, &a->active);

    order = order == 0 ? slice_compare(a->host, b->host) : order;
    return order == 0 ? slice_compare(a->thread_id, b->thread_id) : order;
}

static int compare_rows(const struct tree_node *a, const struct tree_node *b)
{
    return compare_places(&of_place(a)->place, &of_place(b)->place);
}

int board_state_create(size_t tombs_max, uint64_t seed, struct board_state **ret_state)
{
    struct board_state *s = calloc(1, sizeof(*s));

    if (s == NULL) {
        return ERR_NOMEM;
    }
    map_init(&s->map);
    tree_init(&s->by_number, compare_numbers);
    tree_init(&s->by_place, compare_rows);
    list_init(&s->tombs);
    s->tombs_max = tombs_max;
    s->seed = seed;
    s->dice = seed;
    *ret_state = s;
    return 0;
}

static void free_item(struct board_item *item)
{
    free(item->memory);
    free(item);
}

void board_state_destroy(struct board_state *s)
{
    struct tree_node *node;

    if (s == NULL) {
        return;
    }
    while ((node = tree_first(&s->by_number)) != NULL) {
        tree_remove(&s->by_number, node);
        free_item(of_number(node));
    }
    map_finish(&s->map);
    free(s->hosts);
    free(s);
}

static struct board_item *make_item(enum board_kind kind, struct slice host, struct slice thread_id)
{
    struct board_item *item = calloc(1, sizeof(*item) + host.len + thread_id.len);

    if (item == NULL) {
        return NULL;
    }
    item->kind = kind;
    if (host.len > 0) {
        memcpy(item->key, host.ptr, host.len);
    }
    if (thread_id.len > 0) {
        memcpy(item->key + host.len, thread_id.ptr, thread_id.len);
    }
    item->place.host = (struct slice){item->key, host.len};
    item->place.thread_id = (struct slice){item->key + host.len, thread_id.len};
    list_init(&item->tombs);
    return item;
}

/* Takes over `memory`. */
static void set_json(struct board_item *item, char *memory, size_t len)
{
    free(item->memory);
    item->memory = memory;
    item->json = (struct slice){memory, len};
}

/* It has changed, and is the newest from now on. */
static void touch(struct board_state *s, struct board_item *item)
{
    if (item->number != 0) {
        tree_remove(&s->by_number, &item->by_number);
    }
    item->number = ++s->number;
    tree_insert(&s->by_number, &item->by_number, dice_roll(&s->dice));
}

static uint64_t hash_of(const struct board_state *s, struct slice host, struct slice thread_id)
{
    return slice_hash(thread_id, slice_hash(host, s->seed));
}

static struct slice slice_of_text(struct t3_board_text text)
{
    return (struct slice){text.data, text.len};
}

static struct board_item *find(const struct board_state *s, struct slice host,
                               struct slice thread_id)
{
    struct map_node *node = map_find(&s->map, hash_of(s, host, thread_id));

    for (; node != NULL; node = map_find_next(node)) {
        struct board_item *item = container_of(node, struct board_item, node);

        if (slice_equal(item->place.host, host) && slice_equal(item->place.thread_id, thread_id)) {
            return item;
        }
    }
    return NULL;
}

/* A tombstone is none any more. */
static void leave_tombs(struct board_state *s, struct board_item *item)
{
    list_remove(&item->tombs);
    s->tomb_count--;
}

static int add_row(struct board_state *s, const struct t3_board_row *row,
                   struct board_item **ret_item)
{
    struct slice host = slice_of_text(row->host);
    struct slice thread_id = slice_of_text(row->thread_id);
    struct board_item *item = make_item(BOARD_GONE, host, thread_id);

    if (item == NULL) {
        return ERR_NOMEM;
    }
    if (map_insert(&s->map, &item->node, hash_of(s, host, thread_id)) != 0) {
        free_item(item);
        return ERR_NOMEM;
    }
    *ret_item = item;
    return 0;
}

static void place_row(struct board_state *s, struct board_item *item,
                      const struct t3_board_row *row)
{
    if (item->kind == BOARD_ROW) {
        tree_remove(&s->by_place, &item->by_place);
    } else {
        if (item->number != 0) {
            leave_tombs(s, item);
        }
        item->kind = BOARD_ROW;
        s->count++;
    }
    item->place.active = t3_instant_of(slice_of_text(row->last_turn_at));
    tree_insert(&s->by_place, &item->by_place, dice_roll(&s->dice));
}

int board_state_put(struct board_state *s, const struct t3_board_row *row)
{
    struct board_item *item = find(s, slice_of_text(row->host), slice_of_text(row->thread_id));
    struct buf json;

    buf_init(&json, ROW_BYTES_MAX);
    t3_row_json(&json, row);
    if (!json.failed && item != NULL && item->kind == BOARD_ROW &&
        slice_equal(item->json, buf_slice(&json))) {
        item->listed = s->listing;
        buf_finish(&json);
        return 0;
    }
    char *memory = json.failed ? NULL : malloc(json.len);

    if (memory == NULL || (item == NULL && add_row(s, row, &item) != 0)) {
        free(memory);
        buf_finish(&json);
        return ERR_NOMEM;
    }
    memcpy(memory, json.ptr, json.len);
    set_json(item, memory, json.len);
    buf_finish(&json);
    item->listed = s->listing;
    place_row(s, item, row);
    touch(s, item);
    return 0;
}

/* Forgets the oldest tombstone: who has not seen it cannot be told any more. */
static void drop_tomb(struct board_state *s)
{
    struct board_item *item = container_of(list_first(&s->tombs), struct board_item, tombs);

    assert(item->number > s->dropped);
    s->dropped = item->number;
    leave_tombs(s, item);
    tree_remove(&s->by_number, &item->by_number);
    map_remove(&s->map, &item->node);
    free_item(item);
}

static void bury(struct board_state *s, struct board_item *item)
{
    tree_remove(&s->by_place, &item->by_place);
    item->kind = BOARD_GONE;
    s->count--;
    set_json(item, NULL, 0);
    touch(s, item);
    list_append(&s->tombs, &item->tombs);
    s->tomb_count++;
    while (s->tomb_count > s->tombs_max) {
        drop_tomb(s);
    }
}

void board_state_remove(struct board_state *s, const struct t3_board_row *row)
{
    struct board_item *item = find(s, slice_of_text(row->host), slice_of_text(row->thread_id));

    if (item != NULL && item->kind == BOARD_ROW) {
        bury(s, item);
    }
}

static int add_host(struct board_state *s, struct slice label)
{
    if (s->host_count == s->host_cap) {
        size_t cap = s->host_cap == 0 ? 8 : s->host_cap * 2;
        struct board_item **hosts = realloc(s->hosts, cap * sizeof(struct board_item *));

        if (hosts == NULL) {
            return ERR_NOMEM;
        }
        s->hosts = hosts;
        s->host_cap = cap;
    }
    struct board_item *item = make_item(BOARD_HOST, label, (struct slice){NULL, 0});

    if (item == NULL) {
        return ERR_NOMEM;
    }
    s->hosts[s->host_count++] = item;
    return 0;
}

int board_state_put_host(struct board_state *s, size_t i, struct slice label, struct slice json)
{
    assert(i <= s->host_count && json.len > 0);
    if (i < s->host_count && slice_equal(s->hosts[i]->json, json)) {
        return 0;
    }
    char *memory = malloc(json.len);

    if (memory == NULL || (i == s->host_count && add_host(s, label) != 0)) {
        free(memory);
        return ERR_NOMEM;
    }
    memcpy(memory, json.ptr, json.len);
    set_json(s->hosts[i], memory, json.len);
    touch(s, s->hosts[i]);
    return 0;
}

void board_state_begin_listing(struct board_state *s)
{
    s->listing++;
}

void board_state_end_listing(struct board_state *s)
{
    const struct board_item *next = board_state_behind(s, NULL);

    while (next != NULL) {
        struct board_item *item = of_place(&next->by_place);

        next = board_state_next(s, next);
        if (item->listed != s->listing) {
            bury(s, item);
        }
    }
}

uint64_t board_state_number(const struct board_state *s)
{
    return s->number;
}

bool board_state_knows(const struct board_state *s, uint64_t number)
{
    return number >= s->dropped && number <= s->number;
}

static bool is_newer(void *context, const struct tree_node *node)
{
    const uint64_t *number = context;

    return of_number(node)->number > *number;
}

const struct board_item *board_state_after(const struct board_state *s, uint64_t number)
{
    struct tree_node *node = tree_find(&s->by_number, is_newer, &number);

    return node == NULL ? NULL : of_number(node);
}

size_t board_state_count(const struct board_state *s)
{
    return s->count;
}

size_t board_state_host_count(const struct board_state *s)
{
    return s->host_count;
}

const struct board_item *board_state_host_at(const struct board_state *s, size_t i)
{
    assert(i < s->host_count);
    return s->hosts[i];
}

/* What is_behind is asked about. */
struct behind {
    const struct board_place *place; /* NULL: every row is */
};

static bool is_behind(void *context, const struct tree_node *node)
{
    const struct behind *b = context;

    return b->place == NULL || compare_places(&of_place(node)->place, b->place) > 0;
}

const struct board_item *board_state_behind(const struct board_state *s,
                                            const struct board_place *place)
{
    struct behind context = {place};
    struct tree_node *node = tree_find(&s->by_place, is_behind, &context);

    return node == NULL ? NULL : of_place(node);
}

const struct board_item *board_state_next(const struct board_state *s, const struct board_item *row)
{
    (void)s;
    struct tree_node *node = tree_next(&row->by_place);

    return node == NULL ? NULL : of_place(node);
}
