/* Long-poll (PROTOCOL.md 5.7): read; when there is nothing, wait on the very stream that was
 * read, then read again. The time-out too ends with a read, so that an answer never moves a
 * client past bytes that it was not given. */
#include "serve/handlers.h"

#include "serve/problem.h"
#include "stream/refusal.h"

static void look(struct exchange *x);

static struct counter *open_readers(struct exchange *x)
{
    struct tally *t = &x->worker->tally;

    return x->query.live == QUERY_SSE ? &t->sse_streams : &t->long_polls;
}

/* Counts one more reader; with a limit, only below it. */
static bool take_place(struct server *server)
{
    uint64_t max = server_tunables(server)->limits.waiters_max;
    uint64_t count = atomic_load(&server->waiters);

    do {
        if (max > 0 && count >= max) {
            return false;
        }
    } while (!atomic_compare_exchange_weak(&server->waiters, &count, count + 1));
    return true;
}

static void refuse_reader(struct exchange *x, const char *whose)
{
    struct errmsg msg = {{0}};
    int status = refusal_of_reader(&msg, whose);

    tally_error(&x->worker->tally, ERR_LIMIT);
    problem_answer(x, status, slice_of(msg.text));
}

bool live_enter(struct exchange *x, const struct exchange_live *ops)
{
    if (x->unwanted) {
        problem_answer(x, 403, SLICE("what let you read this was taken away meanwhile"));
        return false;
    }
    if (!take_place(x->worker->server)) {
        refuse_reader(x, "this server (--max-waiters)");
        return false;
    }
    x->live_ops = ops;
    counter_add(open_readers(x), 1);
    return true;
}

void live_leave(struct exchange *x)
{
    counter_add(open_readers(x), UINT64_MAX); /* one less */
    atomic_fetch_sub(&x->worker->server->waiters, 1);
}

/* Takes the reader off its stream. */
static void live_ended(struct exchange *x)
{
    if (x->live.waiting) {
        x->live.waiting = false;
        stream_unwait(&x->live.waiter);
    }
    stream_unref(x->live.stream);
    x->live.stream = NULL;
    live_leave(x);
}

bool live_begin(struct exchange *x, const struct exchange_live *ops)
{
    if (!live_enter(x, ops)) {
        return false;
    }
    x->live.stream = stream_ref(x->work->op.result.page.stream);
    x->ended = live_ended;
    return true;
}

static void answer_nothing(struct exchange *x)
{
    const struct stream_page *page = &x->work->op.result.page;

    reply_begin(x, 204, REPLY_NO_STORE);
    reply_next(x, page->next);
    reply_literal(x, SLICE("Stream-Up-To-Date"), SLICE("true"));
    reply_closed(x, page->closed);
    if (!page->closed) {
        reply_u64(
            x, SLICE("Stream-Cursor"),
            cursor_next(&x->query.cursor, loop_wall_ms(x->worker->loop), worker_random(x->worker)));
    }
    reply_send_bare(x);
}

/* The stream that was waited for is gone. Whether its path says 404 or 410 now, the path knows. */
static void answer_gone(struct exchange *x)
{
    const struct stream_result *result = &x->work->op.result;
    int code = result->code == ERR_GONE ? ERR_GONE : ERR_NOTFOUND;

    tally_error(&x->worker->tally, code);
    problem_answer(x, err_status(code), slice_of(err_text(code)));
}

static void ask_path(struct exchange *x)
{
    stream_page_finish(&x->work->op.result.page);
    x->work->op = (struct stream_op){.verb = STREAM_HEAD};
    x->finish = answer_gone;
    exchange_run(x);
}

static void wake(struct stream_waiter *waiter)
{
    struct exchange *x = container_of(waiter, struct exchange, live.waiter);
    struct session *s = x->session;

    x->live.waiting = false;
    look(x);
    session_advance(s);
}

static void sleep_or_look(struct exchange *x)
{
    struct live *live = &x->live;

    live->waiter = (struct stream_waiter){.wake = wake, .from = live->at};
    int code = stream_wait(x->worker->engine, live->stream, &live->waiter);

    if (code == STREAM_PENDING) {
        look(x);
    } else if (code == 0) {
        live->waiting = true;
        exchange_rest(x);
    } else if (code == ERR_LIMIT) {
        refuse_reader(x, "a stream");
    } else {
        struct errmsg msg = {{0}};

        problem_answer_code(x, code, &msg);
    }
}

/* A read has its result. */
static void looked(struct exchange *x)
{
    const struct stream_result *result = &x->work->op.result;
    const struct stream_page *page = &result->page;

    if (result->code != 0) {
        problem_answer_code(x, result->code, &result->msg);
    } else if (page->gone) {
        ask_path(x);
    } else if (page->bytes > 0) {
        catchup_answer(x, true);
    } else if (page->closed || x->live.timed_out || x->worker->draining) {
        answer_nothing(x);
    } else {
        stream_page_finish(&x->work->op.result.page);
        sleep_or_look(x);
    }
}

static void look(struct exchange *x)
{
    if (x->work == NULL && !exchange_rise(x)) {
        struct errmsg msg = {{0}};

        problem_answer_code(x, ERR_NOMEM, &msg);
        return;
    }
    x->work->op = (struct stream_op){
        .verb = STREAM_READ,
        .read = {.from = {.kind = OFFSET_AT, .position = x->live.at}, .stream = x->live.stream},
    };
    x->finish = looked;
    exchange_run(x);
}

/* It has lasted its time: one last read, then 204. Also when the server stops. */
static void time_out(struct exchange *x)
{
    x->live.timed_out = true;
    if (x->live.waiting) {
        x->live.waiting = false;
        stream_unwait(&x->live.waiter);
        look(x);
    }
}

static const struct exchange_live live_ops = {.tick = time_out, .stop = time_out};

void longpoll_begin(struct exchange *x)
{
    const struct stream_page *page = &x->work->op.result.page;

    if (page->bytes > 0 || page->closed) {
        looked(x);
        return;
    }
    /* Only now is it sure that there will be a wait, and that it may be long. */
    if (!live_begin(x, &live_ops)) {
        return;
    }
    x->live.at = page->next;
    exchange_drop_head(x);
    session_set_deadline(x->session, x->worker->server->config->long_poll_timeout_ms);
    looked(x);
}
