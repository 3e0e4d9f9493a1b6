/* One request of the protocol and its answer, however it travels: the unit in which the client
 * talks to a transport. A call is one try; what tries again stands above it.
 *
 * Whoever starts a call owns it and all that it borrows until on_done has run or the call was
 * cancelled. Everything here happens on the client's thread. */
#ifndef ARBE_CLIENT_CALL_H
#define ARBE_CLIENT_CALL_H

#include "arbe/stream_client.h"
#include "base/attr.h"
#include "base/buf.h"
#include "base/list.h"
#include "base/slice.h"
#include "client/refusal.h"

#include <stdarg.h>
#include <stdbool.h>

#define CALL_AFTER_BYTES 2048 /* a name in a listing, with its NUL */

enum call_verb {
    CALL_CREATE,
    CALL_APPEND, /* with `close` and no body: a close */
    CALL_DELETE,
    CALL_HEAD,
    CALL_READ,      /* one page */
    CALL_LONG_POLL, /* one page, waited for */
    CALL_SSE,       /* the text of server-sent events, as it comes */
    CALL_LIST,      /* one page of names */
    CALL_REQUEST,   /* any other request of HTTP, to an API beside the streams */
};

/* What on_data made of a piece. */
enum call_flow {
    CALL_TAKEN, /* all of it; go on */
    CALL_PAUSE, /* nothing of it: it comes again after a resume */
    CALL_STOP,  /* no more is wanted: the call ends well, and on_done is called */
};

/* How it came out. Texts that were not said are empty. */
struct call_result {
    struct stream_info info;      /* of the answer's head; complete before the first on_data */
    bool up_to_date;              /* the page reaches the tail */
    bool base64;                  /* CALL_SSE: data events are base64 */
    bool body_whole;              /* the body came to its end; false after CALL_STOP */
    bool transient;               /* failed, and might do better by itself before long */
    bool resent;                  /* it may have been sent more than once */
    struct stream_error error;    /* code STREAM_OK: none */
    char after[CALL_AFTER_BYTES]; /* CALL_LIST: go on with this; empty: that was all */
};

struct call {
    /* The request; set before the start, untouched until the end. Zero but for what is wanted. */
    enum call_verb verb;
    struct slice name; /* of the stream; LIST: the prefix; REQUEST: path and query, escaped */
    const char *what;  /* the words for errors, such as "cannot read it"; NULL: usual ones */
    struct slice body; /* CREATE, APPEND, REQUEST */
    const char *content_type; /* CREATE, APPEND, REQUEST: of the body; NULL: not said */
    const char *offset;       /* READ, LONG_POLL, SSE; NULL: "-1" */
    const char *cursor;       /* READ, LONG_POLL, SSE: to be echoed; NULL: none */
    const char *seq;          /* APPEND: Stream-Seq; NULL: none */
    bool close;               /* CREATE, APPEND: and no more after this */
    const char *producer_id;  /* APPEND; NULL: none */
    int64_t producer_epoch;
    int64_t producer_seq;
    const struct stream_create_options *create; /* CREATE: TTL, expiry, fork; NULL: none */
    const char *after;                          /* LIST: names behind this one; NULL: all */
    const char *method;                         /* REQUEST */
    bool repeatable;         /* REQUEST: done twice it does no more than done once */
    bool removes;            /* REQUEST: so a try may find that the one before it did it */
    struct buf *answer;      /* REQUEST: gets the body of a good answer, which is JSON */
    struct refusal *refusal; /* gets what a refusal of an API says; NULL: nobody asks */

    /* A piece of a good answer's body, as many times as there are pieces; result.info is there by
     * then. Not for CREATE, APPEND, DELETE, HEAD, LIST and REQUEST. */
    enum call_flow (*on_data)(struct call *call, struct slice bytes);
    /* LIST: a stream of the page; the texts live during the call. */
    void (*on_listed)(struct call *call, struct slice name, const struct stream_info *info);
    /* The end, good or bad; `result` is complete. The call may be started again or freed here. */
    void (*on_done)(struct call *call);

    void *context; /* of whoever started it */

    struct call_result result;

    /* private to the transport */
    struct list link; /* on the transport's list of calls under way */
    void *transfer;   /* what it keeps of this call */

    /* private to a transport that stands before another one */
    void (*on_done_behind)(struct call *call); /* the on_done that it took the place of */
    void *front;                               /* itself */
};

/* Empties the result, and what else an answer fills, before a try. */
void call_begin(struct call *call);

/* The words for an error about this call: "cannot append to "a/b"". */
void call_what(const struct call *call, char *out, size_t size);

/* Fails the call: the message becomes "cannot append to "a/b": " and the sentence. */
void call_fail(struct call *call, enum stream_error_code code, const char *format, ...)
    PRINTF_LIKE(3, 4);

/* Fails the call as an answer of that status does, with the server's own `sentence` (empty: one of
 * ours). Looks at what result.info says: closed, producer fields, expected_seq. Sets transient and
 * outcome_unknown. `refused` is a 503 which surely means that nothing was done. */
void call_fail_status(struct call *call, int status, bool refused, struct slice sentence);

/* Whether the same call may be sent once more after it failed with `transient`, without the risk of
 * doing a thing twice. */
bool call_repeatable(const struct call *call);

/* Whether the call changes something where it arrives. */
bool call_writes(const struct call *call);

/* Makes a text one line that may be shown: controls become spaces, a character cut in two goes. */
void call_clean_text(char *text);

/* NULL when a stream may have that name, else a sentence that says why not. Static storage. */
const char *call_name_refusal(struct slice name);

/* Whether a field of a request may have that value: no control characters. */
bool call_value_good(const char *text);

/* Fails the call with ARGUMENT when the field `name` cannot have that value. */
bool call_check_value(struct call *call, const char *name, const char *value);

/* Fills *error for failures that belong to no call. Returns `code`. `error` may be NULL. */
int call_error_set(struct stream_error *error, enum stream_error_code code, const char *format, ...)
    PRINTF_LIKE(3, 4);

#endif
