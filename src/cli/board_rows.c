/* All rows are in one array, in the order of the last sorting but for what came since; sorting
 * takes what matches over into the array of those that are shown. */
#include "cli/board_rows.h"

#include "base/date.h"
#include "base/err.h"

#include <assert.h>
#include <stdlib.h>
#include <utf8proc.h>

#define ROOM_MIN      64u
#define HOST_ROOM_MIN 8u

/* Who waits for people first, whatever its state; what is under way, then what went wrong, what
 * ended; what nobody here has heard of, in a group for each; what is put away last. T3 calls a run
 * "waiting" whose agent is done until the checkpoint behind it is made. It waits for nobody. */
enum rank {
    RANK_ASKING,
    RANK_RUNNING,
    RANK_FINISHING,
    RANK_STARTING,
    RANK_PREPARING,
    RANK_QUEUED,
    RANK_FAILED,
    RANK_INTERRUPTED,
    RANK_CANCELLED,
    RANK_COMPLETED,
    RANK_IDLE,
    RANK_ROLLED_BACK,
    RANK_OTHER, /* any other */
    RANK_ARCHIVED,
};

static const struct state {
    struct slice name; /* on the wire */
    struct slice label;
    struct slice brief; /* where there is no room for that: at most 6 columns */
} states[] = {
    [RANK_ASKING] = {{NULL, 0}, SLICE(BOARD_ASKING), SLICE("asks")},
    [RANK_RUNNING] = {SLICE("running"), SLICE("running"), SLICE("run")},
    [RANK_FINISHING] = {SLICE("waiting"), SLICE("finishing"), SLICE("finish")},
    [RANK_STARTING] = {SLICE("starting"), SLICE("starting"), SLICE("start")},
    [RANK_PREPARING] = {SLICE("preparing"), SLICE("preparing"), SLICE("prep")},
    [RANK_QUEUED] = {SLICE("queued"), SLICE("queued"), SLICE("queued")},
    [RANK_FAILED] = {SLICE("failed"), SLICE("failed"), SLICE("failed")},
    [RANK_INTERRUPTED] = {SLICE("interrupted"), SLICE("interrupted"), SLICE("halted")},
    [RANK_CANCELLED] = {SLICE("cancelled"), SLICE("cancelled"), SLICE("cancel")},
    [RANK_COMPLETED] = {SLICE("completed"), SLICE("completed"), SLICE("done")},
    [RANK_IDLE] = {SLICE("idle"), SLICE("idle"), SLICE("idle")},
    [RANK_ROLLED_BACK] = {SLICE("rolled_back"), SLICE("rolled back"), SLICE("undone")},
    [RANK_OTHER] = {{NULL, 0}, SLICE("unknown"), SLICE("?")},
    [RANK_ARCHIVED] = {SLICE("archived"), SLICE("archived"), SLICE("away")},
};

static enum rank rank_of(struct slice state)
{
    for (size_t i = 0; i < ARRAY_COUNT(states); i++) {
        if (states[i].name.len > 0 && slice_equal(state, states[i].name)) {
            return (enum rank)i;
        }
    }
    return RANK_OTHER;
}

static struct slice label_of(enum rank rank, struct slice state)
{
    return rank == RANK_OTHER && state.len > 0 ? state : states[rank].label;
}

struct slice board_entry_label(const struct board_entry *entry)
{
    return label_of((enum rank)entry->rank, entry->state);
}

struct slice board_entry_state(const struct board_entry *entry)
{
    return label_of(rank_of(entry->state), entry->state);
}

struct slice board_entry_brief(const struct board_entry *entry)
{
    return entry->rank == RANK_OTHER && entry->state.len > 0 ? entry->state
                                                             : states[entry->rank].brief;
}

bool board_entry_is_asking(const struct board_entry *entry)
{
    return entry->rank == RANK_ASKING;
}

bool board_entry_is_running(const struct board_entry *entry)
{
    return entry->rank == RANK_RUNNING || entry->rank == RANK_FINISHING ||
           entry->rank == RANK_STARTING || entry->rank == RANK_PREPARING;
}

bool board_entry_is_failed(const struct board_entry *entry)
{
    return entry->rank == RANK_FAILED;
}

/* ------------------------------------------------------------------ hosts */

struct board_host {
    struct map_node node;
    size_t index;
    size_t len;
    char label[];
};

static struct board_host *find_host(const struct board_rows *rows, struct slice label)
{
    struct map_node *node = map_find(&rows->host_map, slice_hash(label, rows->seed));

    for (; node != NULL; node = map_find_next(node)) {
        struct board_host *host = container_of(node, struct board_host, node);

        if (slice_equal((struct slice){host->label, host->len}, label)) {
            return host;
        }
    }
    return NULL;
}

static int make_host_room(struct board_rows *rows)
{
    size_t room = rows->host_room == 0 ? HOST_ROOM_MIN : 2 * rows->host_room;

    if (rows->host_count < rows->host_room) {
        return 0;
    }
    struct board_host **hosts = realloc(rows->hosts, room * sizeof(*hosts));

    if (hosts == NULL) {
        return ERR_NOMEM;
    }
    rows->hosts = hosts;
    rows->host_room = room;
    return 0;
}

/* The host of that label, known before or not; NULL: memory ran out. */
static struct board_host *have_host(struct board_rows *rows, struct slice label)
{
    struct board_host *host = find_host(rows, label);

    if (host != NULL || make_host_room(rows) != 0) {
        return host;
    }
    host = malloc(sizeof(*host) + label.len);
    if (host == NULL) {
        return NULL;
    }
    host->index = rows->host_count;
    host->len = label.len;
    if (label.len > 0) {
        memcpy(host->label, label.ptr, label.len);
    }
    if (map_insert(&rows->host_map, &host->node, slice_hash(label, rows->seed)) != 0) {
        free(host);
        return NULL;
    }
    rows->hosts[rows->host_count++] = host;
    return host;
}

int board_rows_add_host(struct board_rows *rows, struct slice label)
{
    return have_host(rows, label) != NULL ? 0 : ERR_NOMEM;
}

struct slice board_rows_host(const struct board_rows *rows, size_t host)
{
    return (struct slice){rows->hosts[host]->label, rows->hosts[host]->len};
}

/* ------------------------------------------------------------------ the filter */

/* The next character, in lower case; what is no UTF-8 is 0xfffd. 0 at the end. */
static int32_t next_lower(struct slice *rest)
{
    utf8proc_int32_t c;

    if (rest->len == 0) {
        return 0;
    }
    unsigned char first = (unsigned char)rest->ptr[0];
    utf8proc_ssize_t len = 1;

    if (first < 0x80) {
        c = first >= 'A' && first <= 'Z' ? first + ('a' - 'A') : first == 0 ? 0xfffd : first;
    } else {
        len = utf8proc_iterate((const utf8proc_uint8_t *)rest->ptr, (utf8proc_ssize_t)rest->len,
                               &c);
        c = len <= 0 ? 0xfffd : utf8proc_tolower(c);
        len = len <= 0 ? 1 : len;
    }
    *rest = (struct slice){rest->ptr + len, rest->len - (size_t)len};
    return c;
}

static bool begins_with(struct slice text, const int32_t *word)
{
    while (*word != 0) {
        if (next_lower(&text) != *word++) {
            return false;
        }
    }
    return true;
}

static bool contains(struct slice text, const int32_t *word)
{
    while (text.len > 0) {
        struct slice rest = text;

        if (next_lower(&rest) == word[0] && begins_with(rest, word + 1)) {
            return true;
        }
        text = rest;
    }
    return false;
}

static bool stands_in(const struct board_rows *rows, const struct board_entry *entry,
                      const int32_t *word)
{
    return contains(entry->title, word) || contains(board_rows_host(rows, entry->host), word) ||
           contains(board_entry_label(entry), word) || contains(board_entry_state(entry), word) ||
           contains(entry->snippet, word);
}

/* Whether each word of the filter stands in it, and none of those behind a '-', which alone is the
 * beginning of one. */
static bool matches(const struct board_rows *rows, const struct board_entry *entry)
{
    const int32_t *word = rows->filter;
    const int32_t *end = word + rows->filter_len;

    while (word < end) {
        bool wanted = *word != '-';

        word += wanted ? 0 : 1;
        if ((wanted || *word != 0) && stands_in(rows, entry, word) != wanted) {
            return false;
        }
        while (*word++ != 0) {
        }
    }
    return true;
}

static void add_word(struct board_rows *rows, struct slice word)
{
    int32_t c;

    if (word.len == 0) {
        return;
    }
    do {
        c = next_lower(&word);
        rows->filter[rows->filter_len++] = c;
    } while (c != 0);
}

void board_rows_set_filter(struct board_rows *rows, struct slice filter)
{
    struct slice word;

    assert(filter.len <= BOARD_FILTER_BYTES_MAX);
    rows->filter_len = 0;
    while (slice_split(&filter, ' ', &word)) {
        add_word(rows, word);
    }
    for (size_t i = 0; i < rows->count; i++) {
        rows->all[i]->matches = matches(rows, rows->all[i]);
    }
    rows->stale = true;
}

/* ------------------------------------------------------------------ changes */

void board_rows_init(struct board_rows *rows, uint64_t seed)
{
    *rows = (struct board_rows){.seed = seed};
    map_init(&rows->map);
    map_init(&rows->host_map);
}

void board_rows_finish(struct board_rows *rows)
{
    for (size_t i = 0; i < rows->count; i++) {
        free(rows->all[i]);
    }
    for (size_t i = 0; i < rows->host_count; i++) {
        free(rows->hosts[i]);
    }
    map_finish(&rows->map);
    map_finish(&rows->host_map);
    free(rows->all);
    free(rows->shown);
    free(rows->groups);
    free(rows->hosts);
    *rows = (struct board_rows){.all = NULL};
}

static uint64_t hash_of(const struct board_rows *rows, size_t host, struct slice id)
{
    return slice_hash(id, rows->seed + host);
}

static struct board_entry *find(const struct board_rows *rows, size_t host, struct slice id)
{
    struct map_node *node = map_find(&rows->map, hash_of(rows, host, id));

    for (; node != NULL; node = map_find_next(node)) {
        struct board_entry *entry = container_of(node, struct board_entry, node);

        if (entry->host == host && slice_equal(entry->id, id)) {
            return entry;
        }
    }
    return NULL;
}

/* Room for one more in each array. */
static int make_room(struct board_rows *rows)
{
    size_t room = rows->room == 0 ? ROOM_MIN : 2 * rows->room;

    if (rows->count < rows->room) {
        return 0;
    }
    struct board_entry **all = realloc(rows->all, room * sizeof(*all));

    rows->all = all != NULL ? all : rows->all;
    struct board_entry **shown = realloc(rows->shown, room * sizeof(*shown));

    rows->shown = shown != NULL ? shown : rows->shown;
    struct board_group *groups = realloc(rows->groups, room * sizeof(*groups));

    rows->groups = groups != NULL ? groups : rows->groups;
    if (all == NULL || shown == NULL || groups == NULL) {
        return ERR_NOMEM;
    }
    rows->room = room;
    return 0;
}

static struct slice copy_text(struct board_entry *entry, size_t *at, struct t3_board_text text)
{
    struct slice copy = {entry->bytes + *at, text.len};

    if (text.data == NULL) {
        return (struct slice){NULL, 0};
    }
    memcpy(entry->bytes + *at, text.data, text.len);
    *at += text.len;
    return copy;
}

static struct board_entry *make_entry(const struct t3_board_row *row, size_t host)
{
    struct board_entry *entry = calloc(1, sizeof(*entry) + row->thread_id.len + row->title.len +
                                              row->state.len + row->last_turn_at.len +
                                              row->last_message_snippet.len);
    size_t at = 0;

    if (entry == NULL) {
        return NULL;
    }
    entry->host = host;
    entry->id = copy_text(entry, &at, row->thread_id);
    entry->title = copy_text(entry, &at, row->title);
    entry->state = copy_text(entry, &at, row->state);
    entry->time = copy_text(entry, &at, row->last_turn_at);
    entry->snippet = copy_text(entry, &at, row->last_message_snippet);
    entry->rank = row->asks ? RANK_ASKING : rank_of(entry->state);
    if (!date_parse_rfc3339(entry->time, &entry->at_ms)) {
        entry->at_ms = -1;
    }
    return entry;
}

static void remove_entry(struct board_rows *rows, struct board_entry *entry)
{
    rows->count--;
    rows->all[entry->at] = rows->all[rows->count];
    rows->all[entry->at]->at = entry->at;
    map_remove(&rows->map, &entry->node);
    if (rows->selected == entry) {
        rows->selected = NULL; /* `selected_at` says who comes next */
    }
    free(entry);
}

/* Puts `entry` in the place of `old`, which is freed. */
static void replace_entry(struct board_rows *rows, struct board_entry *old,
                          struct board_entry *entry)
{
    entry->at = old->at;
    entry->shown_at = old->shown_at;
    rows->all[entry->at] = entry;
    rows->selected = rows->selected == old ? entry : rows->selected;
    map_remove(&rows->map, &old->node);
    free(old);
}

int board_rows_change(struct board_rows *rows, const struct t3_board_row *row, bool gone)
{
    const struct slice label = {row->host.data, row->host.len};
    const struct slice id = {row->thread_id.data, row->thread_id.len};
    const struct board_host *known = have_host(rows, label);

    if (known == NULL || make_room(rows) != 0) {
        return ERR_NOMEM;
    }
    const size_t host = known->index;
    struct board_entry *old = find(rows, host, id);
    struct board_entry *entry = gone ? NULL : make_entry(row, host);

    rows->stale = true;
    if (gone) {
        if (old != NULL) {
            remove_entry(rows, old);
        }
        return 0;
    }
    if (entry == NULL || map_insert(&rows->map, &entry->node, hash_of(rows, host, id)) != 0) {
        free(entry);
        return ERR_NOMEM;
    }
    if (old != NULL) {
        replace_entry(rows, old, entry);
    } else {
        entry->at = rows->count;
        rows->all[rows->count++] = entry;
    }
    entry->matches = matches(rows, entry);
    return 0;
}

/* ------------------------------------------------------------------ order */

/* By what their groups are; 0 within one. */
static int compare_groups(const struct board_rows *rows, const struct board_entry *a,
                          const struct board_entry *b)
{
    if (rows->grouping == BOARD_BY_HOST) {
        return a->host < b->host ? -1 : a->host > b->host;
    }
    if (a->rank != b->rank) {
        return a->rank < b->rank ? -1 : 1;
    }
    return a->rank == RANK_OTHER ? slice_compare(a->state, b->state) : 0;
}

static int compare(const void *left, const void *right, void *context)
{
    const struct board_rows *rows = context;
    const struct board_entry *a = *(struct board_entry *const *)left;
    const struct board_entry *b = *(struct board_entry *const *)right;
    int order = compare_groups(rows, a, b);

    if (order != 0) {
        return order;
    }
    if (a->at_ms != b->at_ms) {
        return a->at_ms > b->at_ms ? -1 : 1;
    }
    if (a->host != b->host) {
        return a->host < b->host ? -1 : 1;
    }
    return slice_compare(a->id, b->id);
}

static void add_shown(struct board_rows *rows, struct board_entry *entry)
{
    size_t at = rows->shown_count++;

    rows->shown[at] = entry;
    entry->shown_at = at;
    rows->asking += board_entry_is_asking(entry) ? 1 : 0;
    rows->running += board_entry_is_running(entry) ? 1 : 0;
    rows->failed += board_entry_is_failed(entry) ? 1 : 0;
    if (at == 0 || compare_groups(rows, rows->shown[at - 1], entry) != 0) {
        rows->groups[rows->group_count++] = (struct board_group){.first = at};
    }
    rows->groups[rows->group_count - 1].count++;
}

/* Finds the selected row again, or the one that is in its place now. */
static void follow_selected(struct board_rows *rows)
{
    if (!rows->selecting || rows->shown_count == 0) {
        rows->selected = NULL;
    } else if (rows->selected == NULL || !rows->selected->matches) {
        size_t last = rows->shown_count - 1;

        rows->selected = rows->shown[rows->selected_at < last ? rows->selected_at : last];
    }
    if (rows->selected != NULL) {
        rows->selected_at = rows->selected->shown_at;
    }
}

void board_rows_sort(struct board_rows *rows)
{
    if (!rows->stale) {
        return;
    }
    rows->stale = false;
    if (rows->count > 0) {
        qsort_r(rows->all, rows->count, sizeof(struct board_entry *), compare, rows);
    }
    rows->shown_count = 0;
    rows->group_count = 0;
    rows->asking = 0;
    rows->running = 0;
    rows->failed = 0;
    for (size_t i = 0; i < rows->count; i++) {
        rows->all[i]->at = i;
        if (rows->all[i]->matches) {
            add_shown(rows, rows->all[i]);
        }
    }
    follow_selected(rows);
}

void board_rows_set_grouping(struct board_rows *rows, enum board_grouping grouping)
{
    rows->grouping = grouping;
    rows->stale = true;
}

void board_rows_select(struct board_rows *rows, size_t shown_at)
{
    board_rows_sort(rows);
    rows->selecting = shown_at != BOARD_NONE;
    rows->selected = NULL;
    rows->selected_at = shown_at;
    follow_selected(rows);
}
