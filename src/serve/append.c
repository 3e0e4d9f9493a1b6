/* POST: append, close, or both in one step. */
#include "serve/handlers.h"

#include "serve/fields.h"
#include "serve/problem.h"
#include "stream/refusal.h"

/* The status of PROTOCOL.md 5.2.1 and 5.3: with producer headers, 200 says that the bytes are new;
 * closing alone is 204 with them too. */
static void answer(struct exchange *x)
{
    const struct stream_result *result = &x->work->op.result;
    bool producer = x->work->op.append.producer.id.len > 0;
    bool fresh = producer && !result->duplicate && x->work->op.append.body.len > 0;

    histogram_observe(&x->worker->tally.append_us, loop_now_us(x->worker->loop) - x->ready_us);
    reply_begin(x, fresh ? 200 : 204, REPLY_NO_STORE);
    reply_next(x, result->next);
    reply_closed(x, result->closed);
    if (producer) {
        reply_u64(x, SLICE("Producer-Epoch"), result->producer_epoch);
        reply_u64(x, SLICE("Producer-Seq"), result->producer_seq);
    }
    if (fresh) {
        reply_send(x, (struct slice){NULL, 0});
    } else {
        reply_send_bare(x);
    }
}

static void refuse(struct exchange *x)
{
    const struct stream_result *result = &x->work->op.result;
    int status = refusal_status(&x->work->op);

    problem_note(x, result->code);
    problem_begin(x, status);
    if (result->stale_epoch) {
        reply_u64(x, SLICE("Producer-Epoch"), result->producer_epoch);
    }
    if (result->seq_gap) {
        reply_u64(x, SLICE("Producer-Expected-Seq"), result->producer_seq_expected);
        reply_u64(x, SLICE("Producer-Received-Seq"), result->producer_seq_received);
    }
    /* A closed stream tells its end (PROTOCOL.md 5.2). */
    if (result->closed) {
        reply_closed(x, true);
        if (result->has_next) {
            reply_next(x, result->next);
        }
    }
    problem_send(x, status, refusal_of_op(&x->work->op));
}

static void finish(struct exchange *x)
{
    if (x->work->op.result.code == 0) {
        answer(x);
    } else {
        refuse(x);
    }
}

static void run(struct exchange *x)
{
    struct stream_append_request *append = &x->work->op.append;

    if (x->body.len > 0) {
        append->body = (struct slice){x->body.block->data, x->body.len};
        append->body_block = x->body.block;
    }
    exchange_run(x);
}

int append_prepare(struct exchange *x, struct errmsg *msg)
{
    const struct http_request *request = exchange_request(x);
    struct stream_append_request *append = &x->work->op.append;

    x->work->op.verb = STREAM_APPEND;
    x->ready = run;
    x->finish = finish;
    int code = fields_closed(request, &append->close, msg);

    /* Taken as it is: whether it must be well-formed depends on the body (PROTOCOL.md 5.2), which
     * the engine sees. */
    if (code == 0) {
        code = fields_single(request, SLICE("Content-Type"), &append->content_type, msg);
    }
    if (code == 0) {
        code = fields_producer(request, &append->producer, msg);
    }
    if (code == 0) {
        code = fields_seq(request, &append->has_seq, &append->seq, msg);
    }
    return code;
}
