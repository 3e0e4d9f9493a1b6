/* Answers that concern no stream: CORS preflight and health. */
#include "serve/handlers.h"

#include "serve/problem.h"

/* All request headers of PROTOCOL.md 13.2 and 5.2.1, and those that browsers do not allow by
 * themselves. A preflight carries no credentials, so it is asked for none. */
#define ALLOWED_HEADERS                                                                  \
    "Content-Type, Authorization, Accept, Cache-Control, If-None-Match, Last-Event-ID, " \
    "Stream-TTL, Stream-Expires-At, Stream-Seq, Stream-Closed, Stream-Forked-From, "     \
    "Stream-Fork-Offset, Stream-Fork-Sub-Offset, Producer-Id, Producer-Epoch, Producer-Seq"

void options_answer(struct exchange *x)
{
    reply_begin(x, 204, REPLY_NO_STORE);
    reply_literal(x, SLICE("Access-Control-Allow-Methods"),
                  SLICE("GET, HEAD, PUT, POST, DELETE, OPTIONS"));
    reply_literal(x, SLICE("Access-Control-Allow-Headers"), SLICE(ALLOWED_HEADERS));
    reply_literal(x, SLICE("Access-Control-Max-Age"), SLICE("86400"));
    reply_literal(x, SLICE("Allow"), SLICE("GET, HEAD, PUT, POST, DELETE, OPTIONS"));
    reply_send_bare(x);
}

/* Ready is a server that takes writes and can go on taking them. */
void health_answer(struct exchange *x)
{
    struct store_health health;

    engine_get_health(x->worker->server->engine, &health);
    if (health.log_error || health.checkpoint_error) {
        problem_answer(x, 503, slice_of(health.text));
        return;
    }
    if (x->worker->draining) {
        problem_answer(x, 503, slice_of(err_text(ERR_STOPPING)));
        return;
    }
    reply_begin(x, 200, REPLY_NO_STORE);
    reply_literal(x, SLICE("Content-Type"), SLICE("application/json"));
    reply_send(x, SLICE("{\"status\":\"ok\"}\n"));
}
