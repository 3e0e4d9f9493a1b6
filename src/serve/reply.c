/* The constant headers are one run of bytes, so that a small answer is a few copies and one
 * write. */
#include "serve/reply.h"

#include "serve/access.h"

#define COPIED_BYTES_MAX (16 * KIB) /* a longer body does not go through the worker's buffer */

#define ALL_METHODS "GET, HEAD, PUT, POST, DELETE, OPTIONS"

/* What scripts of other origins may read: all that PROTOCOL.md 13.2 names, and what HTTP hides. */
#define EXPOSED                                                                                \
    "Stream-Next-Offset, Stream-Cursor, Stream-Up-To-Date, Stream-Closed, Stream-TTL, "        \
    "Stream-Expires-At, Stream-SSE-Data-Encoding, Producer-Epoch, Producer-Seq, "              \
    "Producer-Expected-Seq, Producer-Received-Seq, ETag, Location, Retry-After, Allow, Date, " \
    "Content-Length, WWW-Authenticate"

/* PROTOCOL.md 12.7 asks for the first two on all answers. */
void reply_format_common(struct buf *out, const struct serve_config *config)
{
    buf_append(out, SLICE("X-Content-Type-Options: nosniff\r\n"
                          "Cross-Origin-Resource-Policy: cross-origin\r\n"
                          "Access-Control-Expose-Headers: " EXPOSED "\r\n"
                          "Access-Control-Allow-Origin: "));
    buf_append(out, slice_of(config->cors_origin));
    buf_append(out, SLICE("\r\n"));
    if (!slice_equal(slice_of(config->cors_origin), SLICE("*"))) {
        buf_append(out, SLICE("Vary: Origin\r\n"));
    }
}

/* From here on the answer has that status, and it is settled whether the connection goes on. */
static void begin(struct exchange *x, int status)
{
    struct worker *w = x->worker;

    x->status = status;
    /* What cannot be read away cannot be told from the next request (RFC 9112 section 9.3). A
     * client that waits for 100 Continue may or may not send its body after this answer. */
    x->keep = x->keep && !w->draining && !x->unasked &&
              body_unread(&x->body) <= HTTP_BODY_DRAIN_BYTES_MAX;
    buf_clear(&w->out);
}

static void append_connection(struct exchange *x)
{
    if (!x->keep) {
        buf_append(&x->worker->out, SLICE("Connection: close\r\n"));
    } else if (!x->chunked_ok) {
        buf_append(&x->worker->out, SLICE("Connection: keep-alive\r\n"));
    }
}

void reply_begin_as(struct exchange *x, int status, struct slice head)
{
    begin(x, status);
    buf_append(&x->worker->out, head);
    append_connection(x);
}

void reply_begin(struct exchange *x, int status, struct slice cache_control)
{
    struct worker *w = x->worker;

    begin(x, status);
    response_begin(&w->out, status);
    buf_append(&w->out, SLICE("Date: "));
    buf_append(&w->out, slice_of(worker_date(w)));
    buf_append(&w->out, SLICE("\r\n"));
    buf_append(&w->out, buf_slice(&w->server->common));
    reply_literal(x, SLICE("Cache-Control"), cache_control);
    append_connection(x);
    if (status == 405) {
        reply_literal(x, SLICE("Allow"), x->allow.len > 0 ? x->allow : SLICE(ALL_METHODS));
    }
    if (status == 401) {
        buf_append(&w->out, SLICE("WWW-Authenticate: Bearer\r\n"));
    }
    if (status == 429 || (status == 503 && !x->outcome_unknown)) {
        reply_u64(x, SLICE("Retry-After"), x->retry_after > 0 ? x->retry_after : 1);
    }
}

void reply_literal(struct exchange *x, struct slice name, struct slice literal)
{
    struct buf *out = &x->worker->out;

    buf_append(out, name);
    buf_append(out, SLICE(": "));
    buf_append(out, literal);
    buf_append(out, SLICE("\r\n"));
}

void reply_field(struct exchange *x, struct slice name, struct slice value)
{
    response_header(&x->worker->out, name, value);
}

void reply_u64(struct exchange *x, struct slice name, uint64_t value)
{
    response_header_u64(&x->worker->out, name, value);
}

void reply_next(struct exchange *x, uint64_t position)
{
    char token[OFFSET_TOKEN_BYTES];

    offset_format(token, position);
    reply_literal(x, SLICE("Stream-Next-Offset"), (struct slice){token, sizeof(token)});
}

void reply_closed(struct exchange *x, bool closed)
{
    if (closed) {
        reply_literal(x, SLICE("Stream-Closed"), SLICE("true"));
    }
}

void reply_count(struct exchange *x, uint64_t body_bytes)
{
    counter_add(&x->worker->tally.response_bytes, body_bytes);
    if (x->access != NULL) {
        x->access->bytes += body_bytes;
    }
}

void reply_end_head(struct exchange *x, uint64_t body_bytes)
{
    reply_count(x, x->head_only ? 0 : body_bytes);
    reply_u64(x, SLICE("Content-Length"), body_bytes);
    response_end_head(&x->worker->out);
}

bool reply_queue_head(struct exchange *x)
{
    struct buf *out = &x->worker->out;

    if (out->failed || conn_send_copy(&x->session->conn, buf_slice(out)) != 0) {
        session_drop(x->session);
        return false;
    }
    counter_add(&x->worker->tally.requests[x->method][http_status_index(x->status)], 1);
    return true;
}

void reply_done(struct exchange *x)
{
    struct session *s = x->session;
    bool keep = x->keep;
    uint64_t unread = body_unread(&x->body);

    exchange_destroy(x);
    session_answered(s, keep, unread);
}

void reply_send_bare(struct exchange *x)
{
    response_end_head(&x->worker->out);
    if (reply_queue_head(x)) {
        reply_done(x);
    }
}

void reply_send(struct exchange *x, struct slice body)
{
    bool apart = body.len > COPIED_BYTES_MAX;

    reply_end_head(x, body.len);
    if (!x->head_only && !apart) {
        buf_append(&x->worker->out, body);
    }
    if (!reply_queue_head(x)) {
        return;
    }
    if (!x->head_only && apart && conn_send_copy(&x->session->conn, body) != 0) {
        session_drop(x->session);
        return;
    }
    reply_done(x);
}
