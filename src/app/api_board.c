/* The board of T3 threads, for whoever is signed in: it is the server's, and no house's. */
#include "app/handlers.h"

#include "app/app.h"
#include "app/board_stream.h"
#include "app/grants.h"
#include "app/paging.h"

#define ROWS_DEFAULT 200u

static void put_hosts(struct api_call *c, const struct board_state *state)
{
    buf_append(&c->answer, SLICE("\"hosts\":["));
    for (size_t i = 0; i < board_state_host_count(state); i++) {
        paging_item(c, i);
        buf_append(&c->answer, board_state_host_at(state, i)->json);
    }
    buf_append_char(&c->answer, ']');
}

/* At least one row, if there is one, so that whoever pages gets on. A page is full by its rows: the
 * hosts, which stand in each, would else leave room for one. */
static void put_rows(struct api_call *c, const struct board_state *state,
                     const struct board_place *after, size_t limit)
{
    const struct board_item *row = board_state_behind(state, after);
    const struct board_item *last = NULL;
    size_t end = c->answer.len + API_PAGE_BYTES_MAX;

    buf_append(&c->answer, SLICE("\"rows\":["));
    for (size_t i = 0; row != NULL && i < limit && (i == 0 || c->answer.len < end); i++) {
        paging_item(c, i);
        buf_append(&c->answer, row->json);
        last = row;
        row = board_state_next(row);
    }
    buf_append(&c->answer, SLICE("],\"nextAfter\":"));
    if (row == NULL) {
        buf_append(&c->answer, SLICE("null"));
    } else {
        buf_append_char(&c->answer, '"');
        board_place_format(&last->place, &c->answer);
        buf_append_char(&c->answer, '"');
    }
}

int board_get(struct api_call *c)
{
    struct params p;
    struct board_place place;
    char memory[BOARD_PLACE_BYTES_MAX];
    char cursor[BOARD_CURSOR_BYTES];

    params_begin(&p, c->query, &c->memory, &c->error);
    struct slice after = params_text(&p, "after", 2 * BOARD_PLACE_BYTES_MAX);
    size_t limit = (size_t)params_number(&p, "limit", 1, BOARD_PAGE_MAX, ROWS_DEFAULT);

    if (params_end(&p) != 0) {
        return API_FAILED;
    }
    if (after.ptr != NULL && !board_place_parse(after, memory, &place)) {
        (void)api_refuse(c, API_INVALID_INPUT, "after must be the nextAfter of a page");
        return api_error_set_field(&c->error, "after");
    }
    const struct board_state *state = board_keeper_lock(c->app->board);
    const struct board_cursor now = {board_keeper_epoch(c->app->board), board_state_number(state)};

    board_cursor_format(&now, cursor);
    buf_append_format(&c->answer, "{\"cursor\":\"%s\",", cursor);
    put_hosts(c, state);
    buf_append_char(&c->answer, ',');
    put_rows(c, state, after.ptr == NULL ? NULL : &place, limit);
    board_keeper_unlock(c->app->board);
    buf_append_char(&c->answer, '}');
    return api_answer(c, 200);
}

/* On the worker, with the exchange in hand. What is taken away from here on ends the answer, by
 * app_revoke; what was taken away since the request came would be missed. */
static void begin_stream(struct api_call *c)
{
    if (grants_epoch(c->app->grants) != c->epoch) {
        api_look_again(c);
    } else if (!board_stream_begin(c->app->board, c->x, c->work)) {
        api_refuse_now(c->x, API_BUSY, "the server has no memory for this just now");
    }
}

/* What the caller has seen, as it says: a browser that comes again does so by the header, while its
 * URL stays what it was. In a header, what is no cursor of ours is as good as none; `after`
 * somebody wrote. */
static int read_from(struct api_call *c, struct slice after, struct board_cursor *ret_from,
                     bool *ret_given)
{
    size_t count = 0;
    struct slice id = http_request_header(exchange_request(c->x), SLICE("last-event-id"), &count);

    if (count > 0 && id.len > 0) {
        *ret_given = board_cursor_parse(id, ret_from);
        return API_DONE;
    }
    *ret_given = after.ptr != NULL;
    if (after.ptr != NULL && !board_cursor_parse(after, ret_from)) {
        (void)api_refuse(c, API_INVALID_INPUT, "after must be a cursor of the board");
        return api_error_set_field(&c->error, "after");
    }
    return API_DONE;
}

int board_stream(struct api_call *c)
{
    struct params p;
    struct board_cursor *from = arena_try_alloc(&c->memory, sizeof(*from));
    bool given = false;

    params_begin(&p, c->query, &c->memory, &c->error);
    struct slice after = params_text(&p, "after", BOARD_CURSOR_BYTES);

    if (params_end(&p) != 0) {
        return API_FAILED;
    }
    if (from == NULL) {
        return api_refuse(c, API_BUSY, "the server has no memory for this just now");
    }
    if (read_from(c, after, from, &given) != API_DONE) {
        return API_FAILED;
    }
    c->work = given ? from : NULL;
    c->handover = begin_stream;
    return API_HANDOVER;
}
