/* Lines of the list are numbered: a heading for each group, and below it its rows. The first line
 * that is seen is always a heading, that of the group which the second one belongs to, so that one
 * always sees what one looks at. */
#include "cli/board_view.h"

#include "base/err.h"
#include "base/utf8.h"

#include <stdlib.h>

void board_view_init(struct board_view *view, uint64_t seed)
{
    *view = (struct board_view){.page = 1};
    board_rows_init(&view->rows, seed);
    buf_init_fixed(&view->filter, view->filter_bytes, sizeof(view->filter_bytes));
}

void board_view_finish(struct board_view *view)
{
    board_rows_finish(&view->rows);
    free(view->hosts);
    view->hosts = NULL;
}

int board_view_add_host(struct board_view *view, const struct t3_watch_host *host)
{
    const struct t3_watch_host **hosts = realloc(view->hosts,
                                                 (view->host_count + 1) * sizeof(*hosts));

    view->hosts = hosts != NULL ? hosts : view->hosts;
    if (hosts == NULL || board_rows_add_host(&view->rows, slice_of(host->label)) != 0) {
        return ERR_NOMEM;
    }
    hosts[view->host_count++] = host;
    return 0;
}

/* ------------------------------------------------------------------ the list */

/* Selects the row so many below the selected one; where none is, the first move selects the first
 * row. */
static void move(struct board_view *view, int by)
{
    struct board_rows *rows = &view->rows;

    board_rows_sort(rows);
    size_t at = rows->selected != NULL ? rows->selected->shown_at : 0;

    if (rows->selected == NULL) {
        by -= by > 0 ? 1 : 0;
    }
    if (by < 0) {
        at = at > (size_t)-by ? at - (size_t)-by : 0;
    } else {
        at += (size_t)by;
    }
    board_rows_select(rows, at);
}

static bool moves(struct board_view *view, const struct keypress *key)
{
    char letter = key->kind == KEYPRESS_CONTROL ? key->text[0] : '\0';
    int page = view->page > 2 ? view->page - 2 : 1;

    if (key->kind == KEYPRESS_UP || letter == 'p') {
        move(view, -1);
    } else if (key->kind == KEYPRESS_DOWN || letter == 'n') {
        move(view, 1);
    } else if (key->kind == KEYPRESS_PAGE_UP || letter == 'b') {
        move(view, -page);
    } else if (key->kind == KEYPRESS_PAGE_DOWN || letter == 'f') {
        move(view, page);
    } else if (key->kind == KEYPRESS_HOME) {
        board_rows_select(&view->rows, 0);
    } else if (key->kind == KEYPRESS_END) {
        board_rows_select(&view->rows, BOARD_NONE - 1);
    } else {
        return false;
    }
    return true;
}

static void set_filter(struct board_view *view)
{
    board_rows_set_filter(&view->rows, buf_slice(&view->filter));
}

static void clear_filter(struct board_view *view)
{
    buf_clear(&view->filter);
    set_filter(view);
}

/* Esc takes back what was done last: the filter, or else the selection. */
static void step_back(struct board_view *view)
{
    if (view->filter.len > 0) {
        clear_filter(view);
    } else {
        board_rows_select(&view->rows, BOARD_NONE);
    }
}

static enum board_view_wish list_letter(struct board_view *view, char letter)
{
    switch (letter) {
    case 'q':
        return BOARD_VIEW_QUIT;
    case 'r':
        return BOARD_VIEW_RETRY;
    case '/':
        view->mode = BOARD_VIEW_TYPING;
        break;
    case '?':
        view->mode = BOARD_VIEW_HELP;
        break;
    case 'g':
        board_rows_set_grouping(
            &view->rows, view->rows.grouping == BOARD_BY_STATE ? BOARD_BY_HOST : BOARD_BY_STATE);
        break;
    case 'G':
        board_rows_select(&view->rows, BOARD_NONE - 1);
        break;
    case 'j':
        move(view, 1);
        break;
    case 'k':
        move(view, -1);
        break;
    case ' ':
        move(view, view->page > 2 ? view->page - 2 : 1);
        break;
    default:
        break;
    }
    return BOARD_VIEW_GO_ON;
}

static enum board_view_wish list_key(struct board_view *view, const struct keypress *key)
{
    if (key->kind == KEYPRESS_TEXT && key->len == 1) {
        return list_letter(view, key->text[0]);
    }
    if (key->kind == KEYPRESS_ESCAPE) {
        step_back(view);
    } else if (key->kind == KEYPRESS_ENTER) {
        board_rows_sort(&view->rows);
        view->mode = view->rows.selected != NULL ? BOARD_VIEW_DETAIL : view->mode;
    }
    return BOARD_VIEW_GO_ON;
}

/* ------------------------------------------------------------------ the filter */

static void drop_character(struct board_view *view)
{
    struct buf *b = &view->filter;

    while (b->len > 0 && ((unsigned char)b->ptr[b->len - 1] & 0xc0) == 0x80) {
        b->len--;
    }
    b->len -= b->len > 0 ? 1 : 0;
}

static void drop_word(struct board_view *view)
{
    struct buf *b = &view->filter;

    while (b->len > 0 && b->ptr[b->len - 1] == ' ') {
        b->len--;
    }
    while (b->len > 0 && b->ptr[b->len - 1] != ' ') {
        b->len--;
    }
}

static void typing_key(struct board_view *view, const struct keypress *key)
{
    struct buf *b = &view->filter;
    char letter = key->kind == KEYPRESS_CONTROL ? key->text[0] : '\0';

    if (key->kind == KEYPRESS_ENTER) {
        view->mode = BOARD_VIEW_LIST;
    } else if (key->kind == KEYPRESS_ESCAPE || (key->kind == KEYPRESS_BACKSPACE && b->len == 0)) {
        view->mode = BOARD_VIEW_LIST;
        clear_filter(view);
    } else if (key->kind == KEYPRESS_BACKSPACE) {
        drop_character(view);
        set_filter(view);
    } else if (letter == 'u') {
        clear_filter(view);
    } else if (letter == 'w') {
        drop_word(view);
        set_filter(view);
    } else if (key->kind == KEYPRESS_TEXT && b->len + key->len <= BOARD_FILTER_BYTES_MAX) {
        buf_append(b, (struct slice){key->text, key->len});
        set_filter(view);
    }
}

enum board_view_wish board_view_key(struct board_view *view, const struct keypress *key)
{
    if (key->kind == KEYPRESS_UNKNOWN) {
        return BOARD_VIEW_GO_ON;
    }
    if (key->kind == KEYPRESS_CONTROL && key->text[0] == 'l') {
        return BOARD_VIEW_REPAINT;
    }
    if (view->mode == BOARD_VIEW_HELP || view->mode == BOARD_VIEW_DETAIL) {
        view->mode = BOARD_VIEW_LIST;
        return BOARD_VIEW_GO_ON;
    }
    if (moves(view, key)) {
        return BOARD_VIEW_GO_ON;
    }
    if (view->mode == BOARD_VIEW_TYPING) {
        typing_key(view, key);
        return BOARD_VIEW_GO_ON;
    }
    return list_key(view, key);
}
