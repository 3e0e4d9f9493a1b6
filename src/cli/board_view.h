/* The board as a person looks at it: what is known, what was typed, and what the screen shows of
 * both. It knows neither terminal nor clock: keys and the time are given, cells come out.
 *
 * A redraw costs what is seen, and a sorting of the rows if any has changed. One thread. */
#ifndef ARBE_CLI_BOARD_VIEW_H
#define ARBE_CLI_BOARD_VIEW_H

#include "cli/board_rows.h"
#include "cli/cells.h"
#include "cli/host_words.h"
#include "cli/keypress.h"
#include "t3/watch.h"

enum board_view_mode {
    BOARD_VIEW_LIST,
    BOARD_VIEW_TYPING, /* the filter */
    BOARD_VIEW_HELP,
    BOARD_VIEW_DETAIL, /* all of the selected row */
};

struct board_view {
    struct board_rows rows;
    enum board_view_mode mode;
    const struct t3_watch_host **hosts; /* `host_count` of them, borrowed */
    size_t host_count;
    const struct t3_hosts *known; /* of them; borrowed, may be NULL; set by whoever knows */
    struct buf filter;            /* as it was typed, in `filter_bytes` */
    char filter_bytes[BOARD_FILTER_BYTES_MAX + 1];
    size_t top; /* private: first line of the list that is seen */
    int page;   /* private: lines of the list that are seen */
};

/* What a key asks for beyond the view. */
enum board_view_wish {
    BOARD_VIEW_GO_ON,
    BOARD_VIEW_QUIT,
    BOARD_VIEW_RETRY,   /* to connect hosts that have no connection */
    BOARD_VIEW_REPAINT, /* all of it, whatever the terminal shows */
};

/* An empty one, which stays where it is. `seed` as for board_rows_init. */
void board_view_init(struct board_view *view, uint64_t seed);

/* Frees. */
void board_view_finish(struct board_view *view);

/* Adds a host, which is looked at whenever it is drawn. ERR_NOMEM. */
int board_view_add_host(struct board_view *view, const struct t3_watch_host *host) MUST_USE;

/* Takes what was typed. */
enum board_view_wish board_view_key(struct board_view *view, const struct keypress *key);

/* Draws it all as of `now_ms` since 1970. */
void board_view_draw(struct board_view *view, struct cells *cells, int64_t now_ms);

#define BOARD_AGE_BYTES 8

/* Writes how long ago it was, in one unit: "now", "59m", "23h", "364d", "2y"; nothing for no time
 * (-1). */
void board_view_age(char out[static BOARD_AGE_BYTES], int64_t at_ms, int64_t now_ms);

#endif
