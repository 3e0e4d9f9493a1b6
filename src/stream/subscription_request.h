/* The JSON bodies of the subscription API (PROTOCOL.md 6.2, 6.4, 7.1, 7.2), read strictly: what is
 * wrong is ERR_INVALID with a sentence that says what would be accepted, never more than that. An
 * empty body counts as {}. Members that are not known are ignored; a known one given twice is
 * refused. null counts as left out where leaving out is allowed.
 *
 * Results borrow from the arena given, and from nothing else. ERR_NOMEM when the arena is
 * exhausted: give it SUBSCRIPTION_ARENA_BYTES_MAX. Any thread. */
#ifndef ARBE_STREAM_SUBSCRIPTION_REQUEST_H
#define ARBE_STREAM_SUBSCRIPTION_REQUEST_H

#include "base/arena.h"
#include "base/err.h"
#include "base/limits.h"
#include "stream/offset.h"
#include "stream/subscription.h"

/* Enough for what a body of SUBSCRIPTION_BODY_BYTES_MAX can hold. */
#define SUBSCRIPTION_ARENA_BYTES_MAX (64u * SUBSCRIPTION_BODY_BYTES_MAX)

/* A definition in normal form, with its hash, and the streams that it names. */
struct subscription_spec {
    struct subscription_definition def;
    const struct slice *streams; /* canonical names, in order, each once */
    size_t stream_count;
};

/* One member of "acks": the last position that was processed. */
struct subscription_ack {
    struct slice path; /* canonical name */
    bool start;        /* "-1": a token of the protocol, but never a good ack */
    uint64_t position; /* OFFSET_BEYOND: further than any stream; unless `start` */
};

/* The body of callback, ack and release. */
struct subscription_report {
    struct slice wake_id;
    uint64_t generation;
    const struct subscription_ack *acks; /* in the order sent */
    size_t ack_count;
    bool done;
};

/* The body of PUT. */
int subscription_request_put(struct slice body, struct arena *a, struct subscription_spec *ret_spec,
                             struct errmsg *msg) MUST_USE;

/* The body of POST .../streams: canonical names, in order, each once; may be none. */
int subscription_request_streams(struct slice body, struct arena *a,
                                 const struct slice **ret_streams, size_t *ret_count,
                                 struct errmsg *msg) MUST_USE;

/* The body of claim. */
int subscription_request_claim(struct slice body, struct arena *a, struct slice *ret_worker,
                               struct errmsg *msg) MUST_USE;

/* The body of callback, ack and release. */
int subscription_request_report(struct slice body, struct arena *a,
                                struct subscription_report *ret_report,
                                struct errmsg *msg) MUST_USE;

/* What a webhook answered: true when it is a JSON object with "done": true; everything else is
 * not. */
bool subscription_reply_done(struct slice reply);

/* The canonical name that a JSON string gives: slashes at both ends are taken off, the rest is read
 * as name_parse does. ERR_INVALID. */
int subscription_path_parse(struct slice raw, char out[static STREAM_NAME_BYTES_MAX],
                            size_t *ret_len, struct errmsg *msg) MUST_USE;

/* The same for what follows "streams/" in a URL, where it is escaped once more. ERR_INVALID. */
int subscription_url_path_parse(struct slice escaped, char out[static STREAM_NAME_BYTES_MAX],
                                size_t *ret_len, struct errmsg *msg) MUST_USE;

#endif
