/* Requests about one subscription: the body is read whole, the service of stream/subscriptions.h
 * does the rest on its own thread, and brings status and document back. */
#include "serve/control.h"

#include "serve/problem.h"

static enum subscription_verb verb_of(enum control_resource resource, enum http_method method)
{
    switch (resource) {
    case CONTROL_SUBSCRIPTION:
        if (method == HTTP_PUT) {
            return SUBSCRIPTION_PUT;
        }
        return method == HTTP_DELETE ? SUBSCRIPTION_DELETE : SUBSCRIPTION_GET;
    case CONTROL_MEMBERS:
        return SUBSCRIPTION_LINK;
    case CONTROL_MEMBER:
        return SUBSCRIPTION_UNLINK;
    case CONTROL_CALLBACK:
        return SUBSCRIPTION_CALLBACK;
    case CONTROL_CLAIM:
        return SUBSCRIPTION_CLAIM;
    case CONTROL_ACK:
        return SUBSCRIPTION_ACK;
    case CONTROL_RELEASE:
        return SUBSCRIPTION_RELEASE;
    case CONTROL_NOTHING:
    case CONTROL_COLLECTION:
    case CONTROL_JWKS:
    case CONTROL_LISTING:
    case CONTROL_RESOURCE_COUNT:
        break;
    }
    return SUBSCRIPTION_GET;
}

/* The token of a wake or claim. Other than for the secret, the scheme is spelt exactly so: whoever
 * made the token also said how it is sent. ptr NULL: there is none, or more than one. */
static struct slice token_of(const struct http_request *request)
{
    const struct slice scheme = SLICE("Bearer ");
    size_t count = 0;
    struct slice value = http_request_header(request, SLICE("authorization"), &count);

    if (count != 1 || !slice_starts_with(value, scheme)) {
        return (struct slice){NULL, 0};
    }
    return (struct slice){value.ptr + scheme.len, value.len - scheme.len};
}

static void done(struct subscription_op *op)
{
    exchange_resume(op->context);
}

static void finish(struct exchange *x)
{
    const struct subscription_op *op = &x->about->op;

    if (op->status == 204) {
        reply_begin(x, 204, REPLY_NO_STORE);
        reply_send_bare(x);
    } else if (op->answer.failed) {
        problem_answer_code(x, ERR_NOMEM, &(struct errmsg){{0}});
    } else {
        if (op->code != 0) {
            problem_note(x, op->code);
        }
        control_answer(x, op->status, SLICE("application/json"), REPLY_NO_STORE,
                       buf_slice(&op->answer));
    }
}

static void run(struct exchange *x)
{
    struct control *c = x->about;

    if (x->body.len > 0) {
        c->op.body = (struct slice){x->body.block->data, x->body.len};
    }
    c->op.post = loop_post;
    c->op.post_context = x->worker->loop;
    c->op.done = done;
    c->op.context = x;
    exchange_park(x);
    subscription_start(x->worker->server->subscriptions, &c->op);
}

void control_subscription_begin(struct exchange *x)
{
    struct control *c = x->about;

    c->op = (struct subscription_op){
        .verb = verb_of(c->route.resource, x->method),
        .id = c->route.id,
        .path = c->route.path,
        .token = token_of(exchange_request(x)),
    };
    x->ready = run;
    x->finish = finish;
    /* GET, HEAD and DELETE do not look at a body; it is read away behind the answer. */
    if (x->method != HTTP_PUT && x->method != HTTP_POST) {
        run(x);
        return;
    }
    int code = body_limit(&x->body, SUBSCRIPTION_BODY_BYTES_MAX);

    if (code != 0) {
        exchange_refuse_body(x, code);
    } else {
        exchange_await_body(x);
    }
}
