/* HEAD: what is known of a stream, without its bytes and without renewing its TTL. */
#include "serve/handlers.h"

#include "base/date.h"
#include "serve/problem.h"

static void put_expiry(struct exchange *x, const struct stream_expiry *expiry)
{
    if (expiry->has_ttl) {
        reply_u64(x, SLICE("Stream-TTL"), expiry->ttl_seconds);
    }
    if (expiry->has_expires_at) {
        char date[DATE_RFC3339_BYTES];

        date_format_rfc3339(date, expiry->expires_at_ms);
        reply_literal(x, SLICE("Stream-Expires-At"), slice_of(date));
    }
}

static void finish(struct exchange *x)
{
    const struct stream_result *result = &x->work->op.result;

    if (result->code != 0) {
        problem_answer_code(x, result->code, &result->msg);
        return;
    }
    reply_begin(x, 200, REPLY_NO_STORE);
    reply_field(x, SLICE("Content-Type"), result->content_type);
    reply_next(x, result->next);
    reply_closed(x, result->closed);
    put_expiry(x, &result->expiry);
    reply_send_bare(x);
}

int head_prepare(struct exchange *x, struct errmsg *msg)
{
    (void)msg; /* a HEAD has no headers or parameters of its own */
    x->work->op.verb = STREAM_HEAD;
    x->ready = exchange_run;
    x->finish = finish;
    return 0;
}
