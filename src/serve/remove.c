/* DELETE: a stream, or, while forks of it live, the sight of it. */
#include "serve/handlers.h"

#include "serve/problem.h"

static void finish(struct exchange *x)
{
    const struct stream_result *result = &x->work->op.result;

    if (result->code != 0) {
        problem_answer_code(x, result->code, &result->msg);
        return;
    }
    reply_begin(x, 204, REPLY_NO_STORE);
    reply_send_bare(x);
}

int remove_prepare(struct exchange *x, struct errmsg *msg)
{
    (void)msg; /* there is nothing in a DELETE that could be wrong */
    x->work->op.verb = STREAM_DELETE;
    x->ready = exchange_run;
    x->finish = finish;
    return 0;
}
