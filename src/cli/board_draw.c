/* From above: a heading with counts, how the hosts stand, the list, a line of what can be typed.
 * A screen that is too small for all of it loses the heading first, then the hosts; one line shows
 * a row.
 *
 * A row that has less room loses its snippet first, then its age; its host or its state, whichever
 * the heading of its group does not say, becomes shorter, and stays as long as some of the title
 * can. Where there is but one host its name says nothing, and goes before the age. */
#include "cli/board_view.h"

#include "cli/board_hosts.h"

#include <inttypes.h>
#include <stdio.h>

#define MARKER_COLUMNS   2
#define AGE_COLUMNS      4
#define GAP_COLUMNS      2
#define STATE_COLUMNS    11
#define HOST_COLUMNS_MIN 4
#define HOST_COLUMNS_MAX 14
#define SECOND_FROM      16 /* columns of a screen from which on there is that */
#define MARKER_FROM      20
#define AGE_ALONE_FROM   30 /* without host or state */
#define AGE_FROM         40
#define WIDE_FROM        50 /* host and state are not shortened */
#define SNIPPET_FROM     72
#define TIME_BYTES       128
#define LINE_BYTES       (HOST_WORDS_BYTES + 512u)

#define MINUTE_MS INT64_C(60000)
#define HOUR_MS   (60 * MINUTE_MS)
#define DAY_MS    (24 * HOUR_MS)
#define YEAR_MS   (365 * DAY_MS)

/* Where the columns of a row begin; those that are not there have no width. */
struct layout {
    int marker; /* width */
    int title;
    int title_width;
    int second; /* the host, or the state where rows are grouped by host */
    int second_width;
    int age;
    int age_width;
    int snippet;
    int snippet_width;
};

/* ------------------------------------------------------------------ words */

void board_view_age(char out[static BOARD_AGE_BYTES], int64_t at_ms, int64_t now_ms)
{
    static const struct {
        int64_t ms;
        char unit;
    } units[] = {{YEAR_MS, 'y'}, {DAY_MS, 'd'}, {HOUR_MS, 'h'}, {MINUTE_MS, 'm'}};

    out[0] = '\0';
    if (at_ms < 0) {
        return;
    }
    for (size_t i = 0; i < ARRAY_COUNT(units); i++) {
        int64_t count = (now_ms - at_ms) / units[i].ms;

        if (count > 0) {
            (void)snprintf(out, BOARD_AGE_BYTES, "%d%c", (int)(count < 9999 ? count : 9999),
                           units[i].unit);
            return;
        }
    }
    (void)snprintf(out, BOARD_AGE_BYTES, "now");
}

static unsigned state_style(const struct board_entry *entry)
{
    if (board_entry_is_asking(entry)) {
        return CELL_YELLOW;
    }
    if (board_entry_is_running(entry)) {
        return CELL_GREEN;
    }
    return board_entry_is_failed(entry) ? CELL_RED : CELL_PLAIN;
}

/* ------------------------------------------------------------------ above the list */

/* Where there is no room for both, what is counted says more than how it is grouped. */
static void draw_heading(const struct board_view *view, struct cells *cells)
{
    const struct board_rows *rows = &view->rows;
    struct slice title = rows->grouping == BOARD_BY_STATE ? SLICE("Threads by state")
                                                          : SLICE("Threads by host");
    char counts[256];
    struct buf text;

    buf_init_fixed(&text, counts, sizeof(counts));
    if (view->filter.len > 0) {
        buf_append_format(&text, "%zu of ", rows->shown_count);
    }
    buf_append_format(&text, "%zu thread%s", rows->count, rows->count == 1 ? "" : "s");
    if (rows->asking > 0) {
        buf_append_format(&text, ", %zu ask%s you", rows->asking, rows->asking == 1 ? "s" : "");
    }
    if (rows->running > 0) {
        buf_append_format(&text, ", %zu running", rows->running);
    }
    if (rows->failed > 0) {
        buf_append_format(&text, ", %zu failed", rows->failed);
    }
    if (cells_width(cells, title) + GAP_COLUMNS + cells_width(cells, buf_slice(&text)) >
        cells->columns) {
        (void)cells_put(cells, 0, 0, cells->columns, CELL_BOLD, buf_slice(&text));
        return;
    }
    int column = cells_put(cells, 0, 0, cells->columns, CELL_BOLD, title);

    (void)cells_put_right(cells, 0, column + GAP_COLUMNS, cells->columns, CELL_PLAIN,
                          buf_slice(&text));
}

/* ------------------------------------------------------------------ rows */

static int second_width(const struct board_view *view, const struct cells *cells)
{
    bool wide = cells->columns >= WIDE_FROM;
    int most = wide ? HOST_COLUMNS_MAX : cells->columns / 4;
    int width = HOST_COLUMNS_MIN;

    if (cells->columns < SECOND_FROM) {
        return 0;
    }
    if (view->rows.grouping == BOARD_BY_HOST) {
        return wide ? STATE_COLUMNS : BOARD_BRIEF_COLUMNS;
    }
    if (view->host_count < 2 && !wide) {
        return 0;
    }
    for (size_t i = 0; i < view->host_count; i++) {
        int own = cells_width(cells, slice_of(view->hosts[i]->label));

        width = own > width ? own : width;
    }
    return width > most ? most : width;
}

static void lay_out(struct layout *l, const struct board_view *view, const struct cells *cells)
{
    int columns = cells->columns;

    *l = (struct layout){.marker = columns >= MARKER_FROM ? MARKER_COLUMNS : 0};
    l->second_width = second_width(view, cells);
    l->age_width = columns >= (l->second_width > 0 ? AGE_FROM : AGE_ALONE_FROM) ? AGE_COLUMNS : 0;
    int rest = columns - l->marker - (l->age_width > 0 ? l->age_width + GAP_COLUMNS : 0) -
               (l->second_width > 0 ? l->second_width + GAP_COLUMNS : 0);

    l->title = l->marker;
    l->title_width = rest;
    if (columns >= SNIPPET_FROM) {
        l->title_width = (rest - GAP_COLUMNS) * 2 / 5;
        l->snippet_width = rest - GAP_COLUMNS - l->title_width;
        l->snippet = columns - l->snippet_width;
    }
    l->second = l->title + l->title_width + GAP_COLUMNS;
    l->age = l->second + (l->second_width > 0 ? l->second_width + GAP_COLUMNS : 0);
}

static void draw_group(const struct board_view *view, struct cells *cells, int row,
                       const struct board_group *group)
{
    const struct board_entry *first = view->rows.shown[group->first];
    char count[32];
    int column;

    if (view->rows.grouping == BOARD_BY_STATE) {
        column = cells_put(cells, row, 0, cells->columns, CELL_BOLD | state_style(first),
                           board_entry_label(first));
        (void)snprintf(count, sizeof(count), "%zu", group->count);
    } else {
        /* Not to be taken for the line that says how that host stands. */
        column = cells_put(cells, row, 0, cells->columns, CELL_BOLD,
                           board_rows_host(&view->rows, first->host));
        column = cells_put(cells, row, column, cells->columns, CELL_BOLD, SLICE(":"));
        (void)snprintf(count, sizeof(count), "%zu thread%s", group->count,
                       group->count == 1 ? "" : "s");
    }
    (void)cells_put(cells, row, column + 1, cells->columns, CELL_DIM, slice_of(count));
}

static void draw_entry(const struct board_view *view, struct cells *cells, int row,
                       const struct layout *l, const struct board_entry *entry, int64_t now_ms)
{
    bool by_state = view->rows.grouping == BOARD_BY_STATE;
    char age[BOARD_AGE_BYTES];
    const struct slice title = entry->title.len > 0 ? entry->title : SLICE("(no title)");

    board_view_age(age, entry->at_ms, now_ms);
    (void)cells_put(cells, row, l->title, l->title + l->title_width, CELL_PLAIN, title);
    (void)cells_put(cells, row, l->second, l->second + l->second_width,
                    by_state ? CELL_CYAN : state_style(entry),
                    by_state                          ? board_rows_host(&view->rows, entry->host)
                    : l->second_width < STATE_COLUMNS ? board_entry_brief(entry)
                                                      : board_entry_label(entry));
    (void)cells_put_right(cells, row, l->age, l->age + l->age_width, CELL_PLAIN, slice_of(age));
    (void)cells_put(cells, row, l->snippet, l->snippet + l->snippet_width, CELL_DIM,
                    entry->snippet);
    if (entry->host < view->host_count && board_host_is_broken(view->hosts[entry->host])) {
        cells_add_style(cells, row, 0, cells->columns, CELL_DIM);
    }
    if (view->rows.selected == entry) {
        if (l->marker > 0) {
            (void)cells_put(cells, row, 0, l->marker, CELL_PLAIN, SLICE(">"));
        }
        cells_add_style(cells, row, 0, cells->columns, CELL_REVERSE);
    }
}

/* ------------------------------------------------------------------ the list */

/* The group that a row is in. */
static size_t group_of(const struct board_rows *rows, size_t shown_at)
{
    size_t low = 0;
    size_t high = rows->group_count;

    while (high - low > 1) {
        size_t middle = low + (high - low) / 2;

        if (rows->groups[middle].first <= shown_at) {
            low = middle;
        } else {
            high = middle;
        }
    }
    return low;
}

/* The number of the line that a row stands on. */
static size_t line_of(const struct board_rows *rows, size_t shown_at)
{
    return shown_at + group_of(rows, shown_at) + 1;
}

/* The group whose heading or rows have that line. */
static size_t group_at_line(const struct board_rows *rows, size_t line)
{
    size_t low = 0;
    size_t high = rows->group_count;

    while (high - low > 1) {
        size_t middle = low + (high - low) / 2;

        if (rows->groups[middle].first + middle <= line) {
            low = middle;
        } else {
            high = middle;
        }
    }
    return low;
}

/* Scrolls so that the selected row is seen, and no further than the list goes. */
static void scroll(struct board_view *view, int page)
{
    const struct board_rows *rows = &view->rows;
    size_t lines = rows->shown_count + rows->group_count;
    size_t heading = page > 1 ? 1 : 0; /* the first line that is seen is one */

    view->page = page;
    if (rows->selected == NULL) {
        view->top = heading == 1 ? 0 : 1;
        return;
    }
    size_t line = line_of(rows, rows->selected->shown_at);

    if (view->top + (size_t)page > lines) {
        view->top = lines > (size_t)page ? lines - (size_t)page : 0;
    }
    if (line < view->top + heading) {
        view->top = line - heading;
    } else if (line >= view->top + (size_t)page) {
        view->top = line - (size_t)page + 1;
    }
}

static void draw_lines(struct board_view *view, struct cells *cells, int row, int end,
                       int64_t now_ms)
{
    const struct board_rows *rows = &view->rows;
    size_t lines = rows->shown_count + rows->group_count;
    struct layout layout;

    scroll(view, end - row);
    lay_out(&layout, view, cells);
    for (int i = 0; row + i < end && view->top + (size_t)i < lines; i++) {
        size_t line = view->top + (size_t)i;
        size_t group = group_at_line(rows, line);
        size_t first = rows->groups[group].first + group;

        if (line == first || (i == 0 && end - row > 1)) {
            draw_group(view, cells, row + i, &rows->groups[group]);
        } else {
            draw_entry(view, cells, row + i, &layout, rows->shown[line - group - 1], now_ms);
        }
    }
}

/* Why there is no row to be seen. */
static void draw_empty(const struct board_view *view, struct cells *cells, int row, int end)
{
    char line[LINE_BYTES];
    size_t coming = 0;
    size_t broken = 0;

    for (size_t i = 0; i < view->host_count; i++) {
        coming += board_host_is_settled(view->hosts[i]) ? 0 : 1;
        broken += board_host_is_broken(view->hosts[i]) ? 1 : 0;
    }
    if (view->rows.count > 0) {
        (void)snprintf(line, sizeof(line), "Nothing matches \"%.*s\": Esc shows all.",
                       (int)view->filter.len, view->filter.ptr);
    } else if (coming > 0) {
        (void)snprintf(line, sizeof(line), "Nothing yet: waiting for what the hosts tell.");
    } else if (broken == view->host_count) {
        (void)snprintf(line, sizeof(line), "There is no host to read from.");
    } else {
        (void)snprintf(line, sizeof(line), "No threads yet.");
    }
    (void)cells_put_lines(cells, (struct cells_area){row, end - row, 0, cells->columns}, CELL_PLAIN,
                          slice_of(line));
}

static void draw_list(struct board_view *view, struct cells *cells, int row, int end,
                      int64_t now_ms)
{
    if (row >= end) {
        return;
    }
    if (view->rows.shown_count == 0) {
        draw_empty(view, cells, row, end);
    } else {
        draw_lines(view, cells, row, end, now_ms);
    }
}

/* ------------------------------------------------------------------ instead of the list */

/* Each line is short enough for 40 columns, and those that a small screen has no room for come
 * last. */
static void draw_help(struct cells *cells, int row, int end)
{
    static const struct {
        const char *keys;
        const char *text;
    } lines[] = {
        {"q", "quits"},
        {"j k, arrows", "select a row"},
        {"Enter", "shows all of that row"},
        {"/", "filters; -word leaves out"},
        {"Esc", "clears filter or selection"},
        {"g", "groups by host or by state"},
        {"r", "retries lost, refused hosts"},
        {"PgUp PgDn", "page; also Ctrl-B/F, Space"},
        {"Home End", "first and last row; also G"},
        {"Ctrl-L", "paints the screen anew"},
    };

    for (size_t i = 0; i < ARRAY_COUNT(lines) && row < end; i++, row++) {
        (void)cells_put(cells, row, 0, cells->columns, CELL_BOLD, slice_of(lines[i].keys));
        (void)cells_put(cells, row, 13, cells->columns, CELL_PLAIN, slice_of(lines[i].text));
    }
}

/* The time of a row as it came, and how long ago that is. */
static struct slice say_active(char out[static TIME_BYTES], const struct board_entry *entry,
                               int64_t now_ms)
{
    char age[BOARD_AGE_BYTES];
    struct buf text;

    buf_init_fixed(&text, out, TIME_BYTES);
    buf_append(&text, entry->time);
    board_view_age(age, entry->at_ms, now_ms);
    if (strcmp(age, "now") == 0) {
        buf_append(&text, SLICE(" (now)"));
    } else if (age[0] != '\0') {
        buf_append_format(&text, " (%s ago)", age);
    }
    return buf_slice(&text);
}

/* Of one that asks its state as well, in brackets. */
static struct slice say_state(char out[static TIME_BYTES], const struct board_entry *entry)
{
    struct slice state = board_entry_state(entry);
    struct buf text;

    if (!board_entry_is_asking(entry)) {
        return state;
    }
    buf_init_fixed(&text, out, TIME_BYTES);
    buf_append(&text, SLICE(BOARD_ASKING " ("));
    buf_append(&text, state);
    buf_append_char(&text, ')');
    return buf_slice(&text);
}

static void draw_detail(const struct board_view *view, struct cells *cells, int row, int end,
                        int64_t now_ms)
{
    const struct board_entry *entry = view->rows.selected;
    char active[TIME_BYTES];
    char state[TIME_BYTES];

    if (entry == NULL) {
        (void)cells_put(cells, row, 0, cells->columns, CELL_PLAIN, SLICE("That row is gone."));
        return;
    }
    const struct {
        struct slice name;
        struct slice text;
    } lines[] = {
        {SLICE("title"), entry->title},
        {SLICE("host"), board_rows_host(&view->rows, entry->host)},
        {SLICE("state"), say_state(state, entry)},
        {SLICE("active"), say_active(active, entry, now_ms)},
        {SLICE("thread"), entry->id},
        {SLICE("message"), entry->snippet},
    };
    int column = cells->columns >= MARKER_FROM ? 9 : 0;

    for (size_t i = 0; i < ARRAY_COUNT(lines) && row < end; i++) {
        if (column > 0) {
            (void)cells_put(cells, row, 0, column - 1, CELL_DIM, lines[i].name);
        }
        int next = cells_put_lines(cells,
                                   (struct cells_area){row, end - row, column, cells->columns},
                                   CELL_PLAIN, lines[i].text);

        row = next > row ? next : row + 1;
    }
}

/* ------------------------------------------------------------------ below the list */

static void draw_typing(const struct board_view *view, struct cells *cells, int row)
{
    int column = cells_put(cells, row, 0, cells->columns - 1, CELL_BOLD, SLICE("/"));

    column = cells_put(cells, row, column, cells->columns - 1, CELL_PLAIN,
                       buf_slice(&view->filter));
    column = cells_put(cells, row, column, cells->columns, CELL_REVERSE, SLICE(" "));
    (void)cells_put_right(cells, row, column + GAP_COLUMNS, cells->columns, CELL_DIM,
                          SLICE("Enter keeps it, Esc clears it"));
}

/* What can be typed; where there is no room for all, without those of the highest rank. */
static void draw_keys(const struct board_view *view, struct cells *cells, int row, int column,
                      int end)
{
    const struct {
        const char *text;
        int rank;
    } keys[] = {
        {"q quit", 0},
        {"j/k select", 4},
        {"Enter show", 4},
        {"/ filter", 1},
        {view->rows.grouping == BOARD_BY_STATE ? "g by host" : "g by state", 2},
        {"r retry", 3},
        {"? help", 0},
    };
    char memory[128];
    struct buf text;

    for (int rank = 4; rank >= 0; rank--) {
        buf_init_fixed(&text, memory, sizeof(memory));
        for (size_t i = 0; i < ARRAY_COUNT(keys); i++) {
            if (keys[i].rank <= rank) {
                buf_append_format(&text, "%s%s", text.len > 0 ? "  " : "", keys[i].text);
            }
        }
        if (cells_width(cells, buf_slice(&text)) <= end - column) {
            break;
        }
    }
    (void)cells_put(cells, row, column, end, CELL_DIM, buf_slice(&text));
}

static void draw_footer(const struct board_view *view, struct cells *cells, int row)
{
    const struct board_rows *rows = &view->rows;
    char place[64];
    int column = 0;
    int end = cells->columns;

    if (view->mode == BOARD_VIEW_TYPING) {
        draw_typing(view, cells, row);
        return;
    }
    if (view->mode != BOARD_VIEW_LIST) {
        (void)cells_put(cells, row, 0, end, CELL_DIM, SLICE("any key goes back"));
        return;
    }
    if (rows->selected != NULL) {
        (void)snprintf(place, sizeof(place), "%zu/%zu", rows->selected->shown_at + 1,
                       rows->shown_count);
        end = cells_put_right(cells, row, 0, end, CELL_DIM, slice_of(place)) - 1;
    }
    if (view->filter.len > 0) {
        column = cells_put(cells, row, 0, end, CELL_BOLD, SLICE("/"));
        column = cells_put(cells, row, column, end, CELL_PLAIN, buf_slice(&view->filter));
        column = cells_put(cells, row, column + GAP_COLUMNS, end, CELL_DIM, SLICE("Esc clear"));
        column += GAP_COLUMNS;
    }
    draw_keys(view, cells, row, column, end);
}

void board_view_draw(struct board_view *view, struct cells *cells, int64_t now_ms)
{
    bool footer = cells->rows >= 2 || view->mode == BOARD_VIEW_TYPING;
    int end = cells->rows - (footer ? 1 : 0);
    int row = 0;

    board_rows_sort(&view->rows);
    cells_clear(cells);
    if (cells->rows >= 4) {
        draw_heading(view, cells);
        row = board_draw_hosts(view, cells, 1);
    }
    if (view->mode == BOARD_VIEW_HELP) {
        draw_help(cells, row, end);
    } else if (view->mode == BOARD_VIEW_DETAIL) {
        draw_detail(view, cells, row, end, now_ms);
    } else {
        draw_list(view, cells, row, end, now_ms);
    }
    if (footer) {
        draw_footer(view, cells, cells->rows - 1);
    }
}
