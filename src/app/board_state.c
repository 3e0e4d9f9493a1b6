/* Every item is in a tree by the number of its last change, which is the order in which readers are
 * given them; rows are in a second one by their place. A row that goes keeps its item as a
 * tombstone.
 *
 * A change has two steps: all that needs memory or time is made, texts above all; then, under the
 * lock, it is put in place, which cannot fail. The map and the tombstones' list are not for
 * readers, and change outside of it. */
#include "app/board_state.h"

#include "app/board_cursor.h"
#include "base/buf.h"
#include "base/dice.h"
#include "base/json.h"
#include "base/limits.h"
#include "t3/row_json.h"

#include <assert.h>
#include <pthread.h>
#include <stdlib.h>

#define EVENT_BYTES_MAX (1u * MIB) /* what a row or host holds is capped far below */

/* An event that was made and is nobody's yet. */
struct text {
    char *memory;
    struct slice event;
    struct slice json; /* in there */
};

struct board_state {
    pthread_mutex_t mutex; /* what readers look at changes under it */
    struct map map;        /* rows and tombstones, by host and thread id */
    struct tree by_number; /* all */
    struct tree by_place;  /* rows */
    struct list tombs;     /* oldest first */
    size_t tomb_count;
    struct buf draft; /* events are written here first, since their length is not known */
    struct board_state_config config;
    size_t count;     /* of rows */
    uint64_t number;  /* of the last change */
    uint64_t dropped; /* of the newest tombstone that was dropped; 0: none */
    uint64_t listing; /* number of the last listing */
    uint64_t dice;    /* of the trees */
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

int board_state_create(const struct board_state_config *config, struct board_state **ret_state)
{
    struct board_state *s = calloc(1, sizeof(*s));

    if (s == NULL) {
        return ERR_NOMEM;
    }
    map_init(&s->map);
    tree_init(&s->by_number, compare_numbers);
    tree_init(&s->by_place, compare_rows);
    list_init(&s->tombs);
    buf_init(&s->draft, EVENT_BYTES_MAX);
    (void)pthread_mutex_init(&s->mutex, NULL); /* does not fail on Linux */
    s->config = *config;
    s->dice = config->seed;
    *ret_state = s;
    return 0;
}

void board_state_lock(const struct board_state *s)
{
    /* A reader changes nothing but the lock. */
    (void)pthread_mutex_lock((pthread_mutex_t *)(uintptr_t)&s->mutex);
}

void board_state_unlock(const struct board_state *s)
{
    (void)pthread_mutex_unlock((pthread_mutex_t *)(uintptr_t)&s->mutex);
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
    buf_finish(&s->draft);
    (void)pthread_mutex_destroy(&s->mutex); /* nobody holds it */
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

/* ------------------------------------------------------------------------------------ the texts */

static const struct slice heads[] = {
    [BOARD_HOST] = SLICE("event: host\ndata: "),
    [BOARD_ROW] = SLICE("event: row\ndata: "),
    [BOARD_GONE] = SLICE("event: gone\ndata: "),
};

/* Begins an event in the draft. Its JSON is appended next. */
static struct buf *begin_draft(struct board_state *s, enum board_kind kind)
{
    buf_clear(&s->draft);
    buf_append(&s->draft, heads[kind]);
    return &s->draft;
}

/* The JSON in the draft, which has no end yet. */
static struct slice drafted(const struct board_state *s, enum board_kind kind)
{
    return (struct slice){s->draft.ptr + heads[kind].len, s->draft.len - heads[kind].len};
}

/* Ends the draft with the number of the next change, and makes a text of it. ERR_NOMEM. */
static int end_draft(struct board_state *s, enum board_kind kind, struct text *ret_text)
{
    const struct board_cursor cursor = {s->config.epoch, s->number + 1};
    const size_t json_len = s->draft.len - heads[kind].len;
    char id[BOARD_CURSOR_BYTES];

    board_cursor_format(&cursor, id);
    buf_append(&s->draft, SLICE("\nid: "));
    buf_append(&s->draft, slice_of(id));
    buf_append(&s->draft, SLICE("\n\n"));
    char *memory = s->draft.failed ? NULL : malloc(s->draft.len);

    if (memory == NULL) {
        return ERR_NOMEM;
    }
    memcpy(memory, s->draft.ptr, s->draft.len);
    *ret_text = (struct text){
        .memory = memory,
        .event = {memory, s->draft.len},
        .json = {memory + heads[kind].len, json_len},
    };
    return 0;
}

/* Under the lock: the item has another text. Returns the memory of the one before, to be freed. */
static char *exchange_text(struct board_item *item, const struct text *text)
{
    char *before = item->memory;

    item->memory = text->memory;
    item->event = text->event;
    item->json = text->json;
    return before;
}

/* ---------------------------------------------------------------------------------- the changes */

/* Under the lock: it has changed, and is the newest from now on. */
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
    return slice_hash(thread_id, slice_hash(host, s->config.seed));
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

/* Under the lock. */
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

static void set_row(struct board_state *s, struct board_item *item, const struct t3_board_row *row,
                    const struct text *text)
{
    board_state_lock(s);
    char *before = exchange_text(item, text);

    place_row(s, item, row);
    touch(s, item);
    board_state_unlock(s);
    free(before);
}

int board_state_put(struct board_state *s, const struct t3_board_row *row)
{
    struct board_item *item = find(s, slice_of_text(row->host), slice_of_text(row->thread_id));
    struct text text;

    t3_row_json(begin_draft(s, BOARD_ROW), row);
    if (item == NULL || item->kind != BOARD_ROW || s->draft.failed ||
        !slice_equal(item->json, drafted(s, BOARD_ROW))) {
        if (end_draft(s, BOARD_ROW, &text) != 0) {
            return ERR_NOMEM;
        }
        if (item == NULL && add_row(s, row, &item) != 0) {
            free(text.memory);
            return ERR_NOMEM;
        }
        set_row(s, item, row, &text);
    }
    item->listed = s->listing;
    return 0;
}

/* Under the lock: forgets the oldest tombstone, since who has not seen it cannot be told any
 * more. */
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

static int bury(struct board_state *s, struct board_item *item)
{
    const struct board_place *place = &item->place;
    const struct t3_board_row key = {
        .host = {place->host.ptr, place->host.len},
        .thread_id = {place->thread_id.ptr, place->thread_id.len},
    };
    struct text text;

    t3_row_key_json(begin_draft(s, BOARD_GONE), &key);
    if (end_draft(s, BOARD_GONE, &text) != 0) {
        return ERR_NOMEM;
    }
    board_state_lock(s);
    char *before = exchange_text(item, &text);

    tree_remove(&s->by_place, &item->by_place);
    item->kind = BOARD_GONE;
    s->count--;
    touch(s, item);
    list_append(&s->tombs, &item->tombs);
    s->tomb_count++;
    while (s->tomb_count > s->config.tombs_max) {
        drop_tomb(s);
    }
    board_state_unlock(s);
    free(before);
    return 0;
}

int board_state_remove(struct board_state *s, const struct t3_board_row *row)
{
    struct board_item *item = find(s, slice_of_text(row->host), slice_of_text(row->thread_id));

    return item == NULL || item->kind != BOARD_ROW ? 0 : bury(s, item);
}

/* Room for one more host. */
static int reserve_host(struct board_state *s)
{
    size_t cap = s->host_cap == 0 ? 8 : s->host_cap * 2;

    if (s->host_count < s->host_cap) {
        return 0;
    }
    board_state_lock(s);
    struct board_item **hosts = realloc(s->hosts, cap * sizeof(struct board_item *));

    if (hosts != NULL) {
        s->hosts = hosts;
        s->host_cap = cap;
    }
    board_state_unlock(s);
    return hosts == NULL ? ERR_NOMEM : 0;
}

int board_state_put_host(struct board_state *s, size_t i, struct slice label, struct slice json)
{
    struct board_item *item = i < s->host_count ? s->hosts[i] : NULL;
    struct text text;

    assert(i <= s->host_count && json.len > 0);
    if (item != NULL && slice_equal(item->json, json)) {
        return 0;
    }
    buf_append(begin_draft(s, BOARD_HOST), json);
    if (end_draft(s, BOARD_HOST, &text) != 0) {
        return ERR_NOMEM;
    }
    if (item == NULL) {
        item = make_item(BOARD_HOST, label, (struct slice){NULL, 0});
        if (item == NULL || reserve_host(s) != 0) {
            free(item);
            free(text.memory);
            return ERR_NOMEM;
        }
    }
    board_state_lock(s);
    char *before = exchange_text(item, &text);

    touch(s, item);
    if (i == s->host_count) {
        s->hosts[s->host_count++] = item;
    }
    board_state_unlock(s);
    free(before);
    return 0;
}

void board_state_begin_listing(struct board_state *s)
{
    s->listing++;
}

int board_state_end_listing(struct board_state *s)
{
    const struct board_item *next = board_state_behind(s, NULL);
    int code = 0;

    while (code == 0 && next != NULL) {
        struct board_item *item = of_place(&next->by_place);

        next = board_state_next(next);
        if (item->listed != s->listing) {
            code = bury(s, item);
        }
    }
    return code;
}

/* ---------------------------------------------------------------------------------- the reading */

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

const struct board_item *board_state_later(const struct board_item *item)
{
    struct tree_node *node = tree_next(&item->by_number);

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

static bool is_behind(void *place, const struct tree_node *node)
{
    return compare_places(&of_place(node)->place, place) > 0;
}

const struct board_item *board_state_behind(const struct board_state *s,
                                            const struct board_place *place)
{
    struct tree_node *node = place == NULL
                                 ? tree_first(&s->by_place)
                                 : tree_find(&s->by_place, is_behind, (void *)(uintptr_t)place);

    return node == NULL ? NULL : of_place(node);
}

const struct board_item *board_state_next(const struct board_item *row)
{
    struct tree_node *node = tree_next(&row->by_place);

    return node == NULL ? NULL : of_place(node);
}
