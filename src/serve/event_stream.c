/* The deadline of the session is one for all: the next heartbeat or the end of the life, whichever
 * is first. */
#include "serve/event_stream.h"

#include "http/sse.h"
#include "serve/reply.h"

#define STALL_MS         60000     /* a reader that takes nothing for so long is dropped */
#define FRAME_BYTES_KEPT (1 * MIB) /* a larger frame's memory is given back */
#define CHUNK_DIGITS     8         /* hexadecimal */
#define CHUNK_LINE       10        /* they and CRLF */
#define CHUNK_END        2         /* CRLF */

void event_stream_finish(struct exchange *x)
{
    struct session *s = x->session;

    if (x->chunked_ok && conn_send_copy(&s->conn, SLICE("0\r\n\r\n")) != 0) {
        session_drop(s);
        return;
    }
    x->keep = false;
    reply_done(x);
}

struct buf *event_stream_chunk(struct exchange *x)
{
    struct buf *out = &x->worker->frame;

    if (out->cap > FRAME_BYTES_KEPT) {
        buf_finish(out);
    }
    buf_clear(out);
    buf_append(out, SLICE("00000000\r\n"));
    return out;
}

/* Writes the size. Not by a format, which would cost as much as the rest of an event. */
static void end_chunk(struct buf *out)
{
    size_t size = out->len - CHUNK_LINE;

    if (out->failed) {
        return;
    }
    for (size_t i = CHUNK_DIGITS; i > 0; i--, size >>= 4) {
        out->ptr[i - 1] = "0123456789abcdef"[size & 15];
    }
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

bool event_stream_send(struct exchange *x)
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

struct block *event_stream_block(struct exchange *x)
{
    struct buf *out = &x->worker->frame;

    end_chunk(out);
    struct block *chunk = out->failed ? NULL : block_try_create(out->len);

    if (chunk != NULL) {
        memcpy(chunk->data, out->ptr, out->len);
        chunk->len = (uint32_t)out->len;
    }
    return chunk;
}

bool event_stream_send_block(struct exchange *x, struct block *chunk)
{
    struct slice bytes = {chunk->data, chunk->len};

    if (conn_send_block(&x->session->conn, chunk, visible(x, bytes)) != 0) {
        session_drop(x->session);
        return false;
    }
    reply_count(x, bytes.len - CHUNK_LINE - CHUNK_END);
    note_sent(x);
    return true;
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

static bool send_head(struct exchange *x, struct slice encoding)
{
    x->keep = false; /* its end is the connection's end */
    reply_begin(x, 200, SLICE("no-cache, no-store"));
    reply_literal(x, SLICE("Content-Type"), SLICE("text/event-stream"));
    reply_literal(x, SLICE("X-Accel-Buffering"), SLICE("no"));
    if (encoding.ptr != NULL) {
        reply_literal(x, SLICE("Stream-SSE-Data-Encoding"), encoding);
    }
    if (x->chunked_ok) {
        reply_literal(x, SLICE("Transfer-Encoding"), SLICE("chunked"));
    }
    response_end_head(&x->worker->out);
    return reply_queue_head(x);
}

bool event_stream_begin(struct exchange *x, struct slice encoding)
{
    x->live.end_ms = loop_now_ms(x->worker->loop) + lifetime_ms(x);
    exchange_drop_head(x);
    if (!send_head(x, encoding)) {
        return false;
    }
    note_sent(x);
    x->session->state = SESSION_LIVE;
    x->live.stalled_ms = x->live.sent_ms;
    arm(x);
    return !x->session->gone;
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

void event_stream_tick(struct exchange *x)
{
    uint64_t now = loop_now_ms(x->worker->loop);

    if (is_stalled(x)) {
        session_drop(x->session);
        return;
    }
    if (now >= x->live.end_ms) {
        x->live_ops->stop(x);
        return;
    }
    if (now - x->live.sent_ms >= x->worker->server->config->sse_heartbeat_ms) {
        if (conn_output_bytes(&x->session->conn) > 0) {
            note_sent(x); /* a reader that is behind needs no sign of life */
        } else {
            sse_append_heartbeat(event_stream_chunk(x));
            if (!event_stream_send(x)) {
                return;
            }
        }
    }
    arm(x);
}
