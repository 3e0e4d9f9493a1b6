/* Which resource of the reserved control API (PROTOCOL.md section 6) a path names. Segments are
 * split at slashes and compared after percent-decoding, so that no spelling of __ds, or of what
 * follows it, slips by. Pure. */
#ifndef ARBE_SERVE_CONTROL_ROUTE_H
#define ARBE_SERVE_CONTROL_ROUTE_H

#include "base/err.h"
#include "base/slice.h"
#include "http/status.h"

#define CONTROL_ROOT "/v1/stream/__ds"

enum control_resource {
    CONTROL_NOTHING,      /* a path that names none of these */
    CONTROL_COLLECTION,   /* /subscriptions, which is nothing either but is asked for */
    CONTROL_JWKS,         /* /jwks.json */
    CONTROL_LISTING,      /* /streams */
    CONTROL_SUBSCRIPTION, /* /subscriptions/:id */
    CONTROL_MEMBERS,      /* /subscriptions/:id/streams */
    CONTROL_MEMBER,       /* /subscriptions/:id/streams/:path */
    CONTROL_CALLBACK,     /* /subscriptions/:id/callback */
    CONTROL_CLAIM,        /* /subscriptions/:id/claim */
    CONTROL_ACK,          /* /subscriptions/:id/ack */
    CONTROL_RELEASE,      /* /subscriptions/:id/release */
    CONTROL_RESOURCE_COUNT
};

struct control_route {
    enum control_resource resource;
    struct slice id;   /* of the subscription, decoded; where there is one */
    struct slice path; /* CONTROL_MEMBER: the stream's, as it stands in the request */
};

/* Whether `path`, that of a request, lies in the reserved part of the streams. */
bool control_is_path(struct slice path);

/* Reads `path`, for which control_is_path holds. The slices of *ret_route borrow from it and
 * from `memory`, which has room for path.len bytes. 0, also for what is nothing; ERR_INVALID with a
 * sentence for broken escapes and for ids that none may have. */
int control_route_parse(struct slice path, char *memory, struct control_route *ret_route,
                        struct errmsg *msg) MUST_USE;

/* Whether `resource` knows `method`; HEAD goes where GET does. */
bool control_allows(enum control_resource resource, enum http_method method);

/* The methods that `resource` knows, as an Allow header lists them. Static storage. */
struct slice control_allow(enum control_resource resource);

#endif
