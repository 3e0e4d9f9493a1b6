/* Metadata (PROTOCOL.md 5.5): what is durable, and without renewing anything. */
#include "stream/expiry.h"
#include "stream/op.h"
#include "stream/view.h"

static struct stream_expiry expiry_of(const struct stream *s)
{
    return (struct stream_expiry){
        .has_ttl = s->ttl_seconds != UINT64_MAX,
        .has_expires_at = s->expires_at_ms != INT64_MAX,
        .ttl_seconds = s->ttl_seconds,
        .expires_at_ms = s->expires_at_ms,
    };
}

static void answer_head(struct stream_op *op, struct stream *s)
{
    const struct stream_state *v = view_now(s);
    op->result.id = s->id;
    op->result.closed = v->closed;
    op->result.has_next = true;
    op->result.next = v->tail;
    op->result.expiry = expiry_of(s);
    op_set_type(op, s);
}

static int head_run(struct stream_op *op)
{
    if (op->found < 0) {
        return op_answer(op, op->found);
    }
    struct stream *s = op->stream;
    op_note(op);
    pthread_mutex_lock(&s->lock);
    int code = expiry_check_visible(s, engine_now_ms(s->engine));
    if (code == 0) {
        answer_head(op, s);
        (void)op_answer(op, 0);
    } else {
        (void)op_answer_absent(op, s, code); /* ERR_AGAIN is seen below */
    }
    pthread_mutex_unlock(&s->lock);
    return code == ERR_AGAIN ? op_wait_visible(op) : 0;
}

int head_begin(struct stream_op *op)
{
    return op_resolve(op, op->name, head_run);
}
