/* CORS preflight, which concerns no stream. */
#include "serve/handlers.h"

#include "serve/mount.h"
#include "serve/reply.h"

/* All request headers of PROTOCOL.md 13.2 and 5.2.1, and those that browsers do not allow by
 * themselves. A preflight carries no credentials, so it is asked for none. */
#define ALLOWED_HEADERS                                                                  \
    "Content-Type, Authorization, Accept, Cache-Control, If-None-Match, Last-Event-ID, " \
    "Stream-TTL, Stream-Expires-At, Stream-Seq, Stream-Closed, Stream-Forked-From, "     \
    "Stream-Fork-Offset, Stream-Fork-Sub-Offset, Producer-Id, Producer-Epoch, Producer-Seq"

void options_answer(struct exchange *x)
{
    struct slice methods = x->mount != NULL ? SLICE("GET, HEAD, PUT, POST, PATCH, DELETE, OPTIONS")
                                            : SLICE("GET, HEAD, PUT, POST, DELETE, OPTIONS");

    reply_begin(x, 204, REPLY_NO_STORE);
    reply_literal(x, SLICE("Access-Control-Allow-Methods"), methods);
    reply_literal(x, SLICE("Access-Control-Allow-Headers"), SLICE(ALLOWED_HEADERS));
    reply_literal(x, SLICE("Access-Control-Max-Age"), SLICE("86400"));
    reply_literal(x, SLICE("Allow"), methods);
    reply_send_bare(x);
}
