/* In order: who asks, is the path one of ours, is the method one of the path's; then the handler.
 * The secret comes first, so that without it nothing is told about what exists. */
#include "serve/control.h"

#include "serve/auth.h"
#include "serve/problem.h"

#include <stdlib.h>

void control_destroy(struct control *c)
{
    if (c != NULL) {
        buf_finish(&c->op.answer);
        control_listing_destroy(c->listing);
        free(c);
    }
}

void control_answer(struct exchange *x, int status, struct slice type, struct slice cache_control,
                    struct slice document)
{
    reply_begin(x, status, cache_control);
    reply_literal(x, SLICE("Content-Type"), type);
    reply_send(x, document);
}

/* The public keys are for everybody; what a wake or a claim was given a token for needs the token
 * alone, which the subscription checks. */
static bool needs_secret(enum control_resource resource)
{
    switch (resource) {
    case CONTROL_JWKS:
    case CONTROL_CALLBACK:
    case CONTROL_ACK:
    case CONTROL_RELEASE:
        return false;
    case CONTROL_NOTHING:
    case CONTROL_COLLECTION:
    case CONTROL_LISTING:
    case CONTROL_SUBSCRIPTION:
    case CONTROL_MEMBERS:
    case CONTROL_MEMBER:
    case CONTROL_CLAIM:
    case CONTROL_RESOURCE_COUNT:
        break;
    }
    return true;
}

static void answer_nothing(struct exchange *x, enum control_resource resource)
{
    problem_answer(x, 404,
                   resource == CONTROL_COLLECTION
                       ? SLICE("subscriptions are not listed; one is at __ds/subscriptions/ID, "
                               "which knows GET, HEAD, PUT and DELETE")
                       : SLICE("there is nothing here; below __ds are jwks.json, streams, "
                               "subscriptions/ID, and below that streams, streams/PATH, callback, "
                               "claim, ack and release"));
}

static void answer_method(struct exchange *x, enum control_resource resource)
{
    struct errmsg msg = {{0}};

    x->allow = control_allow(resource);
    (void)err_set(&msg, ERR_INVALID, "this path knows %.*s", (int)x->allow.len, x->allow.ptr);
    problem_answer(x, 405, slice_of(msg.text));
}

void control_begin(struct exchange *x, struct slice path, struct slice query)
{
    struct control *c = calloc(1, sizeof(*c) + path.len);
    struct errmsg msg = {{0}};

    if (c == NULL) {
        session_drop(x->session);
        return;
    }
    x->about = c;
    int code = control_route_parse(path, c->memory, &c->route, &msg);
    enum control_resource resource = c->route.resource;
    struct slice secret = server_tunables(x->worker->server)->secret;

    /* What needs no secret does not use up what is there for those who have it: neither of requests
     * nor of bytes. A token is looked at when the body is there, which has a cap of its own. */
    x->unrated = secret.len > 0 && !needs_secret(resource);
    if (needs_secret(resource) && !auth_is_good(exchange_request(x), secret)) {
        problem_answer(x, 401, SLICE("this server wants Authorization: Bearer and its secret"));
    } else if (!x->unrated && exchange_over_rate(x)) {
        return;
    } else if (code != 0) {
        problem_answer_code(x, code, &msg);
    } else if (resource == CONTROL_NOTHING || resource == CONTROL_COLLECTION) {
        answer_nothing(x, resource);
    } else if (!control_allows(resource, x->method)) {
        answer_method(x, resource);
    } else if (resource == CONTROL_LISTING) {
        control_list_begin(x, query);
    } else if (resource == CONTROL_JWKS) {
        control_jwks_answer(x);
    } else {
        control_subscription_begin(x);
    }
}
