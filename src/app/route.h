/* The routes of the API: one table, method and path to what serves them. Pure. */
#ifndef ARBE_APP_ROUTE_H
#define ARBE_APP_ROUTE_H

#include "base/slice.h"
#include "http/status.h"

#define ROUTE_ROOT       "/api"
#define ROUTE_PARAMS_MAX 2u

struct api_call;

/* Who may ask at all; what they may then is the handler's business. */
enum route_guard {
    ROUTE_FREE,    /* anybody; a key or session is not looked at */
    ROUTE_OPEN,    /* anybody; a key or session is looked at when there is one */
    ROUTE_AGENT,   /* who shows a key or has a session */
    ROUTE_SANDBOX, /* who shows a token of a sandbox */
};

/* Where the handler runs. */
enum route_place {
    ROUTE_POOL,    /* on a thread of the application: it may block */
    ROUTE_STREAMS, /* on one of those that wait for streams: it may block for long */
    ROUTE_WORKER,  /* on the worker that has the connection: it must not */
};

struct route {
    enum http_method method;
    const char *pattern; /* such as "/api/threads/:id"; a segment with ':' takes any text */
    enum route_guard guard;
    enum route_place place;
    /* Serves it: API_DONE, API_FAILED or API_PENDING, see api_call.h. */
    int (*run)(struct api_call *c);
};

/* What a path leads to. */
struct route_match {
    const struct route *route;             /* NULL: nothing of that method */
    bool known;                            /* the path is one of the table's */
    bool bad_escape;                       /* a '%' without two hex digits behind it */
    struct slice params[ROUTE_PARAMS_MAX]; /* decoded, in the memory given */
};

/* All of them. */
extern const struct route routes[];
extern const size_t route_count;

/* Whether a path, without its query, is one of the API's: it, or what lies below its root. */
bool route_takes(struct slice path);

/* Finds the route; HEAD is served where GET is. `memory` has room for path.len bytes and lives as
 * long as the parameters. */
struct route_match route_find(enum http_method method, struct slice path, char *memory);

/* The methods that a path knows, for Allow: "GET, HEAD, OPTIONS". Writes at most `size` bytes with
 * the NUL. */
void route_allow(struct slice path, char *out, size_t size);

#endif
