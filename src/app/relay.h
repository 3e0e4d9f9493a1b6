/* One answer on its way from another server to a client. Two threads have a part in it: the
 * upstream's, which fetches it and owns the memory, and the worker of the exchange, which serves
 * it.
 *
 * Life: made by the worker; told to the upstream's thread as news; fetched, with a task posted to
 * the worker whenever there is more; `gone` once the exchange has ended, however it did; then freed
 * by the upstream's thread. What both touch is guarded by one lock of all relays, held for a few
 * instructions at a time. */
#ifndef ARBE_APP_RELAY_H
#define ARBE_APP_RELAY_H

#include "app/upstream.h"
#include "app/upstream_head.h"
#include "app/upstream_request.h"
#include "base/block.h"

#include <pthread.h>

/* Around the bytes of each piece is room for the framing of a chunk (RFC 9112 section 7.1). */
#define RELAY_CHUNK_LINE 10 /* eight hex digits and CRLF */
#define RELAY_CHUNK_END  2  /* CRLF */

/* What a client waits for, which says how long that may take. */
enum relay_kind {
    RELAY_PLAIN,
    RELAY_LONG_POLL,
    RELAY_SSE,
};

/* How the fetching ended. */
enum relay_end {
    RELAY_OPEN,    /* it has not */
    RELAY_WHOLE,   /* all is there */
    RELAY_FAILED,  /* before the head was there: nothing of it can be told */
    RELAY_CUT,     /* within the body */
    RELAY_REFUSED, /* the other server does not take our secret; as RELAY_FAILED */
};

/* What the two threads share of all relays. */
struct relay_shared {
    pthread_mutex_t mutex;
    struct list news;     /* relays that the upstream's thread is to look at */
    size_t count;         /* relays that are not freed */
    uint64_t draining_ms; /* since when the server is about to end; 0: it is not */
    bool stopping;
    CURLM *multi; /* to be woken */
};

struct relay {
    /* constant once it was started */
    struct relay_shared *shared;
    void (*refuse)(struct exchange *x, enum api_code code, const char *sentence);
    struct loop *loop; /* the worker's */
    enum relay_kind kind;
    bool head_only;
    struct upstream_request request;

    /* the worker's */
    struct exchange *x;
    struct task task;     /* to look at what has come */
    bool begun;           /* the head has gone out */
    bool chunked;         /* the body is framed as chunks */
    bool unframed;        /* the end of the connection is its end */
    uint64_t left;        /* of a body with a length: what has not gone out */
    size_t stalled_bytes; /* output at the last look */
    uint64_t stalled_ms;  /* since when it has not moved */

    /* under the lock */
    struct list news;     /* on the news */
    struct list pieces;   /* of the body, waiting for the worker */
    size_t pieces_bytes;  /* what they take */
    bool posted;          /* the task is on its way */
    bool head_whole;      /* the worker may read `head`, which does not change any more */
    bool paused;          /* the fetching waits for room */
    bool resume;          /* and may go on */
    bool gone;            /* the exchange has ended: nothing is posted any more */
    enum relay_end ended; /* nothing follows the pieces */

    /* the upstream's thread's */
    struct list link; /* on the upstream's relays */
    CURL *easy;       /* NULL: it has not begun, or it has ended */
    struct upstream_head head;
    const char *trouble; /* why it was given up on our side; NULL: it was not */
    bool secret_refused; /* by the other server */
    bool held;           /* it is paused */
    uint64_t since_ms;   /* when it began, or something was last heard */
    char error[CURL_ERROR_SIZE];
};

/* A piece of a body, whose block has room for a chunk's line before its bytes, and its end behind
 * them. */
struct relay_piece {
    struct list link; /* on the relay's pieces */
    struct block *block;
};

/* Adds bytes to the queue. False when it is full, and the fetching is to pause; `ret_failed`: out
 * of memory. On the upstream's thread. */
bool relay_push(struct relay *r, struct slice bytes, bool *ret_failed) MUST_USE;

/* The head is whole. On the upstream's thread. */
void relay_head_done(struct relay *r);

/* Nothing follows. On the upstream's thread. */
void relay_end(struct relay *r, enum relay_end end);

/* Whether the pause may end; asked once for each. On the upstream's thread. */
bool relay_take_resume(struct relay *r);

/* The next piece's block, which is then the caller's; NULL: there is none, and `ret_ended` says
 * whether any follows. On the worker. */
struct block *relay_take(struct relay *r, enum relay_end *ret_ended);

/* Whether the worker has been told all that has come until now: true once for each task. */
bool relay_look(struct relay *r, enum relay_end *ret_ended);

/* The exchange has ended: the relay is the upstream's alone. On the worker. */
void relay_leave(struct relay *r);

/* Tells the upstream's thread of a new one. False when there are too many, or it is stopping. On
 * the worker. */
bool relay_start(struct relay *r, unsigned relays_max) MUST_USE;

/* Frees it, which is gone or was never started. */
void relay_destroy(struct relay *r);

#endif
