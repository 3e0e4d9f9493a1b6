/* What one worker counts for /metrics. Only its own thread changes it, so counting needs no lock;
 * metrics.c adds the workers up when somebody asks. */
#ifndef ARBE_SERVE_TALLY_H
#define ARBE_SERVE_TALLY_H

#include "base/err.h"
#include "base/histogram.h"
#include "http/status.h"

/* Zeroed to begin with. */
struct tally {
    struct counter requests[HTTP_METHOD_COUNT]
                           [HTTP_STATUS_COUNT + 1]; /* answered; [..][http_status_index] */
    struct counter errors[ERR_INDEX_COUNT];         /* requests refused with that code */
    struct counter accepted;                        /* connections */
    struct counter refused;                         /* connections above the cap */
    struct counter request_bytes;                   /* of whole bodies */
    struct counter response_bytes;                  /* of bodies; queued for sending */
    struct counter long_polls;                      /* open at present */
    struct counter sse_streams;                     /* open at present */
    struct histogram append_us;                     /* of accepted POSTs: body whole to answered */
};

/* A request was refused with `code`, one of base/err.h. */
static inline void tally_error(struct tally *t, int code)
{
    counter_add(&t->errors[-code - 1], 1);
}

/* Adds `more` to the sums in *t, in which nothing else counts. `more` may change meanwhile. */
void tally_add(struct tally *t, const struct tally *more);

#endif
