/* What a failure of streams or of the records means to who asked the API for something. */
#ifndef ARBE_THREAD_FAILURE_H
#define ARBE_THREAD_FAILURE_H

#include "arbe/stream_error.h"
#include "base/err.h"
#include "thread/api_error.h"

/* Who is told, in detail, of what the caller is told in general: addresses and names of streams are
 * the operator's. Any thread. */
struct failure_teller {
    void (*tell)(void *context, const char *sentence);
    void *context;
};

/* Sets *e (may be NULL) for a failed call to streams. Returns -1. `teller` may be NULL; of what the
 * request itself is to blame for it is not told. */
int failure_of_stream(struct api_error *e, const struct stream_error *error,
                      const struct failure_teller *teller);

/* Whether the same append can never succeed, however often it is tried: the stream is closed, or
 * the server refuses it for what it is. Not so when the stream is not there. */
bool failure_is_final(const struct stream_error *error);

/* How long the server wants to be left alone, in seconds, at least 1; 0: it did not say. */
uint64_t failure_retry_after_s(const struct stream_error *error);

/* Sets *e for a failed call to the records; `msg` says why, to the teller. Returns -1. */
int failure_of_store(struct api_error *e, int code, const struct errmsg *msg,
                     const struct failure_teller *teller);

#endif
