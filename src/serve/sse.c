/* Server-sent events (PROTOCOL.md 5.8). The reader moves along its stream by position: a frame
 * (a data event and its control event) at a time, the next one only when the output has
 * drained, and at the tail it waits. What it holds is therefore bounded, and a slow reader
 * resumes from where it is.
 *
 * At the tail, the first reader that an append wakes encodes the frame and leaves it with the
 * stream; the others send the same block. A frame is framed as an HTTP chunk once, for all: a
 * size line of fixed width before it, CRLF behind it. HTTP/1.0 readers get the inside of the
 * block.
 *
 * Text whose last character is not whole yet is sent without it; `at` stays before it, and `seen`
 * says that there is nothing to look for until more bytes come, or the end of the stream, which
 * sends it as it is. */
#include "serve/handlers.h"

#include "http/sse.h"
#include "serve/page.h"
#include "serve/problem.h"

#include <stdio.h>
#include <stdlib.h>

#define PAGE_BYTES_MAX   (64 * KIB) /* a slow reader gets one event at a time and holds little */
#define PAGE_BYTES_MIN   8          /* a character or a line end always fits with room to spare */
#define OUTPUT_BYTES_MAX (64 * KIB) /* queued; above it the reader is not fed until it drains */
#define STALL_MS         60000      /* a reader that takes nothing for so long is dropped */
#define FRAME_BYTES_KEPT (1 * MIB)  /* a larger frame's memory is given back */
#define CHUNK_LINE       10         /* eight hex digits and CRLF */
#define CHUNK_END        2          /* CRLF */

static void pump(struct exchange *x);

uint32_t sse_page_bytes(const struct exchange *x)
{
    uint32_t page = x->worker->server->config->read_page_bytes;

    if (page < PAGE_BYTES_MIN) {
        return PAGE_BYTES_MIN;
    }
    return page < PAGE_BYTES_MAX ? page : PAGE_BYTES_MAX;
}

static void finish_stream(struct exchange *x)
{
    struct session *s = x->session;

    if (x->chunked_ok && conn_send_copy(&s->conn, SLICE("0\r\n\r\n")) != 0) {
        session_drop(s);
        return;
    }
    x->keep = false;
    reply_done(x);
}

/* Begins a chunk in the worker's frame buffer. */
static struct buf *begin_chunk(struct exchange *x)
{
    struct buf *out = &x->worker->frame;

    if (out->cap > FRAME_BYTES_KEPT) {
        buf_finish(out);
    }
    buf_clear(out);
    buf_append(out, SLICE("00000000\r\n"));
    return out;
}

static void end_chunk(struct buf *out)
{
    char line[CHUNK_LINE + 1];

    if (out->failed) {
        return;
    }
    (void)snprintf(line, sizeof(line), "%08zx\r\n", out->len - CHUNK_LINE);
    memcpy(out->ptr, line, CHUNK_LINE);
    buf_append(out, SLICE("\r\n"));
}

/* What of a chunk this reader gets. */
static struct slice visible(const struct exchange *x, struct slice chunk)
{
    if (x->chunked_ok) {
        return chunk;
    }
    return (struct slice){chunk.ptr + CHUNK_LINE, chunk.len - CHUNK_LINE - CHUNK_END};
}

static void note_sent(struct exchange *x)
{
    x->live.sent_ms = loop_now_ms(x->worker->loop);
}

/* Sends the chunk that stands in the frame buffer. False: the session is gone. */
static bool send_chunk(struct exchange *x)
{
    struct buf *out = &x->worker->frame;

    end_chunk(out);
    if (out->failed || conn_send_copy(&x->session->conn, visible(x, buf_slice(out))) != 0) {
        session_drop(x->session);
        return false;
    }
    reply_count(x, out->len - CHUNK_LINE - CHUNK_END);
    note_sent(x);
    return true;
}

static bool send_block(struct exchange *x, struct block *frame)
{
    struct slice chunk = {frame->data, frame->len};

    if (conn_send_block(&x->session->conn, frame, visible(x, chunk)) != 0) {
        session_drop(x->session);
        return false;
    }
    reply_count(x, chunk.len - CHUNK_LINE - CHUNK_END);
    note_sent(x);
    return true;
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

/* Sends a page as one frame, and leaves it with the stream when others may want the same. */
static bool send_page(struct exchange *x, const struct stream_page *page)
{
    struct buf *out = begin_chunk(x);

    if (!append_data(x, page)) {
        session_drop(x->session);
        return false;
    }
    append_control(x, page);
    /* A reader with a cursor of its own, and one that is behind, have frames that nobody shares. */
    bool shared = page->up_to_date &&
                  !cursor_is_ahead(&x->query.cursor, loop_wall_ms(x->worker->loop));

    if (!shared) {
        return send_chunk(x);
    }
    end_chunk(out);
    struct block *frame = out->failed ? NULL : block_try_create(out->len);

    if (frame == NULL) {
        session_drop(x->session);
        return false;
    }
    memcpy(frame->data, out->ptr, out->len);
    frame->len = (uint32_t)out->len;
    stream_frame_put(x->live.stream, page->start, page->next, page->closed, frame);
    return send_block(x, frame);
}

/* What a read found goes out. False: the session is gone, or the stream has ended. */
static bool send_result(struct exchange *x, bool first)
{
    struct stream_page *page = &x->op.result.page;
    bool closed = page->closed;
    bool good = true;

    if (page->gone) {
        finish_stream(x);
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
        (void)begin_chunk(x);
        append_control(x, page);
        good = send_chunk(x);
    }
    if (!good) {
        return false;
    }
    stream_page_finish(page);
    if (closed) {
        finish_stream(x);
        return false;
    }
    return true;
}

static void looked(struct exchange *x)
{
    if (x->op.result.code != 0) {
        /* It is too late for a status: the connection ends without the last chunk, as for any
         * answer that could not be completed. */
        tally_error(&x->worker->tally, x->op.result.code);
        session_drop(x->session);
        return;
    }
    if (!send_result(x, false)) {
        return;
    }
    if (loop_now_ms(x->worker->loop) >= x->live.end_ms) {
        finish_stream(x);
    } else {
        pump(x);
    }
}

static void look(struct exchange *x)
{
    x->op = (struct stream_op){
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
    *ret_over = !send_block(x, frame);
    if (!*ret_over && closed) {
        *ret_over = true;
        finish_stream(x);
    }
    return true;
}

/* Feeds the reader until it waits for bytes, for its output, or for a read. */
static void pump(struct exchange *x)
{
    struct live *live = &x->live;
    bool over = false;

    while (conn_output_bytes(&x->session->conn) <= OUTPUT_BYTES_MAX) {
        uint64_t from = live->seen > live->at ? live->seen : live->at;

        live->waiter = (struct stream_waiter){.wake = wake, .from = from};
        int code = stream_wait(x->worker->engine, live->stream, &live->waiter);

        if (code == 0) {
            live->waiting = true;
            return;
        }
        if (code == ERR_LIMIT) {
            tally_error(&x->worker->tally, code);
            finish_stream(x); /* it is too late for a status; the client comes again */
            return;
        }
        if (code != STREAM_PENDING) {
            session_drop(x->session);
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

static void arm(struct exchange *x)
{
    uint64_t now = loop_now_ms(x->worker->loop);
    uint64_t due = x->live.sent_ms + x->worker->server->config->sse_heartbeat_ms;

    if (due > x->live.end_ms) {
        due = x->live.end_ms;
    }
    session_set_deadline(x->session, due > now ? due - now : 1);
}

/* Ten per cent more or less, so that readers that came together do not come back together. */
static uint64_t lifetime_ms(struct exchange *x)
{
    uint64_t base = x->worker->server->config->sse_lifetime_ms;
    uint64_t spread = base / 5;

    return base - spread / 2 + (spread == 0 ? 0 : worker_random(x->worker) % spread);
}

static bool send_head(struct exchange *x)
{
    x->keep = false; /* its end is the connection's end */
    reply_begin(x, 200, SLICE("no-cache, no-store"));
    reply_literal(x, SLICE("Content-Type"), SLICE("text/event-stream"));
    reply_literal(x, SLICE("X-Accel-Buffering"), SLICE("no"));
    if (x->live.encoding == SSE_BASE64) {
        reply_literal(x, SLICE("Stream-SSE-Data-Encoding"), SLICE("base64"));
    }
    if (x->chunked_ok) {
        reply_literal(x, SLICE("Transfer-Encoding"), SLICE("chunked"));
    }
    response_end_head(&x->worker->out);
    return reply_queue_head(x);
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
    finish_stream(x);
}

/* Whether the output has not moved for too long. */
static bool is_stalled(struct exchange *x)
{
    struct live *live = &x->live;
    size_t bytes = conn_output_bytes(&x->session->conn);
    uint64_t now = loop_now_ms(x->worker->loop);

    if (bytes == 0 || bytes != live->stalled_bytes) {
        live->stalled_bytes = bytes;
        live->stalled_ms = now;
    }
    return now - live->stalled_ms >= STALL_MS;
}

/* The deadline has come: a sign of life, or the end. */
static void tick(struct exchange *x)
{
    uint64_t now = loop_now_ms(x->worker->loop);

    if (is_stalled(x)) {
        session_drop(x->session);
        return;
    }
    if (now >= x->live.end_ms) {
        stop(x);
        return;
    }
    if (now - x->live.sent_ms >= x->worker->server->config->sse_heartbeat_ms) {
        if (conn_output_bytes(&x->session->conn) > 0) {
            note_sent(x); /* a reader that is behind needs no sign of life */
        } else {
            sse_append_heartbeat(begin_chunk(x));
            if (!send_chunk(x)) {
                return;
            }
        }
    }
    arm(x);
}

static const struct exchange_live live_ops = {.tick = tick, .drained = drained, .stop = stop};

void sse_begin(struct exchange *x)
{
    const struct stream_result *result = &x->op.result;
    struct session *s = x->session;

    if (!live_begin(x, &live_ops)) {
        return;
    }
    x->live.encoding = (uint8_t)sse_encoding_of(result->content_type);
    x->live.end_ms = loop_now_ms(x->worker->loop) + lifetime_ms(x);
    exchange_drop_head(x);
    if (!send_head(x)) {
        return;
    }
    note_sent(x);
    s->state = SESSION_LIVE;
    x->live.stalled_ms = x->live.sent_ms;
    arm(x);
    if (!s->gone && send_result(x, true)) {
        pump(x);
    }
}
