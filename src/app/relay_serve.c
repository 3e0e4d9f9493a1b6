/* A client that waits, or follows, is let go as soon as it closes. One that reads plainly may close
 * its side for writing once it has asked, and is owed its answer all the same: its input is not
 * looked at before that is out, and that it has gone shows when it is written to. */
#include "app/relay_serve.h"

#include "base/limits.h"
#include "serve/handlers.h"
#include "serve/reply.h"

#define OUTPUT_BYTES_MAX (64 * KIB) /* queued at the socket; above it the rest waits */
#define TICK_MS          15000      /* a reader is looked at so often */
#define STALL_MS         60000      /* one that takes nothing for so long is dropped */

static struct relay *relay_of(struct exchange *x)
{
    return x->live_own;
}

/* What relay_serve_begin did to the session and the server's count of readers. */
static void undo(struct exchange *x, const struct relay *r)
{
    x->live_own = NULL;
    if (r->kind != RELAY_PLAIN) {
        live_leave(x);
    } else if (!x->session->gone) {
        conn_pause(&x->session->conn, false);
    }
}

/* The exchange ends, with its answer or with its client. */
static void ended(struct exchange *x)
{
    struct relay *r = relay_of(x);

    undo(x, r);
    relay_leave(r);
}

void relay_serve_cancel(struct exchange *x)
{
    undo(x, relay_of(x));
    x->live_ops = NULL;
    x->ended = NULL;
}

/* All that is to be sent is queued. */
static void finish(struct exchange *x)
{
    struct relay *r = relay_of(x);

    if (r->chunked && conn_send_copy(&x->session->conn, SLICE("0\r\n\r\n")) != 0) {
        session_drop(x->session);
        return;
    }
    x->keep = x->keep && !x->worker->draining;
    reply_done(x);
}

/* The rest will not come: the connection ends, with less than was promised. Of a body that only the
 * connection's end would end, the client must not think that this is it. */
static void cut(struct exchange *x)
{
    if (relay_of(x)->unframed) {
        session_drop(x->session);
        return;
    }
    x->keep = false;
    reply_done(x);
}

/* Sends the head. False: the session is gone. */
static bool begin(struct exchange *x)
{
    struct relay *r = relay_of(x);
    const struct upstream_head *head = &r->head;
    bool has_body = !r->head_only && upstream_head_has_body(head);

    r->begun = true;
    r->left = has_body && head->has_length ? head->length : 0;
    r->chunked = has_body && !head->has_length && x->chunked_ok;
    r->unframed = has_body && !head->has_length && !x->chunked_ok;
    if (r->unframed || r->kind == RELAY_SSE) {
        x->keep = false; /* an SSE client says nothing more, and is read away */
    }
    reply_begin_as(x, head->status, buf_slice(&head->out));
    if (r->chunked) {
        reply_literal(x, SLICE("Transfer-Encoding"), SLICE("chunked"));
    }
    response_end_head(&x->worker->out);
    if (!reply_queue_head(x)) {
        return false;
    }
    if (r->kind == RELAY_SSE) {
        x->session->state = SESSION_LIVE;
    }
    r->stalled_ms = loop_now_ms(x->worker->loop);
    session_set_deadline(x->session, TICK_MS);
    return !x->session->gone;
}

/* Sends a piece. False: the session is gone, or the relay has been cut. */
static bool send_piece(struct exchange *x, struct block *block)
{
    struct relay *r = relay_of(x);
    const size_t bytes = block->len - RELAY_CHUNK_LINE - RELAY_CHUNK_END;
    struct slice out = {block->data + RELAY_CHUNK_LINE, bytes};

    if (r->chunked) {
        out = (struct slice){block->data, block->len};
    } else if (!r->unframed && bytes > r->left) {
        block_unref(block); /* libcurl sees to it that this cannot be */
        cut(x);
        return false;
    } else if (!r->unframed) {
        r->left -= bytes;
    }
    if (conn_send_block(&x->session->conn, block, out) != 0) {
        session_drop(x->session);
        return false;
    }
    reply_count(x, bytes);
    return true;
}

static void pump(struct exchange *x)
{
    struct relay *r = relay_of(x);
    enum relay_end end = RELAY_OPEN;

    while (conn_output_bytes(&x->session->conn) <= OUTPUT_BYTES_MAX) {
        struct block *block = relay_take(r, &end);

        if (block != NULL) {
            if (!send_piece(x, block)) {
                return;
            }
        } else if (end == RELAY_WHOLE && r->left == 0) {
            finish(x);
            return;
        } else if (end != RELAY_OPEN) {
            cut(x);
            return;
        } else {
            return;
        }
    }
}

static void look(struct task *task)
{
    struct relay *r = container_of(task, struct relay, task);
    struct exchange *x = r->x;
    struct session *s = x->session;
    enum relay_end end = RELAY_OPEN;
    bool head_whole = relay_look(r, &end);

    if (!head_whole && end != RELAY_OPEN) {
        r->refuse(x, API_STREAMS_UNAVAILABLE,
                  "the server that has the streams does not answer as it should; try again "
                  "shortly");
    } else if (head_whole && (r->begun || begin(x))) {
        pump(x);
    }
    session_advance(s); /* sends it */
}

static void drained(struct exchange *x)
{
    if (relay_of(x)->begun) {
        pump(x);
    }
}

/* Drops a client whose output has not moved for too long. */
static void tick(struct exchange *x)
{
    struct relay *r = relay_of(x);
    size_t bytes = conn_output_bytes(&x->session->conn);
    uint64_t now = loop_now_ms(x->worker->loop);

    if (bytes == 0 || bytes != r->stalled_bytes) {
        r->stalled_bytes = bytes;
        r->stalled_ms = now;
    }
    if (now - r->stalled_ms >= STALL_MS) {
        session_drop(x->session);
    } else {
        session_set_deadline(x->session, TICK_MS);
    }
}

/* A plain read is let come: it is not long, or its client is slow, which has bounds of its own. So
 * is a long-poll whose answer is on its way. */
static void stop(struct exchange *x)
{
    struct relay *r = relay_of(x);

    if (r->kind == RELAY_PLAIN || (r->begun && r->kind == RELAY_LONG_POLL)) {
        return;
    }
    if (!r->begun && x->worker->draining) {
        r->refuse(x, API_DRAINING, "the server is shutting down; try again shortly");
    } else if (!r->begun) {
        r->refuse(x, API_FORBIDDEN, "what let you read this was taken away meanwhile");
    } else if (r->left > 0) {
        cut(x);
    } else {
        finish(x);
    }
}

static const struct exchange_live live_ops = {.tick = tick, .drained = drained, .stop = stop};

bool relay_serve_begin(struct relay *r, struct exchange *x)
{
    if (r->kind == RELAY_PLAIN) {
        x->live_ops = &live_ops;
        conn_pause(&x->session->conn, true);
    } else {
        x->query.live = r->kind == RELAY_SSE ? QUERY_SSE : QUERY_LONG_POLL;
        if (!live_enter(x, &live_ops)) {
            return false;
        }
    }
    r->x = x;
    r->task.run = look;
    x->live_own = r;
    x->ended = ended;
    exchange_drop_head(x);
    exchange_rest(x); /* another server does the work */
    return true;
}
