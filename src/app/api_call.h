/* One request to the API and its answer: who asks, for what, with what; then status and document.
 *
 * Life: api_begin on the worker finds route and caller and reads the body; the handler runs on a
 * thread of the application, where it may block, or on the worker; the answer goes out on the
 * worker. Between begin and answer the exchange is parked, so that the call outlives its client.
 *
 * A handler returns API_DONE (status and answer are set), API_FAILED (error is set), or
 * API_PENDING: then api_finish is called later, once, with one of the others, on any thread.
 * API_HANDOVER lets c->handover go on with the exchange on the worker, and answer in another
 * way. */
#ifndef ARBE_APP_API_CALL_H
#define ARBE_APP_API_CALL_H

#include "app/caller.h"
#include "app/input.h"
#include "app/params.h"
#include "app/route.h"
#include "serve/exchange.h"
#include "thread/sandbox_token.h"
#include "thread/store_thread.h"

#define API_DONE     0
#define API_FAILED   (-1)
#define API_PENDING  1
#define API_HANDOVER 2

struct app;

struct api_call {
    struct app *app;
    struct exchange *x;
    const struct route *route;
    struct slice params[ROUTE_PARAMS_MAX]; /* of the path, decoded */
    struct slice query;                    /* raw; ptr NULL: none */
    struct slice body;
    struct caller caller;         /* who was let in; of ROUTE_OPEN perhaps nobody */
    struct sandbox_token sandbox; /* ROUTE_SANDBOX */
    struct thread_access access;  /* of routes about a thread, once may.h has looked */
    uint64_t epoch;               /* of grants, before who asks was looked at */
    uint64_t peer;                /* see attempts_address */
    int64_t now_ms;               /* wall clock when the request was there, whole */
    struct arena memory;          /* until the answer is out */
    int status;                   /* of the answer */
    struct buf answer;            /* its JSON document */
    struct buf cookie;            /* its Set-Cookie; empty: none */
    struct api_error error;       /* API_FAILED */
    uint64_t retry_after;         /* seconds, with a 429 or 503; 0: one */
    bool on_pool;                 /* this is a thread of the application: the handler may block */
    void (*handover)(struct api_call *c);
    void *work; /* the handler's own, in `memory` */

    /* private */
    struct task task;                /* on the application's pool, then on the loop */
    int (*step)(struct api_call *c); /* what the next turn on the pool is to do */
    int result;                      /* what api_finish was given */
    char path[];                     /* memory of params */
};

/* Begins to serve a request for a path that route_takes knows: struct mount's begin. */
void api_begin(struct exchange *x, struct slice path, struct slice query);

/* struct mount's leave. */
void api_leave(struct exchange *x);

/* The call has its result. Any thread. */
void api_finish(struct api_call *c, int result);

/* Goes on with `step` on a thread of the application, as the route's place has it, and finishes
 * with what it returns; or with BUSY when too much waits there. The caller then returns
 * API_PENDING. Any thread. */
void api_run_on_pool(struct api_call *c, int (*step)(struct api_call *c));

/* The same on a thread of those that wait for streams. */
void api_run_on_streams(struct api_call *c, int (*step)(struct api_call *c));

/* Begins anew with the question who asks, since something was taken away meanwhile. On the
 * worker. */
void api_look_again(struct api_call *c);

/* Refuses: sets the error and returns API_FAILED. */
int api_refuse(struct api_call *c, enum api_code code, const char *format, ...) PRINTF_LIKE(3, 4);

/* Answers an exchange of ours with a refusal, at once. On its worker, when nothing of an answer has
 * gone out. */
void api_refuse_now(struct exchange *x, enum api_code code, const char *sentence);

/* The same of a secret that was not the right one: so many a minute and address, then it is
 * AUTH_RATE_LIMITED. The right one is never refused: there are 256 bits to guess. */
int api_refuse_attempt(struct api_call *c, enum api_code code, const char *sentence);

/* What a failed call of the store or of the streams is to the caller: `what` is there for
 * ERR_NOTFOUND, as in "there is no such house". Returns API_FAILED. */
int api_fail(struct api_call *c, int code, const struct errmsg *msg, const char *what);

/* The same for an append to a thread's stream. */
int api_fail_append(struct api_call *c, int code, const struct errmsg *msg);

/* Answers with what c->result says. On the worker, where nothing is pending. */
void api_answer_now(struct exchange *x);

/* Ends the answer: API_DONE with that status, or API_FAILED when memory ran out. */
int api_answer(struct api_call *c, int status);

/* A new id, UUIDv7, in the call's memory; ptr NULL and the error set when there is none. */
struct slice api_new_id(struct api_call *c);

/* 32 random bytes; false and the error set when there are none. */
bool api_random(struct api_call *c, unsigned char out[static API_KEY_RANDOM_BYTES]) MUST_USE;

/* The caller's agent. */
static inline struct slice api_agent(const struct api_call *c)
{
    return slice_of(c->caller.agent_id);
}

#endif
