/* Those that are not well come first, each on lines of its own; the others share lines. What finds
 * no room is counted on the last one. */
#include "cli/board_hosts.h"

#include <stdio.h>

#define GAP_COLUMNS    2
#define HOST_ROWS_MAX  3 /* of what is said of one host */
#define QUIET_ROWS_MAX 2 /* of all those that are well */
#define LINE_BYTES     (HOST_WORDS_BYTES + 512u)

bool board_host_is_settled(const struct t3_watch_host *host)
{
    return host->state != T3_READER_CONNECTING && host->state != T3_READER_CATCHING_UP;
}

bool board_host_is_broken(const struct t3_watch_host *host)
{
    return host->state == T3_READER_LOST || host->state == T3_READER_REFUSED;
}

/* Hosts on their way to the screen. */
struct host_list {
    size_t left[T3_READER_REFUSED + 1]; /* those that are not on it yet, by state */
    size_t count;                       /* of them */
    int row;                            /* the next one */
    int end;                            /* behind the last one */
};

static void list_hosts(struct host_list *list, const struct board_view *view)
{
    for (size_t i = 0; i < view->host_count; i++) {
        list->left[view->hosts[i]->state]++;
        list->count++;
    }
}

static void take_host(struct host_list *list, const struct t3_watch_host *host)
{
    list->left[host->state]--;
    list->count--;
}

static void say(char out[static HOST_WORDS_BYTES], const struct board_view *view,
                const struct t3_watch_host *host)
{
    host_words(out, host, &(struct host_place){.hosts = view->known, .keys = true});
}

/* The hosts that found no room: "and 13 more: 10 lost, 3 live". */
static void draw_rest(const struct board_view *view, struct cells *cells, struct host_list *list)
{
    static const enum t3_reader_state order[] = {T3_READER_REFUSED, T3_READER_LOST,
                                                 T3_READER_CONNECTING, T3_READER_CATCHING_UP,
                                                 T3_READER_LIVE};
    bool broken = list->left[T3_READER_REFUSED] + list->left[T3_READER_LOST] > 0;
    const char *before = ": ";
    char memory[256];
    struct buf text;

    buf_init_fixed(&text, memory, sizeof(memory));
    if (list->count == view->host_count) {
        buf_append_format(&text, "%zu hosts", list->count);
    } else {
        buf_append_format(&text, "and %zu more", list->count);
    }
    for (size_t i = 0; i < ARRAY_COUNT(order); i++) {
        if (list->left[order[i]] > 0) {
            buf_append_format(&text, "%s%zu %s", before, list->left[order[i]],
                              t3_reader_state_name(order[i]));
            before = ", ";
        }
    }
    (void)cells_put(cells, list->row++, 0, cells->columns, broken ? CELL_YELLOW : CELL_DIM,
                    buf_slice(&text));
    list->count = 0;
}

/* Each of those that are not well on lines of its own, as far as they go: the last one is kept for
 * what comes behind. */
static void draw_broken_hosts(const struct board_view *view, struct cells *cells,
                              struct host_list *list)
{
    char text[HOST_WORDS_BYTES];
    char line[LINE_BYTES];

    for (size_t i = 0; i < view->host_count; i++) {
        const struct t3_watch_host *host = view->hosts[i];
        int rows = list->end - list->row - (list->count > 1 ? 1 : 0);

        if (!board_host_is_broken(host)) {
            continue;
        }
        if (rows <= 0) {
            draw_rest(view, cells, list);
            return;
        }
        say(text, view, host);
        (void)snprintf(line, sizeof(line), "%s %s", host->label, text);
        struct cells_area area = {list->row, rows < HOST_ROWS_MAX ? rows : HOST_ROWS_MAX, 0,
                                  cells->columns};

        list->row = cells_put_lines(
            cells, area, host->state == T3_READER_LOST ? CELL_YELLOW : CELL_RED, slice_of(line));
        take_host(list, host);
    }
}

/* The hosts from `from` on that are well, or about to be, as many as go on one line; returns the
 * first one behind. The first goes however long it is. `draw`: they are drawn, too. */
static size_t line_of_hosts(const struct board_view *view, struct cells *cells,
                            struct host_list *list, size_t from, bool draw)
{
    char text[HOST_WORDS_BYTES];
    int column = 0;

    for (; from < view->host_count; from++) {
        const struct t3_watch_host *host = view->hosts[from];

        if (board_host_is_broken(host)) {
            continue;
        }
        say(text, view, host);
        int begin = column > 0 ? column + GAP_COLUMNS : 0;
        int state = begin + cells_width(cells, slice_of(host->label)) + 1;

        if (column > 0 && state + cells_width(cells, slice_of(text)) > cells->columns) {
            break;
        }
        column = state + cells_width(cells, slice_of(text));
        if (draw) {
            (void)cells_put(cells, list->row, begin, cells->columns, CELL_BOLD,
                            slice_of(host->label));
            (void)cells_put(cells, list->row, state, cells->columns,
                            board_host_is_settled(host) ? CELL_GREEN : CELL_DIM, slice_of(text));
            take_host(list, host);
        }
    }
    return from;
}

static void draw_quiet_hosts(const struct board_view *view, struct cells *cells,
                             struct host_list *list)
{
    int end = list->row + QUIET_ROWS_MAX < list->end ? list->row + QUIET_ROWS_MAX : list->end;

    for (size_t from = 0; list->count > 0 && list->row < end; list->row++) {
        if (list->row == end - 1 &&
            line_of_hosts(view, cells, list, from, false) < view->host_count) {
            draw_rest(view, cells, list);
            return;
        }
        from = line_of_hosts(view, cells, list, from, true);
    }
}

int board_draw_hosts(const struct board_view *view, struct cells *cells, int row)
{
    struct host_list list = {.row = row,
                             .end = row + (cells->rows - row > 3 ? (cells->rows - row) / 3 : 0)};

    if (list.end > row) {
        list_hosts(&list, view);
        draw_broken_hosts(view, cells, &list);
        draw_quiet_hosts(view, cells, &list);
    }
    return list.row;
}
