/* The rows that a person looks at: grouped, the newest activity first, those that match a filter,
 * and one that is selected. Sorted when it is looked at, if anything has changed.
 *
 * Pure, but for memory, which goes with rows. One thread. */
#ifndef ARBE_CLI_BOARD_ROWS_H
#define ARBE_CLI_BOARD_ROWS_H

#include "arbe/t3_board.h"
#include "base/attr.h"
#include "base/map.h"
#include "base/slice.h"

#include <stdbool.h>
#include <stdint.h>

#define BOARD_FILTER_BYTES_MAX 256u       /* of what is typed */
#define BOARD_ASKING           "asks you" /* in the place of the state */

enum board_grouping {
    BOARD_BY_STATE, /* who asks people first, then what runs; what is archived last */
    BOARD_BY_HOST,  /* in the order in which the hosts were named */
};

/* A row as it is now. Its own memory. */
struct board_entry {
    struct map_node node;
    struct slice id;
    struct slice title;
    struct slice state;
    struct slice time; /* of its last activity, as it came */
    struct slice snippet;
    size_t host;     /* index of its host */
    size_t rank;     /* of its state, or of asking; board_entry_label */
    int64_t at_ms;   /* of `time`, since 1970; -1: none */
    size_t at;       /* private: in `all` */
    size_t shown_at; /* in `shown`, if it matches */
    bool matches;    /* the filter */
    char bytes[];    /* private: all texts */
};

/* Rows that stand below one heading. */
struct board_group {
    size_t first; /* in `shown` */
    size_t count;
};

struct board_host;

struct board_rows {
    enum board_grouping grouping;
    struct board_entry **shown; /* `shown_count` that match, in order */
    size_t shown_count;
    struct board_group *groups; /* `group_count` of them */
    size_t group_count;
    struct board_entry *selected; /* one that is shown, or NULL */
    size_t count;                 /* of all rows */
    size_t asking;                /* of those that are shown, as the next */
    size_t running;
    size_t failed;

    /* private */
    struct map map;
    struct board_entry **all;
    size_t room;               /* of the three arrays */
    bool selecting;            /* one is selected, if any is shown */
    size_t selected_at;        /* where it was shown last */
    bool stale;                /* must be sorted anew */
    struct board_host **hosts; /* `host_count` of them; owned */
    size_t host_count;
    size_t host_room;
    struct map host_map;                        /* by label */
    int32_t filter[2 * BOARD_FILTER_BYTES_MAX]; /* words in lower case, each ended by 0 */
    size_t filter_len;                          /* with those */
    uint64_t seed;
};

/* None, by state. `seed` is secret, lest hosts choose ids that collide. */
void board_rows_init(struct board_rows *rows, uint64_t seed);

/* Frees. */
void board_rows_finish(struct board_rows *rows);

/* Says that there is a host, so that its rows come behind those of the hosts before. ERR_NOMEM. */
int board_rows_add_host(struct board_rows *rows, struct slice label) MUST_USE;

/* The label of a host. */
struct slice board_rows_host(const struct board_rows *rows, size_t host);

/* Takes a change as t3_board_apply tells it. ERR_NOMEM: the row is as it was. */
int board_rows_change(struct board_rows *rows, const struct t3_board_row *row, bool gone) MUST_USE;

/* Shows only rows in which each word of `filter`, at most BOARD_FILTER_BYTES_MAX bytes, stands, in
 * title, host, state or snippet, in capitals or not, and none that has a '-' before it. Empty:
 * all. */
void board_rows_set_filter(struct board_rows *rows, struct slice filter);

/* Groups otherwise. */
void board_rows_set_grouping(struct board_rows *rows, enum board_grouping grouping);

#define BOARD_NONE SIZE_MAX

/* Selects a row that is shown, by its place there, or the last one; BOARD_NONE: none. Sorts. */
void board_rows_select(struct board_rows *rows, size_t shown_at);

/* Brings `shown`, `groups` and `selected` up to date. Who is selected stays so; if it is gone, the
 * row that took its place is. */
void board_rows_sort(struct board_rows *rows);

/* What an entry is called for people: its state, unless it asks them something; borrowed from the
 * entry, or static. */
struct slice board_entry_label(const struct board_entry *entry);
/* Likewise its state, whether or not it asks. */
struct slice board_entry_state(const struct board_entry *entry);

#define BOARD_BRIEF_COLUMNS 6

/* The label in at most so many columns; a state that nobody here knows, in as many as it needs. */
struct slice board_entry_brief(const struct board_entry *entry);

/* Whether it asks people something: what its state is counts for less. */
bool board_entry_is_asking(const struct board_entry *entry);
/* Whether its state says that something is under way, and it asks nothing. */
bool board_entry_is_running(const struct board_entry *entry);
/* Likewise: it ended badly. */
bool board_entry_is_failed(const struct board_entry *entry);

#endif
