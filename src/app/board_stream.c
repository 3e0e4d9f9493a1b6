/* A reader is a number: it has been told all changes up to there, and is told the next ones when
 * its output has room. One that is slow is behind, holds nothing but that number, and gets each row
 * as it is by then. Only what is gone can be missed, when its tombstone is: then the reader begins
 * anew, as one does whose cursor is of another life of the server. */
#include "app/board_stream.h"

#include "serve/event_stream.h"
#include "serve/handlers.h"
#include "serve/reply.h"

#include <stdlib.h>

#define FRAME_BYTES 16384u /* events of a chunk: the lock is held while they are written */
#define RETRY_MS    "1000" /* after the end of an answer a browser asks again so soon */

struct reader {
    struct board_reader waiter;
    struct board_keeper *keeper;
    struct exchange *x;
    uint64_t at;    /* it was told all changes up to here */
    uint64_t began; /* when it began anew: what had gone by then it has never seen */
    bool fresh;     /* nothing was sent yet */
    bool anew;      /* to be told that it begins anew */
    bool current;   /* it was told that it knows all */
    bool waits;     /* for a change */
};

static struct reader *reader_of(struct exchange *x)
{
    return x->live_own;
}

static void begin_anew(struct reader *r, const struct board_state *state)
{
    r->at = 0;
    r->began = board_state_number(state);
    r->anew = true;
    r->current = false;
}

static void append_id(const struct reader *r, struct buf *out)
{
    const struct board_cursor cursor = {board_keeper_epoch(r->keeper), r->at};
    char text[BOARD_CURSOR_BYTES];

    board_cursor_format(&cursor, text);
    buf_append_format(out, "id: %s\n\n", text);
}

/* Appends what changed, until a frame is full or the reader knows all: then true. */
static bool append_changes(struct reader *r, const struct board_state *state, struct buf *out)
{
    const struct board_item *item = board_state_after(state, r->at);
    const size_t end = out->len + FRAME_BYTES;

    for (; item != NULL; item = board_state_later(item)) {
        if (out->len >= end || out->failed) {
            return false;
        }
        r->at = item->number;
        if (item->kind != BOARD_GONE || item->number > r->began) {
            buf_append(out, item->event);
        }
    }
    if (!r->current) {
        r->current = true;
        r->at = board_state_number(state);
        buf_append(out, SLICE("event: current\ndata: {}\n"));
        append_id(r, out);
    }
    return true;
}

/* Appends what there is to tell, a frame at most. When that is all, the reader waits. */
static void fill(struct reader *r, struct buf *out)
{
    const struct board_state *state = board_keeper_lock(r->keeper);

    if (!board_state_knows(state, r->at > r->began ? r->at : r->began)) {
        begin_anew(r, state);
    }
    if (r->fresh) {
        buf_append(out, SLICE("retry: " RETRY_MS "\n\n"));
    }
    if (r->anew) {
        buf_append(out, SLICE("event: reset\ndata: {}\n\n"));
    }
    r->fresh = false;
    r->anew = false;
    r->waits = append_changes(r, state, out);
    if (r->waits) {
        board_keeper_wait(r->keeper, &r->waiter);
    }
    board_keeper_unlock(r->keeper);
}

/* Feeds the reader until it waits for a change, or for its output. */
static void pump(struct exchange *x)
{
    struct reader *r = reader_of(x);

    while (!r->waits && conn_output_bytes(&x->session->conn) <= EVENT_STREAM_OUTPUT_BYTES_MAX) {
        struct buf *out = event_stream_chunk(x);
        const size_t begin = out->len;

        fill(r, out);
        if ((out->failed || out->len > begin) && !event_stream_send(x)) {
            return;
        }
    }
}

static void wake(struct task *task)
{
    struct reader *r = container_of(task, struct reader, waiter.task);
    struct session *s = r->x->session;

    board_reader_woken(&r->waiter);
    r->waits = false;
    pump(r->x);
    session_advance(s);
}

static void ended(struct exchange *x)
{
    struct reader *r = reader_of(x);

    board_keeper_leave(r->keeper, &r->waiter);
    live_leave(x);
    x->live_own = NULL;
    free(r);
}

static void answer_head(struct exchange *x)
{
    reply_begin(x, 200, SLICE("no-cache, no-store"));
    reply_literal(x, SLICE("Content-Type"), SLICE("text/event-stream"));
    reply_send_bare(x);
}

bool board_stream_begin(struct board_keeper *keeper, struct exchange *x,
                        const struct board_cursor *from)
{
    static const struct exchange_live live_ops = {
        .tick = event_stream_tick, .drained = pump, .stop = event_stream_finish};

    if (x->head_only) {
        answer_head(x);
        return true;
    }
    struct reader *r = calloc(1, sizeof(*r));

    if (r == NULL) {
        return false;
    }
    r->keeper = keeper;
    r->x = x;
    r->fresh = true;
    r->waiter.task.run = wake;
    r->waiter.loop = x->worker->loop;
    board_reader_init(&r->waiter);
    if (from != NULL && from->epoch == board_keeper_epoch(keeper)) {
        r->at = from->number;
    } else {
        begin_anew(r, board_keeper_lock(keeper));
        board_keeper_unlock(keeper);
    }
    x->query.live = QUERY_SSE;
    if (!live_enter(x, &live_ops)) {
        free(r);
        return true;
    }
    x->live_own = r;
    x->ended = ended;
    exchange_rest(x); /* no stream is read */
    if (event_stream_begin(x, (struct slice){NULL, 0})) {
        pump(x);
    }
    return true;
}
