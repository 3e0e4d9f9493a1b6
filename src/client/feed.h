/* What brings a reader its bytes: one call at a time on the client's thread, a buffer between that
 * and whoever reads, and a pause of the call while the buffer is full.
 *
 * One side is the client's thread; the other is "the reader's", one thread at a time, which asks,
 * takes, and asks again. All functions are for the reader's side, but for feed_abort. */
#ifndef ARBE_CLIENT_FEED_H
#define ARBE_CLIENT_FEED_H

#include "client/client.h"
#include "client/retry.h"

#include "base/buf.h"

#define FEED_CURSOR_BYTES 64 /* with the NUL */

enum feed_state {
    FEED_BUSY,  /* nothing yet */
    FEED_BYTES, /* a part of the body; `head` says of which answer */
    FEED_END,   /* no more bytes; see feed_end */
};

enum feed_end {
    FEED_DONE,    /* `result` says how it came out */
    FEED_SILENT,  /* not a byte within silence_ms */
    FEED_GAVE_UP, /* there were retries enough; nothing was asked */
    FEED_ABORTED, /* and so will be all to come */
};

struct feed_request {
    enum call_verb verb;
    char offset[STREAM_OFFSET_BYTES];
    char cursor[FEED_CURSOR_BYTES]; /* empty: none */
    bool fresh;                     /* something went well since the last failure */
    bool retries;                   /* the one before failed: pause by the rules, or give up */
    long retry_after_ms;            /* what the server asked for then; -1: nothing */
    uint64_t pause_ms;              /* before anything is sent, if it is no retry */
    uint64_t silence_ms;            /* how long to wait for the first byte; 0: no limit of this */
};

struct feed {
    struct call_result head;   /* the head of the answer at hand; from the first FEED_BYTES on */
    struct call_result result; /* with FEED_END and FEED_DONE */
    enum feed_end end;         /* with FEED_END */
    uint64_t elapsed_ms;       /* with FEED_END: since the call was sent */
    struct refusal refusal;    /* with FEED_END: what an API said, if it refused */

    /* Set before anything is asked; borrowed. */
    const char *what;                 /* words for errors; NULL: the usual ones */
    const struct stream_retry *rules; /* for retries; those of the client otherwise */

    /* private: the reader's side */
    struct buf work; /* what it takes bytes from */

    /* private: both sides, under the mutex */
    pthread_mutex_t mutex;
    pthread_cond_t news;
    struct buf fill; /* what came since; swapped with `work` */
    bool has_head;   /* `head` is there */
    bool paused;     /* the call waits for room in `fill` */
    bool ended;      /* the call is over, `end` is set */
    bool stepped;    /* the reader is asked without blocking: the client's descriptor counts */
    bool is_ready;   /* counted there */
    bool used;       /* the client's thread knows of it */
    bool halted;     /* `halt` was posted */

    /* private: the client's thread */
    struct stream_client *client;
    struct call call;
    struct feed_request request; /* the reader's while no call is under way */
    struct client_timer timer;   /* of a pause, or of silence */
    struct client_party party;
    struct task start;
    struct task resume;
    struct task halt;
    struct task leave;
    struct retry retry;
    uint64_t sent_ms; /* when the call was started */
    bool joined;      /* the party has */
    bool pausing;     /* the timer is that of a pause */
    bool under_way;   /* the call is with the transport */
    bool heard;       /* its first byte came */
    atomic_bool dead; /* aborted; any thread reads it */
};

/* For a stream of the client; `name` must live as long as the feed. Asks nothing yet. MEMORY. */
int feed_init(struct feed *f, struct stream_client *client, const char *name);

/* Ends what is under way, at once, and frees what is held. Blocks for a turn of the client's
 * thread. Not from that thread. */
void feed_finish(struct feed *f);

/* Asks for something. Only when nothing is under way: at first, and after FEED_END. */
void feed_ask(struct feed *f, const struct feed_request *request);

/* What there is. `stepping`: FEED_BUSY makes the client's descriptor tell when to look again.
 * ret_bytes, with FEED_BYTES, live until the next call. */
enum feed_state feed_take(struct feed *f, bool stepping, struct slice *ret_bytes);

/* Ends what is under way; nothing may be asked after that. Does not block. */
void feed_halt(struct feed *f);

/* Blocks until feed_take has something. */
void feed_wait(struct feed *f);

/* With `is_on`, the client's descriptor is readable until a feed_take finds nothing. */
void feed_set_ready(struct feed *f, bool is_on);

/* Whether it was aborted, itself or with the client. */
bool feed_aborted(const struct feed *f);

/* Aborts it. Any thread, also a signal handler. */
void feed_abort(struct feed *f);

#endif
