/* One request and its answer. Made when a head is complete, destroyed when the answer is queued
 * (or, for live answers, has ended). Handlers fill `op`, run it, and write the answer in their
 * `finish`; a handler that has answered must not touch the exchange again. */
#ifndef ARBE_SERVE_EXCHANGE_H
#define ARBE_SERVE_EXCHANGE_H

#include "serve/body.h"
#include "serve/query.h"
#include "serve/session.h"
#include "serve/work.h"

/* The head as it came, for as long as a handler reads headers. */
struct request_head {
    struct http_request request; /* its slices borrow from `bytes` */
    char bytes[];
};

/* A reader that waits: long-poll and SSE. */
struct live {
    struct stream *stream;       /* referenced; the generation that the first read found */
    struct stream_waiter waiter; /* registered while `waiting` */
    uint64_t at;                 /* position reached */
    uint64_t seen;               /* SSE: position looked at; beyond `at` stands half a character */
    uint64_t end_ms;             /* SSE: when its life ends */
    uint64_t sent_ms;            /* SSE: when something was last sent */
    uint64_t stalled_ms;         /* SSE: since when the output has not moved */
    size_t stalled_bytes;        /* SSE: output at that time */
    bool waiting;
    bool timed_out;   /* long-poll: the read under way is the last */
    uint8_t encoding; /* SSE: an enum sse_encoding */
};

/* What the session tells an exchange that waits, or whose answer goes on. Each may end it. */
struct exchange_live {
    /* The time that session_set_deadline gave has passed. */
    void (*tick)(struct exchange *x);
    /* The output is empty: more may follow. NULL: nothing follows. */
    void (*drained)(struct exchange *x);
    /* It is to end, cleanly: the server stops, or the reader's right has. */
    void (*stop)(struct exchange *x);
};

struct access;  /* access.h */
struct control; /* control.h */
struct mount;   /* mount.h */

struct exchange {
    struct session *session;
    struct worker *worker;
    struct request_head *head; /* owned; NULL once no header is needed any more */
    struct work *work;         /* owned; NULL while a live reader waits, and in refusals of heads */
    enum http_method method;
    bool head_only;  /* HEAD: headers without the body */
    bool keep;       /* the connection may go on afterwards */
    bool chunked_ok; /* HTTP/1.1 */
    bool running;    /* op is pending */
    bool unasked;    /* the client waits for 100 Continue with its body */
    bool unrated;    /* who asks has shown no secret: its body uses up nothing of the write rate */
    bool control;    /* the path is one of the control API: refusals take its form */
    const struct mount *mount; /* whose route it is: refusals take its form; NULL: the server's */
    void *guest;               /* the mount's state; NULL: none */
    bool unwanted;             /* see session_end_read: it is not to become live any more */
    bool as_stream;            /* the mount left it to the streams' handlers: so do refusals */
    struct body body;          /* the request's */
    struct query query;
    struct live live;
    const struct exchange_live *live_ops; /* NULL: an op is waited for, which has its own bounds */
    void *live_own;                       /* theirs, when they are a mount's */
    uint64_t rated;        /* bytes of the body that the write rate was charged with beforehand */
    uint64_t retry_after;  /* seconds, for a 429 or 503; 0: one */
    bool outcome_unknown;  /* the 503 must not invite to ask again */
    struct slice allow;    /* for a 405, when it is not what streams know; static */
    struct control *about; /* owned; what a request to the control API is about, or NULL */
    int status;            /* of the answer, once it has begun */
    struct access *access; /* owned; NULL: no line will be logged */
    uint64_t ready_us;     /* when the body was there, by the loop's clock */
    void (*ready)(struct exchange *x);  /* the body is there */
    void (*finish)(struct exchange *x); /* op has its result */
    void (*ended)(struct exchange *x);  /* before destruction; may be NULL */
};

/* Takes a complete head of `head_bytes` at the start of `input`, parsed into the worker's scratch
 * request, and begins to serve it. */
void exchange_begin(struct session *s, struct slice input, size_t head_bytes);

/* Body bytes have come. */
void exchange_feed(struct exchange *x);

/* Finds out whose route the request's path is: sets x->control and x->mount. */
void exchange_find_owner(struct exchange *x, const struct http_request *request);

/* The head is good: waits for the body, then calls x->ready. */
void exchange_await_body(struct exchange *x);

/* Answers that the body cannot be had: too large, malformed, too much under way. */
void exchange_refuse_body(struct exchange *x, int code);

/* Something outside works on the request and will call exchange_resume, on the worker's thread:
 * until then the exchange stays, also when its client goes. */
void exchange_park(struct exchange *x);

/* That has ended: calls x->finish, or frees the exchange when nobody waits for it. */
void exchange_resume(struct exchange *x);

/* Starts x->work->op, of which verb and request are set, on the stream of that name; x->finish is
 * called with the result, now or later. */
void exchange_run(struct exchange *x);

/* A live reader has nothing to do for now: gives back its work, page and all. */
void exchange_rest(struct exchange *x);

/* It has: takes work with the name of its stream. False: no memory, and it rests on. */
bool exchange_rise(struct exchange *x) MUST_USE;

/* Whether the request is one too many for this second: then it has been answered. Asked once for
 * every request that had the right to ask. */
bool exchange_over_rate(struct exchange *x) MUST_USE;

/* How names begin that this request may neither read nor write, since they are kept for the mount;
 * empty: none. Lives as long as the server. */
struct slice exchange_reserved(const struct exchange *x);

/* Whether `name` is kept for the mount, and this server has no secret that would let others in:
 * then `msg` says so, ERR_PERM. */
int exchange_check_reserved(const struct exchange *x, struct slice name,
                            struct errmsg *msg) MUST_USE;

/* Frees everything but the session. No op is running. Accepts NULL. */
void exchange_destroy(struct exchange *x);

/* The connection is gone: frees the exchange now, or, with an op running, once that has ended. True
 * when it was freed. */
bool exchange_abandon(struct exchange *x);

/* Gives back the request head. */
void exchange_drop_head(struct exchange *x);

/* The request that x->head holds. */
static inline const struct http_request *exchange_request(const struct exchange *x)
{
    return &x->head->request;
}

#endif
