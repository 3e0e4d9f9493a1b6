/* What an idempotent producer does (PROTOCOL.md 5.2.1), without doing it: messages are gathered
 * into batches, batches are numbered, sent, answered, sent again; the caller has the clock, the
 * dice, the lock and the network. See pipeline.c for why no message is lost, doubled or overtaken.
 *
 * Memory: messages that are not known to be stored, with PIPELINE_MESSAGE_COST each; the caller
 * asks pipeline_has_room before it adds more. */
#ifndef ARBE_CLIENT_PIPELINE_H
#define ARBE_CLIENT_PIPELINE_H

#include "base/list.h"
#include "base/slice.h"
#include "client/call.h"
#include "client/retry.h"

#define PIPELINE_MESSAGE_COST 16 /* bytes of memory that a message takes besides its own */

enum batch_state {
    BATCH_OPEN,   /* takes messages; the last one of the queue */
    BATCH_READY,  /* is full, or has to go again */
    BATCH_SENT,   /* waits for its answer */
    BATCH_STORED, /* is stored, but the answer to one before it is missing */
};

struct batch {
    struct list link; /* on the pipeline's queue */
    enum batch_state state;
    uint64_t first;  /* number of its first message, from 0 */
    size_t count;    /* messages */
    size_t len;      /* bytes of `data` in use */
    size_t data_cap; /* bytes allocated */
    size_t ends_cap; /* entries allocated */
    char *data;      /* what is sent; for JSON "[a,b," until batch_body ends it; owned */
    size_t *ends;    /* where each message, with its comma, ends in `data`; owned */
    uint64_t since;  /* ms; when the first message came */
    bool urgent;     /* does not linger */
    bool close;      /* closes the stream; the last one */
    bool uncertain;  /* a try that ended without an answer may have been taken, or yet be */
    bool gapped;     /* the last try came before the one to a batch before it */
    int64_t seq;     /* Producer-Seq; -1 until first sent */
    int64_t base;    /* when last sent: the lowest seq not known to be stored */
    uint64_t round;  /* when last sent: how many pauses there had been */
};

struct pipeline_options {
    bool json;               /* bodies are JSON arrays, else one message behind the other */
    bool auto_claim;         /* take an epoch that nobody has used */
    bool replay;             /* what the server knows from an earlier run is as good as stored */
    int64_t epoch;           /* the first to try */
    size_t batch_bytes_max;  /* above 0 */
    size_t batch_count_max;  /* above 0 */
    uint64_t linger_ms;      /* 0: at once */
    int in_flight_max;       /* above 0 */
    size_t queued_bytes_max; /* above 0 */
    const struct stream_retry *retry; /* borrowed */
    const char *what;                 /* begins each sentence of an error; borrowed */
};

enum pipeline_state {
    PIPELINE_RUNS,
    PIPELINE_STALLED, /* gave up for now: `error` says why; pipeline_rouse goes on */
    PIPELINE_CLOSED,  /* everything is stored and the stream is closed; nothing follows */
    PIPELINE_FAILED,  /* for good: `error` says why */
};

struct pipeline {
    struct pipeline_options options;
    enum pipeline_state state;
    struct stream_error error; /* of STALLED and FAILED */
    struct stream_info info;   /* of the newest batch that was stored */
    uint64_t appended;         /* messages taken */
    uint64_t stored;           /* messages known to be stored, with all before them */
    size_t queued_bytes;       /* what the rest takes */
    int64_t epoch;             /* in use */
    int in_flight;             /* batches in state SENT */

    /* private */
    int in_round;            /* those that were sent since the last pause */
    int64_t base;            /* lowest seq that is not known to be stored */
    struct list queue;       /* of struct batch, in order; from the first that is not stored */
    struct batch *open;      /* the one that takes messages, or NULL */
    int64_t next_seq;        /* of the next batch that is sent for the first time */
    int window;              /* how many may be in flight just now */
    bool established;        /* the server has taken a batch in this epoch */
    bool closing;            /* the closing batch is queued */
    struct batch *too_large; /* the first one that the server found too large, or NULL */
    size_t batch_bytes_max;  /* as the server likes it */
    int claims;              /* epochs tried */
    uint64_t pause_until;    /* ms */
    uint64_t round;          /* pauses so far */
    struct retry retry;
};

/* Begins with nothing queued. `dice`: 64 random bits. */
void pipeline_init(struct pipeline *p, const struct pipeline_options *options, uint64_t dice);

/* Frees all batches; no body may be in use. */
void pipeline_finish(struct pipeline *p);

/* Whether a message of `len` bytes may be added now; an empty queue takes one of any size. */
bool pipeline_has_room(const struct pipeline *p, size_t len);

/* Adds one message, copied; the state is RUNS or STALLED and nothing has been closed. 0, or
 * ERR_NOMEM with nothing changed. *ret_poke: pipeline_next has something new to say. */
int pipeline_append(struct pipeline *p, struct slice message, uint64_t now_ms,
                    bool *ret_poke) MUST_USE;

/* Lets what is queued go without lingering. */
void pipeline_flush(struct pipeline *p);

/* Flushes, and adds the batch that closes the stream, with a last message (empty: none). Not
 * twice. 0, or ERR_NOMEM with nothing closed. */
int pipeline_close(struct pipeline *p, struct slice message) MUST_USE;

/* Ends a stall and forgets earlier failures. */
void pipeline_rouse(struct pipeline *p);

/* The next batch to send, now in flight, or NULL; *ret_wait_ms then tells when to ask again though
 * nothing else has happened, -1 for never. */
struct batch *pipeline_next(struct pipeline *p, uint64_t now_ms, int64_t *ret_wait_ms);

/* The body to send; borrowed until the batch is answered. */
struct slice batch_body(const struct pipeline *p, struct batch *batch);

/* How a try ended. Frees the batch when it is stored. `dice`: 64 random bits. */
void pipeline_answer(struct pipeline *p, struct batch *batch, const struct call_result *result,
                     uint64_t now_ms, uint64_t dice);

/* Fails for good; batches that are in flight are as if their answers were lost, and are freed by
 * pipeline_finish only. Does nothing in the states CLOSED and FAILED. */
void pipeline_fail(struct pipeline *p, enum stream_error_code code, const char *sentence);

#endif
