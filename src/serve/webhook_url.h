/* Which URLs a webhook may have (PROTOCOL.md 12.8). Strict on purpose: what two parsers could read
 * in two ways is refused, so that the host that is checked here is the host that is called. What a
 * name resolves to is looked at when it is connected to (address.h). Pure. */
#ifndef ARBE_SERVE_WEBHOOK_URL_H
#define ARBE_SERVE_WEBHOOK_URL_H

#include "base/err.h"
#include "base/slice.h"

struct webhook_url {
    struct slice host; /* as it stands in the URL, without brackets; borrowed from it */
    uint16_t port;     /* 443 or 80 where none is given */
    bool https;        /* else http, to this machine */
    bool is_literal;   /* the host is an address, which needs no look-up */
};

/* 0 and the parts, or ERR_INVALID with a sentence for the client. `allow_loopback` lets localhost,
 * 127.x.x.x and [::1] pass, also by http. `msg` may be NULL. */
int webhook_url_parse(struct slice url, bool allow_loopback, struct webhook_url *ret_url,
                      struct errmsg *msg) MUST_USE;

#endif
