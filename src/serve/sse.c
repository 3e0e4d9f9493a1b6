/* Server-sent events (PROTOCOL.md 5.8). The reader moves along its stream by position: a frame
 * (a data event and its control event) at a time, the next one only when the output has
 * drained, and at the tail it waits. What it holds is therefore bounded, and a slow reader
 * resumes from where it is.
 *
 * At the tail, the first reader that an append wakes encodes the frame and leaves it with the
 * stream; the others send the same block (event_stream.h).
 *
 * Text whose last character is not whole yet is sent without it; `at` stays before it, and `seen`
 * says that there is nothing to look for until more bytes come, or the end of the stream, which
 * sends it as it is. */
#include "serve/handlers.h"

#include "http/sse.h"
#include "serve/event_stream.h"
#include "serve/page.h"
#include "serve/problem.h"

#include <stdlib.h>

#define PAGE_BYTES_MAX (64 * KIB) /* a slow reader gets one event at a time and holds little */
#define PAGE_BYTES_MIN 8          /* a character or a line end always fits with room to spare */

static void pump(struct exchange *x);

uint32_t sse_page_bytes(const struct exchange *x)
{
    uint32_t page = x->worker->server->config->read_page_bytes;

    if (page < PAGE_BYTES_MIN) {
        return PAGE_BYTES_MIN;
    }
    return page < PAGE_BYTES_MAX ? page : PAGE_BYTES_MAX;
}

static void append_control(struct exchange *x, const struct stream_page *page)
{
    char token[OFFSET_TOKEN_BYTES];
    struct sse_control control = {
        .next = {token, sizeof(token)},
        .up_to_date = page->up_to_date,
        .closed = page->closed,
    };

    offset_format(token, page->next);
    if (!page->closed) {
        control.cursor = cursor_next(&x->query.cursor, loop_wall_ms(x->worker->loop),
                                     worker_random(x->worker));
    }
    sse_append_control(&x->worker->frame, &control);
}

static bool append_data(struct exchange *x, const struct stream_page *page)
{
    struct slice few[16];
    struct slice *pieces = few;

    if (page->piece_count > ARRAY_COUNT(few)) {
        pieces = malloc(page->piece_count * sizeof(*pieces));
        if (pieces == NULL) {
            return false;
        }
    }
    for (size_t i = 0; i < page->piece_count; i++) {
        pieces[i] = (struct slice){page->pieces[i].ptr, page->pieces[i].len};
    }
    sse_append_data(&x->worker->frame, (enum sse_encoding)x->live.encoding, pieces,
                    page->piece_count);
    if (pieces != few) {
        free(pieces);
    }
    return true;
}

/* It is too late for a status: the connection ends without the last chunk, as for any answer that
 * could not be completed. */
static void fail(struct exchange *x, int code)
{
    tally_error(&x->worker->tally, code);
    session_drop(x->session);
}

/* Sends a page as one frame, and leaves it with the stream when others may want the same. */
static bool send_page(struct exchange *x, const struct stream_page *page)
{
    (void)event_stream_chunk(x); /* the worker's frame */
    if (!append_data(x, page)) {
        fail(x, ERR_NOMEM);
        return false;
    }
    append_control(x, page);
    /* A reader with a cursor of its own, and one that is behind, have frames that nobody shares. */
    bool shared = page->up_to_date &&
                  !cursor_is_ahead(&x->query.cursor, loop_wall_ms(x->worker->loop));

    if (!shared) {
        return event_stream_send(x);
    }
    struct block *frame = event_stream_block(x);

    if (frame == NULL) {
        fail(x, ERR_NOMEM);
        return false;
    }
    stream_frame_put(x->live.stream, page->start, page->next, page->closed, frame);
    return event_stream_send_block(x, frame);
}

/* What a read found goes out. False: the session is gone, or the stream has ended. */
static bool send_result(struct exchange *x, bool first)
{
    struct stream_page *page = &x->work->op.result.page;
    bool closed = page->closed;
    bool good = true;

    if (page->gone) {
        event_stream_finish(x);
        return false;
    }
    x->live.seen = page->next;
    if (x->live.encoding == SSE_TEXT && !closed) {
        page_trim_text(page, !page->up_to_date);
    }
    x->live.at = page->next;
    if (page->bytes > 0) {
        good = send_page(x, page);
    } else if (closed || first) {
        (void)event_stream_chunk(x);
        append_control(x, page);
        good = event_stream_send(x);
    }
    if (!good) {
        return false;
    }
    stream_page_finish(page);
    if (closed) {
        event_stream_finish(x);
        return false;
    }
    return true;
}

static void looked(struct exchange *x)
{
    if (x->work->op.result.code != 0) {
        fail(x, x->work->op.result.code);
        return;
    }
    if (!send_result(x, false)) {
        return;
    }
    if (loop_now_ms(x->worker->loop) >= x->live.end_ms) {
        event_stream_finish(x);
    } else {
        pump(x);
    }
}

static void look(struct exchange *x)
{
    if (x->work == NULL && !exchange_rise(x)) {
        fail(x, ERR_NOMEM);
        return;
    }
    x->work->op = (struct stream_op){
        .verb = STREAM_READ,
        .read = {.from = {.kind = OFFSET_AT, .position = x->live.at},
                 .stream = x->live.stream,
                 .in_memory = true,
                 .bytes_max = sse_page_bytes(x)},
    };
    x->finish = looked;
    exchange_run(x);
}

static void wake(struct stream_waiter *waiter)
{
    struct exchange *x = container_of(waiter, struct exchange, live.waiter);
    struct session *s = x->session;

    x->live.waiting = false;
    pump(x);
    session_advance(s);
}

/* The frame that somebody else made. True: sent, look again; false: there is none, or it is
 * over. */
static bool send_shared(struct exchange *x, bool *ret_over)
{
    struct live *live = &x->live;
    uint64_t to = 0;
    bool closed = false;

    *ret_over = false;
    if (cursor_is_ahead(&x->query.cursor, loop_wall_ms(x->worker->loop))) {
        return false;
    }
    struct block *frame = stream_frame_get(live->stream, live->at, &to, &closed);

    if (frame == NULL) {
        return false;
    }
    live->at = to;
    *ret_over = !event_stream_send_block(x, frame);
    if (!*ret_over && closed) {
        *ret_over = true;
        event_stream_finish(x);
    }
    return true;
}

/* Feeds the reader until it waits for bytes, for its output, or for a read. */
static void pump(struct exchange *x)
{
    struct live *live = &x->live;
    bool over = false;

    while (conn_output_bytes(&x->session->conn) <= EVENT_STREAM_OUTPUT_BYTES_MAX) {
        uint64_t from = live->seen > live->at ? live->seen : live->at;

        live->waiter = (struct stream_waiter){.wake = wake, .from = from};
        int code = stream_wait(x->worker->engine, live->stream, &live->waiter);

        if (code == 0) {
            live->waiting = true;
            exchange_rest(x);
            return;
        }
        if (code == ERR_LIMIT) {
            tally_error(&x->worker->tally, code);
            event_stream_finish(x); /* it is too late for a status; the client comes again */
            return;
        }
        if (code != STREAM_PENDING) {
            fail(x, code);
            return;
        }
        if (!send_shared(x, &over)) {
            look(x);
            return;
        }
        if (over) {
            return;
        }
    }
}

/* The output has drained: goes on feeding. */
static void drained(struct exchange *x)
{
    if (!x->running && !x->live.waiting) {
        pump(x);
    }
}

static void stop(struct exchange *x)
{
    if (x->running) {
        /* A read is under way: it is waited for, and no other follows. */
        x->live.end_ms = 0;
        return;
    }
    event_stream_finish(x);
}

static const struct exchange_live live_ops = {
    .tick = event_stream_tick, .drained = drained, .stop = stop};

void sse_begin(struct exchange *x)
{
    const struct stream_result *result = &x->work->op.result;

    if (!live_begin(x, &live_ops)) {
        return;
    }
    x->live.encoding = (uint8_t)sse_encoding_of(result->content_type);
    if (event_stream_begin(x, x->live.encoding == SSE_BASE64 ? SLICE("base64")
                                                             : (struct slice){NULL, 0}) &&
        send_result(x, true)) {
        pump(x);
    }
}
