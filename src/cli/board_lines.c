/* An entry for each row that is on the board, and for each that went and of which that must still
 * be told; it is on the queue while its line waits. A row that comes and goes before anybody read
 * of it was never there. */
#include "cli/board_lines.h"

#include "base/err.h"
#include "base/json.h"
#include "base/limits.h"
#include "cli/board_rows.h"
#include "cli/cells.h"
#include "t3/row_json.h"

#include <stdlib.h>

#define LINE_BYTES_MAX (4u * MIB) /* far above what a row can be */

struct waiting {
    struct map_node node;
    struct list known;  /* of lines.known */
    struct list queued; /* of lines.queue; alone: nothing waits */
    char *line;         /* owned; NULL: nothing waits */
    size_t len;
    bool told; /* something of it was taken */
    bool gone; /* and is to be forgotten once that was taken */
    size_t key_len;
    char key[]; /* host, a NUL, and the id of the thread; of a host nothing behind its label */
};

void board_lines_init(struct board_lines *lines, enum board_form form, uint64_t seed)
{
    *lines = (struct board_lines){.form = form, .seed = seed};
    list_init(&lines->queue);
    list_init(&lines->known);
    map_init(&lines->map);
}

static void forget(struct board_lines *lines, struct waiting *w)
{
    map_remove(&lines->map, &w->node);
    list_remove(&w->known);
    list_remove(&w->queued);
    free(w->line);
    free(w);
}

void board_lines_finish(struct board_lines *lines)
{
    LIST_FOR_EACH(node, &lines->known)
    {
        forget(lines, container_of(node, struct waiting, known));
    }
    map_finish(&lines->map);
}

/* ------------------------------------------------------------------ lines */

static void add_member(struct buf *out, struct slice name, const char *text)
{
    buf_append(out, name);
    json_append_string(out, slice_of(text));
}

void board_lines_format_host(struct buf *out, const struct t3_watch_host *host)
{
    add_member(out, SLICE("{\"type\":\"host\",\"host\":"), host->label);
    add_member(out, SLICE(",\"state\":"), t3_reader_state_name(host->state));
    buf_append(out, host->full ? SLICE(",\"full\":true") : SLICE(",\"full\":false"));
    if (host->error.code != T3_RPC_OK) {
        add_member(out, SLICE(",\"error\":{\"code\":"), t3_rpc_code_name(host->error.code));
        add_member(out, SLICE(",\"message\":"), host->error.message);
        buf_append(out, SLICE("}}\n"));
    } else {
        buf_append(out, SLICE(",\"error\":null}\n"));
    }
}

static void format_json(struct buf *out, const struct t3_board_row *row, bool gone)
{
    if (gone) {
        size_t start = out->len;

        t3_row_key_json(out, row);
        if (!out->failed) {
            out->ptr[start] = ','; /* its members follow the type */
            buf_append(out, SLICE("\n"));
        }
        return;
    }
    t3_row_json(out, row);
    buf_append(out, SLICE("}\n"));
}

static struct slice slice_from(struct t3_board_text text)
{
    return (struct slice){text.data, text.len};
}

/* `dated`: with the time. */
static void format_plain(struct buf *out, const struct t3_board_row *row, bool gone, bool dated)
{
    cells_clean(out, slice_from(row->host));
    buf_append(out, SLICE("  "));
    cells_clean(out, gone                  ? SLICE("gone")
                     : row->asks           ? SLICE(BOARD_ASKING)
                     : row->state.len == 0 ? SLICE("unknown")
                                           : slice_from(row->state));
    buf_append(out, SLICE("  "));
    if (dated) {
        cells_clean(out, row->last_turn_at.len == 0 ? SLICE("-") : slice_from(row->last_turn_at));
        buf_append(out, SLICE("  "));
    }
    cells_clean(out, row->title.len == 0 ? SLICE("(no title)") : slice_from(row->title));
    if (!gone && row->last_message_snippet.len > 0) {
        buf_append(out, SLICE(" \u2014 "));
        cells_clean(out, slice_from(row->last_message_snippet));
    }
    buf_append(out, SLICE("\n"));
}

void board_lines_format_row(struct buf *out, enum board_form form, const struct t3_board_row *row,
                            bool gone)
{
    if (form == BOARD_PLAIN) {
        format_plain(out, row, gone, false);
    } else {
        buf_append(out, gone ? SLICE("{\"type\":\"gone\"") : SLICE("{\"type\":\"row\",\"row\":"));
        format_json(out, row, gone);
    }
}

void board_lines_format_dated(struct buf *out, enum board_form form, const struct t3_board_row *row)
{
    if (form == BOARD_PLAIN) {
        format_plain(out, row, false, true);
    } else {
        board_lines_format_row(out, form, row, false);
    }
}

/* ------------------------------------------------------------------ the queue */

static struct waiting *find(const struct board_lines *lines, struct slice key)
{
    struct map_node *node = map_find(&lines->map, slice_hash(key, lines->seed));

    for (; node != NULL; node = map_find_next(node)) {
        struct waiting *w = container_of(node, struct waiting, node);

        if (slice_equal((struct slice){w->key, w->key_len}, key)) {
            return w;
        }
    }
    return NULL;
}

static struct waiting *make(struct board_lines *lines, struct slice key)
{
    struct waiting *w = calloc(1, sizeof(*w) + key.len);

    if (w == NULL || map_insert(&lines->map, &w->node, slice_hash(key, lines->seed)) != 0) {
        free(w);
        return NULL;
    }
    memcpy(w->key, key.ptr, key.len);
    w->key_len = key.len;
    list_init(&w->queued);
    list_append(&lines->known, &w->known);
    return w;
}

/* Puts `line` in the place of what waits, and behind all else if nothing did. The entry is made
 * where there is none. */
static int enqueue(struct board_lines *lines, struct slice key, struct slice line, bool gone)
{
    struct waiting *w = find(lines, key);
    char *copy = malloc(line.len);

    w = w == NULL && copy != NULL ? make(lines, key) : w;
    if (copy == NULL || w == NULL) {
        free(copy);
        return ERR_NOMEM;
    }
    memcpy(copy, line.ptr, line.len);
    free(w->line);
    w->line = copy;
    w->len = line.len;
    w->gone = gone;
    if (list_empty(&w->queued)) {
        list_append(&lines->queue, &w->queued);
    }
    return 0;
}

int board_lines_row(struct board_lines *lines, const struct t3_board_row *row, bool gone)
{
    char memory[T3_HOST_BYTES_MAX + 1 + T3_ID_BYTES_MAX + 2];
    struct buf key;
    struct buf line;

    buf_init_fixed(&key, memory, sizeof(memory));
    buf_append(&key, slice_from(row->host));
    buf_append_char(&key, '\0');
    buf_append(&key, slice_from(row->thread_id));
    struct waiting *w = find(lines, buf_slice(&key));

    if (gone && (w == NULL || !w->told)) {
        if (w != NULL) {
            forget(lines, w);
        }
        return 0;
    }
    buf_init(&line, LINE_BYTES_MAX);
    board_lines_format_row(&line, lines->form, row, gone);
    int code = line.failed ? ERR_NOMEM : enqueue(lines, buf_slice(&key), buf_slice(&line), gone);

    buf_finish(&line);
    return code;
}

int board_lines_host(struct board_lines *lines, const struct t3_watch_host *host)
{
    const struct slice key = slice_of(host->label);
    struct waiting *w = find(lines, key);
    struct buf line;

    if (lines->form == BOARD_PLAIN) {
        return 0;
    }
    if (w != NULL) {
        list_remove(&w->queued);
    }
    buf_init(&line, LINE_BYTES_MAX);
    board_lines_format_host(&line, host);
    int code = line.failed ? ERR_NOMEM : enqueue(lines, key, buf_slice(&line), false);

    buf_finish(&line);
    return code;
}

bool board_lines_take(struct board_lines *lines, struct buf *out)
{
    struct list *first = list_first(&lines->queue);

    if (first == NULL) {
        return false;
    }
    struct waiting *w = container_of(first, struct waiting, queued);

    buf_append(out, (struct slice){w->line, w->len});
    list_remove(&w->queued);
    free(w->line);
    w->line = NULL;
    w->told = true;
    if (w->gone) {
        forget(lines, w);
    }
    return true;
}
