/* GET: what is there from an offset on. Live reads begin here too, since their first step is
 * the same read. */
#include "serve/handlers.h"

#include "serve/etag.h"
#include "serve/page.h"
#include "serve/problem.h"

/* PROTOCOL.md 10.1. What is at the tail of an open stream changes without its URL changing, so an
 * answer without data is asked for again each time; the ETag makes that cheap. */
static struct slice cache_control_of(const struct exchange *x)
{
    if (x->query.offset.kind == OFFSET_NOW) {
        return REPLY_NO_STORE;
    }
    if (x->work->op.result.page.bytes == 0) {
        return SLICE("no-cache");
    }
    /* What only some may see is nothing for a cache that many share. */
    return x->mount != NULL ? SERVER_CACHE_PRIVATE : x->worker->server->cache_control;
}

static void put_headers(struct exchange *x, int status, struct slice etag, bool cursor)
{
    const struct stream_page *page = &x->work->op.result.page;

    reply_begin(x, status, cache_control_of(x));
    if (status == 200) {
        reply_field(x, SLICE("Content-Type"), x->work->op.result.content_type);
    }
    if (etag.len > 0) {
        reply_literal(x, SLICE("ETag"), etag);
    }
    reply_next(x, page->next);
    if (page->up_to_date) {
        reply_literal(x, SLICE("Stream-Up-To-Date"), SLICE("true"));
    }
    reply_closed(x, page->closed);
    if (cursor && !page->closed) {
        reply_u64(
            x, SLICE("Stream-Cursor"),
            cursor_next(&x->query.cursor, loop_wall_ms(x->worker->loop), worker_random(x->worker)));
    }
}

static void send_page(struct exchange *x)
{
    struct stream_page *page = &x->work->op.result.page;

    reply_end_head(x, page_body_bytes(page));
    bool copied = page_append_small(&x->worker->out, page);

    if (!reply_queue_head(x)) {
        return;
    }
    if (!copied && !page_queue(x, page)) {
        session_drop(x->session);
        return;
    }
    reply_done(x);
}

void catchup_answer(struct exchange *x, bool cursor)
{
    char memory[ETAG_BYTES_MAX];
    struct slice etag = {NULL, 0};

    /* The place of `now` moves: a tag would let a cache give an old tail back. */
    if (x->query.offset.kind != OFFSET_NOW) {
        etag = etag_format(memory, x->worker->server->etag_salt, &x->work->op.result.page);
    }
    if (etag.len > 0 && x->query.live == QUERY_CATCH_UP &&
        etag_is_known(exchange_request(x), etag)) {
        put_headers(x, 304, etag, cursor);
        reply_send_bare(x);
        return;
    }
    put_headers(x, 200, etag, cursor);
    send_page(x);
}

static void finish(struct exchange *x)
{
    const struct stream_result *result = &x->work->op.result;

    if (result->code != 0) {
        problem_answer_code(x, result->code, &result->msg);
    } else if (x->query.live == QUERY_LONG_POLL) {
        longpoll_begin(x);
    } else if (x->query.live == QUERY_SSE) {
        sse_begin(x);
    } else {
        catchup_answer(x, false);
    }
}

int catchup_prepare(struct exchange *x, struct errmsg *msg)
{
    (void)msg; /* the query was read before */
    bool sse = x->query.live == QUERY_SSE;

    x->work->op.verb = STREAM_READ;
    x->work->op.read = (struct stream_read_request){
        .from = x->query.offset,
        .touch = true,
        .in_memory = sse,
        .bytes_max = sse ? sse_page_bytes(x) : 0,
    };
    x->ready = exchange_run;
    x->finish = finish;
    return 0;
}
